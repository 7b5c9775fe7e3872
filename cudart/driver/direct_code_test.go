// The kernels of direct all-reduces, with all ranks at once: on the CPU's interpreter, and on a GPU that plays all of them.

//go:build linux && (amd64 || arm64)

package driver

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host/simt"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/launch"
)

// stage is a device that plays those of several ranks.
type stage interface {
	alloc(t *testing.T, bytes int) cudart.Ptr // of zeros
	write(t *testing.T, at cudart.Ptr, from []byte)
	read(t *testing.T, at cudart.Ptr, to []byte)
	// run runs the kernels of all ranks at the same time, each of them some rounds.
	run(t *testing.T, codes []string, blocks uintptr, args [][]int64, rounds int)
}

// interpreter runs kernels on the CPU, in smaller launches than a GPU.
type interpreter struct {
	memory  map[cudart.Ptr][]byte
	kernels map[string]*simt.Kernel
}

func (m *interpreter) alloc(_ *testing.T, bytes int) cudart.Ptr {
	words := make([]uint64, (bytes+15)/8)
	at := unsafe.Pointer(unsafe.SliceData(words))
	m.memory[cudart.Ptr(uintptr(at))] = unsafe.Slice((*byte)(at), bytes)
	return cudart.Ptr(uintptr(at))
}

// from returns the memory from an address on, nil if there is none.
func (m *interpreter) from(at cudart.Ptr) []byte {
	for start, bytes := range m.memory {
		if at >= start && at < start+cudart.Ptr(len(bytes)) {
			return bytes[at-start:]
		}
	}
	return nil
}

func (m *interpreter) write(_ *testing.T, at cudart.Ptr, from []byte) { copy(m.from(at), from) }
func (m *interpreter) read(_ *testing.T, at cudart.Ptr, to []byte)    { copy(to, m.from(at)) }

func (m *interpreter) kernel(t *testing.T, code string) *simt.Kernel {
	if k := m.kernels[code]; k != nil {
		return k
	}
	program, err := simt.Load("direct.ptx", code)
	require.NoError(t, err)
	k, err := program.Kernel(directEntry)
	require.NoError(t, err)
	m.kernels[code] = k
	return k
}

func (m *interpreter) run(t *testing.T, codes []string, blocks uintptr, args [][]int64, rounds int) {
	blocks = min(blocks, uintptr(8/len(codes))) // each takes a worker, and most wait for others
	var ranks errgroup.Group
	for rank, code := range codes {
		k := m.kernel(t, code)
		launch := simt.Launch{Grid: [3]uint32{uint32(blocks), 1, 1}, Block: [3]uint32{64, 1, 1}}
		for _, n := range args[rank] {
			arg := simt.Arg{Bits: uint64(n)}
			if rest := m.from(cudart.Ptr(n)); rest != nil {
				arg.Pointer, arg.Bytes = true, int64(len(rest))
			}
			launch.Args = append(launch.Args, arg)
		}
		ranks.Go(func() error {
			for range rounds {
				run, err := k.Start(launch)
				if err != nil {
					return err
				}
				var workers errgroup.Group
				for range blocks {
					workers.Go(func() error { run.Work(); return nil })
				}
				_ = workers.Wait()
				if fault := run.Fault(); fault != nil {
					return fmt.Errorf("rank %d: %+v", rank, fault)
				}
			}
			return nil
		})
	}
	require.NoError(t, ranks.Wait())
}

// oneGPU runs the kernels of all ranks at the same time, on streams of their own.
type oneGPU struct {
	p       *Platform
	streams [directMost]cudart.Stream
	kernels map[string]cudart.Kernel
	staging cudart.Ptr
}

const stagingBytes = 8 << 20

func openGPU(t *testing.T) *oneGPU {
	p, err := Open(Options{})
	if err != nil {
		t.Skipf("NO GPU: %v", err)
	}
	t.Cleanup(func() {
		require.Equal(t, cudart.Live{}, p.Live(), "something was not closed")
		require.NoError(t, p.Close())
	})
	m := &oneGPU{p: p, kernels: map[string]cudart.Kernel{}}
	for k := range m.streams {
		m.streams[k], err = p.NewStream(0, dag.Normal)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, m.streams[k].Close()) })
	}
	m.staging, err = p.AllocHost(stagingBytes, false)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Free(m.staging)) })
	return m
}

func (m *oneGPU) alloc(t *testing.T, bytes int) cudart.Ptr {
	at, err := m.p.Alloc(0, int64(bytes))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.p.Free(at)) })
	for from := 0; from < bytes; from += stagingBytes {
		m.write(t, at+cudart.Ptr(from), make([]byte, min(stagingBytes, bytes-from)))
	}
	return at
}

func (m *oneGPU) write(t *testing.T, at cudart.Ptr, from []byte) {
	copy(m.p.HostBytes(m.staging, int64(len(from))), from)
	m.copy(t, cudart.Command{Kind: cudart.CopyMemory, Label: "up", Dst: at, Src: m.staging, SrcDevice: -1, Bytes: int64(len(from))})
}

func (m *oneGPU) read(t *testing.T, at cudart.Ptr, to []byte) {
	m.copy(t, cudart.Command{Kind: cudart.CopyMemory, Label: "down", Dst: m.staging, Src: at, DstDevice: -1, Bytes: int64(len(to))})
	copy(to, m.p.HostBytes(m.staging, int64(len(to))))
}

func (m *oneGPU) copy(t *testing.T, c cudart.Command) {
	c.Stream = m.streams[0]
	list := m.list(t, c)
	require.NoError(t, list.Submit())
	require.NoError(t, c.Stream.Synchronize(t.Context()))
	require.NoError(t, list.Close())
}

func (m *oneGPU) list(t *testing.T, c cudart.Command) cudart.List {
	list, err := m.p.Encode([]cudart.Command{c}, cudart.ListOptions{Origin: c.Stream})
	require.NoError(t, err)
	return list
}

func (m *oneGPU) kernel(t *testing.T, code string) cudart.Kernel {
	if k := m.kernels[code]; k != nil {
		return k
	}
	module, err := m.p.Load(context.Background(), 0, &launch.Module{Name: "direct", Kind: launch.PTX, Code: []byte(code)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, module.Close()) })
	k, err := module.Kernel(directEntry)
	require.NoError(t, err)
	m.kernels[code] = k
	return k
}

func (m *oneGPU) run(t *testing.T, codes []string, blocks uintptr, args [][]int64, rounds int) {
	var lists []cudart.List
	for rank, code := range codes {
		c := cudart.Command{Kind: cudart.LaunchKernel, Stream: m.streams[rank], Label: "rank", Kernel: m.kernel(t, code), Grid: [3]uint32{uint32(blocks), 1, 1},
			Block: [3]uint32{directThreads, 1, 1}}
		for _, n := range args[rank] {
			c.Args = append(c.Args, cudart.Value{Bits: uint64(n), Size: 8})
		}
		lists = append(lists, m.list(t, c))
	}
	for range rounds {
		for _, list := range lists {
			require.NoError(t, list.Submit())
		}
	}
	for rank := range codes {
		require.NoError(t, m.streams[rank].Synchronize(t.Context()))
		require.NoError(t, lists[rank].Close())
	}
}

// players are the ranks on a stage, with all that direct all-reduces need.
type players struct {
	on    stage
	ranks []*direct
	bytes int // of the memory of each rank
}

func play(t *testing.T, on stage, ranks, bytes int) *players {
	a := &players{on: on, bytes: bytes}
	var control [directMost]uintptr
	shared := sharedMemory{bytes: int64(bytes)}
	for r := range ranks {
		control[r] = uintptr(on.alloc(t, directControl+smallSlots(ranks)))
		shared.of[r] = uintptr(on.alloc(t, bytes))
	}
	for r := range ranks {
		shared.start = cudart.Ptr(shared.of[r])
		a.ranks = append(a.ranks, &direct{ranks: ranks, own: r, control: control, rounds: uintptr(on.alloc(t, 4*(directBlocks+smallBlocks))), stop: on.alloc(t, 8),
			shared: []sharedMemory{shared}})
	}
	return a
}

// allReduce is one of so many elements, read and written at offsets that may differ between the ranks.
type allReduce struct {
	kind     directKind
	count    int
	from, to func(rank int) int
	rounds   int
}

// check runs an all-reduce on all ranks, and compares all memory of all ranks with what must be there.
func (a *players) check(t *testing.T, c allReduce) {
	t.Helper()
	size := int(c.kind.dtype.Size())
	var codes []string
	var args [][]int64
	var blocks uintptr
	want := make([][]byte, len(a.ranks))
	for r, x := range a.ranks {
		want[r] = bytes.Repeat([]byte{0xa5}, a.bytes)
		for k := range c.count {
			put(want[r][c.from(r)+k*size:], size, element(c.kind.dtype, r, k))
		}
		start := x.shared[0].start
		a.on.write(t, start, want[r])
		of := &cudart.Communication{Verb: dag.AllReduce, DType: c.kind.dtype, Reduction: c.kind.reduction, Src: start + cudart.Ptr(c.from(r)), Dst: start + cudart.Ptr(c.to(r)),
			SrcBytes: int64(c.count * size), DstBytes: int64(c.count * size)}
		var numbers []int64
		if numbers, blocks = x.large(of), directBlocks; c.kind.small {
			numbers, blocks = x.slots(of), smallGrid(of.SrcBytes)
		}
		codes, args = append(codes, x.code(c.kind)), append(args, numbers)
	}
	a.on.run(t, codes, blocks, args, c.rounds)
	for range c.rounds {
		for k := range c.count {
			v := get(want[0][c.from(0)+k*size:], size)
			for r := 1; r < len(a.ranks); r++ {
				v = combinedBits(c.kind.dtype, c.kind.reduction, v, get(want[r][c.from(r)+k*size:], size))
			}
			v = meanBits(c.kind.dtype, c.kind.reduction, v, len(a.ranks))
			for r := range a.ranks {
				put(want[r][c.to(r)+k*size:], size, v)
			}
		}
	}
	got := make([]byte, a.bytes)
	for r, x := range a.ranks {
		a.on.read(t, x.shared[0].start, got)
		if !bytes.Equal(want[r], got) {
			for at := range got {
				require.Equal(t, want[r][at], got[at], "%+v: byte %d of rank %d of %d", c.kind, at, r, len(a.ranks))
			}
		}
	}
}

// empty checks that nothing is left in the slots, which a round long after this one would find.
func (a *players) empty(t *testing.T) {
	slots := make([]byte, smallSlots(len(a.ranks)))
	for r, x := range a.ranks {
		a.on.read(t, cudart.Ptr(x.control[r]+directControl), slots)
		require.Equal(t, len(slots), bytes.Count(slots, []byte{0}), "slots of rank %d", r)
	}
}

// stops checks that the kernel of a rank ends although no other rank comes, if communication ends early. The ranks cannot be used afterwards.
func (a *players) stops(t *testing.T, kind directKind) {
	x := a.ranks[0]
	a.on.write(t, x.stop, []byte{1, 0, 0, 0})
	start := x.shared[0].start
	of := &cudart.Communication{Verb: dag.AllReduce, DType: kind.dtype, Reduction: kind.reduction, Src: start, Dst: start, SrcBytes: 4096, DstBytes: 4096}
	numbers, blocks := x.large(of), uintptr(directBlocks)
	if kind.small {
		numbers, blocks = x.slots(of), smallGrid(of.SrcBytes)
	}
	a.on.run(t, []string{x.code(kind)}, blocks, [][]int64{numbers}, 1)
}

func put(at []byte, size int, v uint64) {
	if size == 4 {
		binary.LittleEndian.PutUint32(at, uint32(v))
	} else {
		binary.LittleEndian.PutUint64(at, v)
	}
}

func get(at []byte, size int) uint64 {
	if size == 4 {
		return uint64(binary.LittleEndian.Uint32(at))
	}
	return binary.LittleEndian.Uint64(at)
}

// element is an element that a rank starts with: where sums are rounded, they depend on their order.
func element(dtype dag.DType, rank, k int) uint64 {
	v := 1.25 + float64(k%7)*0.1 + float64(rank)*0.3
	switch dtype {
	case dag.F32:
		return uint64(math.Float32bits(float32(v)))
	case dag.F64:
		return math.Float64bits(v)
	}
	return uint64(k)*0x9e3779b97f4a7c15 + uint64(rank)<<40 ^ uint64(k*rank)
}

// at is an offset that is the same on all ranks.
func at(offset int) func(int) int { return func(int) int { return offset } }

// testRanks runs all-reduces of some types and operations with some numbers of ranks, with counts up to a limit, in some of the cases.
func testRanks(t *testing.T, on stage, ranks, most, cases int, tested func(dag.DType, dag.Reduction) bool) {
	half := most*8 + 4096
	a := play(t, on, ranks, 2*half)
	for dtype, operations := range directOperations {
		for op := range operations {
			if !tested(dtype, op) {
				continue
			}
			size := int(dtype.Size())
			for _, kind := range []directKind{{dtype, op, true}, {dtype, op, false}} {
				limit := most
				if kind.small {
					limit = min(limit, directSmall/(ranks-1)/size)
				}
				for _, c := range []allReduce{
					{kind, limit - 61, at(16 * size), at(half), 2},
					{kind, 2*ranks*16 + 5, func(rank int) int { return (rank + 1) * size }, at(half + size), 1}, // elements that are no whole vectors
					{kind, ranks + 1, at(0), at(0), 2},                                                          // most ranks have no part
					{kind, limit, at(0), func(rank int) int { return half + 64*rank }, 3},
					{kind, 1, at(size), at(size), 5},
				}[:cases] {
					a.check(t, c)
				}
			}
		}
	}
	a.empty(t)
	a.stops(t, directKind{dag.F32, dag.Avg, true})
	a.stops(t, directKind{dag.F32, dag.Avg, false})
}

func TestDirectAllReducesOnTheCPU(t *testing.T) {
	for _, ranks := range []int{2, 3, 4, 8} {
		t.Run(fmt.Sprint(ranks), func(t *testing.T) {
			testRanks(t, &interpreter{map[cudart.Ptr][]byte{}, map[string]*simt.Kernel{}}, ranks, 300, 3, func(dtype dag.DType, op dag.Reduction) bool {
				return ranks == 2 || dtype == dag.F32 && op == dag.Avg
			})
		})
	}
}

// One GPU plays all ranks: their kernels run at the same time. Most of the time is the driver's, which compiles each kernel for each rank.
func TestDirectAllReducesOnOneGPU(t *testing.T) {
	for _, ranks := range []int{2, 3, 4, 5, 8} {
		t.Run(fmt.Sprint(ranks), func(t *testing.T) {
			testRanks(t, openGPU(t), ranks, 50_021, 5, func(dtype dag.DType, op dag.Reduction) bool {
				return ranks == 2 || op == dag.Avg || dtype == dag.U64 && op == dag.Min
			})
		})
	}
}

func combinedBits(dtype dag.DType, op dag.Reduction, a, b uint64) uint64 {
	switch dtype {
	case dag.F32:
		return uint64(math.Float32bits(combinedOf(op, math.Float32frombits(uint32(a)), math.Float32frombits(uint32(b)))))
	case dag.F64:
		return math.Float64bits(combinedOf(op, math.Float64frombits(a), math.Float64frombits(b)))
	case dag.I32:
		return uint64(uint32(combinedOf(op, int32(a), int32(b))))
	case dag.U32:
		return uint64(combinedOf(op, uint32(a), uint32(b)))
	case dag.I64:
		return uint64(combinedOf(op, int64(a), int64(b)))
	}
	return combinedOf(op, a, b)
}

func combinedOf[T float32 | float64 | int32 | uint32 | int64 | uint64](op dag.Reduction, a, b T) T {
	switch op {
	case dag.Prod:
		return a * b
	case dag.Min:
		return min(a, b)
	case dag.Max:
		return max(a, b)
	}
	return a + b
}

func meanBits(dtype dag.DType, op dag.Reduction, v uint64, ranks int) uint64 {
	switch {
	case op != dag.Avg:
		return v
	case dtype == dag.F32:
		return uint64(math.Float32bits(math.Float32frombits(uint32(v)) / float32(ranks)))
	}
	return math.Float64bits(math.Float64frombits(v) / float64(ranks))
}
