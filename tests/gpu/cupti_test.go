// Tests of CUPTI's records on a real GPU: every node gets its own, and kernels take the times that they were told to take.

package gpu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/cupti"
	"github.com/dagrun/dagrun/cudart/driver"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/runtime"
)

// TestCUPTI needs a process of its own for each way to replay: CUPTI comes before the driver, and slows all that follows.
func TestCUPTI(t *testing.T) {
	if mode := os.Getenv("DAGRUN_CUPTI"); mode != "" {
		traceWithCUPTI(t, mode)
		return
	}
	open(t)
	for _, mode := range []string{"streams", "graph", "built graph"} {
		t.Run(mode, func(t *testing.T) {
			child := exec.Command(os.Args[0], "-test.run=^TestCUPTI$", "-test.v")
			child.Env = append(os.Environ(), "DAGRUN_CUPTI="+mode)
			out, err := child.CombinedOutput()
			require.NoError(t, err, "%s", out)
			for _, line := range strings.Split(string(out), "\n") {
				if reason, found := strings.CutPrefix(line, "NO CUPTI: "); found {
					t.Skipf("NO CUPTI: %s", reason)
				}
				if strings.HasPrefix(line, "CUPTI ") {
					t.Log(line)
				}
			}
			require.Contains(t, string(out), "CUPTI PASSED")
		})
	}
}

// lasting is a graph in which every kernel takes a different time: independent ones first, then a chain, with copies and memsets between.
func lasting(t *testing.T) (g *dag.Graph, us map[string]float64) {
	t.Helper()
	b := dag.New("lasting")
	b.Use(kernels.Library())
	us = map[string]float64{}
	const n = 1 << 20
	in, out, d, wide := b.Host("in", dag.F32, n), b.Host("out", dag.F32, n), b.Device("d", dag.F32, n), b.Device("wide", dag.F64, n)
	b.Copy("up", b.Whole(d), b.Whole(in))
	for i := range 12 {
		name := fmt.Sprintf("spin%d", i)
		us[name] = float64(30 + 15*((i*7)%12)) // not in order of their names
		b.Kernel(name, "spin", dag.Args{us[name]})
	}
	b.Memset("set", b.Part(d, 0, 2), 1)
	b.Memset("wide", b.Whole(wide), 1.5)
	for i := range 4 {
		b.Kernel(fmt.Sprintf("scale%d", i), "scale", dag.Args{n, 2, b.Whole(d)})
	}
	b.Copy("down", b.Whole(out), b.Whole(d))
	g, err := b.Graph()
	require.NoError(t, err)
	return g, us
}

func traceWithCUPTI(t *testing.T, mode string) {
	recorder, err := cupti.Prepare()
	if errors.Is(err, cupti.ErrUnavailable) || errors.Is(err, cupti.ErrBusy) {
		fmt.Printf("\nNO CUPTI: %v\n", err)
		return
	}
	require.NoError(t, err)
	p, err := driver.Open(driver.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	g, us := lasting(t)
	ctx := context.Background()
	made, err := planner.New(ctx, g, planner.Options{Strategy: "list", Streams: 4})
	require.NoError(t, err)
	modes := map[string]runtime.Mode{"streams": runtime.Streams, "graph": runtime.Captured, "built graph": runtime.Built}
	trace := func(with runtime.Recorder) *runtime.Trace {
		program, err := runtime.New(ctx, g, made, p, runtime.Options{Mode: modes[mode], Recorder: with})
		require.NoError(t, err)
		defer func() { require.NoError(t, program.Close()) }()
		found, err := program.Trace(ctx, 5)
		require.NoError(t, err)
		return found
	}
	recorded := trace(recorder)
	events := trace(nil)
	fmt.Printf("\nCUPTI %s (interface %d), %s: %s, plain %.1f us, traced %.1f us, with events %.1f us\n", recorder.Name(), recorder.Version(), mode,
		recorded.Source, recorded.PlainUS, recorded.TracedUS, events.TracedUS)
	require.Equal(t, "cupti", recorded.Source, recorded.Fallback)
	require.Equal(t, "events", events.Source)
	require.Empty(t, events.Fallback)
	for k, replay := range recorded.Replays {
		end := make([]float64, len(made.Streams))
		for s := range made.Streams {
			for _, op := range made.Streams[s].Ops {
				if op.Kind != plan.Launch {
					continue
				}
				span := &replay.Spans[op.Node]
				name := g.Nodes[op.Node].Name
				require.GreaterOrEqual(t, span.Start, end[s]-1, "replay %d: %s begins before what is ahead of it on its stream ends", k, name)
				require.Greater(t, span.End, span.Start, name)
				end[s] = span.End
				if want, spins := us[name]; spins {
					require.InDelta(t, want, span.End-span.Start, 5+want/20, "replay %d: %s takes what it was told to, so this is its record", k, name)
				}
			}
		}
	}
	for i := range g.Nodes {
		exact, around := recorded.Replays[2].Spans[i], events.Replays[2].Spans[i]
		fmt.Printf("CUPTI   %-8s %8.2f us, by events %8.2f us\n", g.Nodes[i].Name, exact.End-exact.Start, around.End-around.Start)
		require.Less(t, exact.End-exact.Start, around.End-around.Start+10, "%s: events measure at least what the kernel takes", g.Nodes[i].Name)
	}
	require.Equal(t, cudart.Live{}, p.Live())
	fmt.Println("CUPTI PASSED")
}
