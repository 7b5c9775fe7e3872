// Tests of explanations: in words, through streams that only hand a wait on, and through joins.

package proof

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/crowd"
)

// explained has the explanation of each dependency between nodes.
func explained(t *testing.T, g *dag.Graph, plan string) []string {
	t.Helper()
	list, err := Explain(g, byHand(t, g, plan))
	require.NoError(t, err)
	var lines []string
	for _, e := range list {
		lines = append(lines, fmt.Sprintf("%s -> %s: %s", g.Nodes[e.From].Name, g.Nodes[e.To].Name, e.Text(g)))
	}
	return lines
}

func TestExplanationsInWords(t *testing.T) {
	b := dag.New("words")
	x := b.Device("x", dag.U8, 4)
	b.Task("a", b.Out(x))
	b.Task("b", b.In(x))
	for _, name := range []string{"r", "s"} {
		b.Task(name)
	}
	g, err := b.Graph()
	require.NoError(t, err)
	for _, c := range []struct{ plan, want string }{
		{"0 a, 0 b, 0 r, 0 s", "same stream"},
		{"0 b, 0 a, 0 r, 0 s", "not enforced"},
		{"0 a, 1 b, 0 r, 0 s", "not enforced"},
		{"0 a, 0 record 0, 1 wait 0, 1 b, 0 r, 0 s", "stream 1 waits on event 0"},
		{"0 a, 0 r, 0 record 0, 1 wait 0, 1 b, 0 s", `stream 1 waits on event 0, recorded after "r", which follows "a" on stream 0`},
		{"0 a, 0 record 0, 1 wait 0, 1 s, 1 b, 0 r", `already ordered: stream 1 waited on event 0 ("a", stream 0) before "s"`},
		{"0 r, 0 s, 0 a, 0 record 0, 1 wait 0, 1 b", "stream 1 waits on event 0"},
		{"0 r, 0 record 0, 1 wait 0, 0 a, 0 record 1, 1 wait 1, 1 b, 0 s", "stream 1 waits on event 1"},
		{"0 r, 0 a, 0 record 0, 1 s, 1 wait 0, 1 record 1, 2 wait 1, 2 b",
			`already ordered: stream 2 waited on event 1 ("s", stream 1) before "b", and stream 1 waited on event 0 ("a", stream 0)`},
		{"0 a, 0 record 0, 1 s, 1 wait 0, 1 record 1, 2 wait 1, 2 b, 1 r",
			`already ordered: stream 2 waited on event 1 ("s", stream 1) before "b", and stream 1 waited on event 0 ("a", stream 0) before "r"`},
		{"0 a, 0 record 0, 1 wait 0, 1 s, 1 record 1, 2 wait 1, 2 wait 0, 2 b, 0 r",
			`already ordered: stream 2 waited on event 1 ("s", stream 1) before "b", and stream 1 waited on event 0 ("a", stream 0) before "s"`},
		{"0 a, 0 record 0, 0 r, 0 record 1, 1 wait 1, 1 wait 0, 1 s, 1 b", `already ordered: stream 1 waited on event 1 ("r", stream 0) before "s"`},
		{"0 s, 0 record 0, 1 wait 0, 1 r, 1 record 0, 0 wait 0, 0 a, 0 record 0, 1 wait 0, 1 b", "stream 1 waits on event 0"},
	} {
		require.Equal(t, []string{"a -> b: " + c.want}, explained(t, g, c.plan), c.plan)
	}
	list, err := Explain(g, byHand(t, g, "0 a, 0 record 0, 1 s, 1 wait 0, 1 record 1, 2 wait 1, 2 b, 0 r"))
	require.NoError(t, err)
	require.Equal(t, []WaitLink{{Op: 5, Stream: 2, Event: 1, Node: 3, On: 1, Held: 1}, {Op: 3, Stream: 1, Event: 0, Node: 0, On: 0, Held: -1}}, list[0].Waits)
	require.Equal(t, "wait", (&Enforcement{How: ByWait}).Text(g))
	require.Equal(t, "not enforced", (*Enforcement)(nil).Text(g))
	require.Equal(t, []string{"not enforced", "same stream", "wait", "already ordered", "How(4)"},
		[]string{NotEnforced.String(), BySameStream.String(), ByWait.String(), ByEarlier.String(), How(4).String()})
}

// A dependency on a join is one on the last of its nodes on each stream.
func TestExplanationsThroughJoins(t *testing.T) {
	defer crowd.Early(false)()
	const n = 12
	b := dag.New("joins")
	x := b.Device("x", dag.U8, n)
	for k := range int64(n) {
		b.Task(fmt.Sprintf("w%d", k), b.Slice(x, k, k+1).Out())
	}
	b.Task("r", b.In(x))
	b.Task("s", b.In(x))
	b.Task("t", b.In(x))
	g, err := b.Graph()
	require.NoError(t, err)
	require.Greater(t, len(g.Joins()), 1, "joins lead to joins")
	require.Equal(t, []string{
		"w2 -> r: stream 3 waits on event 2", "w6 -> r: stream 3 waits on event 0", "w7 -> r: stream 3 waits on event 1",
		"w2 -> s: not enforced", "w6 -> s: same stream", "w7 -> s: not enforced",
		`w2 -> t: already ordered: stream 3 waited on event 2 ("w2", stream 2) before "r"`,
		`w6 -> t: already ordered: stream 3 waited on event 0 ("w6", stream 0) before "r"`,
		`w7 -> t: already ordered: stream 3 waited on event 1 ("w7", stream 1) before "r"`,
	}, explained(t, g, "0 w0, 0 w9, 0 w3, 0 w6, 0 record 0, 1 w10, 1 w1, 1 w4, 1 w7, 1 record 1, 2 w11, 2 w8, 2 w5, 2 w2, 2 record 2, "+
		"3 wait 0, 3 wait 1, 3 wait 2, 3 r, 0 s, 3 t"))
}
