// Tests of reading only the params of a file, which shell completion needs.

package file

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFileParams(t *testing.T) {
	params, err := Params([]byte("version: 1\nparams: {n: 8, half: n/2, fast: true, rate: 0.5}\nnodes: [{name: broken, kernel: }]\n"), "p.yaml")
	require.NoError(t, err, "what is wrong elsewhere is not looked at")
	var got []string
	for _, p := range params {
		got = append(got, p.Name+"="+p.Value.String())
	}
	require.Equal(t, []string{"n=8", "half=4", "fast=true", "rate=0.5"}, got)

	params, err = Params([]byte("params: {n: 8, m: oops, k: 2}\n"), "p.yaml")
	require.ErrorContains(t, err, `p.yaml:1:19: unknown name "oops"`)
	require.Len(t, params, 3)

	for _, source := range []string{"", "nodes: []", "- 1", "params: 3", "params", "{"} {
		params, _ := Params([]byte(source), "p.yaml")
		require.Empty(t, params, source)
	}
}

func TestFileBuffers(t *testing.T) {
	buffers, err := Buffers([]byte("params: {n: 8}\nbuffers:\n  x: {place: host, dtype: f32, shape: [n, 2]}\n  part.$i: {foreach: {i: 2}, place: device, dtype: u8, shape: [i]}\nnodes: [{name: broken, kernel: }]\n"),
		Options{Name: "p.yaml", Params: []Override{{"n", "3"}}})
	require.NoError(t, err)
	require.Len(t, buffers, 3)
	require.Equal(t, []int64{3, 2}, buffers[0].Shape)
	require.Equal(t, "part.1", buffers[2].Name)
	buffers, err = Buffers([]byte("buffers: {x: {place: host, dtype: f32, shape: [n]}, y: {place: host, dtype: u8, shape: [1]}}\n"), Options{Name: "p.yaml"})
	require.EqualError(t, err, `p.yaml:1:48: unknown name "n"`)
	require.Len(t, buffers, 1)
}
