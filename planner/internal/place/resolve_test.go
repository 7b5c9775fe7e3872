// Tests of joins resolved for an assignment, and of which problems are searched or polished.

package place

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/crowd"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/model"
)

// Of the nodes that joins stand for, the last on each stream is left, and no join is resolved twice.
func TestJoinsStandForTheLastNodeOfEachStream(t *testing.T) {
	defer crowd.Early(false)()
	for seed := range uint64(6) {
		g := crowded(t, seed)
		require.NotEmpty(t, g.Joins())
		p, err := NewProblem(context.Background(), g, model.Unit(), model.Durations(g, model.Unit(), nil), 3)
		require.NoError(t, err)
		rng := rand.New(rand.NewPCG(seed, 3))
		stream := make([]int32, g.Len())
		for i := range stream {
			stream[i] = int32(rng.IntN(4))
		}
		r := p.newResolver(4, func(i int32) int32 { return stream[i] }, func(a, b int32) bool { return a > b })
		behind := func(v int32) map[int32]int32 { // by stream
			last := map[int32]int32{}
			var walk func(v int32)
			walk = func(v int32) {
				for _, q := range p.preds(v) {
					if int(q) >= g.Len() {
						walk(q)
					} else if known, ok := last[stream[q]]; !ok || q > known {
						last[stream[q]] = q
					}
				}
			}
			walk(v)
			return last
		}
		asked := map[int32]bool{}
		for i := range int32(g.Len()) {
			want := []int32{}
			for _, q := range behind(i) {
				want = append(want, q)
			}
			slices.Sort(want)
			require.Equal(t, want, append([]int32{}, r.before(i)...), "node %d", i)
			var note func(v int32)
			note = func(v int32) {
				for _, q := range p.preds(v) {
					if int(q) >= g.Len() {
						asked[q] = true
						note(q)
					}
				}
			}
			note(i)
		}
		entries := 0
		for q := range asked {
			entries += len(behind(q))
		}
		require.Len(t, r.nodes, entries)
		require.NoError(t, p.tooMany(mostResolved, 3))
		require.ErrorIs(t, p.tooMany(mostResolved+1, 3), ErrGraphTooLarge)
		require.False(t, CanSearch(p))
	}
}

// Problems whose order or streams are given are not searched, nor are those without a choice; and nothing is polished where no node may move.
func TestWhatIsSearchedAndPolished(t *testing.T) {
	problem := func(nodes, streams int, change func(b *dag.Builder)) *Problem {
		b := dag.New("p")
		for i := range nodes {
			b.Task(string('a' + rune(i)))
		}
		if change != nil {
			change(b)
		}
		g, err := b.Graph()
		require.NoError(t, err)
		p, err := NewProblem(context.Background(), g, model.Unit(), model.Durations(g, model.Unit(), nil), streams)
		require.NoError(t, err)
		return p
	}
	bindAll := func(b *dag.Builder) {
		for i := range dag.NodeID(3) {
			b.Stream(i, int32(i))
		}
	}
	require.False(t, CanSearch(problem(0, 2, nil)))
	require.False(t, CanSearch(problem(1, 2, nil)))
	require.True(t, CanSearch(problem(2, 2, nil)))
	require.False(t, CanSearch(problem(3, 2, bindAll)))
	require.False(t, CanSearch(problem(3, 2, func(b *dag.Builder) { b.Sync(dag.SyncExplicit) })))
	ordered := problem(2, 2, nil)
	ordered.inOrder = true
	require.False(t, CanSearch(ordered))
	for _, c := range []struct {
		p        *Problem
		polished bool
	}{{problem(3, 1, nil), false}, {problem(3, 3, nil), true}, {problem(3, 3, bindAll), false}} {
		a, err := RoundRobin(c.p)
		require.NoError(t, err)
		made, err := Polish(c.p, a, 100)
		require.NoError(t, err)
		require.Equal(t, c.polished, made != nil)
	}
	wide := problem(0, 70, nil)
	made, err := Polish(wide, &Assignment{streams: make([]draftStream, 65)}, 100)
	require.NoError(t, err)
	require.Nil(t, made)
}

// A polished assignment needs no more waits and no more time than the one that it comes from, and is as whole.
func TestPolishingMakesNothingWorse(t *testing.T) {
	fewer := 0
	for family := range plantest.Families {
		for seed := range uint64(2) {
			for _, m := range []*model.Machine{model.Unit(), model.H200()} {
				g := plantest.RandomShape(family, 60, seed+20).Graph(t)
				p, err := NewProblem(context.Background(), g, m, model.Durations(g, m, nil), 4)
				require.NoError(t, err)
				a, err := RoundRobin(p)
				require.NoError(t, err)
				a.number(p)
				before := newPolisher(p, a)
				before.lo, before.hi = 0, int32(p.len())
				before.time()
				polished, err := Polish(p, a, 3000)
				require.NoError(t, err)
				if polished == nil {
					continue
				}
				place := make([]int, p.len())
				for k, i := range polished.order {
					place[i] = k
				}
				for _, e := range g.Edges() {
					require.Less(t, place[e.From], place[e.To])
				}
				w, err := insertWaits(p, polished)
				require.NoError(t, err)
				require.Len(t, w.from, polished.score.waits, "the waits are those that it counts")
				require.LessOrEqual(t, polished.score.cost(), before.score().cost())
				require.LessOrEqual(t, polished.score.makespan, before.score().makespan*(1+rounding))
				if polished.score.waits < before.score().waits {
					fewer++
				}
			}
		}
	}
	require.Greater(t, fewer, 20)
}
