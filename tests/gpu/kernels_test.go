// Tests of every library kernel on a device against its Go version: random data, edge sizes, slices that start anywhere, guard bytes
// around every buffer. The same harness also runs on the CPU device, which tests the harness.

package gpu

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/driver"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/cudart/host/simt"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/kernels/launch"
	"github.com/dagrun/dagrun/kernels/library"
	"github.com/dagrun/dagrun/kernels/source/nvrtc"
)

// sizes are the scalars of one launch.
type sizes map[string]float64

// vector is the sizes that kernels on n elements are tested with.
var vector = []sizes{{"n": 0}, {"n": 1}, {"n": 7}, {"n": 1023}, {"n": 4096}, {"n": 100_003}, {"n": 1_500_001}}

var matrix = []sizes{{"rows": 0, "cols": 5}, {"rows": 1, "cols": 1}, {"rows": 7, "cols": 10}, {"rows": 777, "cols": 16}, {"rows": 300, "cols": 17}, {"rows": 600_001, "cols": 3}, {"rows": 257, "cols": 31}, {"rows": 300, "cols": 33}, {"rows": 5, "cols": 5000}, {"rows": 3, "cols": 9001}, {"rows": 2000, "cols": 200}, {"rows": 3001, "cols": 300}, {"rows": 333, "cols": 100}, {"rows": 40, "cols": 700}, {"rows": 50, "cols": 1500}, {"rows": 20, "cols": 2500},
	{"rows": 2503, "cols": 10}, {"rows": 1201, "cols": 7}, {"rows": 91, "cols": 258}, {"rows": 19, "cols": 602}, {"rows": 23, "cols": 601},
	{"rows": 17_001, "cols": 40}, {"rows": 17_003, "cols": 127}, {"rows": 16_901, "cols": 202}}

// withLongRows adds rows that are computed in parts.
var withLongRows = append(slices.Clone(matrix), sizes{"rows": 2, "cols": 65_537}, sizes{"rows": 1, "cols": 98_304}, sizes{"rows": 70, "cols": 131_075}, sizes{"rows": 3, "cols": 9_000_001})

var multiplied = []sizes{
	{"m": 0, "n": 3, "k": 3}, {"m": 3, "n": 2, "k": 0}, {"m": 1, "n": 1, "k": 1}, {"m": 33, "n": 17, "k": 19}, {"m": 64, "n": 64, "k": 64},
	{"m": 200, "n": 131, "k": 77}, {"m": 1000, "n": 10, "k": 200}, {"m": 70_001, "n": 3, "k": 65}, {"m": 5000, "n": 13, "k": 200, "tb": 1}, {"m": 517, "n": 16, "k": 33}, {"m": 1537, "n": 1530, "k": 40},
	{"m": 130, "n": 70, "k": 50, "ta": 1}, {"m": 130, "n": 70, "k": 50, "tb": 1}, {"m": 128, "n": 192, "k": 64, "ta": 1, "tb": 1}, {"m": 700, "n": 9, "k": 100, "tb": 1},
	{"m": 300, "n": 9, "k": 333}, {"m": 300, "n": 16, "k": 290, "tb": 1}, {"m": 32_801, "n": 17, "k": 20}, {"m": 32_770, "n": 28, "k": 259, "tb": 1}, {"m": 33_003, "n": 64, "k": 130}, {"m": 32_768, "n": 50, "k": 7},
}

// trials lists the sizes of kernels that differ from vector and matrix.
var trials = map[string][]sizes{
	"noop": {{}}, "spin": {{"us": 50}},
	"gemm": multiplied, "matmul": multiplied,
	"row_max": withLongRows, "row_sum": withLongRows,
	"matmul_standardised": {{"m": 0, "n": 3, "k": 3}, {"m": 3, "n": 2, "k": 0}, {"m": 1, "n": 1, "k": 1}, {"m": 5003, "n": 10, "k": 200, "tb": 1}, {"m": 517, "n": 16, "k": 33}, {"m": 130, "n": 70, "k": 50}, {"m": 32_780, "n": 18, "k": 20}, {"m": 32_769, "n": 33, "k": 5},
		{"m": 32_801, "n": 20, "k": 19}, {"m": 32_769, "n": 61, "k": 33, "tb": 1}},
	"column_moments": {{"parts": 1, "rows": 1, "cols": 2}, {"parts": 3, "rows": 100, "cols": 0}, {"parts": 5, "rows": 1000, "cols": 300}},
	"gemv":           {{"m": 0, "n": 4}, {"m": 1, "n": 1}, {"m": 37, "n": 129}, {"m": 500, "n": 1000}, {"m": 3, "n": 40_001}},
	"syrk":           {{"n": 1, "k": 1}, {"n": 65, "k": 33}, {"n": 256, "k": 256}},
	"spmv_csr":       {{"rows": 0, "cols": 1, "nnz": 0}, {"rows": 1, "cols": 1, "nnz": 1}, {"rows": 1001, "cols": 777, "nnz": 3003}, {"rows": 100, "cols": 5000, "nnz": 20_000}, {"rows": 100_000, "cols": 100_000, "nnz": 300_000}},
	"potrf":          {{"n": 0}, {"n": 1}, {"n": 7}, {"n": 16}, {"n": 65}, {"n": 256}},
	"trsm":           {{"m": 0, "n": 5}, {"m": 1, "n": 1}, {"m": 19, "n": 33}, {"m": 256, "n": 256}, {"m": 5, "n": 512}},
	"concat":         {{"rows": 1, "m": 0, "n": 0}, {"rows": 1, "m": 1000, "n": 333}, {"rows": 77, "m": 8, "n": 5}},
	"fft_stage":      {{"n": 2, "batch": 1, "half": 1}, {"n": 1024, "batch": 3, "half": 1}, {"n": 1024, "batch": 3, "half": 512}, {"n": 65536, "batch": 1, "half": 64, "inverse": 1}},
	"sort":           ordered,
	"sort_pairs":     {{"n": 0}, {"n": 97}, {"n": 4097}, {"n": 100_003}, {"n": 1_500_001}},
	"gather":         {{"n": 0, "m": 3}, {"n": 5, "m": 0}, {"n": 1, "m": 1}, {"n": 100_003, "m": 7000}, {"n": 7, "m": 100_003}, {"n": 1_500_001, "m": 1_500_001}},
	"scatter":        {{"n": 0, "m": 3}, {"n": 5, "m": 0}, {"n": 1, "m": 1}, {"n": 100_003, "m": 7000}, {"n": 7, "m": 100_003}, {"n": 1_500_001, "m": 1_500_001}},
	"segment_sum":    {{"n": 0, "segments": 0}, {"n": 0, "segments": 3}, {"n": 100, "segments": 1}, {"n": 100_003, "segments": 40_000}, {"n": 1_500_001, "segments": 700}},
	"histogram": {{"n": 0, "bins": 3}, {"n": 1, "bins": 1}, {"n": 100_003, "bins": 256}, {"n": 500_000, "bins": 8192},
		{"n": 5000, "bins": 16, "low": 1, "high": 1}, {"n": 5000, "bins": 16, "low": 2, "high": -1}, {"n": 5000, "bins": 16, "low": math.NaN()}, {"n": 5000, "bins": 16, "high": math.Inf(1)},
		{"n": 5000, "bins": 16, "low": -1e308, "high": 1e308}, {"n": 5000, "bins": 16, "low": -3e38, "high": 3e38}, {"n": 5000, "bins": 16, "low": 0, "high": 1e-320}},
	"conv2d":      convolutions,
	"conv2d_relu": convolutions,
	"mean_pool":   {{"rows": 1, "cols": 1, "channels": 1, "size": 1, "stride": 1}, {"rows": 53, "cols": 40, "channels": 8, "size": 5, "stride": 5}, {"rows": 31, "cols": 33, "channels": 3, "size": 3, "stride": 2}},
	"gaussian_blur": {{"rows": 0, "cols": 3, "diameter": 3}, {"rows": 1, "cols": 1, "diameter": 5}, {"rows": 65, "cols": 33, "diameter": 3},
		{"rows": 100, "cols": 257, "diameter": 5}, {"rows": 70, "cols": 70, "diameter": 31}, {"rows": 1500, "cols": 1501, "diameter": 3}},
	"gaussian_blur_rows": {{"rows": 1, "cols": 1, "diameter": 5, "above": 2, "below": 2}, {"rows": 65, "cols": 33, "diameter": 3, "below": 1},
		{"rows": 100, "cols": 257, "diameter": 5, "above": 2}, {"rows": 70, "cols": 70, "diameter": 31, "above": 15, "below": 9}, {"rows": 1500, "cols": 1501, "diameter": 3, "above": 1, "below": 1}},
	"sobel_rows":       {{"rows": 0, "cols": 5}, {"rows": 1, "cols": 1, "above": 1, "below": 1}, {"rows": 257, "cols": 31, "above": 1}, {"rows": 2000, "cols": 200, "below": 1}},
	"conv2d_rows":      convolvedRows,
	"conv2d_relu_rows": convolvedRows,
}

// ordered is the sizes that are sorted: up to one tile, two tiles, and many.
var ordered = []sizes{{"n": 0}, {"n": 1}, {"n": 4097}, {"n": 100_003}, {"n": 1_500_001}}

var convolvedRows = []sizes{
	{"rows": 3, "cols": 1, "in": 1, "out": 1, "size": 3, "stride": 1, "pad": 1}, {"rows": 61, "cols": 133, "in": 1, "out": 8, "size": 3, "stride": 2, "pad": 1, "above": 1},
	{"rows": 20, "cols": 301, "in": 8, "out": 19, "size": 3, "stride": 2, "pad": 1, "below": 1}, {"rows": 9, "cols": 11, "in": 3, "out": 5, "size": 5, "stride": 1, "pad": 3, "above": 2, "below": 2},
	{"rows": 12, "cols": 12, "in": 48, "out": 24, "size": 3, "stride": 1, "pad": 1, "above": 1},
}

var convolutions = []sizes{
	{"rows": 1, "cols": 1, "in": 1, "out": 1, "size": 1, "stride": 1}, {"rows": 33, "cols": 47, "in": 1, "out": 8, "size": 3, "stride": 2},
	{"rows": 20, "cols": 21, "in": 8, "out": 16, "size": 3, "stride": 2}, {"rows": 9, "cols": 11, "in": 3, "out": 5, "size": 3, "stride": 1, "pad": 1},
	{"rows": 12, "cols": 12, "in": 48, "out": 24, "size": 3, "stride": 1, "pad": 1},
	{"rows": 5, "cols": 4, "in": 1, "out": 8, "size": 3, "stride": 1, "pad": 5}, {"rows": 5, "cols": 4, "in": 2, "out": 9, "size": 3, "stride": 2, "pad": 6},
}

// scalarValues are the numbers that are not sizes.
var scalarValues = sizes{"value": 7, "start": 3, "step": 2, "alpha": 3, "beta": -2, "low": -1, "high": 2, "sign": -1, "amount": 0.5, "factor": 5,
	"rate": 0.08, "volatility": 0.3, "time": 1, "strike": 60, "seed": 42, "offset": 7, "mean": 1, "deviation": 2, "sigma": 1.5, "us": 50}

func trialsOf(d library.Doc) []sizes {
	if t := trials[d.Name]; t != nil {
		return t
	}
	if d.Params[0].Name == "rows" {
		return matrix
	}
	return vector
}

// guard is put before and after every buffer.
const guard = 64

// memory is one argument's bytes between guards, at some offset from a 16-byte boundary.
type memory struct {
	bytes []byte // guards included
	at    int64  // where the slice starts
	size  int64  // of the slice
	elem  dag.DType
	name  string
	rows  int64 // of a tile, 0 for any other slice
	pitch int64 // bytes from one of them to the next
}

// launched is one kernel with its arguments, ready to run anywhere.
type launched struct {
	whole   dag.LaunchKernel // as it is found by name
	kernel  dag.LaunchKernel // its form for this launch
	module  *launch.Module
	params  []dag.KernelParam
	args    []dag.Arg
	info    dag.LaunchInfo
	buffers []*memory // by argument; nil for numbers
}

func bitsOf(t dag.DType, v float64) uint64 {
	switch t {
	case dag.F32:
		return uint64(math.Float32bits(float32(v)))
	case dag.F64:
		return math.Float64bits(v)
	}
	return uint64(int64(v))
}

// prepare makes a launch with random contents, or nil if it would move or compute more than limit; with a limit of 0, without contents.
func prepare(t testing.TB, d library.Doc, v library.Variant, s sizes, skew, limit int64, random *rand.Rand) *launched {
	k, err := kernels.Library().Kernel(d.Name, v.Elems)
	require.NoError(t, err)
	l := &launched{whole: k, params: k.Params()}
	for i, p := range l.params {
		a := dag.Arg{IsBuffer: p.Buffer, Mode: p.Mode, DType: p.DType}
		if p.Buffer {
			a.Range = dag.Range{Buffer: dag.BufferID(i), Hi: 1 << 50}
		} else {
			value, ok := s[p.Name]
			if !ok {
				value = scalarValues[p.Name]
			}
			a.Bits = bitsOf(p.DType, value)
		}
		l.args = append(l.args, a)
	}
	return l.describe(t, d.Name, s, skew, limit, random)
}

// inForm chooses the form of the kernel. A map has one.
func (l *launched) inForm() {
	whole, ok := l.whole.(dag.ShapedKernel)
	if !ok {
		return
	}
	l.kernel = whole.Form(l.args)
	l.module, l.params = library.Module(l.kernel.Entry()), l.kernel.Params()
	for _, p := range l.params[len(l.args):] { // scratch that only this form has
		l.args = append(l.args, dag.Arg{IsBuffer: true, Mode: p.Mode, DType: p.DType, Range: dag.Range{Hi: 1 << 50}})
	}
}

// describe gives a launch its shape and its buffers.
func (l *launched) describe(t testing.TB, name string, s sizes, skew, limit int64, random *rand.Rand) *launched {
	var err error
	l.inForm()
	l.info, err = l.kernel.Describe(l.args)
	require.NoError(t, err, "%s %v", l.kernel.Entry(), s)
	switch {
	case limit == 0:
		return l
	case l.info.Work.Bytes+l.info.Work.Flops > limit:
		return nil
	}
	l.buffers = make([]*memory, len(l.params))
	for i, p := range l.params {
		if !p.Buffer {
			continue
		}
		size := l.info.Extents[i] * p.DType.Size()
		at := int64(guard) + skew*p.DType.Size()
		if p.Scratch {
			at = guard
		}
		m := &memory{make([]byte, at+size+guard), at, size, p.DType, p.Name, 0, 0}
		const pattern = 1 << 16
		for j := range min(pattern, len(m.bytes)) {
			m.bytes[j] = byte(random.Uint32())
		}
		repeat(m.bytes, pattern)
		if !p.Scratch {
			m.fill(name, s, random)
		}
		l.buffers[i] = m
	}
	return l
}

// repeat fills b with its beginning.
func repeat(b []byte, pattern int64) {
	for at := pattern; at < int64(len(b)); at *= 2 {
		copy(b[at:], b[:at])
	}
}

// set writes a number in the buffer's type.
func (m *memory) set(i int64, v float64) {
	b := m.bytes[m.at+i*m.elem.Size():]
	switch m.elem {
	case dag.F16:
		binary.LittleEndian.PutUint16(b, dag.HalfFromFloat32(float32(v)))
	case dag.BF16:
		binary.LittleEndian.PutUint16(b, dag.BFloatFromFloat32(float32(v)))
	case dag.F32:
		binary.LittleEndian.PutUint32(b, math.Float32bits(float32(v)))
	case dag.F64:
		binary.LittleEndian.PutUint64(b, math.Float64bits(v))
	case dag.I32, dag.U32:
		binary.LittleEndian.PutUint32(b, uint32(int32(v)))
	case dag.I64, dag.U64:
		binary.LittleEndian.PutUint64(b, uint64(int64(v)))
	case dag.I16, dag.U16:
		binary.LittleEndian.PutUint16(b, uint16(int16(v)))
	default:
		b[0] = byte(int8(v))
	}
}

// wrapping names the kernels of integers whose results wrap.
var wrapping = map[string]bool{"scale": true, "add": true, "sub": true, "mul": true, "axpy": true, "square": true, "abs": true, "reduce_sum": true, "dot": true,
	"sum_difference": true, "exclusive_scan": true, "inclusive_scan": true, "segment_sum": true}

// fill gives an argument contents that are valid for its kernel.
func (m *memory) fill(kernel string, s sizes, random *rand.Rand) {
	const pattern = 1<<21 + 7
	n := min(m.size/m.elem.Size(), pattern)
	defer repeat(m.bytes[m.at:m.at+m.size], pattern*m.elem.Size())
	special := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 1e-40, 65504, -1e30, 1, 88.5}
	for i := range n {
		v := random.Float64()*4 - 2
		switch {
		case m.name == "index":
			v = float64(random.IntN(int(s["m"])+4) - 2) // a few are outside
		case m.name == "keep":
			v = float64(random.IntN(3))
		case kernel == "segment_sum" && m.name == "offsets":
			v = float64(i)*(s["n"]/s["segments"]) + float64(random.IntN(9)-4)
		case kernel == "unique" || kernel == "sort_pairs" && i%2 == 0:
			v = float64(random.IntN(5))
		case m.elem == dag.U32 || m.elem == dag.U64 || m.elem == dag.I64:
			v = float64(int64(random.Uint64() >> random.IntN(64)))
		case m.elem == dag.I32 && wrapping[kernel]:
			v = float64(int32(random.Uint32()))
		case m.elem == dag.I32:
			v = float64(random.IntN(2000) - 1000)
		case kernel == "log" || kernel == "sqrt" || kernel == "black_scholes":
			v = math.Abs(v) * 60
		case kernel == "exp" || kernel == "sin" || kernel == "cos":
			v *= 40
		case kernel == "softmax" && i%37 == 5:
			v = -60 * math.Abs(v) // some exponentials are tiny, or 0
		case kernel == "softmax" && i%20_011 == 7:
			v = special[random.IntN(len(special))]
		case kernel == "spmv_csr" && m.name == "columns":
			v = float64(random.IntN(int(s["cols"])))
		}
		switch kernel {
		case "copy", "scale", "add", "sub", "mul", "div", "axpy", "square", "clamp", "relu", "abs", "sqrt", "exp", "log", "sin", "cos", "tanh", "erf", "reduce_min", "reduce_max", "argmax", "transpose", "histogram", "sort", "sort_pairs", "unique", "compact", "gather", "scatter":
			if m.elem.Float() && i%17 == 3 {
				v = special[random.IntN(len(special))]
			}
		}
		m.set(i, v)
	}
	if kernel == "spmv_csr" && m.name == "columns" {
		for i := range n {
			m.set(i, float64(random.IntN(int(s["cols"]))))
		}
	}
	if kernel == "spmv_csr" && m.name == "offsets" {
		rows, nnz := int64(s["rows"]), int64(s["nnz"])
		at := int64(0)
		const before = 5 // as if other rows came before these
		m.set(0, before)
		for i := range rows {
			if i == rows-1 {
				at = nnz
			} else if at < nnz {
				at = min(nnz, at+random.Int64N(2*nnz/rows+1))
			}
			m.set(i+1, float64(at+before))
		}
	}
	if side := int64(s["n"]); kernel == "potrf" || kernel == "trsm" && m.name == "l" {
		for i := range side {
			for j := range side {
				v := 1 / float64(1+max(i-j, j-i))
				if i == j {
					v = 4 + float64(i%3)
				}
				m.set(i*side+j, v)
			}
		}
	}
}

// reference runs the Go version and returns every buffer's bytes.
func (l *launched) reference(t testing.TB) [][]byte {
	r, ok := l.module.References[l.kernel.Entry()]
	require.True(t, ok)
	call := &launch.Call{Grid: l.info.Grid, Block: l.info.Block, Shared: l.info.Shared}
	after := make([][]byte, len(l.buffers))
	for i, m := range l.buffers {
		if m == nil {
			call.Args = append(call.Args, launch.Arg{Bits: l.args[i].Bits})
			continue
		}
		// Aligned like a device's memory, so that every element type may be stored there.
		words := make([]uint64, len(m.bytes)/8+1)
		after[i] = unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(m.bytes))
		copy(after[i], m.bytes)
		a := launch.Arg{Bytes: m.size}
		if m.size > 0 {
			a.Memory = unsafe.Pointer(&after[i][m.at])
		}
		call.Args = append(call.Args, a)
	}
	if l.info.Grid[0] > 0 {
		spans := r.Spans(call)
		var group errgroup.Group
		group.SetLimit(runtime.GOMAXPROCS(0))
		for lo := int64(0); lo < spans; lo += 3 {
			group.Go(func() error {
				r.Run(call, lo, min(lo+3, spans))
				return nil
			})
		}
		require.NoError(t, group.Wait())
	}
	return after
}

// bench holds the objects that all launches on one platform share.
type bench struct {
	p      cudart.Platform
	stream cudart.Stream
	host   cudart.Ptr
	device cudart.Ptr
	room   int64
}

func newBench(t testing.TB, p cudart.Platform, room int64) *bench {
	b := &bench{p: p, room: room, stream: must[cudart.Stream](t)(p.NewStream(0, dag.Normal))}
	closing(t, b.stream)
	b.host = must[cudart.Ptr](t)(p.AllocHost(room, false))
	t.Cleanup(func() { require.NoError(t, p.Free(b.host)) })
	b.device = must[cudart.Ptr](t)(p.Alloc(0, room))
	t.Cleanup(func() { require.NoError(t, p.Free(b.device)) })
	return b
}

// place copies a launch's buffers to the host's memory, and returns where they are and the launch itself.
func (b *bench) place(t testing.TB, l *launched, k cudart.Kernel) (offsets []int64, command cudart.Command) {
	offsets = make([]int64, len(l.buffers))
	total := int64(0)
	command = cudart.Command{Kind: cudart.LaunchKernel, Stream: b.stream, Label: l.kernel.Entry(), Kernel: k, Grid: l.info.Grid, Block: l.info.Block, Shared: l.info.Shared}
	hostBytes := b.p.HostBytes(b.host, b.room)
	for i, m := range l.buffers {
		if m == nil {
			command.Args = append(command.Args, cudart.Value{Bits: l.args[i].Bits, Size: uint8(l.params[i].Size)})
			continue
		}
		offsets[i] = total
		copy(hostBytes[total:], m.bytes)
		value := cudart.Value{Pointer: true, Ptr: b.device + cudart.Ptr(total+m.at), Bytes: m.size}
		access := cudart.Access{Ptr: value.Ptr, Bytes: m.size, Write: l.params[i].Mode&dag.Write != 0, Whole: l.params[i].Mode == dag.Write && !l.params[i].Scratch, Name: m.name}
		if m.rows > 0 {
			value.Row, value.Pitch = m.size-(m.rows-1)*m.pitch, m.pitch
			access.Bytes, access.Rows, access.Pitch = m.rows*value.Row, m.rows, m.pitch
		}
		command.Args, command.Accesses = append(command.Args, value), append(command.Accesses, access)
		total += (int64(len(m.bytes)) + 255) / 256 * 256
		require.LessOrEqual(t, total, b.room)
	}
	return offsets, command
}

// run launches a few times, from the same contents but with the scratch that the previous launch left, and returns every buffer's
// bytes after each launch.
func (b *bench) run(t testing.TB, l *launched, k cudart.Kernel, rounds int) [][][]byte {
	offsets, command := b.place(t, l, k)
	hostBytes := b.p.HostBytes(b.host, b.room)
	var results [][][]byte
	for round := range rounds {
		var commands []cudart.Command
		for i, m := range l.buffers {
			if m == nil || round > 0 && l.params[i].Scratch {
				continue
			}
			commands = append(commands, cudart.Command{Kind: cudart.CopyMemory, Stream: b.stream, Label: "up", Dst: b.device + cudart.Ptr(offsets[i]), Src: b.host + cudart.Ptr(offsets[i]), SrcDevice: -1, Bytes: int64(len(m.bytes))})
		}
		if l.info.Grid[0] > 0 {
			commands = append(commands, command)
		}
		for i, m := range l.buffers {
			if m != nil {
				commands = append(commands, cudart.Command{Kind: cudart.CopyMemory, Stream: b.stream, Label: "down", Dst: b.host + cudart.Ptr(offsets[i]), Src: b.device + cudart.Ptr(offsets[i]), DstDevice: -1, Bytes: int64(len(m.bytes))})
			}
		}
		if len(commands) > 0 {
			list := must[cudart.List](t)(b.p.Encode(commands, cudart.ListOptions{Origin: b.stream}))
			require.NoError(t, list.Submit())
			require.NoError(t, b.stream.Synchronize(context.Background()))
			require.NoError(t, list.Close())
		}
		after := make([][]byte, len(l.buffers))
		for i, m := range l.buffers {
			if m != nil {
				after[i] = bytes.Clone(hostBytes[offsets[i]:][:len(m.bytes)])
				if !l.params[i].Scratch {
					copy(hostBytes[offsets[i]:], m.bytes)
				}
			}
		}
		results = append(results, after)
	}
	return results
}

// differ returns where two results of an argument differ, "" if they are equal. All NaNs count as equal; guards must be untouched.
func (m *memory) differ(got, want []byte) string {
	if bytes.Equal(got, want) {
		return ""
	}
	if !bytes.Equal(got[:m.at], want[:m.at]) || !bytes.Equal(got[m.at+m.size:], want[m.at+m.size:]) {
		return "wrote outside its slice"
	}
	size := m.elem.Size()
	count, first := 0, ""
	for i := range m.size / size {
		at := m.at + i*size
		if bytes.Equal(got[at:at+size], want[at:at+size]) {
			continue
		}
		g, w := m.element(got, i), m.element(want, i)
		if g != g && w != w {
			continue
		}
		if count == 0 {
			first = fmt.Sprintf("element %d of %d is %v (%#x), want %v (%#x)", i, m.size/size, g, math.Float64bits(g), w, math.Float64bits(w))
		}
		count++
	}
	if count == 0 {
		return ""
	}
	return fmt.Sprintf("%s; %d differ", first, count)
}

func (m *memory) element(b []byte, i int64) float64 {
	b = b[m.at+i*m.elem.Size():]
	switch m.elem {
	case dag.F16:
		return float64(dag.HalfToFloat32(binary.LittleEndian.Uint16(b)))
	case dag.BF16:
		return float64(dag.BFloatToFloat32(binary.LittleEndian.Uint16(b)))
	case dag.F32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	case dag.F64:
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	case dag.I64:
		return float64(int64(binary.LittleEndian.Uint64(b)))
	case dag.U64:
		return float64(binary.LittleEndian.Uint64(b))
	case dag.U32:
		return float64(binary.LittleEndian.Uint32(b))
	case dag.I32:
		return float64(int32(binary.LittleEndian.Uint32(b)))
	case dag.I16, dag.U16:
		return float64(int16(binary.LittleEndian.Uint16(b)))
	}
	return float64(int8(b[0]))
}

// check launches and compares with the reference.
func (b *bench) check(t *testing.T, l *launched, k cudart.Kernel, what string) {
	want := l.reference(t)
	for round, got := range b.run(t, l, k, 3) {
		for i, m := range l.buffers {
			if m == nil || l.params[i].Scratch {
				continue
			}
			if difference := m.differ(got[i], want[i]); difference != "" {
				t.Errorf("%s, launch %d: %s: %s", what, round, m.name, difference)
			}
		}
	}
}

// fromLibrary returns the library's own code for an entry: on GPUs that have some, its machine code.
func fromLibrary(entry string) *launch.Module { return library.Module(entry) }

// fromPTX returns the library's PTX for an entry.
func fromPTX(entry string) *launch.Module {
	m := library.Module(entry)
	m.Machine = nil
	return m
}

// checkKernels runs every kernel of the library at all sizes within limit, with the code that module returns.
func checkKernels(t *testing.T, p cudart.Platform, limit int64, module func(entry string) *launch.Module) {
	b := newBench(t, p, 256<<20)
	for _, d := range library.Docs() {
		t.Run(d.Name, func(t *testing.T) {
			for i, v := range d.Variants {
				if slices.ContainsFunc(d.Variants[:i], func(other library.Variant) bool { return other.Entry == v.Entry }) {
					continue // the same code for another type
				}
				loaded := forms{p: p, module: module}
				for n, s := range trialsOf(d) {
					for _, skew := range []int64{0, 1, 3} {
						l := prepare(t, d, v, s, skew, limit, rand.New(rand.NewPCG(uint64(n), uint64(skew))))
						if l == nil {
							continue
						}
						b.check(t, l, loaded.kernel(t, l), fmt.Sprintf("%s %v, slices %d elements off", l.kernel.Entry(), s, skew))
					}
				}
				loaded.close(t)
			}
		})
	}
}

// forms loads the forms of a kernel that launches need.
type forms struct {
	p       cudart.Platform
	module  func(entry string) *launch.Module
	modules map[string]cudart.Module // by entry
}

func (f *forms) kernel(t testing.TB, l *launched) cudart.Kernel {
	entry := l.kernel.Entry()
	if f.modules == nil {
		f.modules = map[string]cudart.Module{}
	}
	if f.modules[entry] == nil {
		f.modules[entry] = must[cudart.Module](t)(f.p.Load(context.Background(), 0, f.module(entry)))
	}
	k := must[cudart.Kernel](t)(f.modules[entry].Kernel(entry))
	require.NoError(t, launchable(k, f.p, l.info.Block[0]))
	return k
}

func (f *forms) close(t testing.TB) {
	for _, m := range f.modules {
		require.NoError(t, m.Close())
	}
}

// launchable refuses a kernel whose description no device of this kind can run.
func launchable(k cudart.Kernel, p cudart.Platform, threads uint32) error {
	a := k.Attributes()
	if limit := p.Devices()[0].SharedPerBlock; a.SharedStatic > limit {
		return fmt.Errorf("%d bytes of static shared memory, at most %d", a.SharedStatic, limit)
	}
	if a.MaxThreads < int(threads) {
		return fmt.Errorf("at most %d threads a block (%d registers)", a.MaxThreads, a.Registers)
	}
	return nil
}

func TestKernels(t *testing.T) {
	checkKernels(t, open(t), 1<<40, fromLibrary)
}

// TestKernelsFromPTX runs what GPUs without machine code load.
func TestKernelsFromPTX(t *testing.T) {
	checkKernels(t, open(t), 1<<40, fromPTX)
}

// TestKernelsByNVRTC compiles the same sources for the GPU of this machine. Like the PTX, without fusing, so that results are the same bits.
func TestKernelsByNVRTC(t *testing.T) {
	p := open(t)
	compiler, err := nvrtc.Open(nvrtc.Options{Cache: "off"})
	if err != nil {
		t.Skipf("NO COMPILER: %v", err)
	}
	folder := t.TempDir()
	require.NoError(t, os.CopyFS(folder, library.Sources()))
	files, err := filepath.Glob(filepath.Join(folder, "*.cu"))
	require.NoError(t, err)
	byEntry := map[string]*launch.Module{}
	for _, file := range files {
		code, err := os.ReadFile(file)
		require.NoError(t, err)
		r, err := compiler.Compile(context.Background(), nvrtc.Source{Path: file, Code: code, Capability: p.Devices()[0].Capability, Options: []string{"--fmad=false", "--std=c++17", "--device-as-default-execution-space"}})
		require.NoError(t, err)
		m := &launch.Module{Name: file, Kind: launch.Cubin, Code: r.Code}
		if r.PTX {
			m.Kind = launch.PTX
		}
		opened, err := kernels.OpenModule("library", file, code, kernels.OpenOptions{ReadFile: os.ReadFile})
		if err != nil {
			continue // functions.cu has no kernels of its own
		}
		for _, name := range opened.Names() {
			byEntry[name] = m
		}
	}
	checkKernels(t, p, 1<<24, func(entry string) *launch.Module { return byEntry[entry] })
}

// BenchmarkKernels measures kernels at sizes that fill a large GPU: run with -bench Kernels. A figure is the device's time of one
// launch, from 20 launches between two time stamps.
func BenchmarkKernels(b *testing.B) {
	p, err := driver.Open(driver.Options{Compilers: &kernels.Compilers{}})
	if err != nil {
		b.Skipf("NO GPU: %v", err)
	}
	defer p.Close()
	shapes := map[string]sizes{
		"square": {"n": 160e6}, "sum_difference": {"n": 160e6}, "copy": {"n": 256e6}, "axpy": {"n": 256e6}, "scale": {"n": 256e6}, "exp": {"n": 128e6}, "tanh": {"n": 128e6}, "add": {"n": 256e6},
		"reduce_sum": {"n": 256e6}, "reduce_max": {"n": 256e6}, "argmax": {"n": 256e6}, "dot": {"n": 256e6}, "norm": {"n": 256e6}, "black_scholes": {"n": 10e6},
		"column_standardise": {"rows": 1.6e6, "cols": 200}, "matmul": {"m": 1.6e6, "n": 10, "k": 200, "tb": 1}, "add_bias": {"rows": 1.6e6, "cols": 10}, "softmax": {"rows": 1.6e6, "cols": 10},
		"row_max": {"rows": 1.6e6, "cols": 10}, "row_log_sum_exp": {"rows": 1.6e6, "cols": 10}, "row_normalise": {"rows": 1.6e6, "cols": 10}, "row_argmax_sum": {"rows": 1.6e6, "cols": 10},
		"spmv_csr": {"rows": 25e6, "cols": 25e6, "nnz": 75e6}, "divide_by": {"n": 25e6}, "gaussian_blur": {"rows": 6400, "cols": 6400, "diameter": 5}, "sobel": {"rows": 6400, "cols": 6400},
		"extend": {"n": 6400 * 6400}, "unsharpen": {"n": 6400 * 6400}, "combine": {"n": 6400 * 6400}, "conv2d_relu": {"rows": 12000, "cols": 12000, "in": 1, "out": 8, "size": 3, "stride": 2},
		"mean_pool": {"rows": 5999, "cols": 5999, "channels": 8, "size": 5, "stride": 5}, "transpose": {"rows": 16384, "cols": 16384}, "gemm": {"m": 4096, "n": 4096, "k": 4096}, "gemv": {"m": 16384, "n": 16384},
		"potrf": {"n": 256}, "trsm": {"m": 256, "n": 256}, "syrk": {"n": 256, "k": 256}, "exclusive_scan": {"n": 256e6}, "inclusive_scan": {"n": 64 << 20}, "sort": {"n": 16 << 20}, "sort_pairs": {"n": 16 << 20}, "unique": {"n": 64 << 20}, "compact": {"n": 64 << 20}, "gather": {"n": 64 << 20, "m": 64 << 20}, "scatter": {"n": 64 << 20, "m": 64 << 20}, "segment_sum": {"n": 64 << 20, "segments": 1 << 20}, "histogram": {"n": 256e6, "bins": 256}, "philox_uniform": {"n": 256e6}, "philox_normal": {"n": 256e6},
		"stencil5": {"rows": 16384, "cols": 16384}, "fft_stage": {"n": 1 << 24, "batch": 1, "half": 1 << 12},
	}
	for _, d := range library.Docs() {
		s, ok := shapes[d.Name]
		if !ok {
			continue
		}
		for _, v := range d.Variants {
			if strings.HasSuffix(v.Entry, "_bf16") || strings.HasSuffix(v.Entry, "_f16") && d.Name != "copy" && d.Name != "gemm" {
				continue
			}
			b.Run(strings.TrimPrefix(v.Entry, "dagrun_"), func(b *testing.B) { benchmarkKernel(b, p, d, v, s) })
		}
	}
}

func benchmarkKernel(b *testing.B, p *driver.Platform, d library.Doc, v library.Variant, s sizes) {
	benchmarkLaunch(b, p, d.Name, prepare(b, d, v, s, 0, 0, rand.New(rand.NewPCG(1, 2))), s) // only its shape and arguments
}

func benchmarkLaunch(b *testing.B, p *driver.Platform, name string, l *launched, s sizes) {
	const launches = 20
	module := must[cudart.Module](b)(p.Load(context.Background(), 0, l.module))
	defer module.Close()
	k := must[cudart.Kernel](b)(module.Kernel(l.kernel.Entry()))
	stream := must[cudart.Stream](b)(p.NewStream(0, dag.Normal))
	defer stream.Close()
	command := cudart.Command{Kind: cudart.LaunchKernel, Stream: stream, Label: l.kernel.Entry(), Kernel: k, Grid: l.info.Grid, Block: l.info.Block, Shared: l.info.Shared}
	for i, param := range l.params {
		if !param.Buffer {
			command.Args = append(command.Args, cudart.Value{Bits: l.args[i].Bits, Size: uint8(param.Size)})
			continue
		}
		size := l.info.Extents[i] * param.DType.Size()
		at := must[cudart.Ptr](b)(p.Alloc(0, size))
		defer p.Free(at)
		// Only contents that are used as addresses matter; zeros are good enough for the others.
		clear := must[cudart.List](b)(p.Encode([]cudart.Command{{Kind: cudart.SetMemory, Stream: stream, Dst: at, Width: 1, Bytes: size}}, cudart.ListOptions{Origin: stream}))
		require.NoError(b, clear.Submit())
		require.NoError(b, stream.Synchronize(context.Background()))
		require.NoError(b, clear.Close())
		if name == "spmv_csr" && (param.Name == "offsets" || param.Name == "columns") {
			host := must[cudart.Ptr](b)(p.AllocHost(size, false))
			m := &memory{bytes: p.HostBytes(host, size), size: size, elem: param.DType, name: param.Name}
			random := rand.New(rand.NewPCG(3, 4))
			for j := range l.info.Extents[i] {
				if param.Name == "offsets" {
					m.set(j, float64(3*j))
				} else {
					m.set(j, float64(random.IntN(int(s["cols"]))))
				}
			}
			up := must[cudart.List](b)(p.Encode([]cudart.Command{{Kind: cudart.CopyMemory, Stream: stream, Dst: at, Src: host, SrcDevice: -1, Bytes: size}}, cudart.ListOptions{Origin: stream}))
			require.NoError(b, up.Submit())
			require.NoError(b, stream.Synchronize(context.Background()))
			require.NoError(b, up.Close())
			require.NoError(b, p.Free(host))
		}
		command.Args = append(command.Args, cudart.Value{Pointer: true, Ptr: at, Bytes: size})
	}
	start, end := must[cudart.Event](b)(p.NewEvent(0, true)), must[cudart.Event](b)(p.NewEvent(0, true))
	defer start.Close()
	defer end.Close()
	commands := []cudart.Command{{Kind: cudart.RecordEvent, Stream: stream, Event: start}}
	for range launches {
		commands = append(commands, command)
	}
	commands = append(commands, cudart.Command{Kind: cudart.RecordEvent, Stream: stream, Event: end})
	list := must[cudart.List](b)(p.Encode(commands, cudart.ListOptions{Origin: stream}))
	defer list.Close()
	best := math.Inf(1)
	for b.Loop() {
		require.NoError(b, list.Submit())
		require.NoError(b, stream.Synchronize(context.Background()))
		best = min(best, must[float64](b)(end.Since(start))/launches)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(best, "us/launch")
	b.ReportMetric(float64(l.info.Work.Bytes)/best/1e3, "GB/s")
	b.ReportMetric(float64(l.info.Work.Flops)/best/1e3, "GFLOP/s")
}

// TestKernelsAbove2GiB launches on buffers that are too large for 32-bit indices of bytes.
func TestKernelsAbove2GiB(t *testing.T) {
	p := open(t)
	if free, _, err := p.MemoryInfo(0); err != nil || free < 12<<30 {
		t.Skipf("NO GPU with 12 GiB of free memory: %d free, %v", free, err)
	}
	const n = 1<<29 + 3
	b := newBench(t, p, 9<<30)
	for _, d := range library.Docs() {
		s, ok := map[string]sizes{
			"scale": {"n": n}, "add": {"n": n}, "reduce_sum": {"n": n}, "argmax": {"n": n}, "exclusive_scan": {"n": n}, "inclusive_scan": {"n": n}, "sort": {"n": n / 2}, "unique": {"n": n}, "histogram": {"n": n, "bins": 100},
			"philox_uniform": {"n": n}, "transpose": {"rows": 1<<15 + 1, "cols": 1<<14 + 5}, "softmax": {"rows": n / 9, "cols": 9}, "add_bias": {"rows": 1 << 14, "cols": 1<<15 + 3},
			"stencil5": {"rows": 1<<15 + 1, "cols": 1<<14 + 5}, "gaussian_blur": {"rows": 1<<15 + 1, "cols": 1<<14 + 5, "diameter": 3}, "concat": {"rows": 1, "m": 1 << 29, "n": 5},
			"column_standardise": {"rows": n / 200, "cols": 200}, "matmul": {"m": n / 200, "n": 10, "k": 200, "tb": 1}, "gemv": {"m": 1 << 14, "n": 1<<15 + 4},
		}[d.Name]
		if !ok {
			continue
		}
		t.Run(d.Name, func(t *testing.T) {
			for _, v := range d.Variants {
				if !strings.HasSuffix(v.Entry, "_f32") {
					continue
				}
				loaded := forms{p: p, module: fromLibrary}
				l := prepare(t, d, v, s, 1, 1<<60, rand.New(rand.NewPCG(1, 2)))
				want := l.reference(t)
				got := b.run(t, l, loaded.kernel(t, l), 1)[0]
				for i, m := range l.buffers {
					if m != nil && !l.params[i].Scratch {
						require.Empty(t, m.differ(got[i], want[i]), "%s %s", v.Entry, m.name)
					}
				}
				loaded.close(t)
			}
		})
	}
}

func TestKernelsOnCPU(t *testing.T) {
	p := must[*host.Platform](t)(host.Open(host.Options{}))
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	most := int64(1 << 19)
	if testing.Short() {
		most = 1 << 15
	}
	checkKernels(t, p, most, fromPTX)
}

// interpreter is a CPU device that runs every kernel from its PTX.
func interpreter(t testing.TB, check simt.Check) *host.Platform {
	p := must[*host.Platform](t)(host.Open(host.Options{PTX: true, Sanitize: check}))
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

// The library's own PTX, run by the CPU device, gives what the Go versions give: on small sizes, and with DAGRUN_LONG on larger ones too.
func TestKernelsFromPTXOnCPU(t *testing.T) {
	limit := int64(1 << 15)
	switch {
	case os.Getenv("DAGRUN_LONG") != "":
		limit = 1 << 24
	case testing.Short():
		limit = 1 << 10
	}
	checkKernels(t, interpreter(t, simt.CheckNothing), limit, fromPTX)
}

// The checks find no fault in the library's own PTX.
func TestKernelsFromPTXAreClean(t *testing.T) {
	limit := int64(1 << 14) // sort_pairs has several tiles then, which wait for each other
	switch {
	case os.Getenv("DAGRUN_LONG") != "":
		limit = 1 << 18
	case testing.Short():
		limit = 1 << 12
	}
	checkKernels(t, interpreter(t, simt.CheckFull), limit, fromPTX)
}

// TestWholeLibraryLoads also tells how long the driver takes for it, and what each kernel occupies.
func TestWholeLibraryLoads(t *testing.T) {
	p := open(t)
	start := time.Now()
	module := must[cudart.Module](t)(p.Load(context.Background(), 0, library.Module()))
	closing(t, module)
	t.Logf("the whole library loads in %v", time.Since(start))
	for _, d := range library.Docs() {
		for _, v := range d.Variants {
			for _, f := range v.Forms {
				k := must[cudart.Kernel](t)(module.Kernel(f.Entry()))
				a, spills := k.Attributes(), ""
				if a.Local > 0 {
					spills = "  SPILLS"
				}
				t.Logf("%-44s %3d registers %6d shared %5d local %4d threads%s", f.Entry(), a.Registers, a.SharedStatic, a.Local, a.MaxThreads, spills)
				require.NoError(t, launchable(k, p, 128))
			}
		}
	}
}
