// Tests of reading valid files.

package file

import (
	"context"
	"io"
	"testing"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/internal/fakes"
	"github.com/stretchr/testify/require"
)

// options for tests: the small library, and modules whose kernels are known.
func testOptions(params ...Override) Options {
	return Options{Name: "p.yaml", Library: fakes.Kernels, Params: params, OpenModule: func(dag.Module) (dag.Library, error) { return fakes.UserKernels, nil }}
}

const saxpyFile = `# yaml-language-server: $schema=../dagrun.schema.json
version: 1
name: saxpy
params:                       # overridden with: dagrun saxpy.yaml -p n=4096 -p alpha=3
  n: 1048576
  alpha: 2.0

modules:                      # only for kernels of your own
  mine: {source: filters.cu}  # or .ptx, .cubin, .fatbin; relative to this file

buffers:
  x:   {place: host, dtype: f32, shape: [n], init: {uniform: [0, 1], seed: 1}}
  y:   {place: host, dtype: f32, shape: [n], init: {ramp: [0, 0.5]}}
  d_x: {place: device, dtype: f32, shape: [n]}
  d_y: {place: device, dtype: f32, shape: [n]}
  out: {place: host, dtype: f32, shape: [n], save: out.npy, expect: {file: want.npy, rtol: 1e-6}}

nodes:
  - {name: up_x, memcpy: {from: x, to: d_x}}
  - {name: up_y, memcpy: {from: y, to: d_y}}
  - {name: saxpy, kernel: saxpy, args: [n, alpha, d_x, d_y]}
  - {name: down, memcpy: {from: d_y, to: out}}
`

func TestTheFormatsExample(t *testing.T) {
	g, err := Parse([]byte(saxpyFile), testOptions(Override{"n", "1e6"}, Override{"alpha", "3"}))
	require.NoError(t, err)
	require.Empty(t, g.Warnings().List)
	require.Equal(t, "saxpy", g.Name)
	require.Equal(t, "1000000", g.Params[0].Value.String())
	require.Equal(t, "3.0", g.Params[1].Value.String())
	require.Len(t, g.Nodes, 4)
	require.EqualValues(t, 4000000, g.Buffers[0].Bytes)
	require.Equal(t, []dag.NodeID{2}, g.Succs(0))
	require.Equal(t, []dag.NodeID{2}, g.Succs(1))
	require.Equal(t, []dag.NodeID{3}, g.Succs(2))
	require.Equal(t, "out.npy", g.Buffers[4].Save)
	require.Equal(t, dag.Expect{Kind: dag.ExpectFile, File: "want.npy", RTol: 1e-6}, *g.Buffers[4].Expect)
}

// Where nobody waits for the graph any more, a file that asks for millions of nodes is not read to its end.
func TestReadingStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(io.ErrUnexpectedEOF)
	options := testOptions()
	g, err := ParseContext(ctx, []byte("version: 1\nbuffers: {d: {place: device, dtype: u8, shape: [8]}}\nnodes:\n  - {foreach: {i: 2000, j: 2000}, name: n.$i.$j, memset: {to: d, value: 1}}\n"), options)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Nil(t, g)
}

// A context that ends ends the derivation of dependencies, of bodies too.
func TestDerivationEndsWithItsContext(t *testing.T) {
	for _, nodes := range []string{
		"  - {foreach: {i: 100}, name: n.$i, map: d = d + 1}\n",
		"  - name: loop\n    repeat: {times: 2}\n    nodes:\n      - {foreach: {i: 100}, name: n.$i, map: d = d + 1}\n",
	} {
		source := []byte("version: 1\nbuffers:\n  d: {place: device, dtype: f32, shape: [4], init: 0, save: d.bin}\nnodes:\n" + nodes)
		ended := make(chan struct{})
		p := newParser(Options{Library: fakes.Kernels})
		p.ended = ended
		root := p.root(source)
		require.True(t, p.declare(context.Background(), root), "%v", p.err())
		close(ended)
		require.Nil(t, p.derive())
		require.NoError(t, p.err())
	}
}
