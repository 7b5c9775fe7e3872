// Tests that launches are written as dagrun makes them, and that mistakes are named.

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLaunchesAreWritten(t *testing.T) {
	out := t.TempDir()
	require.NoError(t, write(out, []string{"softmax_f32 rows=3 cols=5", "gemm_f64 m=2 n=3 k=4 alpha=0.5"}))
	text, err := os.ReadFile(filepath.Join(out, "launches.json"))
	require.NoError(t, err)
	var all []launch
	require.NoError(t, json.Unmarshal(text, &all))
	require.Len(t, all, 2)
	assert.Equal(t, "dagrun_softmax_few_f32", all[0].Entry, "the form for few columns")
	assert.Equal(t, uint32(1), all[0].Grid[0])
	assert.Equal(t, uint32(256), all[0].Block[0])
	assert.Equal(t, []argument{{Name: "rows", Type: "i64", Bytes: 8, Bits: 3}, {Name: "cols", Type: "i64", Bytes: 8, Bits: 5},
		{Name: "x", Type: "f32", Buffer: true, Bytes: 60}, {Name: "y", Type: "f32", Buffer: true, Bytes: 60}}, all[0].Args)
	assert.Equal(t, argument{Name: "alpha", Type: "f64", Bytes: 8, Bits: 0x3fe0000000000000}, all[1].Args[5])
	for _, l := range all {
		code, err := os.ReadFile(filepath.Join(out, l.Entry+".ptx"))
		require.NoError(t, err)
		assert.Contains(t, string(code), ".entry "+l.Entry+"(")
	}
}

func TestMistakesAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "has no kernel",
		"softmax":               "softmax: the library has no such entry",
		"softmax_f32 rows":      `softmax_f32 rows: "rows" is not name=number`,
		"softmax_f32 b=1 a=2":   "softmax_f32 b=1 a=2: has no number a",
		"histogram_f32 bins=-1": "histogram_f32 bins=-1: argument bins is -1; it must be at least 1",
	} {
		assert.ErrorContains(t, write(t.TempDir(), []string{text}), want)
	}
	assert.EqualError(t, write(t.TempDir(), nil), "name a kernel and its numbers, such as 'exclusive_scan_f32 n=4096'")
}
