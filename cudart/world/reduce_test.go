package world

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
)

// What each reduction makes of 2, 3 and 7, in every type. A reduction that is new to pipelines must not become a sum.
func TestEveryReductionCombines(t *testing.T) {
	want := map[dag.Reduction]uint64{dag.Sum: 12, dag.Prod: 42, dag.Min: 2, dag.Max: 7, dag.Avg: 4}
	for r := dag.Sum; r.String() != fmt.Sprintf("Reduction(%d)", r); r++ {
		require.Contains(t, want, r)
		for _, dtype := range []dag.DType{dag.I8, dag.U8, dag.I32, dag.U32, dag.I64, dag.U64} {
			if r == dag.Avg {
				continue // of whole numbers there is none
			}
			size := int(dtype.Size())
			parts, out := make([][]byte, 3), make([]byte, 2*size)
			for k, v := range []uint64{2, 3, 7} {
				parts[k] = make([]byte, 2*size)
				put(parts[k], 0, size, v)
				put(parts[k], size, size, v)
			}
			combine(r, dtype, out, parts)
			require.Equal(t, []uint64{want[r], want[r]}, []uint64{bits(out, 0, size), bits(out, size, size)}, "%s of %s", r, dtype)
		}
		for _, dtype := range []dag.DType{dag.F16, dag.BF16, dag.F32} {
			size := int(dtype.Size())
			parts, out := make([][]byte, 3), make([]byte, size)
			for k, v := range []float32{2, 3, 7} {
				parts[k] = make([]byte, size)
				putF32(dtype, parts[k], 0, v)
			}
			combine(r, dtype, out, parts)
			require.Equal(t, float32(want[r]), f32(dtype, out, 0), "%s of %s", r, dtype)
		}
	}
}
