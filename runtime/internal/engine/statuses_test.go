// Tests of how results are compared where library calls round in another way.

package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/runtime/internal/arrays"
)

// rounding is a call whose results differ by so much.
type rounding struct {
	dag.LaunchKernel
	by float64
}

func (r rounding) Tolerance([]dag.Arg) float64 { return r.by }

// In a graph with library calls, floats are compared as a whole, as the worst of the calls allows, unless the pipeline says how to compare them.
func TestResultsOfCallsAreComparedAsAWhole(t *testing.T) {
	program := func(tolerances ...float64) *Program {
		b := dag.New("calls")
		b.Task("none")
		for k := range tolerances {
			b.Task(string(rune('a' + k)))
		}
		g, err := b.Graph()
		require.NoError(t, err)
		for k, by := range tolerances {
			g.Nodes[k+1].Launch = &dag.Launch{Kernel: rounding{by: by}}
		}
		return &Program{graph: g}
	}
	for _, c := range []struct {
		name       string
		p          *Program
		dtype      dag.DType
		expect     *dag.Expect
		norm       string
		rtol, atol float64
	}{
		{"no calls", program(), dag.F32, nil, "", 1, 2},
		{"exact calls", program(0, 0), dag.F32, nil, "", 1, 2},
		{"the worst of two", program(0.25, 0.125), dag.F32, nil, "max", 0.25, 0},
		{"complex numbers", program(0.25), dag.C64, nil, "max", 0.25, 0},
		{"contents that are expected", program(0.25), dag.F64, &dag.Expect{}, "max", 0.25, 0},
		{"integers", program(0.25), dag.I32, nil, "", 1, 2},
		{"a relative tolerance", program(0.25), dag.F32, &dag.Expect{RTol: 0.5}, "", 1, 2},
		{"an absolute tolerance", program(0.25), dag.F32, &dag.Expect{ATol: 0.5}, "", 1, 2},
		{"a norm", program(0.25), dag.F32, &dag.Expect{Norm: dag.NormMax}, "", 1, 2},
		{"some that may differ", program(0.25), dag.F32, &dag.Expect{Differing: 1}, "", 1, 2},
	} {
		check := arrays.Check{RTol: 1, ATol: 2}
		c.p.judgeCalls(&check, &dag.Buffer{DType: c.dtype, Expect: c.expect})
		require.Equal(t, []any{c.norm, c.rtol, c.atol}, []any{check.Norm, check.RTol, check.ATol}, c.name)
	}
}
