// Tests that no plan runs unproved: without any one of its waits, or with two live buffers in the same bytes, no program can be made of it.

package tests

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/planner/proof"
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
				if op.Kind != plan.Wait {
					continue
				}
				waits++
				wrong := withoutOp(right, int32(stream), at)
				for _, mode := range []runtime.Mode{runtime.Streams, runtime.Captured, runtime.Built} {
					_, err := runtime.New(context.Background(), g, wrong, p, runtime.Options{Mode: mode})
					require.ErrorIs(t, err, proof.ErrHazard, "%s, stream %d without op %d", name, stream, at)
					require.Equal(t, cudart.Live{}, p.Live(), "nothing was made for a plan that is wrong")
				}
			}
		}
	}
	require.Greater(t, waits, 20)
}

// looping has independent nodes in the body of a loop and of a branch in it.
const looping = `version: 1
name: looping
params: {n: 4096}
buffers:
  a: {place: device, dtype: f32, shape: [n], init: 1}
  b: {place: device, dtype: f32, shape: [n], init: 2}
  c: {place: device, dtype: f32, shape: [n], init: 0}
  out: {place: host, dtype: f32, shape: [n]}
nodes:
  - name: loop
    repeat: {times: 3}
    nodes:
      - {name: a, kernel: scale, args: [n, 2, a]}
      - {name: b, kernel: scale, args: [n, 3, b]}
      - {name: both, kernel: add, args: [n, a, b, c]}
      - name: choose
        if: c(0..1) > 0
        nodes:
          - {name: up, kernel: scale, args: [n, 0.5, a]}
          - {name: down, kernel: scale, args: [n, 0.25, b]}
          - {name: again, kernel: add, args: [n, a, b, c]}
  - {name: get, memcpy: {from: c, to: out}}
`

// Nor does a plan with such a fault in the body of a loop or branch.
func TestNoBodyRunsUnproved(t *testing.T) {
	p, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer p.Close()
	g, err := file.Parse([]byte(looping), file.Options{Library: kernels.Library()})
	require.NoError(t, err)
	right, err := planner.New(context.Background(), g, planner.Options{Strategy: "roundrobin", Streams: 3})
	require.NoError(t, err)
	program, err := runtime.New(context.Background(), g, right, p, runtime.Options{})
	require.NoError(t, err)
	require.NoError(t, program.Close())
	var waits []int // by body
	eachBody(right, func(body *planner.Plan, with func(*planner.Plan) *planner.Plan) {
		waits = append(waits, 0)
		for stream := range body.Streams {
			for at, op := range body.Streams[stream].Ops {
				if op.Kind != plan.Wait {
					continue
				}
				waits[len(waits)-1]++
				wrong := with(withoutOp(body, int32(stream), at))
				_, err := runtime.New(context.Background(), g, wrong, p, runtime.Options{})
				require.ErrorIs(t, err, proof.ErrHazard, "stream %d of a body without op %d", stream, at)
				require.Equal(t, cudart.Live{}, p.Live(), "nothing was made for a plan that is wrong")
			}
		}
	})
	require.Len(t, waits, 2)
	require.Positive(t, waits[0])
	require.Positive(t, waits[1])
}

// eachBody calls a function with the plan of every body, and with what puts another plan in its place.
func eachBody(p *planner.Plan, do func(body *planner.Plan, with func(*planner.Plan) *planner.Plan)) {
	for i := range p.Bodies {
		with := func(other *planner.Plan) *planner.Plan {
			c := *p
			c.Bodies = slices.Clone(p.Bodies)
			c.Bodies[i].Plan = other
			return &c
		}
		do(p.Bodies[i].Plan, with)
		eachBody(p.Bodies[i].Plan, func(inner *planner.Plan, within func(*planner.Plan) *planner.Plan) {
			do(inner, func(other *planner.Plan) *planner.Plan { return with(within(other)) })
		})
	}
}

// A plan whose buffers overwrite each other does not run either, even if races are allowed.
func TestNoLayoutRunsUnproved(t *testing.T) {
	p, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer p.Close()
	for _, name := range []string{"chunks", "saxpy", "bs", "ml"} {
		g := loadPipeline(t, name)
		made, err := planner.New(context.Background(), g, planner.Options{})
		require.NoError(t, err)
		require.Greater(t, len(made.Memory), 1)
		made.Memory = slices.Clone(made.Memory)
		made.Memory[1].Offset = made.Memory[0].Offset
		for _, unsafe := range []bool{false, true} {
			_, err := runtime.New(context.Background(), g, made, p, runtime.Options{Unsafe: unsafe})
			require.ErrorIs(t, err, plan.ErrMemory, name)
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
