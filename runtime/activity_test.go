// Tests of assigning CUPTI records to nodes: each node gets its own records, or none. A fake recorder plays what a GPU would record.

package runtime_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
	"github.com/dagrun/dagrun/runtime/internal/played"
)

// tracedKinds makes a program with every kind of node, including one that does nothing and a memset of eight-byte patterns, and traces it.
func tracedKinds(t *testing.T, mode runtime.Mode, r *played.Recorder) *runtime.Trace {
	t.Helper()
	ctx := context.Background()
	b := dag.New("kinds")
	b.Use(kernels.Library())
	const n = 64
	in, out := b.Host("in", dag.F32, n), b.Host("out", dag.F32, n)
	d, wide := b.Device("d", dag.F32, n), b.Device("wide", dag.F64, n)
	b.Copy("up", b.Whole(d), b.Whole(in))
	b.Memset("set", b.Part(d, 0, 2), 1)
	b.Memset("wide", b.Whole(wide), 1.5)
	b.Kernel("nothing", "scale", dag.Args{0, 2, b.Part(d, 1, 2)})
	b.Kernel("scale", "scale", dag.Args{n, 2, b.Whole(d)})
	b.Copy("down", b.Whole(out), b.Whole(d))
	g, err := b.Graph()
	require.NoError(t, err)
	plan, err := planner.New(ctx, g, planner.Options{Streams: 3})
	require.NoError(t, err)
	platform, err := host.Open(host.Options{})
	require.NoError(t, err)
	p, err := runtime.New(ctx, g, plan, platform, runtime.Options{Mode: mode, Recorder: r})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, p.Close())
		require.NoError(t, platform.Close())
	})
	r.Graph, r.Now = g, func() (*planner.Plan, bool) { return p.Plan(), p.Mode() != runtime.Streams }
	trace, err := p.Trace(ctx, 2)
	require.NoError(t, err)
	return trace
}

func TestRecordsBecomeSpans(t *testing.T) {
	for _, mode := range []runtime.Mode{runtime.Streams, runtime.Captured, runtime.Built} {
		t.Run(mode.String(), func(t *testing.T) {
			r := &played.Recorder{}
			trace := tracedKinds(t, mode, r)
			require.Equal(t, "cupti", trace.Source)
			require.Empty(t, trace.Fallback)
			require.True(t, r.Plain, "recording was off while the plain replay was timed")
			require.False(t, r.Enabled, "recording is off again")
			require.Positive(t, trace.PlainUS)
			require.Len(t, trace.Replays, 2)
			list := r.Commands()
			require.Len(t, list, r.Graph.Len()-1, "the launch of nothing leaves no record")
			for _, replay := range trace.Replays {
				for i, e := range list {
					require.Equal(t, runtime.Span{Node: e.Node, Stream: e.Stream, Start: float64(i), End: float64(i) + 0.5 + float64(i)/1000}, replay.Spans[e.Node])
				}
				const nothing = 3
				span := replay.Spans[nothing]
				require.Equal(t, "nothing", r.Graph.Nodes[nothing].Name)
				require.Equal(t, dag.NodeID(nothing), span.Node)
				require.Equal(t, span.Start, span.End)
			}
			require.InDelta(t, float64(len(list)-1)+0.5+float64(len(list)-1)/1000, trace.TracedUS, 1e-9)
		})
	}
}

func TestRecordsThatDoNotFitAreNotUsed(t *testing.T) {
	for _, c := range []struct {
		name   string
		modes  []runtime.Mode
		spoil  func([]cudart.Activity) []cudart.Activity
		fails  string
		reason string
	}{
		{name: "none", spoil: func(r []cudart.Activity) []cudart.Activity { return nil }, reason: "0 records for 5 commands"},
		{name: "one more", spoil: func(r []cudart.Activity) []cudart.Activity { return append(r, r[0]) }, reason: "6 records for 5 commands"},
		{name: "another kernel", spoil: func(r []cudart.Activity) []cudart.Activity { r[3].Name = "theirs"; return r }, reason: `record 3 (kind 1, "theirs", 0 bytes) does not belong to node "scale"`},
		{name: "another size", spoil: func(r []cudart.Activity) []cudart.Activity { r[4].Bytes++; return r }, reason: `record 4 (kind 2, "", 257 bytes) does not belong to node "down"`},
		{name: "another kind", spoil: func(r []cudart.Activity) []cudart.Activity { r[0].Kind = cudart.SetActivity; return r }, reason: `record 0 (kind 3, "", 256 bytes) does not belong to node "up"`},
		{name: "another replay", spoil: func(r []cudart.Activity) []cudart.Activity { r[4].GraphNode ^= r[4].GraphNode | 1; return r }, modes: []runtime.Mode{runtime.Streams}, reason: `record 4, of node "down", was not made by this replay`},
		{name: "another stream", spoil: func(r []cudart.Activity) []cudart.Activity { r[4].Stream = 3; return r }, modes: []runtime.Mode{runtime.Streams}, reason: `record 4, of node "down", is from another stream`},
		{name: "out of order", spoil: func(r []cudart.Activity) []cudart.Activity { r[4].Start = 1; return r }, reason: `record 4 shows that node "down" started before the previous node on its stream`},
		{name: "flush fails", fails: "flush", reason: "no buffers"},
		{name: "busy", fails: "enable", reason: "another tool"},
	} {
		modes := c.modes
		if modes == nil {
			modes = []runtime.Mode{runtime.Streams, runtime.Captured, runtime.Built}
		}
		for _, mode := range modes {
			t.Run(fmt.Sprint(c.name, " ", mode), func(t *testing.T) {
				trace := tracedKinds(t, mode, &played.Recorder{Spoil: c.spoil, Fails: c.fails})
				require.Equal(t, "events", trace.Source)
				require.Equal(t, c.reason, trace.Fallback)
				require.Len(t, trace.Replays, 2)
				for _, s := range trace.Replays[0].Spans {
					require.GreaterOrEqual(t, s.End, s.Start)
				}
			})
		}
	}
}
