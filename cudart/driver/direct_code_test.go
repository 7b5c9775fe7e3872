// The kernel of direct all-reduces on the CPU's interpreter: one rank's part of the elements of all ranks, whose turns have come.

package driver

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/dagrun/dagrun/cudart/host/simt"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/ptx"
)

// runDirect runs the kernel of one rank on count elements that begin at an offset on each rank, in place, and returns the memory of all ranks.
func runDirect(t *testing.T, ranks, own int, dtype dag.DType, op dag.Reduction, offset []int, start, count int, fill func(rank, k int) uint64) [][]byte {
	t.Helper()
	size := int(dtype.Size())
	module, err := ptx.Parse(directCode(ranks, own, dtype, op))
	require.NoError(t, err)
	program, err := simt.Load("direct.ptx", module)
	require.NoError(t, err)
	k, err := program.Kernel(directEntry)
	require.NoError(t, err)
	var keep [][]uint64
	pointer := func(bytes int) (simt.Arg, []byte) {
		words := make([]uint64, bytes/8+2)
		keep = append(keep, words)
		at := unsafe.Pointer(unsafe.SliceData(words))
		return simt.Arg{Bits: uint64(uintptr(at)), Pointer: true, Bytes: int64(bytes)}, unsafe.Slice((*byte)(at), bytes)
	}
	number := func(n int) simt.Arg { return simt.Arg{Bits: uint64(n)} }
	rounds, counts := pointer(4 * directBlocks)
	stop, _ := pointer(8)
	args := []simt.Arg{number(offset[own]), number(offset[own]), number(start * size), number(count), rounds, stop}
	memory := make([][]byte, ranks)
	for r := range ranks {
		var at, control simt.Arg
		var slots []byte
		at, memory[r] = pointer(offset[r] + (start+count)*size + 64)
		control, slots = pointer(directControl)
		for k := range start + count {
			var word [8]byte
			binary.LittleEndian.PutUint64(word[:], fill(r, k))
			copy(memory[r][offset[r]+k*size:], word[:size])
		}
		// What the other ranks have told: that they are done, and where their elements are.
		for from := range ranks {
			for b := range directBlocks {
				slot := slots[(from*directBlocks+b)*directSlot:]
				binary.LittleEndian.PutUint32(slot, 2)
				binary.LittleEndian.PutUint64(slot[8:], uint64(offset[from]))
				binary.LittleEndian.PutUint64(slot[16:], uint64(offset[from]))
			}
		}
		args = append(args, at, control)
	}
	run, err := k.Start(simt.Launch{Grid: [3]uint32{3, 1, 1}, Block: [3]uint32{64, 1, 1}, Args: args})
	require.NoError(t, err)
	var workers errgroup.Group
	for range 3 {
		workers.Go(func() error { run.Work(); return nil })
	}
	require.NoError(t, workers.Wait())
	if fault := run.Fault(); fault != nil {
		t.Fatalf("%+v", fault)
	}
	require.Equal(t, uint32(2), binary.LittleEndian.Uint32(counts), "each block has made a round, which is two steps")
	require.NotEmpty(t, keep)
	return memory
}

func TestDirectAllReducesOnTheCPU(t *testing.T) {
	for dtype, operations := range directOperations {
		for op := range operations {
			for _, c := range []struct {
				ranks, own, start, count int
				offset                   []int
			}{
				{2, 0, 0, 5000, []int{0, 256}},
				{2, 1, 16, 2001, []int{512, 256}},
				{2, 1, 16, 301, []int{512, 256 + 8}}, // no whole vectors on one of them
				{3, 2, 32, 1027, []int{0, 16, 32}},
				{8, 3, 0, 515, []int{0, 0, 0, 0, 0, 0, 0, 0}},
				{2, 0, 0, 0, []int{0, 0}},
			} {
				t.Run(fmt.Sprintf("%s %s %+v", dtype, op, c), func(t *testing.T) {
					fill := func(rank, k int) uint64 {
						v := 1.25 + float64(k%7)*0.1 + float64(rank)*0.3
						switch dtype {
						case dag.F32:
							return uint64(math.Float32bits(float32(v)))
						case dag.F64:
							return math.Float64bits(v)
						}
						return uint64(k)*0x9e3779b97f4a7c15 + uint64(rank)<<40 ^ uint64(k*rank)
					}
					memory := runDirect(t, c.ranks, c.own, dtype, op, c.offset, c.start, c.count, fill)
					size := int(dtype.Size())
					for k := range c.start + c.count {
						for r := range c.ranks {
							want := fill(r, k)
							if k >= c.start {
								want = fill(0, k)
								for more := 1; more < c.ranks; more++ {
									want = combinedBits(dtype, op, want, fill(more, k))
								}
								want = meanBits(dtype, op, want, c.ranks)
							}
							var word [8]byte
							copy(word[:size], memory[r][c.offset[r]+k*size:])
							if size == 4 {
								want = uint64(uint32(want))
							}
							require.Equal(t, want, binary.LittleEndian.Uint64(word[:]), "element %d of rank %d", k, r)
						}
					}
				})
			}
		}
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
