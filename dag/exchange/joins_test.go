// Tests of handing out graphs with joins.

package exchange

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/crowd"
)

func TestDirectedHasJoinsAsVertices(t *testing.T) {
	t.Cleanup(crowd.Early(false))
	declare := func(name string) *dag.Graph {
		b := dag.New("joined")
		x := b.Device("x", dag.U8, 8)
		for i := range int64(8) {
			b.Task(fmt.Sprintf("w%d", i), b.Slice(x, i, i+1).Out())
		}
		for i := range 3 {
			b.Task(fmt.Sprintf("r%d", i), b.In(x))
		}
		b.Task(name)
		g, err := b.Graph()
		require.NoError(t, err)
		require.NotEmpty(t, g.Joins())
		return g
	}
	g := declare("last")
	d, err := Directed(g)
	require.NoError(t, err)
	order, err := d.Order()
	require.NoError(t, err)
	require.Equal(t, g.Vertices(), order)
	size, err := d.Size()
	require.NoError(t, err)
	require.Equal(t, len(g.Edges()), size)
	e, err := d.Edge("w0", "join 0")
	require.NoError(t, err)
	require.Equal(t, "RAW x(0..1)", e.Properties.Attributes["why"])

	_, err = Directed(declare("join 0"))
	require.ErrorContains(t, err, "join 0, which no node may be called: ")
}
