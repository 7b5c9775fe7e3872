// Tests of writing pipelines as files: the text, and that reading it gives the same pipeline again.

package file

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/dag/internal/fakes"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// written writes a pipeline as a file and returns the text and the pipeline read back from it.
func written(t require.TestingT, p *dag.Pipeline) (string, *dag.Graph) {
	var text bytes.Buffer
	require.NoError(t, Write(&text, p))
	g, err := Parse(text.Bytes(), testOptions())
	require.NoError(t, err, "%s", text.String())
	return text.String(), g
}

// stripped removes what a file cannot keep: positions, and parsed expressions (the file keeps their text).
func stripped(p *dag.Pipeline) dag.Pipeline {
	c := *p
	c.Dir = ""
	c.Buffers = append([]dag.Buffer(nil), p.Buffers...)
	for k := range c.Buffers {
		b := &c.Buffers[k]
		b.Pos = dag.Pos{}
		if len(b.Shape) == 0 {
			b.Shape = nil
		}
		if b.Init != nil {
			in := *b.Init
			if in.Expr != nil {
				in.File, in.Expr = in.Expr.String(), nil
			}
			b.Init = &in
		}
		if b.Expect != nil {
			e := *b.Expect
			if e.Expr != nil {
				e.File, e.Expr = e.Expr.String(), nil
			}
			b.Expect = &e
		}
	}
	c.Nodes = append([]dag.Node(nil), p.Nodes...)
	for i := range c.Nodes {
		n := &c.Nodes[i]
		n.Pos = dag.Pos{}
		if len(n.After) == 0 {
			n.After = nil
		}
		if n.Launch == nil {
			continue
		}
		l := *n.Launch
		if l.Map != nil {
			m := *l.Map
			m.Text, m.Expr = m.Expr.String(), nil
			l.Map, l.Kernel = &m, nil
		}
		n.Launch = &l
	}
	c.Modules = append([]dag.Module(nil), p.Modules...)
	for k := range c.Modules {
		c.Modules[k].Pos = dag.Pos{}
	}
	return c
}

func TestWrite(t *testing.T) {
	b := dag.New("say \"hi\": now")
	b.Use(fakes.Kernels)
	b.Module("mine", "filters/blur.cu", fakes.UserKernels)
	b.Sync(dag.SyncExplicit)
	x := b.Host("x", dag.F32, 1000)
	b.Init(x, dag.Init{Kind: dag.InitUniform, A: -1, B: 0.25, Seed: 7})
	y := b.Host("y", dag.F32, 10, 100)
	b.Pageable(y)
	b.Save(y, "out/$y.npy")
	b.Expect(y, dag.Expect{Kind: dag.ExpectSum, Value: expr.FloatValue(12.5), ATol: 1e-3})
	dx, dy := b.Device("d_x", dag.F32, 1000), b.Device("d_y", dag.F32, 10, 100)
	odd := b.Device("größe 'x'", dag.I16)
	other := b.Device("other", dag.F64, 4)
	b.OnDevice(other, 1)
	up := b.Copy("up", b.Whole(dx), b.Whole(x))
	b.Copy("half", b.Slice(dy, 5, 10), b.Slice(x, 0, 500))
	set := b.Memset("set", b.Whole(odd), -3)
	b.Memset("tenth", b.Slice(dx, 0, 0), 0.1)
	k := b.Kernel("saxpy", "saxpy", dag.Args{100, 2, b.Whole(dx), b.Slice(dy, 1, 3)})
	b.Stream(k, 3)
	b.Priority(k, dag.High)
	b.Cost(k, 12.5)
	b.After(k, up, set)
	b.Kernel("sum", "sum", dag.Args{100, b.Slice(dy, 0, 1), b.Slice(dx, 4, 5)}, dag.Block(128))
	b.Kernel("$blur", "mine.blur", dag.Args{10, b.Whole(dx), b.Out(dy)}, dag.Grid(4, 2), dag.Shared(64))
	b.Kernel("opaque", "mine.opaque", dag.Args{b.InOut(odd), dag.Scalar{DType: dag.I32, Value: -1}}, dag.Grid(0))
	b.Map("map", "z = a*z + len(d_y)*k", map[string]any{"z": b.Slice(dy, 2, 4), "a": 0.5, "k": -2})
	b.Kernel("peer", "saxpy", dag.Args{0, 1, b.Whole(dx), b.Whole(dy)}, dag.WithPeers(), dag.RunOn(1))
	g, err := b.Graph()
	require.NoError(t, err)

	const want = `version: 1
name: "say \"hi\": now"
sync: explicit
params:
  n: 1000
  alpha: 0.5
modules:
  mine: {source: filters/blur.cu}
buffers:
  x: {place: host, dtype: f32, shape: [1000], init: {uniform: [-1, 0.25], seed: 7}}
  y: {place: host, dtype: f32, shape: [10, 100], pinned: false, save: out/$$y.npy, expect: {sum: 12.5, atol: 0.001}}
  d_x: {place: device, dtype: f32, shape: [1000]}
  d_y: {place: device, dtype: f32, shape: [10, 100]}
  "größe 'x'": {place: device, dtype: i16, shape: []}
  other: {place: device, dtype: f64, shape: [4], device: 1}
nodes:
  - {name: up, memcpy: {from: x, to: d_x}}
  - {name: half, memcpy: {from: x(0..500), to: d_y(5..10)}}
  - {name: set, memset: {to: "größe 'x'", value: -3}}
  - {name: tenth, memset: {to: d_x(0..0), value: 0.1}}
  - {name: saxpy, kernel: saxpy, args: [100, 2, d_x, d_y(1..3)], after: [up, set], stream: 3, priority: high, cost: {us: 12.5}}
  - {name: sum, kernel: sum, args: [100, d_y(0..1), d_x(4..5)], block: [128]}
  - {name: "$$blur", kernel: mine.blur, args: [10, d_x, {out: d_y}], grid: [4, 2], shared: 64}
  - {name: opaque, kernel: mine.opaque, args: [{inout: "größe 'x'"}, {i32: -1}], grid: [0]}
  - {name: map, map: "z = a * z + 10 * k", with: {z: d_y(2..4), a: 0.5, k: -2}}
  - {name: peer, kernel: saxpy, args: [0, 1, d_x, d_y], device: 1, peer: true}
`
	g.Params = []dag.Param{{Name: "n", Value: expr.Int(1000)}, {Name: "alpha", Value: expr.FloatValue(0.5)}}
	text, back := written(t, g.Pipeline)
	require.Equal(t, want, text)
	require.Equal(t, stripped(g.Pipeline), stripped(back.Pipeline))
	require.Equal(t, g.Hash(), back.Hash())
	require.Equal(t, g.Edges(), back.Edges())
}

func TestWriteRefuses(t *testing.T) {
	kernel, err := fakes.Kernels.Kernel("saxpy", make([]dag.DType, 4))
	require.NoError(t, err)
	for _, test := range []struct {
		want    string
		declare func(b *dag.Builder, d dag.BufferID)
	}{
		{`node "t": a task cannot be written in a file`, func(b *dag.Builder, d dag.BufferID) { b.Task("t", b.In(d)) }},
		{`node "c": bytes 5 to 8 of "d" do not fall on whole rows`, func(b *dag.Builder, d dag.BufferID) { b.Memset("c", dag.Range{Buffer: d, Lo: 5, Hi: 8}, 0) }},
		{`node "c": a slice of "end " would read as one of "end"`, func(b *dag.Builder, d dag.BufferID) { b.Memset("c", b.Slice(b.Device("end ", dag.F32, 4), 0, 1), 0) }},
		{`node "k": its kernel has no name`, func(b *dag.Builder, d dag.BufferID) {
			b.Node(dag.Node{Name: "k", Kind: dag.Kernel, Launch: &dag.Launch{Module: -1, Kernel: kernel}})
		}},
		{`node "m": NaN is not a finite number`, func(b *dag.Builder, d dag.BufferID) { b.Memset("m", b.Whole(d), math.NaN()) }},
		{`buffer "d": +Inf is not a finite number`, func(b *dag.Builder, d dag.BufferID) { b.Init(d, dag.Init{Kind: dag.InitRamp, B: math.Inf(1)}) }},
		{`buffer "d": the seed 18446744073709551615 does not fit in 63 bits`, func(b *dag.Builder, d dag.BufferID) { b.Init(d, dag.Init{Kind: dag.InitNormal, Seed: math.MaxUint64}) }},
		{`node "c": "k$scratch" is scratch and cannot be named in a file`, func(b *dag.Builder, d dag.BufferID) {
			b.Kernel("k", "sum", dag.Args{1, b.Slice(d, 0, 1), b.Slice(d, 1, 2)})
			b.Memset("c", b.Whole(d+1), 0)
		}},
	} {
		b := dag.New("p")
		b.Use(fakes.Kernels)
		test.declare(b, b.Device("d", dag.F32, 4, 2))
		g, err := b.Graph()
		require.NoError(t, err)
		err = Write(&bytes.Buffer{}, g.Pipeline)
		require.Error(t, err, test.want)
		require.True(t, strings.HasPrefix(err.Error(), `pipeline "p" cannot be written as a file: `+test.want), err.Error())
	}
}

type brokenWriter struct{}

var errDiskFull = errors.New("disk full")

func (brokenWriter) Write([]byte) (int, error) { return 0, errDiskFull }

func TestWriteReportsTheWriter(t *testing.T) {
	require.ErrorIs(t, Write(brokenWriter{}, &dag.Pipeline{Name: "p"}), errDiskFull)
}

// drawPipeline declares a random pipeline with everything that a file can express.
func drawPipeline(t *rapid.T) *dag.Builder {
	b := dag.New(rapid.SampledFrom([]string{"plain", "a: b", "", "日本", `"`, "true"}).Draw(t, "name"))
	b.Use(fakes.Kernels)
	b.Module("mine", "blur.cu", fakes.UserKernels)
	if rapid.Bool().Draw(t, "explicit") {
		b.Sync(dag.SyncExplicit)
	}
	number := func(label string) float64 {
		return rapid.OneOf(rapid.Float64Range(-1e9, 1e9), rapid.SampledFrom([]float64{0, 1, -1, 0.1, 1e-300, 1e300, 1e15, 3e-5, math.MaxFloat64, math.SmallestNonzeroFloat64})).Draw(t, label)
	}
	value := func(label string) expr.Value {
		return rapid.OneOf(rapid.Map(rapid.Int64(), expr.Int), rapid.Map(rapid.Float64Range(-1e300, 1e300), expr.FloatValue)).Draw(t, label)
	}
	var all, devices []dag.BufferID // f32[8, 2]
	for i := range rapid.IntRange(2, 5).Draw(t, "buffers") {
		name := fmt.Sprintf("%s%d", rapid.SampledFrom([]string{"d", "größe", "a.b", "$x", "n"}).Draw(t, "buffer"), i)
		buffer := dag.Buffer{Name: name, Place: dag.Place(rapid.IntRange(0, 1).Draw(t, "place")), DType: dag.F32, Shape: []int64{8, 2}}
		if i < 2 {
			buffer.Place = dag.Device
		}
		switch rapid.IntRange(0, 7).Draw(t, "init") {
		case 1:
			buffer.Init = &dag.Init{Kind: dag.InitZeros}
		case 2:
			third, err := expr.Fraction(1, 3)
			require.NoError(t, err)
			buffer.Init = &dag.Init{Kind: dag.InitValue, Value: rapid.SampledFrom([]expr.Value{expr.Int(-3), third, expr.FloatValue(2), expr.FloatValue(1e-9)}).Draw(t, "value")}
		case 3:
			buffer.Init = &dag.Init{Kind: dag.InitRamp, A: number("a"), B: number("b")}
		case 4:
			buffer.Init = &dag.Init{Kind: dag.InitNormal, A: number("a"), B: math.Abs(number("b")), Seed: rapid.Uint64Range(0, math.MaxInt64).Draw(t, "seed")}
		case 5:
			e, err := expr.Parse("1/(i+1) - (2 - i) * 0.5")
			require.NoError(t, err)
			buffer.Init = &dag.Init{Kind: dag.InitExpr, Expr: e}
		case 6:
			buffer.Init = &dag.Init{Kind: dag.InitFile, File: "data/$1 and more.npy"}
		}
		switch rapid.IntRange(0, 4).Draw(t, "expect") {
		case 1:
			buffer.Expect = &dag.Expect{Kind: dag.ExpectValue, Value: value("value"), RTol: math.Abs(number("rtol"))}
		case 2:
			buffer.Expect = &dag.Expect{Kind: dag.ExpectSum, Value: value("sum"), ATol: math.Abs(number("atol")), RTol: rapid.SampledFrom([]float64{0, 1e-5, 1}).Draw(t, "rtol")}
		case 3:
			buffer.Expect = &dag.Expect{Kind: dag.ExpectFile, File: "want.bin", RTol: rapid.SampledFrom([]float64{0, 1e-5}).Draw(t, "rtol")}
			buffer.Save = fmt.Sprintf("out%d.npy", i)
		}
		if buffer.Place == dag.Host {
			buffer.Pageable = rapid.Bool().Draw(t, "pageable")
		}
		id := b.Buffer(buffer)
		all = append(all, id)
		if buffer.Place == dag.Device {
			devices = append(devices, id)
		}
	}
	slice := func(ids []dag.BufferID, lo int64) dag.Range {
		id := rapid.SampledFrom(ids).Draw(t, "buffer")
		return b.Slice(id, lo, lo+4)
	}
	n := rapid.IntRange(0, 8).Draw(t, "nodes")
	for i := range n {
		name := fmt.Sprintf("%s%d", rapid.SampledFrom([]string{"n", "-", "ü b", "$$", "1", "a,b", "#"}).Draw(t, "node"), i)
		var id dag.NodeID
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0:
			id = b.Copy(name, slice(all, 0), slice(all, 4))
		case 1:
			value := rapid.Float32Range(-math.MaxFloat32, math.MaxFloat32).Draw(t, "value")
			id = b.Memset(name, slice(devices, rapid.Int64Range(0, 4).Draw(t, "lo")), value)
		case 2:
			var options []dag.LaunchOption
			args := dag.Args{rapid.Int64Range(0, 8).Draw(t, "n"), rapid.Float32Range(-1e9, 1e9).Draw(t, "alpha"), slice(devices, 0), slice(devices, 4)}
			if rapid.Bool().Draw(t, "grid") {
				options = append(options, dag.Grid(rapid.IntRange(0, 3).Draw(t, "x"), rapid.IntRange(1, 3).Draw(t, "y")))
			}
			if rapid.Bool().Draw(t, "block") {
				options = append(options, dag.Block(rapid.IntRange(1, 512).Draw(t, "threads")))
			}
			id = b.Kernel(name, "saxpy", args, options...)
		case 3:
			id = b.Kernel(name, "sum", dag.Args{8, slice(devices, 4), slice(devices, 0)})
		case 4:
			mode := rapid.SampledFrom([]dag.Mode{dag.Read, dag.Write, dag.ReadWrite}).Draw(t, "mode")
			id = b.Kernel(name, "mine.blur", dag.Args{3, slice(devices, 4), dag.Access{Range: slice(devices, 0), Mode: mode}}, dag.Grid(1))
		case 5:
			id = b.Map(name, "r = a*p + max(r, 2)/3", map[string]any{"r": slice(devices, 0), "p": slice(devices, 4), "a": number("a")})
		}
		if i > 0 && rapid.Bool().Draw(t, "after") {
			b.After(id, dag.NodeID(rapid.Int32Range(0, int32(i)-1).Draw(t, "from")))
		}
		if rapid.Bool().Draw(t, "cost") {
			b.Cost(id, math.Abs(number("us")))
		}
		if rapid.Bool().Draw(t, "priority") {
			b.Priority(id, dag.Low)
		} else if rapid.Bool().Draw(t, "stream") {
			b.Stream(id, rapid.Int32Range(0, 9).Draw(t, "k"))
		}
	}
	return b
}

func TestWrittenPipelinesReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, err := drawPipeline(t).Graph()
		require.NoError(t, err)
		text, back := written(t, g.Pipeline)
		if g.Name == "" {
			back.Name = ""
		}
		require.Equal(t, stripped(g.Pipeline), stripped(back.Pipeline), "%s", text)
		require.Equal(t, g.Hash(), back.Hash())
		require.Equal(t, g.Edges(), back.Edges())
		again, _ := written(t, back.Pipeline)
		require.Equal(t, text, again)
	})
}
