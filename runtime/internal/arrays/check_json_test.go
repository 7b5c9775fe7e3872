// Tests that checks survive JSON, whatever numbers they hold.

package arrays

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
)

func TestChecksInJSON(t *testing.T) {
	for v, want := range map[float64]string{math.Inf(1): `"Infinity"`, math.Inf(-1): `"-Infinity"`, 0: "0", 1e-300: "1e-300", 2.5: "2.5"} {
		c := Check{Buffer: "b", Worst: v, RTol: v, ATol: v, Against: "sum 1"}
		text, err := json.Marshal(c)
		require.NoError(t, err)
		require.Equal(t, `{"buffer":"b","ok":false,"elements":0,"wrong":0,"worst_error":`+want+`,"against":"sum 1","rtol":`+want+`,"atol":`+want+`}`, string(text))
		var back Check
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, c, back)
	}
	text, err := json.Marshal(Check{Worst: math.NaN()})
	require.NoError(t, err)
	var back Check
	require.NoError(t, json.Unmarshal(text, &back))
	require.True(t, math.IsNaN(back.Worst))
	require.EqualError(t, json.Unmarshal([]byte(`{"rtol": "many"}`), &back), `"many" is not a number, "NaN", "Infinity" or "-Infinity"`)
}

func TestSumsThatAreNotFinite(t *testing.T) {
	sum := func(want float64, elements ...float64) Check {
		b := &dag.Buffer{Name: "b", DType: dag.F64, Shape: []int64{int64(len(elements))}, Expect: &dag.Expect{Kind: dag.ExpectSum, Value: expr.FloatValue(want)}}
		memory := make([]byte, 8*len(elements))
		for i, v := range elements {
			dag.F64.Store(memory, int64(i), math.Float64bits(v))
		}
		return checkSum(b, memory)
	}
	require.True(t, sum(math.Inf(1), 1, math.Inf(1)).OK)
	require.True(t, sum(math.NaN(), 1, math.NaN()).OK)
	require.False(t, sum(math.Inf(-1), 1, math.Inf(1)).OK)
	require.False(t, sum(3, 1, math.NaN()).OK)
	require.False(t, sum(3, 1, math.Inf(1)).OK)
	require.True(t, sum(3, 1, 2).OK)
}
