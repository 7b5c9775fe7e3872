// Tests of expectations by norm and by the number of elements that may differ.

package arrays

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
)

// checked compares got with want under an expectation.
func checked(t *testing.T, dtype dag.DType, got, want []float64, e dag.Expect) Check {
	t.Helper()
	b := &dag.Buffer{Name: "b", DType: dtype, Shape: []int64{int64(len(got))}, Bytes: int64(len(got)) * dtype.Size(), Expect: &e}
	memory, wanted := make([]byte, b.Bytes), make([]byte, b.Bytes)
	for i := range got {
		dtype.Store(memory, int64(i), dtype.FromFloat(got[i]))
		dtype.Store(wanted, int64(i), dtype.FromFloat(want[i]))
	}
	c := Check{Buffer: b.Name, Elements: int64(len(got)), RTol: e.RTol, ATol: e.ATol}
	JudgeBy(&c, &e)
	require.NoError(t, CompareWith(context.Background(), &c, b, memory, wanted))
	return c
}

func TestNormsAgreeWithTheirDefinition(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const n = 3*elementsAtOnce + 17
	got, want := make([]float64, n), make([]float64, n)
	var l1, l2, most, w1, w2, wMost float64
	for i := range got {
		want[i], got[i] = random.NormFloat64(), random.NormFloat64()
		d := math.Abs(got[i] - want[i])
		l1, l2, most = l1+d, l2+d*d, max(most, d)
		w1, w2, wMost = w1+math.Abs(want[i]), w2+want[i]*want[i], max(wMost, math.Abs(want[i]))
	}
	for norm, expected := range map[dag.Norm][2]float64{dag.NormL1: {l1, w1}, dag.NormL2: {math.Sqrt(l2), math.Sqrt(w2)}, dag.NormMax: {most, wMost}} {
		ratio := expected[0] / expected[1]
		c := checked(t, dag.F64, got, want, dag.Expect{Norm: norm, RTol: ratio * 1.0000001})
		require.True(t, c.OK, norm)
		require.InEpsilon(t, expected[0], c.Distance, 1e-9, norm)
		require.InEpsilon(t, expected[1], c.WantNorm, 1e-9, norm)
		require.Zero(t, c.Wrong)
		require.False(t, checked(t, dag.F64, got, want, dag.Expect{Norm: norm, RTol: ratio * 0.9999999}).OK, norm)
		require.True(t, checked(t, dag.F64, got, want, dag.Expect{Norm: norm, ATol: expected[0] * 1.0000001}).OK, norm)
	}
}

func TestNormsOfHostileValues(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for name, c := range map[string]struct {
		got, want []float64
		ok        bool
		first     string
	}{
		"huge":               {[]float64{3e200, 4e200}, []float64{0, 0}, false, "the l2 norm of the difference is 5e+200, want at most 0; element [1] differs most: it is 4e+200, want 0"},
		"equal infinities":   {[]float64{inf, 1}, []float64{inf, 1}, true, ""},
		"other infinity":     {[]float64{inf, 1}, []float64{-inf, 1}, false, "the l2 norm of the difference is +Inf, want at most 0.5; element [0] differs most: it is +Inf, want -Inf"},
		"two infinities off": {[]float64{inf, inf}, []float64{1, 1}, false, "the l2 norm of the difference is +Inf, want at most 0.707106781; element [0] differs most: it is +Inf, want 1"},
		"NaN":                {[]float64{nan, 1}, []float64{1, 1}, false, "the l2 norm of the difference is +Inf, want at most 0.707106781; element [0] differs most: it is NaN, want 1"},
		"two NaNs":           {[]float64{nan, 1}, []float64{nan, 1}, true, ""},
		"expected infinity":  {[]float64{1, 1}, []float64{inf, 1}, false, "the l2 norm of the difference is +Inf, want at most 0.5; element [0] differs most: it is 1, want +Inf"},
		"nothing":            {nil, nil, true, ""},
	} {
		got := checked(t, dag.F64, c.got, c.want, dag.Expect{Norm: dag.NormL2, RTol: 0.5})
		require.Equal(t, c.ok, got.OK, name)
		require.Equal(t, c.first, got.First, name)
	}
}

func TestNormOfIntegersIsExact(t *testing.T) {
	c := checked(t, dag.I32, []float64{5, 7, -3}, []float64{5, 7, 0}, dag.Expect{Norm: dag.NormL1})
	require.Equal(t, "the l1 norm of the difference is 3, want at most 0; element [2] differs most: it is -3, want 0", c.First)
	require.Equal(t, int64(1), c.Wrong)
	require.True(t, checked(t, dag.U8, []float64{5, 7}, []float64{6, 9}, dag.Expect{Norm: dag.NormMax, ATol: 2}).OK)
}

func TestSomeElementsMayDiffer(t *testing.T) {
	got, want := []float64{1, 2, 3, 4}, []float64{1, 0, 3, 0}
	c := checked(t, dag.F32, got, want, dag.Expect{Differing: 2})
	require.True(t, c.OK)
	require.Equal(t, int64(2), c.Wrong)
	require.Equal(t, int64(2), c.Allowed)
	c = checked(t, dag.F32, got, want, dag.Expect{Differing: 1})
	require.False(t, c.OK)
	require.Equal(t, "element [1] is 2, want 0", c.First)
}
