// Tests of crowded graphs, whose dependencies are quadratic in the number of nodes: planned, proved and written in bounded time.

package planner

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/crowd"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/planner/proof"
)

// everyByte has n writers of one byte each and n readers of all bytes.
func everyByte(b *dag.Builder, n int) {
	x := b.Device("x", dag.U8, int64(n))
	for i := range int64(n) {
		b.Cost(b.Task(fmt.Sprintf("w%d", i), b.Slice(x, i, i+1).Out()), 1)
	}
	for i := range n {
		b.Cost(b.Task(fmt.Sprintf("r%d", i), b.In(x)), 1)
	}
}

// sliceAfterAll has n readers of all bytes, followed by n/2 writers and n/2 readers of slices.
func sliceAfterAll(b *dag.Builder, n int) {
	x := b.Device("x", dag.U8, int64(2*n))
	for i := range n {
		b.Cost(b.Task(fmt.Sprintf("r%d", i), b.In(x)), 1)
	}
	for i := range int64(n) {
		slice := b.Slice(x, 2*i, 2*i+2)
		access := slice.Out()
		if i%2 == 1 {
			access = slice.In()
		}
		b.Cost(b.Task(fmt.Sprintf("s%d", i), access), 1)
	}
}

// inTurn has readers of all bytes between writers of a few of them.
func inTurn(b *dag.Builder, n int) {
	x := b.Device("x", dag.U8, int64(n))
	for i := range int64(n) {
		b.Cost(b.Task(fmt.Sprintf("w%d", i), b.Slice(x, i, i+1).Out()), 1)
	}
	for i := range int64(n) / 2 {
		b.Cost(b.Task(fmt.Sprintf("r%d", i), b.In(x)), 1)
		lo := i * 7919 % int64(n-3)
		b.Cost(b.Task(fmt.Sprintf("a%d", i), b.Slice(x, lo, lo+3).Out()), 1)
	}
}

func graphOf(t testing.TB, declare func(b *dag.Builder, n int), n int) *dag.Graph {
	b := dag.New("crowded")
	declare(b, n)
	g, err := b.Graph()
	require.NoError(t, err)
	require.NotEmpty(t, g.Joins())
	return g
}

func TestCrowdedGraphsArePlanned(t *testing.T) {
	for _, shape := range []struct {
		name    string
		declare func(b *dag.Builder, n int)
		n       int
	}{{"every byte", everyByte, 20_000}, {"slices after all", sliceAfterAll, 10_000}, {"in turn", inTurn, 3_000}} {
		t.Run(shape.name, func(t *testing.T) {
			g := graphOf(t, shape.declare, shape.n)
			for _, strategy := range []string{"auto", "list", "roundrobin", "serial"} {
				p, err := New(t.Context(), g, Options{Strategy: strategy})
				require.NoError(t, err) // New has verified the plan
				require.LessOrEqual(t, p.Stats.Waits, 8*g.Len())
				if strategy != "list" {
					continue
				}
				require.NoError(t, p.WriteDOT(io.Discard, g))
				require.NoError(t, p.WriteText(io.Discard, g, nil))
				var file bytes.Buffer
				require.NoError(t, p.EncodeJSON(&file, g))
				back, err := DecodePlan(&file, g)
				require.NoError(t, err)
				require.Equal(t, p.Streams, back.Streams)
				explained, err := Explain(g, p)
				require.NoError(t, err)
				for _, e := range explained {
					require.NotEqual(t, proof.NotEnforced, e.How)
				}
				edges, err := GraphEdges(g, p)
				require.NoError(t, err)
				require.NoError(t, proof.VerifyEdges(g, p, edges))
			}
			_, err := New(t.Context(), g, Options{Strategy: "cover"})
			require.Error(t, err)
			require.True(t, isAny(err, ErrTooManyStreams, ErrGraphTooLarge), "%v", err)
		})
	}
}

func isAny(err error, targets ...error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// crowdedTwins returns a random pipeline whose accesses overlap, as a graph with joins and as one without.
func crowdedTwins(t *testing.T, rng *rand.Rand, lose bool) (joined, plain *dag.Graph) {
	seed := rng.Uint64()
	declare := func() *dag.Graph {
		rng := rand.New(rand.NewPCG(seed, 3))
		const bytes = 24
		b := dag.New("twin")
		var buffers []dag.BufferID
		for k := range 1 + rng.IntN(2) {
			buffers = append(buffers, b.Device(fmt.Sprintf("b%d", k), dag.U8, bytes))
		}
		for i := range 8 + rng.IntN(24) {
			var accesses []dag.Access
			for range 1 + rng.IntN(2) {
				lo, hi := int64(0), int64(bytes)
				switch rng.IntN(3) {
				case 0:
					lo = rng.Int64N(bytes)
					hi = lo + 1
				case 1:
					lo = rng.Int64N(bytes)
					hi = lo + rng.Int64N(bytes-lo) + 1
				}
				r := dag.Range{Buffer: buffers[rng.IntN(len(buffers))], Lo: lo, Hi: hi}
				accesses = append(accesses, []dag.Access{r.In(), r.In(), r.Out(), r.Out(), r.InOut()}[rng.IntN(5)])
			}
			id := b.Task(fmt.Sprintf("n%d", i), accesses...)
			b.Cost(id, float64(1+rng.IntN(4)))
			if id > 0 && rng.IntN(6) == 0 {
				b.After(id, dag.NodeID(rng.IntN(int(id))))
			}
		}
		g, err := b.Graph()
		require.NoError(t, err)
		return g
	}
	plain = declare()
	require.Empty(t, plain.Joins())
	restore := crowd.Early(lose)
	defer restore()
	return declare(), plain
}

// A plan of a graph with joins enforces the same order as a plan of the same graph without joins, with no needless waits.
func TestJoinsMakeThePlansThatEdgesMake(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 8))
	joins, waits := 0, 0
	for range 400 {
		joined, plain := crowdedTwins(t, rng, false)
		joins += len(joined.Joins())
		for _, strategy := range strategies {
			o := Options{Strategy: strategy, Streams: 1 + rng.IntN(5), SingleUseEvents: rng.IntN(2) == 0}
			if strategy == "cover" {
				o.Streams = 0
			}
			p, err := New(t.Context(), joined, o)
			require.NoError(t, err)
			same, err := New(t.Context(), plain, o)
			require.NoError(t, err)
			if strategy == "serial" || strategy == "roundrobin" || strategy == "cover" || strategy == "heft" {
				require.Equal(t, same.Streams, p.Streams, strategy)
				require.Equal(t, same.Order, p.Order, strategy)
			}
			require.NoError(t, Verify(plain, p))
			require.Zero(t, unenforced(closure(t, p, plain.Len(), -1), plain))
			for k := range p.Stats.Waits {
				require.NotZero(t, unenforced(closure(t, p, plain.Len(), k), plain), "%s: wait %d is not needed", strategy, k)
			}
			waits += p.Stats.Waits
			explained, err := Explain(joined, p)
			require.NoError(t, err)
			for _, e := range explained {
				require.NotEqual(t, proof.NotEnforced, e.How)
			}
		}
	}
	require.Greater(t, joins, 1000)
	t.Logf("%d joins, %d waits", joins, waits)
}

// The proof does not trust joins: if a join lacks a node, the plan is refused unless it happens to be correct.
func TestAJoinThatLacksANodeIsRefused(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 21))
	refused, harmless := 0, 0
	for range 600 {
		joined, plain := crowdedTwins(t, rng, true)
		p, err := New(t.Context(), joined, Options{Strategy: []string{"list", "roundrobin"}[rng.IntN(2)], Streams: 4})
		var v *Violation
		switch {
		case errors.As(err, &v):
			require.ErrorIs(t, err, proof.ErrHazard)
			refused++
		default:
			require.NoError(t, err)
			require.True(t, plainlyRight(&subject{g: plain, plan: p}), "a wrong plan passed")
			harmless++
		}
	}
	require.Greater(t, refused, 50)
	require.Positive(t, harmless)
	t.Logf("%d plans refused, %d right in spite of the fault", refused, harmless)
}

// Violations of a graph with joins are listed as for the same graph without joins.
func TestViolationsOfGraphsWithJoins(t *testing.T) {
	rng := rand.New(rand.NewPCG(34, 55))
	broken := 0
	for range 300 {
		joined, plain := crowdedTwins(t, rng, false)
		p, err := New(t.Context(), plain, Options{Strategy: "roundrobin", Streams: 3, SingleUseEvents: true})
		require.NoError(t, err)
		if p.Stats.Waits == 0 {
			continue
		}
		dropWait(p, rng.IntN(p.Stats.Waits))
		require.ErrorIs(t, Verify(joined, p), proof.ErrHazard)
		found, err := Violations(joined, p, 0)
		require.NoError(t, err)
		want, err := Violations(plain, p, 0)
		require.NoError(t, err)
		require.False(t, found.Partial)
		require.Len(t, found.Violations, found.Roots)
		require.Equal(t, pairsOf(want), pairsOf(found))
		broken++
	}
	require.Greater(t, broken, 100)
}

func pairsOf(u *proof.Unenforced) (pairs [][2]dag.NodeID) {
	for _, v := range u.Violations {
		pairs = append(pairs, [2]dag.NodeID{v.Before, v.Node})
	}
	return pairs
}

// dropWait removes the k-th submitted wait from a plan.
func dropWait(p *Plan, k int) {
	at := make([]int, len(p.Streams))
	for place, stream := range p.Order {
		op := at[stream]
		at[stream]++
		if p.Streams[stream].Ops[op].Kind != plan.Wait {
			continue
		}
		if k--; k < 0 {
			p.Streams[stream].Ops = slices.Delete(slices.Clone(p.Streams[stream].Ops), op, op+1)
			p.Order = slices.Delete(p.Order, place, place+1)
			p.Stats.Waits--
			return
		}
	}
}
