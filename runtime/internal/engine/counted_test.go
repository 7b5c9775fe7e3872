// Tests of replays that learning counts.

package engine

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime/internal/played"
)

// doubling makes a program that doubles x, which begins as 1, and what x is now.
func doubling(t *testing.T, o Options) (*Program, func() float64) {
	t.Helper()
	b := dag.New("doubling")
	b.Use(kernels.Library())
	x := b.Device("x", dag.F32, 4)
	b.Init(x, dag.Init{Kind: dag.InitRamp, A: 1})
	b.Kernel("double", "scale", dag.Args{4, 2, b.Whole(x)})
	g, err := b.Graph()
	require.NoError(t, err)
	plan, err := planner.New(t.Context(), g, planner.Options{})
	require.NoError(t, err)
	platform, err := host.Open(host.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, platform.Close()) })
	p, err := New(t.Context(), g, plan, platform, planner.GraphEdges, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	if r, ok := o.Recorder.(*played.Recorder); ok {
		r.Graph, r.Now = g, func() (*planner.Plan, bool) { return p.Plan(), p.Mode() != Streams }
	}
	return p, func() float64 {
		memory := make([]byte, 16)
		require.NoError(t, p.Read(t.Context(), x, memory))
		return dag.F32.ToFloat(dag.F32.Load(memory, 0))
	}
}

// Replays that are measured count as any others, and what they change can be restored.
func TestMeasuredReplaysCount(t *testing.T) {
	for name, replay := range map[string]func(p *Program, n int) error{
		"timed": func(p *Program, n int) error {
			us, err := p.Trials().TimeReplays(t.Context(), n)
			require.Positive(t, us)
			return err
		},
		"with events": func(p *Program, n int) error {
			all, _, err := p.Trials().TraceCounted(t.Context(), n, 0, n, nil)
			require.Len(t, all, n)
			return err
		},
		"recorded": func(p *Program, n int) error {
			all, ran, reason, err := p.Trials().RecordCounted(t.Context(), n, 0, n, nil)
			require.Equal(t, n, ran)
			require.Len(t, all, n)
			require.Empty(t, reason)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := &played.Recorder{}
			p, now := doubling(t, Options{Mode: Streams, Recorder: recorder})
			require.Equal(t, 1.0, now())
			require.NoError(t, replay(p, 3))
			require.Equal(t, 8.0, now())
			require.EqualValues(t, 3, p.Replays())
			require.NoError(t, p.Restore(t.Context()))
			require.Equal(t, 1.0, now())
			require.False(t, recorder.Enabled)
			require.Nil(t, p.Trials().Trial(), "no round of replays is left")
			require.Empty(t, p.Trials().Running())
		})
	}
}

// What cannot be recorded says so; the replay has been made all the same.
func TestRecordsThatFailAreNoError(t *testing.T) {
	for reason, r := range map[string]*played.Recorder{
		"another tool":             {Fails: "enable"},
		"no buffers":               {Fails: "flush"},
		"0 records for 1 commands": {Spoil: func([]cudart.Activity) []cudart.Activity { return nil }},
	} {
		p, now := doubling(t, Options{Mode: Streams, Recorder: r})
		all, ran, why, err := p.Trials().RecordCounted(t.Context(), 2, 0, 2, nil)
		require.NoError(t, err)
		require.Equal(t, reason, why)
		require.Empty(t, all)
		require.EqualValues(t, ran, p.Replays())
		require.Equal(t, float64(int(1)<<ran), now())
		require.False(t, r.Enabled)
	}
}

func TestMeasuredReplaysEndWithTheirContext(t *testing.T) {
	p, _ := doubling(t, Options{Mode: Streams, Recorder: &played.Recorder{}})
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	_, ran, _, err := p.Trials().RecordCounted(ctx, 2, 0, 2, nil)
	require.ErrorIs(t, err, enough)
	require.Zero(t, ran)
	_, err = p.Trials().TimeReplays(ctx, 2)
	require.ErrorIs(t, err, enough)
	require.Equal(t, 2, p.Trials().Trial().Count, "what was timed when it was given up")
}

// While nodes are measured, those that have begun and not ended are told.
func TestRunningNodesAreTold(t *testing.T) {
	b := dag.New("running")
	h := b.Host("h", dag.U8, 4)
	b.HostFunction("before", "nothing", b.Whole(h).InOut())
	b.HostFunction("now", "look", b.Whole(h).InOut())
	b.HostFunction("after", "nothing", b.Whole(h).InOut())
	g, err := b.Graph()
	require.NoError(t, err)
	plan, err := planner.New(t.Context(), g, planner.Options{})
	require.NoError(t, err)
	platform, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer platform.Close()
	var p *Program
	var running [][]string
	p, err = New(t.Context(), g, plan, platform, planner.GraphEdges, Options{Mode: Streams, Functions: map[string]HostFunction{
		"nothing": func(context.Context, *HostCall) error { return nil },
		"look": func(context.Context, *HostCall) error {
			running = append(running, p.Trials().Running())
			return nil
		},
	}})
	require.NoError(t, err)
	defer p.Close()
	require.NoError(t, p.Run(t.Context(), 1))
	_, _, err = p.Trials().TraceCounted(t.Context(), 2, 0, 2, nil)
	require.NoError(t, err)
	require.Equal(t, [][]string{nil, {"now"}, {"now"}}, running, "a usual replay has no events that could tell")
	require.Empty(t, p.Trials().Running())
	require.Empty(t, (*Trials)(nil).Running())
}

// What is asked of no program has an answer.
func TestNoProgramSaysNothing(t *testing.T) {
	var p *Program
	require.Zero(t, p.Replays())
	require.Empty(t, p.Unfinished())
	require.Zero(t, p.Memory())
	require.Nil(t, p.Trials().Trial())
	nodes, on := p.Overlaps()
	require.False(t, on || nodes > 0)
	now, last := p.Communicating()
	require.True(t, now == nil && last == nil)
	require.ErrorIs(t, p.CanLearn(), ErrNoProgram)
	_, err := CompareNodes(t.Context(), nil, nil, 1)
	require.EqualError(t, err, "two programs are needed to compare their nodes")
	_, err = CompareResults(t.Context(), nil, nil)
	require.EqualError(t, err, "two programs are needed to compare their results")
}
