// Tests of traces: measured spans keep the plan's order, and the timeline file is complete: every track is declared, every wait an arrow.

package runtime_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/runtime"
)

func TestSpansKeepTheGraphsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		g := random(t, rapid.Uint64().Draw(t, "graph"), rapid.IntRange(1, 20).Draw(t, "nodes"))
		plan, err := planner.New(ctx, g, planner.Options{Streams: rapid.IntRange(1, 5).Draw(t, "streams")})
		require.NoError(t, err)
		platform, err := host.Open(host.Options{Perturb: rapid.Uint64Range(1, 1<<40).Draw(t, "perturb")})
		require.NoError(t, err)
		defer func() { require.NoError(t, platform.Close()) }()
		mode := rapid.SampledFrom([]runtime.Mode{runtime.Streams, runtime.Captured, runtime.Built}).Draw(t, "mode")
		program, err := runtime.New(ctx, g, plan, platform, runtime.Options{Mode: mode})
		require.NoError(t, err)
		defer func() { require.NoError(t, program.Close()) }()
		trace, err := program.Trace(ctx, 2)
		require.NoError(t, err)
		require.Equal(t, "events", trace.Source)
		require.Equal(t, mode.String(), trace.Mode)
		require.Positive(t, trace.PlainUS)
		require.Positive(t, trace.TracedUS)
		require.Len(t, trace.Replays, 2)
		for _, replay := range trace.Replays {
			require.Len(t, replay.Spans, g.Len())
			require.Positive(t, replay.SubmitUS)
			first := replay.Spans[0].Start
			for i, s := range replay.Spans {
				require.EqualValues(t, i, s.Node)
				require.GreaterOrEqual(t, s.End, s.Start)
				first = min(first, s.Start)
			}
			require.Zero(t, first, "the clock starts with the first node")
			for _, e := range g.Edges() {
				require.LessOrEqual(t, replay.Spans[e.From].End, replay.Spans[e.To].Start, "%s before %s", g.Nodes[e.From].Name, g.Nodes[e.To].Name)
			}
		}
		profile := trace.Profile(program)
		require.Len(t, profile.Nodes, g.Len())
	})
}

// chromeEvent is an entry of traceEvents as a viewer reads it.
type chromeEvent struct {
	Phase string         `json:"ph"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	ID    int            `json:"id"`
	Name  string         `json:"name"`
	Start float64        `json:"ts"`
	US    float64        `json:"dur"`
	Args  map[string]any `json:"args"`
}

// tracks are the names of a file's tracks, and its other events.
func tracks(t *testing.T, file []byte) (names map[[2]int]string, events []chromeEvent, other map[string]any) {
	t.Helper()
	var document struct {
		OtherData   map[string]any `json:"otherData"`
		TraceEvents []chromeEvent  `json:"traceEvents"`
	}
	decoder := json.NewDecoder(bytes.NewReader(file))
	require.NoError(t, decoder.Decode(&document))
	names = map[[2]int]string{}
	for _, e := range document.TraceEvents {
		switch {
		case e.Phase != "M":
			events = append(events, e)
		case e.Name == "thread_name":
			require.NotContains(t, names, [2]int{e.PID, e.TID}, "a track has one name")
			names[[2]int{e.PID, e.TID}] = e.Args["name"].(string)
		}
	}
	return names, events, document.OtherData
}

// wide has three kernels side by side between copies.
func wide(t *testing.T) (*dag.Graph, *planner.Plan) {
	t.Helper()
	b := dag.New(`wide "quoted"`)
	b.Use(kernels.Library())
	const n = 96
	in, out, d := b.Host("in", dag.F32, n), b.Host("out", dag.F32, n), b.Device("d", dag.F32, n)
	b.Copy("up", b.Whole(d), b.Whole(in))
	for i := range int64(3) {
		b.Kernel(fmt.Sprintf("k%d", i), "scale", dag.Args{n / 3, 2, b.Part(d, i, 3)})
	}
	b.Copy("down", b.Whole(out), b.Whole(d))
	g, err := b.Graph()
	require.NoError(t, err)
	plan, err := planner.New(context.Background(), g, planner.Options{Streams: 3, Strategy: "roundrobin"})
	require.NoError(t, err)
	return g, plan
}

func waits(p *planner.Plan) (n int) {
	for _, s := range p.Streams {
		for _, op := range s.Ops {
			if op.Kind == plan.Wait {
				n++
			}
		}
	}
	return n
}

func TestTimelinesAreWhole(t *testing.T) {
	g, made := wide(t)
	streamOf := make([]int32, g.Len())
	for s := range made.Streams {
		for _, op := range made.Streams[s].Ops {
			if op.Kind == plan.Launch {
				streamOf[op.Node] = int32(s)
			}
		}
	}
	spans := func(at ...float64) (list []runtime.Span) {
		for i := 0; i < len(at); i += 2 {
			list = append(list, runtime.Span{Node: dag.NodeID(i / 2), Stream: streamOf[i/2], Start: at[i], End: at[i+1]})
		}
		return list
	}
	trace := &runtime.Trace{Mode: "streams", Source: "cupti", PlainUS: 90, TracedUS: 100, Replays: []runtime.TracedReplay{
		{SubmitUS: 12.5, Spans: spans(0, 10, 11, 41, 12, 40, 13, 60, 61, 70)},   // all three side by side
		{SubmitUS: 200, Spans: spans(0, 10, 11, 41, 41, 60, 60, 70.25, 71, 80)}, // one after the other
	}}
	predicted, err := planner.Simulate(g, made, planner.H200(), nil)
	require.NoError(t, err)
	var file bytes.Buffer
	require.NoError(t, trace.WriteChrome(&file, g, made, predicted))
	names, events, other := tracks(t, file.Bytes())
	require.Equal(t, map[string]any{"pipeline": `wide "quoted"`, "mode": "streams", "measured_by": "cupti", "plain_us": 90.0, "traced_us": 100.0}, other)

	count := map[int]int{}
	engines := []string{}
	for track, name := range names {
		count[track[0]]++
		if track[0] == 3 && !strings.Contains(name, "beside") {
			engines = append(engines, name)
		}
	}
	require.Equal(t, 1, count[1], "one track of submission")
	require.Equal(t, len(made.Streams), count[2], "one track a stream")
	require.Equal(t, 5, count[3], "one track an engine, and two more where three kernels run side by side")
	require.ElementsMatch(t, []string{"device 0 h2d", "device 0 compute", "device 0 d2h"}, engines)
	require.Equal(t, len(made.Streams), count[4], "one track a stream of the prediction")

	ends := map[[2]int]float64{}
	spansOn, starts, finishes := map[int]int{}, map[int]chromeEvent{}, map[int]chromeEvent{}
	slicesOf, counters := map[[2]int][]chromeEvent{}, map[string][]chromeEvent{}
	for _, e := range events {
		if e.Phase == "C" {
			counters[e.Name] = append(counters[e.Name], e)
			continue
		}
		track := [2]int{e.PID, e.TID}
		slicesOf[track] = append(slicesOf[track], e)
		require.Contains(t, names, track, "%+v", e)
		switch e.Phase {
		case "X":
			spansOn[e.PID]++
			require.GreaterOrEqual(t, e.Start, ends[track], "%+v overlaps what is ahead of it on its track", e)
			ends[track] = e.Start + e.US
		case "s":
			require.NotContains(t, starts, e.ID)
			starts[e.ID] = e
		case "f":
			require.NotContains(t, finishes, e.ID)
			finishes[e.ID] = e
		default:
			t.Errorf("unexpected event %+v", e)
		}
	}
	require.Equal(t, map[int]int{1: 2, 2: 2 * g.Len(), 3: 2 * g.Len(), 4: g.Len()}, spansOn)
	require.Len(t, starts, 2*waits(made), "an arrow for every wait of every replay")
	require.Positive(t, len(starts))
	for id, s := range starts {
		f, found := finishes[id]
		require.True(t, found)
		require.GreaterOrEqual(t, f.Start, s.Start, "an arrow points forward")
		require.NotEqual(t, s.TID, f.TID, "a wait is for another stream")
	}
	require.Len(t, finishes, len(starts))
	for _, end := range append(slices.Collect(maps.Values(starts)), slices.Collect(maps.Values(finishes))...) {
		require.True(t, slices.ContainsFunc(slicesOf[[2]int{end.PID, end.TID}], func(s chromeEvent) bool {
			return s.Phase == "X" && s.Start <= end.Start && end.Start < s.Start+s.US
		}), "the end of an arrow lies in a slice: %+v", end)
	}
	require.Equal(t, []string{"bytes in flight", "device 0 memory in use", "streams busy"}, slices.Sorted(maps.Keys(counters)))
	most := map[string]float64{}
	for name, steps := range counters {
		for k, e := range steps {
			require.Len(t, e.Args, 1)
			for _, value := range e.Args {
				require.GreaterOrEqual(t, value.(float64), 0.0, name)
				most[name] = max(most[name], value.(float64))
			}
			require.True(t, k == 0 || e.Start > steps[k-1].Start, "%s goes back in time", name)
		}
		for _, value := range steps[len(steps)-1].Args {
			require.Zero(t, value, "%s in the end", name)
		}
	}
	require.Equal(t, map[string]float64{"bytes in flight": 384, "device 0 memory in use": 512, "streams busy": 3}, most)
	var again bytes.Buffer
	require.NoError(t, trace.WriteChrome(&again, g, made, predicted))
	require.Equal(t, file.String(), again.String(), "the same trace is the same file")
}

func TestMeasuredTimelinesAreWhole(t *testing.T) {
	ctx := context.Background()
	g, plan := wide(t)
	program, err := runtime.New(ctx, g, plan, cpu(t), runtime.Options{})
	require.NoError(t, err)
	defer program.Close()
	trace, err := program.Trace(ctx, 3)
	require.NoError(t, err)
	var file bytes.Buffer
	require.NoError(t, trace.WriteChrome(&file, g, plan, nil))
	names, events, _ := tracks(t, file.Bytes())
	arrows := 0
	for _, e := range events {
		require.Contains(t, names, [2]int{e.PID, e.TID})
		if e.Phase == "s" {
			arrows++
		}
	}
	require.Equal(t, 3*waits(plan), arrows)
}
