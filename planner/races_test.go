// Tests of races in explicit schedules: they depend only on after: and stream:.

package planner

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/proof"
)

// Nodes that nothing orders fill, change and copy back a buffer, with work on another buffer in between.
func TestRacesDependOnNothingButTheDeclaration(t *testing.T) {
	for _, n := range []int64{8, 1_000_000} {
		b := dag.New("unordered")
		b.Sync(dag.SyncExplicit)
		d, e, out := b.Device("d", dag.F32, n), b.Device("e", dag.F32, n), b.Host("out", dag.F32, n)
		b.Task("fill", b.Out(d))
		b.Task("other", b.Out(e))
		b.Task("twice", b.InOut(d))
		b.Copy("down", b.Whole(out), b.Whole(d))
		g, err := b.Graph()
		require.NoError(t, err)
		for _, strategy := range strategies {
			for _, machine := range []*Machine{H200(), Unit()} {
				for _, streams := range []int{1, 8} {
					plan, err := New(context.Background(), g, Options{Strategy: strategy, Streams: streams, Machine: machine})
					if errors.Is(err, ErrTooManyStreams) {
						continue
					}
					require.NoError(t, err)
					require.ErrorIs(t, Verify(g, plan), proof.ErrRace, "%d elements, %s, %s, %d streams", n, strategy, machine.Name, streams)
					found, err := Violations(g, plan, 0)
					require.NoError(t, err)
					require.Equal(t, 2, found.Roots)
					require.Equal(t, "after: [fill]", found.Violations[0].Line)
					require.Equal(t, "after: [twice]", found.Violations[1].Line)
				}
			}
		}
		plan, err := New(context.Background(), g, Options{Strategy: "serial"})
		require.NoError(t, err)
		require.EqualError(t, Verify(g, plan), `"twice" is not ordered after "fill", which it depends on (RAW d), because nodes without stream: may run in any order: add "after: [fill]" to "twice"`)
	}
}

// Whatever strategy plans it, an explicit schedule has a race exactly if after: and stream: leave two nodes unordered that conflict.
func TestRacesAreWhatIsNotDeclared(t *testing.T) {
	racy, clean := 0, 0
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 5))
		g := drawExplicit(t, rng)
		before := newReach(g.Len())
		for j := range g.Nodes {
			for _, i := range g.Nodes[j].After {
				before[i][j] = true
			}
			for i := range j {
				if s := g.Nodes[j].Stream.Number(); s >= 0 && g.Nodes[i].Stream.Number() == s {
					before[i][j] = true
				}
			}
		}
		before.close()
		want := !plainlyOrdered(&subject{g: g}, before)
		listed := ""
		for _, strategy := range []string{"serial", "roundrobin", "list", "auto"} {
			plan, err := New(context.Background(), g, Options{Strategy: strategy, Streams: 1 + rng.IntN(4)})
			require.NoError(t, err)
			require.Equal(t, want, errors.Is(Verify(g, plan), proof.ErrRace), "seed %d, %s", seed, strategy)
			found, err := Violations(g, plan, 0)
			require.NoError(t, err)
			require.Equal(t, want, found.Total > 0, "seed %d, %s", seed, strategy)
			text := fmt.Sprint(found.Total, found.Roots)
			for _, v := range found.Violations {
				text += fmt.Sprint("; ", v.Before, v.Node, v.Line)
			}
			if listed == "" {
				listed = text
			}
			require.Equal(t, listed, text, "seed %d, %s", seed, strategy)
			every, err := proof.Pairs(g, plan, 0)
			require.NoError(t, err)
			pairs := []string{}
			for _, v := range every.Violations {
				pairs = append(pairs, fmt.Sprint(v.Before, " ", v.Node))
			}
			require.Equal(t, everyUnordered(g, before), pairs, "seed %d, %s", seed, strategy)
			require.False(t, every.Partial)
		}
		if want {
			racy++
		} else {
			clean++
		}
	}
	require.Greater(t, racy, 100)
	require.Greater(t, clean, 100)
}

// everyUnordered lists the pairs of nodes that touch the same bytes, one of them writing, and are not in order.
func everyUnordered(g *dag.Graph, before reach) []string {
	pairs := []string{}
	for j := range g.Nodes {
		for i := range j {
			meet := false
			for _, a := range g.Accesses(dag.NodeID(i)) {
				for _, b := range g.Accesses(dag.NodeID(j)) {
					meet = meet || a.Overlaps(b.Range) && (a.Mode|b.Mode)&dag.Write != 0
				}
			}
			if meet && !before[i][j] {
				pairs = append(pairs, fmt.Sprint(i, " ", j))
			}
		}
	}
	return pairs
}

// drawExplicit makes a small explicit schedule in which most conflicts are ordered.
func drawExplicit(t *testing.T, rng *rand.Rand) *dag.Graph {
	b := dag.New("explicit")
	b.Sync(dag.SyncExplicit)
	buffers := []dag.BufferID{b.Device("x", dag.U8, 100), b.Device("y", dag.U8, 100), b.Device("z", dag.U8, 100)}
	for i := range 2 + rng.IntN(7) {
		n := dag.Node{Name: fmt.Sprintf("n%d", i), Kind: dag.Task}
		if rng.IntN(3) > 0 {
			n.Stream = dag.OnStream(int32(rng.IntN(2)))
		}
		for q := range dag.NodeID(i) {
			if rng.IntN(3) == 0 {
				n.After = append(n.After, q)
			}
		}
		access := dag.Access{Range: b.Whole(buffers[rng.IntN(len(buffers))]), Mode: dag.Mode(1 + rng.IntN(3))}
		b.Node(n, sliced(rng, b, []dag.Access{access})...)
	}
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}
