// Tests of the text of the kernels that decide about loops and branches. cudart/host has tests of what they do.

package conditions

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/kernels/ptx"
)

func TestModuleIsPTX(t *testing.T) {
	g, err := dag.Parse([]byte(`
version: 1
name: p
buffers:
  x: {place: device, dtype: f32, shape: [4], init: 1}
nodes:
  - name: solve
    repeat: {until: x(0..1) < 1e-3 and abs(x(1..2)) >= 2, most: 5, every: 2}
    nodes: [{name: step, map: x = x / 2, with: {x: x}}]
`), dag.Options{Library: kernels.Library()})
	require.NoError(t, err)
	c := g.Nodes[0].Control
	text := Module([]Kernels{{Test: Test{Condition: c.Condition, Times: c.Times, Every: c.Every}, Begin: "b", Pass: "p", Clear: 1}})
	m, err := ptx.Parse(text)
	require.NoError(t, err)
	require.Len(t, m.Entries(), 2)
}
