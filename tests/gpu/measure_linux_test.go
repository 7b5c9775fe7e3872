// Measures replay, graphs, copies and submission by several threads, in turn with C++ programs in the same process. Nothing here
// fails for being slow; tests/gpu/run compares the figures with the limits and prints the report.

package gpu

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/driver"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/kernels/library"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/runtime"
)

const (
	launches  = 1000
	wide      = 8
	roots     = 512
	copied    = 256 << 20
	processes = 3   // per figure, because results vary with each process's addresses and queues
	rounds    = 200 // of a process
	warmUps   = 20
	settle    = 200 * time.Microsecond // before each side's turn: twice the time that submitting threads wait for more work
)

// A figure compares the same work on both sides.
type figure struct {
	name   string
	unit   string // of the reported values: what one round's microseconds are divided by, or GB/s
	work   func(t *testing.T) *work
	dagrun func(t *testing.T, p *driver.Platform) side
}

// side is dagrun's half of a figure.
type side struct{ submit, finish func() error }

// replay runs a side once and returns the microseconds until the host was done, and until the device was.
func (s *side) replay(t *testing.T) (host, all float64) {
	began := time.Now()
	err := s.submit()
	submitted := time.Since(began)
	finishErr := s.finish()
	finished := time.Since(began)
	if err != nil || finishErr != nil {
		t.Fatal(err, finishErr)
	}
	return float64(submitted.Nanoseconds()) / 1e3, float64(finished.Nanoseconds()) / 1e3
}

// figures are measured in processes of their own: one that has run several streams replays graphs more slowly.
func figures() []figure {
	list := []figure{
		{"stream", "us/launch", launchWork("wide", 1), listSide(1, 1, false, dag.Low)},
		{"stream-raised", "us/launch", launchWork("wide", 1), listSide(1, 1, false, dag.Normal)},
		{"graph", "us/node", launchWork("chain-graph", 1), graphSide},
	}
	for _, threads := range []int{1, 2, 4, 8} {
		list = append(list,
			figure{fmt.Sprintf("wide-%d", threads), "us/launch", launchWork("wide", wide), listSide(wide, threads, false, dag.Low)},
			figure{fmt.Sprintf("stencil-%d", threads), "us/launch", launchWork("stencil", wide), listSide(wide, threads, true, dag.Low)})
	}
	for _, threads := range []int{1, 8} {
		for _, shape := range []string{"wide", "stencil"} {
			list = append(list, figure{fmt.Sprintf("program-%s-%d", shape, threads), "us/node", planWork("schedule", shape), programSide(shape, runtime.Streams, threads)})
		}
	}
	for _, shape := range []string{"wide", "stencil", "roots"} {
		list = append(list,
			figure{"program-graph-" + shape, "us/node", planWork("schedule-graph", shape), programSide(shape, runtime.Captured, 1)},
			figure{"program-built-" + shape, "us/node", planWork("schedule-graph", shape), programSide(shape, runtime.Built, 1)})
	}
	for _, kernel := range []string{"noop", "spin", "scale"} {
		for _, overlap := range []runtime.Overlap{runtime.OverlapOff, runtime.OverlapOn} {
			name := map[runtime.Overlap]string{runtime.OverlapOff: "chain-", runtime.OverlapOn: "overlap-"}[overlap] + kernel
			list = append(list,
				figure{name + "-stream", "us/launch", chainWork("wide", kernel), chainSide(kernel, runtime.Streams, overlap)},
				figure{name + "-graph", "us/node", chainWork("chain-graph", kernel), chainSide(kernel, runtime.Captured, overlap)},
				figure{name + "-built", "us/node", chainWork("chain-graph", kernel), chainSide(kernel, runtime.Built, overlap)})
		}
	}
	return append(list,
		figure{"copy-up", "GB/s", copyWork("copy-up"), copySide(true)},
		figure{"copy-down", "GB/s", copyWork("copy-down"), copySide(false)})
}

// TestFigures measures each figure, or those that DAGRUN_FIGURES names, in several processes and reports the medians of all rounds.
func TestFigures(t *testing.T) {
	library := os.Getenv("DAGRUN_BASELINE")
	if library == "" {
		open(t)
		t.Skip("SKIPPED: DAGRUN_BASELINE does not name the library of the C++ programs; tests/gpu/run sets it")
	}
	if name := os.Getenv("DAGRUN_FIGURE"); name != "" {
		list := figures()
		i := slices.IndexFunc(list, func(f figure) bool { return f.name == name })
		require.GreaterOrEqual(t, i, 0, "there is no figure %q", name)
		measure(t, &list[i], library, os.Getenv("DAGRUN_FIRST") == "C++")
		return
	}
	open(t)
	wanted := strings.Fields(os.Getenv("DAGRUN_FIGURES"))
	list := figures()
	for _, name := range wanted {
		require.True(t, slices.ContainsFunc(list, func(f figure) bool { return f.name == name }), "there is no figure %q", name)
	}
	for _, f := range list {
		if len(wanted) > 0 && !slices.Contains(wanted, f.name) {
			continue
		}
		var all []round
		var medians []float64
		for i := range processes {
			child := exec.Command(os.Args[0], "-test.run=^TestFigures$", "-test.v")
			child.Env = append(os.Environ(), "DAGRUN_FIGURE="+f.name, "DAGRUN_FIRST="+[]string{"C++", "dagrun"}[i%2])
			out, err := child.CombinedOutput()
			require.NoError(t, err, "%s: %s", f.name, out)
			found := readRounds(t, out)
			require.Len(t, found, rounds, "%s: %s", f.name, out)
			medians = append(medians, quantile(found, 0.5, round.ratio))
			all = append(all, found...)
		}
		report(&f, all, medians)
	}
}

// round is one turn of each side, in microseconds: until the host was done, and until the device was.
type round struct{ hostC, allC, hostDagrun, allDagrun float64 }

func (r round) ratio() float64     { return r.allDagrun / r.allC }
func (r round) ratioHost() float64 { return r.hostDagrun / r.hostC }

const roundFormat = "ROUND %g %g %g %g"

// measure lets both sides take turns; the side that begins changes from round to round. A turn is two replays, of which only the
// second counts, because the first finds caches and parked threads as the other side left them.
func measure(t *testing.T, f *figure, library string, firstC bool) {
	goruntime.LockOSThread() // not unlocked, so that cleanups run on this thread
	p := open(t)
	var b *baseline
	if firstC {
		b = openBaseline(t, library, f.work(t))
	}
	s := f.dagrun(t, p)
	if !firstC {
		b = openBaseline(t, library, f.work(t))
	}
	found := make([]round, 0, rounds)
	for i := range warmUps + rounds {
		var r round
		for turn := range 2 {
			for began := time.Now(); time.Since(began) < settle; {
			}
			if (turn+i)%2 == 0 {
				b.replay(t)
				r.hostC, r.allC = b.replay(t)
			} else {
				s.replay(t)
				r.hostDagrun, r.allDagrun = s.replay(t)
			}
		}
		if i >= warmUps {
			found = append(found, r)
		}
	}
	for _, r := range found {
		fmt.Printf(roundFormat+"\n", r.hostC, r.allC, r.hostDagrun, r.allDagrun)
	}
}

func readRounds(t *testing.T, out []byte) (found []round) {
	for line := range bytes.Lines(out) {
		if text := strings.TrimSpace(string(line)); strings.HasPrefix(text, "ROUND ") {
			var r round
			_, err := fmt.Sscanf(text, roundFormat, &r.hostC, &r.allC, &r.hostDagrun, &r.allDagrun)
			require.NoError(t, err, "%s", text)
			found = append(found, r)
		}
	}
	return found
}

// report prints both sides' medians, and of the ratios of each round the median, the quartiles and each process's median. Ratios of
// rates are dagrun's over C++'s, so that more than 1 is faster.
func report(f *figure, all []round, medians []float64) {
	say := func(key string, value float64) { fmt.Printf("REPORT %s %s %.4g\n", f.name, key, value) }
	each := func(key string, side, host func(round) float64) {
		switch f.unit {
		case "GB/s":
			say(key+"/GB/s", copied/quantile(all, 0.5, side)/1e3)
		default:
			count := float64(launches)
			if strings.HasSuffix(f.name, "-roots") {
				count = roots
			}
			say(key+"/"+f.unit, quantile(all, 0.5, side)/count)
			say(key+"/"+f.unit+"-host", quantile(all, 0.5, host)/count)
		}
	}
	each("C++", func(r round) float64 { return r.allC }, func(r round) float64 { return r.hostC })
	each("dagrun", func(r round) float64 { return r.allDagrun }, func(r round) float64 { return r.hostDagrun })
	ratio := round.ratio
	if f.unit == "GB/s" {
		ratio = func(r round) float64 { return 1 / r.ratio() }
		for i := range medians {
			medians[i] = 1 / medians[i]
		}
	} else {
		say("ratio-host", quantile(all, 0.5, round.ratioHost))
	}
	for _, m := range medians {
		say("ratio-of-a-process", m)
	}
	say("ratio", quantile(all, 0.5, ratio))
	say("ratio-25%", quantile(all, 0.25, ratio))
	say("ratio-75%", quantile(all, 0.75, ratio))
}

// quantile returns the value below which the given share of the rounds lies.
func quantile(all []round, share float64, of func(round) float64) float64 {
	values := make([]float64, len(all))
	for i, r := range all {
		values[i] = of(r)
	}
	slices.Sort(values)
	at := share * float64(len(values)-1)
	low := int(at)
	if low+1 == len(values) {
		return values[low]
	}
	return values[low] + (at-float64(low))*(values[low+1]-values[low])
}

// noopEntry is the entry of the library's empty kernel; C++ loads the same PTX.
func noopEntry(t *testing.T) string {
	return must[dag.LaunchKernel](t)(kernels.Library().Kernel("noop", nil)).Entry()
}

func launchWork(name string, streams int64) func(*testing.T) *work {
	return func(t *testing.T) *work {
		entry := noopEntry(t)
		return &work{name: cText(name), ptx: cText(string(library.Module(entry).Code)), entry: cText(entry), launches: launches, streams: streams}
	}
}

func planWork(name, shape string) func(*testing.T) *work {
	return func(t *testing.T) *work {
		_, plan := planned(t, shape, 1)
		w := launchWork(name, int64(len(plan.Streams)))(t)
		ops, events := schedule(plan)
		w.op, w.ops, w.events = &ops[0], int64(len(ops)), int64(events)
		return w
	}
}

func copyWork(name string) func(*testing.T) *work {
	return func(*testing.T) *work { return &work{name: cText(name), bytes: copied} }
}

// planned is a graph of kernels that do nothing and its plan for eight streams: side by side (wide), each step after the step
// before of both neighbours (stencil), or all independent (roots). Planned for a machine on which every kernel takes 1 us: for
// kernels that take no time one stream is best, and nothing were measured.
func planned(t *testing.T, shape string, threads int) (*dag.Graph, *planner.Plan) {
	b := dag.New(shape)
	b.Use(kernels.Library())
	width, steps := wide, launches/wide
	if shape == "roots" {
		width, steps = roots, 1
	}
	before := make([]dag.NodeID, width)
	for step := range steps {
		now := make([]dag.NodeID, width)
		for i := range width {
			now[i] = b.Kernel(fmt.Sprintf("n%d.%d", step, i), "noop", nil)
			if step == 0 {
				continue
			}
			reach := 0
			if shape == "stencil" {
				reach = 1
			}
			b.After(now[i], before[max(0, i-reach):min(width, i+reach+1)]...)
		}
		before = now
	}
	g := must[*dag.Graph](t)(b.Graph())
	plan := must[*planner.Plan](t)(planner.New(context.Background(), g, planner.Options{Strategy: "list", Streams: wide, Machine: planner.Unit(), SingleUseEvents: threads > 1}))
	return g, plan
}

// The plans have the shapes that the figures' names say, so that both sides submit what a person would write by hand.
func TestFiguresPlans(t *testing.T) {
	for _, c := range []struct {
		shape                 string
		nodes, records, waits int
	}{{"wide", 1000, 0, 0}, {"stencil", 1000, 124 * 8, 124 * 14}, {"roots", roots, 0, 0}} {
		_, made := planned(t, c.shape, 1)
		require.Len(t, made.Streams, wide, c.shape)
		require.Equal(t, c.records, made.Stats.Records, c.shape)
		require.Equal(t, c.waits, made.Stats.Waits, c.shape)
		for i, s := range made.Streams {
			n := 0
			for _, o := range s.Ops {
				if o.Kind == plan.Launch {
					n++
				}
			}
			require.Equal(t, c.nodes/wide, n, "%s: stream %d", c.shape, i)
		}
		ops, events := schedule(made)
		require.Len(t, ops, c.nodes+c.records+c.waits+made.Stats.ForkRecords+made.Stats.ForkWaits, c.shape)
		recorded := make([]bool, events)
		for i, o := range ops {
			switch o.kind {
			case opRecord:
				recorded[o.event] = true
			case opWait:
				require.True(t, recorded[o.event], "%s: op %d waits for an event that nothing has recorded", c.shape, i)
			}
		}
		require.NotContains(t, recorded, false, "%s: an event that nothing records", c.shape)
	}
}

// commands returns launches on each stream in turn; in a stencil, each waits for the previous launches of both neighbouring streams.
func commands(t *testing.T, p *driver.Platform, k cudart.Kernel, streams []cudart.Stream, stencil bool) []cudart.Command {
	var list []cudart.Command
	previous := make([]cudart.Event, len(streams))
	for range launches / len(streams) {
		current := make([]cudart.Event, len(streams))
		for s, stream := range streams {
			for _, neighbour := range [2]int{s - 1, s + 1} {
				if stencil && neighbour >= 0 && neighbour < len(streams) && previous[neighbour] != nil {
					list = append(list, cudart.Command{Kind: cudart.WaitEvent, Stream: stream, Event: previous[neighbour]})
				}
			}
			list = append(list, cudart.Command{Kind: cudart.LaunchKernel, Stream: stream, Kernel: k, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}})
			if stencil {
				current[s] = must[cudart.Event](t)(p.NewEvent(0, false))
				closing(t, current[s])
				list = append(list, cudart.Command{Kind: cudart.RecordEvent, Stream: stream, Event: current[s]})
			}
		}
		previous = current
	}
	return list
}

// encoded returns a list of launches. Low is the default priority of streams, which those of C++ and of a runtime have.
func encoded(t *testing.T, p *driver.Platform, streams, threads int, stencil bool, priority dag.Priority) (cudart.List, cudart.Stream) {
	entry := noopEntry(t)
	m := must[cudart.Module](t)(p.Load(context.Background(), 0, library.Module(entry)))
	closing(t, m)
	var on []cudart.Stream
	for range streams {
		on = append(on, must[cudart.Stream](t)(p.NewStream(0, priority)))
		closing(t, on[len(on)-1])
	}
	l := must[cudart.List](t)(p.Encode(commands(t, p, must[cudart.Kernel](t)(m.Kernel(entry)), on, stencil), cudart.ListOptions{Origin: on[0], Threads: threads}))
	closing(t, l)
	return l, on[0]
}

func listSide(streams, threads int, stencil bool, priority dag.Priority) func(*testing.T, *driver.Platform) side {
	return func(t *testing.T, p *driver.Platform) side {
		l, _ := encoded(t, p, streams, threads, stencil, priority)
		return side{l.Submit, func() error { return p.Synchronize(context.Background(), 0) }}
	}
}

func graphSide(t *testing.T, p *driver.Platform) side {
	l, origin := encoded(t, p, 1, 1, false, dag.Low)
	graph := must[cudart.Graph](t)(l.Capture(cudart.GraphOptions{}))
	closing(t, graph)
	require.NoError(t, graph.Upload(origin))
	return side{func() error { return graph.Launch(origin) }, func() error { return origin.Synchronize(context.Background()) }}
}

// programSide replays a program as the command does.
func programSide(shape string, mode runtime.Mode, threads int) func(*testing.T, *driver.Platform) side {
	return func(t *testing.T, p *driver.Platform) side {
		g, plan := planned(t, shape, threads)
		made := must[*runtime.Program](t)(runtime.New(context.Background(), g, plan, p, runtime.Options{Mode: mode, Threads: threads}))
		closing(t, made)
		return side{func() error { return made.Replay(context.Background()) }, func() error { return made.Synchronize(context.Background()) }}
	}
}

func copySide(up bool) func(*testing.T, *driver.Platform) side {
	return func(t *testing.T, p *driver.Platform) side {
		device, host := must[cudart.Ptr](t)(p.Alloc(0, copied)), must[cudart.Ptr](t)(p.AllocHost(copied, false))
		t.Cleanup(func() {
			require.NoError(t, p.Free(device))
			require.NoError(t, p.Free(host))
		})
		s := must[cudart.Stream](t)(p.NewStream(0, dag.Low))
		closing(t, s)
		clear(p.HostBytes(host, copied))
		c := cudart.Command{Kind: cudart.CopyMemory, Stream: s, Dst: device, Src: host, SrcDevice: -1, Bytes: copied}
		if !up {
			c.Dst, c.Src, c.DstDevice, c.SrcDevice = host, device, -1, 0
		}
		l := must[cudart.List](t)(p.Encode([]cudart.Command{c}, cudart.ListOptions{}))
		closing(t, l)
		return side{l.Submit, func() error { return s.Synchronize(context.Background()) }}
	}
}
