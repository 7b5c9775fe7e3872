// Tests that no plan runs unproved: without any one of its waits, or with two live buffers in the same bytes, no program can be made of it.

package tests

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

func TestNoPlanRunsUnproved(t *testing.T) {
	p, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer p.Close()
	waits := 0
	for _, name := range []string{"chunks", "two-streams", "heat", "wavefront"} {
		g := loadPipeline(t, name)
		right, err := planner.New(context.Background(), g, planner.Options{Strategy: "roundrobin", Streams: 3})
		require.NoError(t, err)
		for stream := range right.Streams {
			for at, op := range right.Streams[stream].Ops {
				if op.Kind != planner.Wait {
					continue
				}
				waits++
				wrong := withoutOp(right, int32(stream), at)
				for _, mode := range []runtime.Mode{runtime.Streams, runtime.Captured, runtime.Built} {
					_, err := runtime.New(context.Background(), g, wrong, p, runtime.Options{Mode: mode})
					require.ErrorIs(t, err, planner.ErrHazard, "%s, stream %d without op %d", name, stream, at)
					require.Equal(t, cudart.Live{}, p.Live(), "nothing was made for a plan that is wrong")
				}
			}
		}
	}
	require.Greater(t, waits, 20)
}

// A plan whose buffers overwrite each other does not run either, even if races are allowed.
func TestNoLayoutRunsUnproved(t *testing.T) {
	p, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer p.Close()
	for _, name := range []string{"chunks", "saxpy", "bs", "ml"} {
		g := loadPipeline(t, name)
		plan, err := planner.New(context.Background(), g, planner.Options{})
		require.NoError(t, err)
		require.Greater(t, len(plan.Memory), 1)
		plan.Memory = slices.Clone(plan.Memory)
		plan.Memory[1].Offset = plan.Memory[0].Offset
		for _, unsafe := range []bool{false, true} {
			_, err := runtime.New(context.Background(), g, plan, p, runtime.Options{Unsafe: unsafe})
			require.ErrorIs(t, err, planner.ErrMemory, name)
			require.Equal(t, cudart.Live{}, p.Live(), "nothing was made for a plan that is wrong")
		}
	}
}

// withoutOp returns a plan without one op of a stream; the others keep their order of submission.
func withoutOp(p *planner.Plan, stream int32, at int) *planner.Plan {
	c := *p
	c.Streams = slices.Clone(p.Streams)
	s := &c.Streams[stream]
	s.Ops = slices.Delete(slices.Clone(s.Ops), at, at+1)
	nth := 0
	for i, of := range p.Order {
		if of != stream {
			continue
		}
		if nth == at {
			c.Order = slices.Delete(slices.Clone(p.Order), i, i+1)
			break
		}
		nth++
	}
	return &c
}
