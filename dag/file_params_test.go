// Tests of reading only the params of a file, which shell completion needs.

package dag

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFileParams(t *testing.T) {
	params, err := FileParams([]byte("version: 1\nparams: {n: 8, half: n/2, fast: true, rate: 0.5}\nnodes: [{name: broken, kernel: }]\n"), "p.yaml")
	require.NoError(t, err, "what is wrong elsewhere is not looked at")
	var got []string
	for _, p := range params {
		got = append(got, p.Name+"="+p.Value.String())
	}
	require.Equal(t, []string{"n=8", "half=4", "fast=true", "rate=0.5"}, got)

	params, err = FileParams([]byte("params: {n: 8, m: oops, k: 2}\n"), "p.yaml")
	require.ErrorContains(t, err, `p.yaml:1:19: unknown name "oops"`)
	require.Len(t, params, 3)

	for _, source := range []string{"", "nodes: []", "- 1", "params: 3", "params", "{"} {
		params, _ := FileParams([]byte(source), "p.yaml")
		require.Empty(t, params, source)
	}
}
