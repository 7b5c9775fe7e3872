// Tests of comparisons: tolerances, the first differing element, sums.

package arrays

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
)

func elements(t dag.DType, values ...float64) []byte {
	memory := make([]byte, int64(len(values))*t.Size())
	for i, v := range values {
		t.Store(memory, int64(i), t.FromFloat(v))
	}
	return memory
}

func TestTheFirstDifferingElementIsShown(t *testing.T) {
	b := &dag.Buffer{Name: "m", DType: dag.F32, Shape: []int64{2, 3}, Bytes: 24, Expect: &dag.Expect{Kind: dag.ExpectValue, Value: expr.Int(1), ATol: 0.5}}
	c, err := Files{}.CheckExpect(t.Context(), b, elements(dag.F32, 1, 1.5, 0.5, 1, 1.75, math.NaN()), make([]byte, 64))
	require.NoError(t, err)
	require.False(t, c.OK)
	require.EqualValues(t, 2, c.Wrong)
	require.Equal(t, "element [1, 1] is 1.75, want 1", c.First)
	require.Equal(t, 0.75, c.Worst)
}

func TestInfinitiesAndNaNsEqualThemselves(t *testing.T) {
	b := &dag.Buffer{Name: "m", DType: dag.F64, Shape: []int64{1}, Bytes: 8}
	equal := func(got, want, tolerance float64) bool {
		c := Check{Elements: 1, RTol: tolerance, ATol: tolerance}
		require.NoError(t, CompareWith(t.Context(), &c, b, elements(dag.F64, got), elements(dag.F64, want)))
		return c.OK
	}
	for _, v := range []float64{math.Inf(1), math.Inf(-1), math.NaN(), 0} {
		require.True(t, equal(v, v, 0), "%v", v)
	}
	require.False(t, equal(math.Inf(1), math.Inf(-1), 1e9))
}

func TestComparingInPartsIsComparingOnce(t *testing.T) {
	const n = 3*elementsAtOnce + 7
	b := &dag.Buffer{Name: "m", DType: dag.F32, Shape: []int64{n}, Bytes: 4 * n}
	values := make([]float64, n)
	values[elementsAtOnce-1], values[2*elementsAtOnce], values[n-1] = 3, -8, 5
	c := Check{Elements: n}
	require.NoError(t, c.compareFloats(t.Context(), b, elements(dag.F32, values...), func(int64) (float64, error) { return 0, nil }))
	require.Equal(t, Check{Elements: n, Wrong: 3, Worst: 8, First: "element [65535] is 3, want 0"}, c)

	err := c.compareFloats(t.Context(), b, elements(dag.F32, values...), func(i int64) (float64, error) {
		if i > elementsAtOnce {
			return 0, fmt.Errorf("no value for %d", i)
		}
		return 0, nil
	})
	require.EqualError(t, err, "no value for 65537", "the first of the buffer, whoever is first to fail")
}

func TestSumsDoNotDependOnOrder(t *testing.T) {
	e := &dag.Expect{Kind: dag.ExpectSum, Value: expr.Int(2)}
	b := &dag.Buffer{Name: "s", DType: dag.F64, Shape: []int64{4}, Bytes: 32, Expect: e}
	for _, values := range [][]float64{{1, 1e100, 1, -1e100}, {1e100, 1, -1e100, 1}} {
		c, err := Files{}.CheckExpect(t.Context(), b, elements(dag.F64, values...), make([]byte, 64))
		require.NoError(t, err)
		require.True(t, c.OK, c.First)
	}
	c, err := Files{}.CheckExpect(t.Context(), b, elements(dag.F64, 1, 1, 1, 0), make([]byte, 64))
	require.NoError(t, err)
	require.Equal(t, "the sum is 3, want 2", c.First)
}
