// Replay, graphs, copies and submission by several threads, measured beside C++ programs in the same run. Figures only:
// nothing here fails for being slow; tests/gpu/run compares the figures with the bars and prints the report.

package gpu

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/driver"
	"github.com/dagrun/dagrun/dag"
)

const (
	launches = 1000
	replays  = 50
	wide     = 8
	copied   = 256 << 20
)

// The figures, each measured in a process of its own by this program and by the C++ one of the same name in baseline/.
// A process that has run several streams replays graphs more slowly, so none measures both.
var figures = map[string]func(t *testing.T) map[string]float64{
	"stream": measureStream,
	"graph":  measureGraph,
	"wide":   func(t *testing.T) map[string]float64 { return measureThreads(t, false) },
	"stencil": func(t *testing.T) map[string]float64 {
		return measureThreads(t, true)
	},
	"copy": measureCopies,
}

// TestFigures runs every figure's two programs in turn, several rounds, and prints the best of each.
func TestFigures(t *testing.T) {
	if name := os.Getenv("DAGRUN_FIGURE"); name != "" {
		for key, value := range figures[name](t) {
			fmt.Printf("FIGURE %s %g\n", key, value)
		}
		return
	}
	baselines := os.Getenv("DAGRUN_BASELINES")
	if baselines == "" {
		t.Skip("SKIPPED: DAGRUN_BASELINES does not name the folder of the C++ programs; tests/gpu/run sets it")
	}
	open(t)
	rounds := 5
	for _, name := range []string{"stream", "graph", "wide", "stencil", "copy"} {
		best := map[string]float64{}
		for range rounds {
			keep(t, best, "C++", exec.Command(filepath.Join(baselines, "baseline"), name))
			child := exec.Command(os.Args[0], "-test.run=^TestFigures$", "-test.v")
			child.Env = append(os.Environ(), "DAGRUN_FIGURE="+name)
			keep(t, best, "dagrun", child)
		}
		keys := make([]string, 0, len(best))
		for key := range best {
			keys = append(keys, key)
		}
		sort.Strings(keys)
		for _, key := range keys {
			fmt.Printf("REPORT %s %s %.4g\n", name, key, best[key])
		}
	}
}

// keep notes the best value of each figure that a program prints: the highest of a rate, the lowest of a time.
func keep(t *testing.T, best map[string]float64, who string, program *exec.Cmd) {
	out, err := program.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[0] != "FIGURE" {
			continue
		}
		value, err := strconv.ParseFloat(fields[2], 64)
		require.NoError(t, err)
		key := who + "/" + fields[1]
		old, seen := best[key]
		if !seen || strings.HasSuffix(key, "GB/s") == (value > old) {
			best[key] = value
		}
	}
}

func noops(t *testing.T, g *program, stencil bool, streams, perStream int, events func() cudart.Event) []cudart.Command {
	k := g.kernel(t, "noop")
	var commands []cudart.Command
	launch := func(s int) {
		commands = append(commands, cudart.Command{Kind: cudart.LaunchKernel, Stream: g.stream[s], Kernel: k, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}})
	}
	previous := make([]cudart.Event, streams)
	for range perStream {
		current := make([]cudart.Event, streams)
		for s := range streams {
			if stencil {
				for _, neighbour := range [2]int{s - 1, s + 1} {
					if neighbour >= 0 && neighbour < streams && previous[neighbour] != nil {
						commands = append(commands, cudart.Command{Kind: cudart.WaitEvent, Stream: g.stream[s], Event: previous[neighbour]})
					}
				}
			}
			launch(s)
			if stencil {
				current[s] = events()
				commands = append(commands, cudart.Command{Kind: cudart.RecordEvent, Stream: g.stream[s], Event: current[s]})
			}
		}
		previous = current
	}
	return commands
}

// measureReplay returns the best microseconds a launch of a replay: until the host is done, and until the device is.
func measureReplay(t *testing.T, g *program, submit func() error) (host, all float64) {
	host, all = 1e9, 1e9
	for range replays {
		began := time.Now()
		require.NoError(t, submit())
		submitted := time.Since(began)
		require.NoError(t, g.p.Synchronize(0))
		host = min(host, submitted.Seconds()*1e6/launches)
		all = min(all, time.Since(began).Seconds()*1e6/launches)
	}
	return host, all
}

func measureList(t *testing.T, streams, threads int, stencil bool) map[string]float64 {
	g := newProgram(t, open(t), streams, 0)
	event := func() cudart.Event {
		e := must[cudart.Event](t)(g.p.NewEvent(0, false))
		closing(t, e)
		return e
	}
	l := must[cudart.List](t)(g.p.Encode(noops(t, g, stencil, streams, launches/streams, event), cudart.ListOptions{Origin: g.stream[0], Threads: threads}))
	defer l.Close()
	host, all := measureReplay(t, g, l.Submit)
	return map[string]float64{"us/launch-host": host, "us/launch": all}
}

// measureStream also measures a stream of the least priority, which is what C++'s streams have.
func measureStream(t *testing.T) map[string]float64 {
	found := measureList(t, 1, 1, false)
	g := newProgram(t, open(t), 0, 0)
	s := must[cudart.Stream](t)(g.p.NewStream(0, dag.Low))
	closing(t, s)
	g.stream = append(g.stream, s)
	l := must[cudart.List](t)(g.p.Encode(noops(t, g, false, 1, launches, nil), cudart.ListOptions{Origin: s}))
	defer l.Close()
	_, found["us/launch-least-priority"] = measureReplay(t, g, l.Submit)
	return found
}

func measureGraph(t *testing.T) map[string]float64 {
	g := newProgram(t, open(t), 1, 0)
	l := must[cudart.List](t)(g.p.Encode(noops(t, g, false, 1, launches, nil), cudart.ListOptions{Origin: g.stream[0]}))
	defer l.Close()
	graph := must[cudart.Graph](t)(l.Capture(cudart.GraphOptions{}))
	defer graph.Close()
	require.NoError(t, graph.Upload(g.stream[0]))
	host, all := measureReplay(t, g, func() error { return graph.Launch(g.stream[0]) })
	return map[string]float64{"us/node-host": host, "us/node": all}
}

func measureThreads(t *testing.T, stencil bool) map[string]float64 {
	found := map[string]float64{}
	for _, threads := range []int{1, 2, 4, 8} {
		m := measureList(t, wide, threads, stencil)
		found[fmt.Sprintf("us/launch-%d-threads", threads)] = m["us/launch"]
	}
	return found
}

func measureCopies(t *testing.T) map[string]float64 {
	p := open(t)
	device, host := must[cudart.Ptr](t)(p.Alloc(0, copied)), must[cudart.Ptr](t)(p.AllocHost(copied, false))
	s := must[cudart.Stream](t)(p.NewStream(0, dag.Normal))
	defer func() {
		require.NoError(t, s.Close())
		require.NoError(t, p.Free(device))
		require.NoError(t, p.Free(host))
	}()
	clear(p.HostBytes(host, copied))
	return map[string]float64{
		"up-GB/s":   measureCopy(t, p, s, cudart.Command{Kind: cudart.CopyMemory, Stream: s, Dst: device, Src: host, SrcDevice: -1, Bytes: copied}),
		"down-GB/s": measureCopy(t, p, s, cudart.Command{Kind: cudart.CopyMemory, Stream: s, Dst: host, Src: device, DstDevice: -1, Bytes: copied}),
	}
}

func measureCopy(t *testing.T, p *driver.Platform, s cudart.Stream, c cudart.Command) float64 {
	l := must[cudart.List](t)(p.Encode([]cudart.Command{c}, cudart.ListOptions{}))
	defer l.Close()
	best := 0.0
	for range 20 {
		began := time.Now()
		require.NoError(t, l.Submit())
		require.NoError(t, s.Synchronize(context.Background()))
		best = max(best, copied/time.Since(began).Seconds()/1e9)
	}
	return best
}
