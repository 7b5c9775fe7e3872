// Tests of the text of the kernel that decides about loops and branches. cudart/host has tests of what it does.

package conditions

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/internal/ptx"
	"github.com/dagrun/dagrun/kernels"
)

func TestDeciderIsPTX(t *testing.T) {
	g, err := file.Parse([]byte(`
version: 1
name: p
buffers:
  x: {place: device, dtype: f32, shape: [4], init: 1}
nodes:
  - name: solve
    repeat: {until: x(0..1) < 1e-3 and abs(x(1..2)) >= 2, most: 5, every: 2}
    nodes: [{name: step, map: x = x / 2, with: {x: x}}]
`), file.Options{Library: kernels.Library()})
	require.NoError(t, err)
	c := g.Nodes[0].Control
	var d Decider
	require.Equal(t, 0, d.Number(nil))
	require.Equal(t, 0, d.Number(c.Condition), "it is not there yet")
	for range 2 {
		d.Add(Test{Condition: c.Condition, Times: c.Times, Every: c.Every})
		d.Add(Test{Times: 3, Every: 1})
		require.Equal(t, 1, d.Number(c.Condition))
	}
	require.Equal(t, Parameters+2, d.Parameters())
	m, err := ptx.Parse(string(d.Module().Code))
	require.NoError(t, err)
	require.Len(t, m.Entries(), 1)
	require.Equal(t, Entry, m.Functions[m.Entries()[0]].Name)
	require.Len(t, m.Functions[m.Entries()[0]].Params, d.Parameters())
	waiting, err := ptx.Waiting(string(d.Module().Code))
	require.NoError(t, err)
	require.Contains(t, waiting, "griddepcontrol.wait")
}
