// Tests of conflicts in buffers that fall into many pieces, against tables that say for each byte who touched it.

package proof

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/crowd"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/plan"
)

const piecesBytes = 700

// drawPieces makes a graph of many nodes that touch a few bytes of two buffers, and others that touch many, and some that touch nothing.
func drawPieces(t *testing.T, rng *rand.Rand, nodes int) *dag.Graph {
	b := dag.New("pieces")
	buffers := []dag.BufferID{b.Device("x", dag.U8, piecesBytes), b.Device("y", dag.U8, piecesBytes)}
	many := rng.IntN(2) == 0 // so many pieces that they fill several chunks
	for k := range nodes {
		var accesses []dag.Access
		if many && k < 3 {
			for lo := int64(k); lo < piecesBytes; lo += 3 + rng.Int64N(2) {
				accesses = append(accesses, dag.Access{Range: dag.Range{Buffer: buffers[0], Lo: lo, Hi: lo + 1}, Mode: dag.Mode(1 + rng.IntN(3))})
			}
		}
		for range 1 + rng.IntN(2) {
			lo, most := rng.Int64N(piecesBytes), int64(3)
			if k > nodes/2 && rng.IntN(2) == 0 {
				most = piecesBytes
			}
			if rng.IntN(8) == 0 {
				lo, most = 0, piecesBytes
			}
			hi := lo + 1 + rng.Int64N(min(most, piecesBytes-lo))
			if rng.IntN(12) == 0 {
				hi = lo
			}
			mode := dag.Mode(1 + rng.IntN(3))
			if most == piecesBytes && rng.IntN(2) == 0 {
				lo, hi, mode = 0, piecesBytes, dag.Read
			}
			accesses = append(accesses, dag.Access{Range: dag.Range{Buffer: buffers[rng.IntN(4)/3], Lo: lo, Hi: hi}, Mode: mode})
		}
		b.Task(fmt.Sprintf("n%d", k), accesses...)
	}
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

// touchesOf returns for each byte of a buffer what each node does with it.
func touchesOf(g *dag.Graph, buffer dag.BufferID) [][]dag.Mode {
	bytes := make([][]dag.Mode, piecesBytes)
	for i := range bytes {
		bytes[i] = make([]dag.Mode, g.Len())
	}
	for node := range g.Nodes {
		for _, a := range g.Accesses(dag.NodeID(node)) {
			for i := a.Lo; a.Buffer == buffer && i < a.Hi; i++ {
				bytes[i][node] |= a.Mode
			}
		}
	}
	return bytes
}

func TestConflictsOfManyPiecesAgreeWithBytes(t *testing.T) {
	defer func(most int) { mostAsked = most }(mostAsked)
	verdicts, severalChunks := map[bool]int{}, 0
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 3))
		g := drawPieces(t, rng, 20+rng.IntN(140))
		n := g.Len()
		conflict := make([][]bool, n)
		for i := range conflict {
			conflict[i] = make([]bool, n)
		}
		early, carried := make([]bool, 2), make([]bool, 2)
		for buffer := range dag.BufferID(2) {
			for _, modes := range touchesOf(g, buffer) {
				written, read := false, false
				for j, mode := range modes {
					for i := range j {
						conflict[i][j] = conflict[i][j] || mode != 0 && modes[i] != 0 && (mode|modes[i])&dag.Write != 0
					}
					read = read || !written && mode&dag.Read != 0
					carried[buffer] = carried[buffer] || read && mode&dag.Write != 0
					written = written || mode&dag.Write != 0
				}
				early[buffer] = early[buffer] || read
			}
		}
		declared, streamOf := make([]int32, n), make([]int32, n)
		for i := range declared {
			declared[i], streamOf[i] = int32(i), int32(rng.IntN(4))
		}
		right := plantest.DullPlan(g, 4, streamOf, declared)
		for trial := range 25 {
			p := right
			switch {
			case trial == 0:
			case trial < 5: // two neighbours swapped
				k := rng.IntN(n - 1)
				swapped := append([]int32(nil), declared...)
				swapped[k], swapped[k+1] = swapped[k+1], swapped[k]
				p = withoutWaits(plantest.DullPlan(g, 4, streamOf, declared), swapped)
			default:
				s := rng.IntN(4)
				if waits := waitsOf(right, s); len(waits) > 0 {
					p = plantest.WithoutOp(right, s, waits[rng.IntN(len(waits))])
				}
			}
			s, v := readSchedule(g, p)
			require.Nil(t, v)
			before := plantest.BruteBefore(g, p)
			want := true
			for j := range n {
				for i := range j {
					want = want && (!conflict[i][j] || before[i][j])
				}
			}
			verdicts[want]++
			orders := []*order{{p: p, s: s, source: newPlanClocks(p, s)}}
			if trial%6 == 0 || trial == 1 { // also on so many streams that clocks are asked for only where they are needed
				wide := plantest.Spread(p)
				across, v := readSchedule(g, wide)
				require.Nil(t, v)
				mostAsked = 1 + rng.IntN(30)
				orders = append(orders, &order{p: wide, s: across, source: newPlanClocks(wide, across)}, &order{p: wide, s: across, source: planAncestry(wide, across)})
			}
			for _, o := range orders {
				readFirst, v := checkConflicts(g, o.p, o.s, o)
				require.Equal(t, want, v == nil, "seed %d, trial %d", seed, trial)
				if want {
					require.Equal(t, early, readFirst, "seed %d, trial %d", seed, trial)
				} else {
					require.True(t, conflict[v.Before][v.Node] && !before[v.Before][v.Node], "seed %d, trial %d: %v", seed, trial, v)
				}
			}
		}
		walk := walkDeclared(g, declaredSchedule(g))
		require.Equal(t, carried, walk.carried, "seed %d", seed)
		if len(walk.buffers[0].chunks) > 1 {
			severalChunks++
		}
	}
	require.Greater(t, severalChunks, 3)
	require.Greater(t, verdicts[true], 100)
	require.Greater(t, verdicts[false], 100)
}

func waitsOf(p *plan.Plan, stream int) (at []int) {
	for i, op := range p.Streams[stream].Ops {
		if op.Kind == plan.Wait {
			at = append(at, i)
		}
	}
	return at
}

// withoutWaits is a plan of the same launches on one stream, in another order.
func withoutWaits(p *plan.Plan, order []int32) *plan.Plan {
	one := &plan.Plan{Memory: p.Memory, Kept: p.Kept, Streams: make([]plan.Stream, 1)}
	for _, node := range order {
		one.Streams[0].Ops = append(one.Streams[0].Ops, plan.Op{Kind: plan.Launch, Node: dag.NodeID(node), Event: -1})
		one.Order = append(one.Order, 0)
	}
	return one
}

// Nodes that each name the one before them in after: need the clock of one stream, and so do nodes that are bound to one.
func TestChainsOfAnExplicitScheduleAreStreams(t *testing.T) {
	b := dag.New("chains")
	b.Sync(dag.SyncExplicit)
	names := []string{"a0", "b0", "a1", "b1", "a2", "b2", "s0", "s1"}
	for k, name := range names {
		node := b.Task(name)
		if k > 1 && k < 6 {
			b.At(node).After = []dag.NodeID{dag.NodeID(k - 2)}
		}
		if k > 5 {
			b.At(node).Stream = dag.OnStream(9)
		}
	}
	g, err := b.Graph()
	require.NoError(t, err)
	p := byHand(t, g, "0 a0, 0 b0, 0 a1, 0 b1, 0 a2, 0 b2, 1 s0, 1 s1")
	s, v := readSchedule(g, p)
	require.Nil(t, v)
	o, _ := declaredOrder(g, p, s, nil)
	require.Len(t, o.p.Streams, 3)
	require.Equal(t, []spot{{0, 1}, {1, 1}, {0, 2}, {1, 2}, {0, 3}, {1, 3}, {2, 1}, {2, 2}}, o.s.spots)
}

// The first node counts too: where it and another one wrote the bytes of a buffer in turn, a reader of all of them must come after both.
func TestTheFirstNodeIsAmongTheWritersOfAChunk(t *testing.T) {
	b := dag.New("turns")
	x := b.Device("x", dag.U8, piecesBytes)
	writes := make([][]dag.Access, 2)
	for at := range int64(piecesBytes) {
		writes[at%2] = append(writes[at%2], b.Slice(x, at, at+1).Out())
	}
	b.Task("even", writes[0]...)
	b.Task("odd", writes[1]...)
	b.Task("use", b.In(x))
	g, err := b.Graph()
	require.NoError(t, err)
	for text, want := range map[string]string{
		"0 even, 0 record 0, 1 odd, 1 record 1, 2 wait 0, 2 wait 1, 2 use": "",
		"0 even, 1 odd, 1 record 0, 2 wait 0, 2 use":                       "even",
		"0 even, 0 record 0, 1 odd, 2 wait 0, 2 use":                       "odd",
	} {
		p := byHand(t, g, text)
		s, v := readSchedule(g, p)
		require.Nil(t, v)
		readFirst, v := checkConflicts(g, p, s, &order{p: p, s: s, source: newPlanClocks(p, s)})
		if want == "" {
			require.Nil(t, v)
			require.Equal(t, []bool{false}, readFirst)
			continue
		}
		require.NotNil(t, v)
		require.Equal(t, want, v.BeforeName)
	}
}

// Who writes a part of a buffer again must come after the one that read all of it, also where the part begins with a chunk.
func TestAWriteOfManyPiecesComesAfterTheirReader(t *testing.T) {
	starts := []int64{piecesBytes - 1}
	for k := 0; k < len(starts); k++ {
		from := starts[k]
		b := dag.New("again")
		x := b.Device("x", dag.U8, piecesBytes)
		var odd []dag.Access
		for at := int64(1); at < piecesBytes; at += 2 {
			odd = append(odd, b.Slice(x, at, at+1).Out())
		}
		b.Task("all", b.Out(x))
		b.Task("odd", odd...)
		b.Task("use", b.In(x))
		b.Task("again", b.Slice(x, from, piecesBytes).Out())
		g, err := b.Graph()
		require.NoError(t, err)
		for text, want := range map[string]pair{
			"0 all, 0 odd, 0 record 0, 1 wait 0, 1 use, 1 record 1, 0 wait 1, 0 again": nobody,
			"0 all, 0 odd, 0 record 0, 1 wait 0, 1 use, 0 again":                       {2, 3},
		} {
			p := byHand(t, g, text)
			s, v := readSchedule(g, p)
			require.Nil(t, v)
			w := new(accessWalk)
			w.follow(g, s)
			require.Equal(t, want, w.walk(newPlanClocks(p, s)), "from %d", from)
			if k == 0 && want == nobody {
				for _, c := range w.buffers[x].chunks[1:] {
					starts = append(starts, c.runs[0].lo, c.runs[0].lo+1)
				}
			}
		}
	}
	require.Greater(t, len(starts), 3)
}

// Joins are no nodes, on few streams and on many: a dependency that leads through joins is told as one between nodes.
func TestHazardsThroughJoinsAreBetweenNodes(t *testing.T) {
	defer crowd.Early(false)()
	const n = 12
	b := dag.New("joins")
	x := b.Device("x", dag.U8, n)
	ops := ""
	for k := range int64(n) {
		b.Task(fmt.Sprintf("w%d", k), b.Slice(x, k, k+1).Out())
		ops += fmt.Sprintf("0 w%d, ", k)
	}
	b.Task("r", b.In(x))
	g, err := b.Graph()
	require.NoError(t, err)
	require.NotEmpty(t, g.Joins())
	right, wrong := byHand(t, g, ops+"0 record 0, 1 wait 0, 1 r"), byHand(t, g, ops+"1 r")
	for _, p := range []*plan.Plan{right, wrong} {
		p.Memory = []plan.Placement{{Buffer: x, Bytes: n}}
	}
	require.NoError(t, Verify(g, right))
	require.NoError(t, Verify(g, plantest.Spread(right)))
	require.EqualError(t, Verify(g, wrong), `"r" (stream 1) is not ordered after "w0" (stream 0), which it depends on (RAW x(0..1)): `+
		`stream 1 must wait before "r" for an event recorded on stream 0 after "w0"`)
	require.EqualError(t, Verify(g, plantest.Spread(wrong)), `"r" (stream 97) is not ordered after "w11" (stream 0), which it depends on (RAW x(11..12)): `+
		`stream 97 must wait before "r" for an event recorded on stream 0 after "w11"`)
}
