// Tests with faults planted in the code that makes plans: the proof refuses every wrong plan, and accepts those that are correct by
// reachability all the same.

package planner

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/planted"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/plan"
)

// plant switches a fault on until the end of the test.
func plant(t *testing.T, f planted.Fault) {
	t.Helper()
	t.Cleanup(planted.Plant(f))
}

func TestPlantedFaultsOfPlansAreRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault planted.Fault
	}{
		{"placement", planted.Placement}, {"order", planted.Order}, {"waits", planted.Waits},
		{"layout", planted.Layout}, {"lifetimes", planted.Lifetimes}, {"kept", planted.Kept},
	} {
		t.Run(c.name, func(t *testing.T) {
			refused, harmless := 0, 0
			for seed := range uint64(120) {
				// Every second graph has a buffer for each node's result, as most pipelines do, so that many buffers can share bytes.
				g := plantest.RandomShape(int(seed)%len(plantest.Families), 12, seed).Graph(t)
				if seed%2 == 0 {
					s, ok := drawSubject(t, rand.New(rand.NewPCG(seed, 71)))
					if !ok {
						continue
					}
					g = s.g
				}
				o := Options{Strategy: []string{"list", "roundrobin", "auto"}[seed%3], Streams: 1 + int(seed%4)}
				remove := planted.Plant(c.fault)
				plan, err := New(context.Background(), g, o)
				remove()
				var v *Violation
				switch {
				case errors.As(err, &v):
					require.ErrorContains(t, err, " plan is wrong: ")
					refused++
				case err == nil:
					require.True(t, plainlyRight(&subject{g: g, plan: plan}), "seed %d: a wrong plan passed", seed)
					harmless++
				}
			}
			require.Greater(t, refused, 20)
			t.Logf("%d plans refused, %d right in spite of the fault", refused, harmless)
		})
	}
}

func TestPlantedFaultsOfEdgesAndReplaysAreRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault planted.Fault
	}{{"edges", planted.Edges}, {"fork", planted.Fork}, {"join", planted.Join}} {
		t.Run(c.name, func(t *testing.T) {
			refused := 0
			for seed := range uint64(400) {
				s, ok := drawSubject(t, rand.New(rand.NewPCG(seed, 71)))
				if !ok {
					continue
				}
				remove := planted.Plant(c.fault)
				edges, err := GraphEdges(s.g, s.plan)
				faulty := &subject{g: s.g, plan: s.plan, edges: edges, replay: s.plan.Replay(1)}
				remove()
				require.NoError(t, err)
				require.Equal(t, plainlyRightEdges(faulty), verifyEdges(faulty) == nil, "seed %d", seed)
				require.Equal(t, plainlyRightReplay(faulty), verifyReplay(faulty) == nil, "seed %d", seed)
				if verifyEdges(faulty) != nil || verifyReplay(faulty) != nil {
					refused++
				}
			}
			require.Greater(t, refused, 50)
		})
	}
}

// The sum is carried from one replay to the next. If nothing listed the bytes that are read before they are written, it would share
// its bytes with the temporary, and each replay would start from what the previous one left there.
func TestCarriedBufferIsKeptWhateverTheMakerThinks(t *testing.T) {
	b := dag.New("carried")
	out := b.Host("out", dag.F32, 16)
	sum, temporary := b.Device("sum", dag.F32, 16), b.Device("temporary", dag.F32, 16)
	b.Task("add", b.InOut(sum))
	b.Copy("down", b.Whole(out), b.Whole(sum))
	b.Task("scribble", b.Out(temporary))
	b.Copy("again", b.Whole(out), b.Whole(temporary))
	g, err := b.Graph()
	require.NoError(t, err)
	made, err := New(context.Background(), g, Options{})
	require.NoError(t, err)
	require.Equal(t, []dag.BufferID{sum}, made.Kept)
	plant(t, planted.Kept)
	for _, strategy := range strategies {
		_, err := New(context.Background(), g, Options{Strategy: strategy})
		require.ErrorContains(t, err, ` plan is wrong: "sum" is read before it is written, but the plan does not keep its bytes: plan this graph again`)
		require.ErrorIs(t, err, plan.ErrMemory)
	}
}
