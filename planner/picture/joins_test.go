// Tests of pictures of graphs with joins.

package picture

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	joining "github.com/dagrun/dagrun/internal/crowd"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/plan"
)

func TestPicturesOfGraphsWithJoins(t *testing.T) {
	t.Cleanup(joining.Early(false))
	b := dag.New("joined")
	x := b.Device("x", dag.U8, 4)
	for i := range int64(4) {
		b.Task(fmt.Sprintf("w%d", i), b.Slice(x, i, i+1).Out())
	}
	for i := range 3 {
		b.Task(fmt.Sprintf("r%d", i), b.In(x))
	}
	g, err := b.Graph()
	require.NoError(t, err)
	require.Len(t, g.Joins(), 1)
	var dot, mermaid bytes.Buffer
	require.NoError(t, plan.WriteGraphDOT(&dot, g))
	require.Contains(t, dot.String(), "7 dependencies through 1 join")
	require.Contains(t, dot.String(), "  j0 [shape=point, width=0.08, tooltip=\"join 0\"];\n")
	require.Contains(t, dot.String(), "  n0 -> j0 [label=\"RAW x(0..1)\"")
	require.Contains(t, dot.String(), "  j0 -> n4 [label=\"RAW x\"")
	require.NoError(t, WriteGraphMermaid(&mermaid, g))
	require.Contains(t, mermaid.String(), "  j0(( ))\n")
	require.Contains(t, mermaid.String(), " j0 -->|\"RAW x\"| n4\n")

	// Boxes are linked past the join: each reader comes after each writer, in the next column.
	l := newLayers(g, screen)
	require.Equal(t, 2, l.columns)
	require.Len(t, l.links, 12)
	for _, k := range l.links {
		require.Less(t, k.from, int32(4))
		require.GreaterOrEqual(t, k.to, int32(4))
	}

	p, err := planner.New(t.Context(), g, planner.Options{Strategy: "roundrobin", Streams: 2})
	require.NoError(t, err)
	timeline, err := planner.Simulate(g, p, planner.H200(), nil)
	require.NoError(t, err)
	s, err := New(g, p, timeline)
	require.NoError(t, err)
	for i := range s.waits {
		require.True(t, strings.HasPrefix(s.reason(&s.waits[i]), "RAW x"), s.reason(&s.waits[i]))
	}
	var d pageData
	s.pageEdges(&d)
	require.Len(t, d.Edges.From, 6) // of the writers, the last on each stream
}
