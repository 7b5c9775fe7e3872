// Tests of loops and branches in graphs: the kernel that decides about them on GPUs, run from its PTX, decides and counts as the CPU device.

package host

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/kernels/conditions"
	"github.com/dagrun/dagrun/kernels/launch"
)

var operandTypes = []dag.DType{dag.F64, dag.F32, dag.F16, dag.BF16, dag.I8, dag.I16, dag.I32, dag.I64, dag.U8, dag.U16, dag.U32, dag.Bool}

// randomTerm is a number, and randomTruth a condition, over buffers that are named after their types.
func randomTerm(r *rand.Rand, depth int) string {
	if depth == 0 || r.IntN(5) == 0 {
		switch r.IntN(4) {
		case 0:
			return fmt.Sprint(r.IntN(200) - 100)
		case 1:
			return fmt.Sprintf("%g", math.Round(1e3*r.NormFloat64())/64)
		}
		return "x_" + operandTypes[r.IntN(len(operandTypes))].String()
	}
	a, b := randomTerm(r, depth-1), randomTerm(r, depth-1)
	switch r.IntN(10) {
	case 0:
		return "(" + a + " + " + b + ")"
	case 1:
		return "(" + a + " - " + b + ")"
	case 2:
		return "(" + a + " * " + b + ")"
	case 3:
		return "(" + a + " / " + b + ")"
	case 4:
		return "(-" + a + ")"
	case 5:
		return "min(" + a + ", " + b + ", 3)"
	case 6:
		return "max(" + a + ", " + b + ")"
	}
	return []string{"abs", "floor", "ceil", "sqrt"}[r.IntN(4)] + "(" + a + ")"
}

func randomTruth(r *rand.Rand, depth int) string {
	if depth > 0 {
		switch r.IntN(5) {
		case 0:
			return "(" + randomTruth(r, depth-1) + " and " + randomTruth(r, depth-1) + ")"
		case 1:
			return "(" + randomTruth(r, depth-1) + " or " + randomTruth(r, depth-1) + ")"
		case 2:
			return "not (" + randomTruth(r, depth-1) + ")"
		}
	}
	return randomTerm(r, 3) + " " + []string{"<", "<=", ">", ">=", "==", "!="}[r.IntN(6)] + " " + randomTerm(r, 3)
}

// randomCondition makes a condition that reads at least one buffer.
func randomCondition(r *rand.Rand) *dag.Condition {
	for {
		b := dag.New("p")
		var first dag.BufferID
		for k, t := range operandTypes {
			x := b.Device("x_"+t.String(), t, 1)
			b.Init(x, dag.Init{Kind: dag.InitValue, Value: expr.Int(0)})
			if k == 0 {
				first = x
			}
		}
		b.If("test", randomTruth(r, 2), func() { b.Memset("set", b.Whole(first), 0) }, nil)
		if g, err := b.Graph(); err == nil { // some have a constant that overflows, or no buffer
			return g.Nodes[0].Control.Condition
		}
	}
}

// randomBits is an element: often a small number, sometimes any bits, NaN and infinity among them.
func randomBits(r *rand.Rand, t dag.DType) uint64 {
	switch {
	case t == dag.Bool:
		return uint64(r.IntN(2))
	case r.IntN(4) == 0:
		return r.Uint64()
	case t.Float() && r.IntN(6) == 0:
		return t.FromFloat([]float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1)}[r.IntN(4)])
	}
	return t.FromFloat(float64(r.IntN(41) - 20))
}

// stored makes the kernel store the value of the conditional in memory, at the handle, instead of calling the device runtime.
func stored(ptx string) string {
	var text strings.Builder
	for line := range strings.Lines(ptx) {
		switch {
		case strings.Contains(line, "call.uni"):
			text.WriteString("\tst.global.u32 [%at], %value;\n")
		case strings.Contains(line, "st.param"), strings.Contains(line, ".extern"), line == "\t.param .b64 handle;\n", line == "\t.param .b32 value;\n":
		default:
			text.WriteString(line)
		}
	}
	return text.String()
}

func TestKernelsDecideLikeTheCPU(t *testing.T) {
	cases := 120
	if testing.Short() {
		cases = 30
	}
	b := newBench(t, Options{Workers: 1})
	s := b.stream()
	const words = 128
	address, err := b.AllocHost(8*words, false)
	require.NoError(t, err)
	defer func() { require.NoError(t, b.Free(address)) }()
	memory := unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(b.HostBytes(address, 8*words)))), words)
	at := func(word int) cudart.Ptr { return address + cudart.Ptr(8*word) }
	const handle, other, counted, operands, stamped = 0, 1, 8, 32, 64
	for seed := range uint64(cases) {
		r := rand.New(rand.NewPCG(seed, 5))
		k := conditions.Launch{Test: conditions.Test{Times: int64(r.IntN(7)), Every: int64(1 + r.IntN(3))}}
		split := false
		switch r.IntN(4) {
		case 0:
		case 1:
			k.Branch, split = true, r.IntN(2) == 0
		case 2:
			k.While = true
		}
		if k.Branch || k.While || r.IntN(4) > 0 {
			k.Condition, k.Times = randomCondition(r), k.Times+1
		}
		first := r.IntN(2) == 0
		if first {
			k.Clear = 2
		}
		var decider conditions.Decider
		for range r.IntN(3) { // conditions of other loops
			decider.Add(conditions.Test{Condition: randomCondition(r), Every: 1})
		}
		decider.Add(k.Test)
		for range r.IntN(3) {
			decider.Add(conditions.Test{Condition: randomCondition(r), Every: 2})
		}
		k.Number = decider.Number(k.Condition)
		m, err := b.Load(context.Background(), 0, &launch.Module{Name: "conditions", Kind: launch.PTX, Code: []byte(stored(string(decider.Module().Code)))})
		require.NoError(t, err)
		kernel, err := m.Kernel(conditions.Entry)
		require.NoError(t, err)
		pointers := map[int]int64{conditions.ParameterHandle: 8, conditions.ParameterCounts: 8 * 2 * conditions.CountWords} // by parameter: bytes
		k.Handle, k.Counts = uint64(at(handle)), uint64(at(counted))
		if split {
			k.Other, pointers[conditions.ParameterOther] = uint64(at(other)), 8
		}
		if k.Condition != nil {
			for n, dtype := range k.Condition.Types {
				k.Operands, pointers[conditions.Parameters+n] = append(k.Operands, uint64(at(operands+n))), dtype.Size()
			}
		}
		k.Stamping = conditions.Stamping{Room: int64(r.IntN(2) * r.IntN(20)), Each: int64(r.IntN(4))}
		stamping := k.Stamping
		if stamping.Room > 0 {
			k.Stamps, pointers[conditions.ParameterStamps] = uint64(at(stamped)), 8*conditions.StampWords*stamping.Room
		}
		refill := func() {
			if k.Condition != nil {
				for n, dtype := range k.Condition.Types {
					memory[operands+n] = randomBits(r, dtype)
				}
			}
		}
		holds := func() bool {
			return k.Condition.Holds(func(n int) uint64 {
				return memory[operands+n] << (64 - 8*k.Condition.Types[n].Size()) >> (64 - 8*k.Condition.Types[n].Size())
			})
		}
		decide := func(pass bool) {
			k.Pass = pass
			var args []cudart.Value
			for n, word := range k.Arguments() {
				if bytes := pointers[n]; bytes > 0 {
					args = append(args, cudart.Value{Pointer: true, Ptr: cudart.Ptr(word), Bytes: bytes})
				} else {
					args = append(args, cudart.Value{Bits: word, Size: 8})
				}
			}
			for len(args) < decider.Parameters() {
				args = append(args, cudart.Value{Size: 8})
			}
			one := [3]uint32{1, 1, 1}
			require.NoError(t, b.submit(cudart.Command{Kind: cudart.LaunchKernel, Stream: s, Kernel: kernel, Grid: one, Block: one, Args: args}))
			require.NoError(t, s.Synchronize(context.Background()))
		}
		clear(memory)
		want := [conditions.CountWords]uint64{}
		var stamps []int64
		stamp := func(what int64) {
			if stamping.Room == 0 {
				return
			}
			if stamps = stamps[:want[conditions.CountStamps]]; len(stamps) >= int(stamping.Room) {
				stamps = append(stamps, math.MaxInt64)
			} else {
				stamps = append(stamps, what)
			}
			want[conditions.CountStamps]++
		}
		for run := range 3 {
			if first {
				for w := range 2 * conditions.CountWords {
					memory[counted+w] = 77
				}
				want = [conditions.CountWords]uint64{}
			}
			refill()
			message := fmt.Sprintf("seed %d, run %d: %v", seed, run, k.Condition)
			want[conditions.CountRuns]++
			if k.Branch {
				truth := uint64(0)
				if holds() {
					truth = 1
				}
				want[conditions.CountHeld] += truth
				stamp(map[uint64]int64{1: conditions.StampHeld, 0: conditions.StampOtherwise}[truth])
				decide(false)
				require.Equal(t, truth, memory[handle], message)
				if split {
					require.Equal(t, 1-truth, memory[other], message)
				}
				stamp(1)
				decide(true)
			} else {
				want[conditions.CountPass] = 0
				more := k.Times > 0 && (!k.While || holds())
				stamp(conditions.StampBegun)
				decide(false)
				for pass := int64(1); ; pass++ {
					require.Equal(t, more, memory[handle] == 1, message)
					if !more {
						break
					}
					refill()
					want[conditions.CountPass] = uint64(pass)
					last := pass == k.Times
					more = !last
					if k.Condition != nil && (last || pass%k.Every == 0) {
						stop := holds() != k.While
						if more = more && !stop; last && !stop {
							want[conditions.CountMissed]++
						}
					}
					if pass <= stamping.Each || !more {
						stamp(pass)
					}
					if !more {
						want[conditions.CountPasses] += uint64(pass)
					}
					decide(true)
				}
			}
			require.Equal(t, want[:], memory[counted:counted+conditions.CountWords], message)
			for n, what := range stamps[:min(len(stamps), int(stamping.Room))] {
				require.Equal(t, what, int64(memory[stamped+conditions.StampWords*n+1]), "%s, stamp %d of %v", message, n, stamps)
				require.NotZero(t, memory[stamped+conditions.StampWords*n], message)
			}
			require.Zero(t, memory[stamped+conditions.StampWords*int(stamping.Room)], "%s: behind the stamps", message)
		}
		require.NoError(t, m.Close())
	}
}
