// Tests of what every plan needs and where a plan needs most, against definitions that look at every set of buffers.

package layout

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/order"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/plan"
)

// drawKept keeps what must be kept, and some buffers more.
func drawKept(rng *rand.Rand, g *dag.Graph) []bool {
	kept := Kept(g)
	for k := range kept {
		kept[k] = kept[k] || rng.IntN(5) == 0
	}
	return kept
}

// listed are the buffers of a peak as they are listed: the largest first.
func listed(g *dag.Graph, kept []bool, alive func(b dag.BufferID) bool) (list []plan.LiveBuffer, bytes int64) {
	for b := range dag.BufferID(len(g.Buffers)) {
		if kept[b] || alive(b) {
			list = append(list, plan.LiveBuffer{Buffer: b, Name: g.Buffers[b].Name, Bytes: g.Buffers[b].Bytes, Kept: kept[b]})
			bytes += plan.AlignUp(g.Buffers[b].Bytes)
		}
	}
	slices.SortStableFunc(list, func(a, b plan.LiveBuffer) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return list, bytes
}

// A buffer is alive at a node in every order if the node uses it, or one that comes before it in every order and one that comes after it.
func TestLeastIsTheMostThatIsAliveAtANode(t *testing.T) {
	around, nowhere := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		for range 20 { // some kinds are rare
			g := plantest.DrawGraph(t, 12, false)
			kept := drawKept(plantest.DrawSource(t), g)
			n := g.Len()
			before := make([][]bool, n)
			for i := range before {
				before[i] = make([]bool, n)
			}
			for _, e := range g.Edges() {
				before[e.From][e.To] = true
			}
			for k := range n {
				for i := range n {
					for j := range n {
						before[i][j] = before[i][j] || before[i][k] && before[k][j]
					}
				}
			}
			uses := func(i int, b dag.BufferID) bool {
				return slices.ContainsFunc(g.Accesses(dag.NodeID(i)), func(a dag.Access) bool { return a.Buffer == b && a.Lo < a.Hi })
			}
			want := plan.Peak{Node: -1}
			want.Buffers, want.Live = listed(g, kept, func(dag.BufferID) bool { return false })
			for i := range n {
				list, bytes := listed(g, kept, func(b dag.BufferID) bool {
					early, late := uses(i, b), uses(i, b)
					for j := range n {
						early, late = early || before[j][i] && uses(j, b), late || before[i][j] && uses(j, b)
					}
					if early && late && !uses(i, b) && !kept[b] {
						around++
					}
					return early && late
				})
				if bytes > want.Live {
					want.Node, want.Live, want.Buffers = dag.NodeID(i), bytes, list
				}
			}
			if want.Node < 0 {
				nowhere++
			}
			want.Arena = want.Live
			peaks, err := Least(g, kept)
			require.NoError(t, err)
			require.Equal(t, []plan.Peak{want}, peaks)
		}
	})
	require.Positive(t, around)
	require.Positive(t, nowhere)
}

func TestPeakIsTheHeaviestSetThatIsAliveTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := plantest.DrawGraph(t, 12, false)
		p := plantest.DrawDullPlan(t, g, 4)
		kept := drawKept(plantest.DrawSource(t), g)
		l := readLifetimes(readSteps(g, p), slices.DeleteFunc(sharingBuffers(g), func(b int32) bool { return kept[b] }), order.Entries)
		heaviest := int64(0)
		for set := range 1 << len(l.buffers) {
			bytes := int64(0)
			for a := range int32(len(l.buffers)) {
				if set>>a&1 == 0 {
					continue
				}
				bytes += l.bytes[a]
				for b := range a {
					if set>>b&1 == 1 && l.apart(a, b) {
						bytes = -1 << 40
					}
				}
			}
			heaviest = max(heaviest, bytes)
		}
		peaks, err := PeakBuffers(g, p, kept)
		require.NoError(t, err)
		require.Len(t, peaks, 1)
		peak := peaks[0]
		alive := map[dag.BufferID]bool{}
		for _, b := range peak.Buffers {
			alive[b.Buffer] = true
		}
		list, bytes := listed(g, kept, func(b dag.BufferID) bool { return alive[b] })
		require.Equal(t, list, peak.Buffers)
		_, always := listed(g, kept, func(dag.BufferID) bool { return false })
		require.Equal(t, [2]int64{always + heaviest, always + heaviest}, [2]int64{peak.Live, bytes})
		end := int64(0)
		for _, m := range p.Memory {
			end = max(end, m.Offset+plan.AlignUp(m.Bytes))
		}
		require.Equal(t, end, peak.Arena)
		last := int32(-1) // where the last of them comes alive
		for k, b := range l.buffers {
			if alive[dag.BufferID(b)] {
				last = max(last, l.first[k])
			}
		}
		if last < 0 {
			require.Equal(t, dag.NodeID(-1), peak.Node)
		} else {
			launched, _, _ := plantest.Launches(p, g.Len())
			require.Equal(t, dag.NodeID(launched[last]), peak.Node)
		}
	})
}

func TestOnlyUsers(t *testing.T) {
	found := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		for range 20 { // some kinds are rare
			g := plantest.DrawGraph(t, 8, false)
			for b, only := range onlyUsers(g) {
				users := map[dag.NodeID]bool{}
				for i := range dag.NodeID(g.Len()) {
					for _, a := range g.Accesses(i) {
						if a.Buffer == dag.BufferID(b) {
							users[i] = true
						}
					}
				}
				switch len(users) {
				case 0:
					require.Equal(t, dag.NodeID(-1), only)
					found["none"]++
				case 1:
					require.True(t, users[only])
					found["one"]++
				default:
					require.Equal(t, many, only)
					require.Negative(t, int(only), "no node has this id")
					found["many"]++
				}
			}
		}
	})
	require.Len(t, found, 3)
}

// A buffer that nodes touch no bytes of is as one that nobody uses: it has no lifetime, and lies anywhere.
func TestEmptyAccessesUseNothing(t *testing.T) {
	b := dag.New("empty")
	x, y := b.Device("x", dag.U8, 256), b.Device("y", dag.U8, 256)
	b.Task("first", b.Out(x), b.Slice(y, 8, 8).In())
	b.Task("second", b.In(x))
	g, err := b.Graph()
	require.NoError(t, err)
	require.Equal(t, []bool{true, false}, usedBuffers(g))
	peaks, err := Least(g, Kept(g))
	require.NoError(t, err)
	require.Equal(t, []plan.LiveBuffer{{Buffer: x, Name: "x", Bytes: 256}}, peaks[0].Buffers)
	require.EqualValues(t, 256, peaks[0].Live)
}
