// Tests of pipelines on a real GPU: the same bits on 1 to 8 streams, as streams and as graphs, from one thread and from several, and
// close to the CPU device's results; memory does not grow in a million replays.

package gpu

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

// pipelineFiles are the pipelines beside the test binary (tests/gpu/build puts them there), or those of the checkout.
func pipelineFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, folder := range []string{filepath.Join(filepath.Dir(os.Args[0]), "pipelines"), "pipelines", "../../pipelines"} {
		found, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
		require.NoError(t, err)
		if len(found) > 0 {
			files = found
			break
		}
	}
	require.NotEmpty(t, files, "no pipelines beside the test binary")
	sort.Strings(files)
	return files
}

// load parses a pipeline; nil if it needs what this machine lacks (a second device), or is a schedule with races.
func load(t *testing.T, name string, devices int, params ...file.Override) *dag.Graph {
	t.Helper()
	source, err := os.ReadFile(name)
	require.NoError(t, err)
	g, err := file.Parse(source, file.Options{Name: name, Dir: filepath.Dir(name), Library: kernels.Library(), ReadFile: os.ReadFile, OpenModule: kernels.ModuleOpener(filepath.Dir(name), os.ReadFile, &kernels.Compilers{}), Params: params})
	require.NoError(t, err)
	for i := range g.Buffers {
		if int(g.Buffers[i].Device) >= devices {
			t.Logf("%s needs more devices than the %d here", name, devices)
			return nil
		}
	}
	plan, err := planner.New(context.Background(), g, planner.Options{})
	require.NoError(t, err)
	if left, err := planner.Violations(g, plan, 1); err != nil || left.Total > 0 {
		t.Logf("%s is a schedule with races", name)
		return nil
	}
	return g
}

// variant is one way to run a graph.
type variant struct {
	plan    planner.Options
	options runtime.Options
}

func (v variant) String() string {
	return fmt.Sprintf("%s, %d streams, %s, %d threads, memory %d", v.plan.Strategy, v.plan.Streams, v.options.Mode, v.options.Threads, v.options.Memory)
}

// contents runs a graph and returns every buffer that is saved or expected, and every host buffer, one after the other.
func contents(t *testing.T, g *dag.Graph, p cudart.Platform, v variant) []byte {
	t.Helper()
	ctx := context.Background()
	plan, err := planner.New(ctx, g, v.plan)
	require.NoError(t, err, v)
	program, err := runtime.New(ctx, g, plan, p, v.options)
	require.NoError(t, err, v)
	defer func() { require.NoError(t, program.Close(), v) }()
	require.NoError(t, program.Run(ctx, 1), v)
	var all bytes.Buffer
	for i := range g.Buffers {
		b := &g.Buffers[i]
		if b.Save == "" && b.Expect == nil && b.Place != dag.Host {
			continue
		}
		memory := make([]byte, b.Bytes)
		require.NoError(t, program.Read(ctx, dag.BufferID(i), memory), v)
		all.Write(memory)
	}
	return all.Bytes()
}

func variants() []variant {
	var list []variant
	for _, streams := range []int{1, 2, 3, 5, 8} {
		for _, mode := range []runtime.Mode{runtime.Streams, runtime.Captured, runtime.Built} {
			list = append(list, variant{planner.Options{Strategy: "list", Streams: streams}, runtime.Options{Mode: mode}})
		}
	}
	return append(list,
		variant{planner.Options{Strategy: "roundrobin", Streams: 4}, runtime.Options{}},
		variant{planner.Options{Strategy: "list", Streams: 8, SingleUseEvents: true}, runtime.Options{Threads: 4}},
		variant{planner.Options{Strategy: "list", Streams: 8}, runtime.Options{Memory: runtime.Separate}},
	)
}

func TestPipelinesGiveTheSameBitsEveryWay(t *testing.T) {
	p := open(t)
	for _, file := range pipelineFiles(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			g := load(t, file, len(p.Devices()))
			if g == nil {
				return
			}
			want := contents(t, g, p, variant{planner.Options{Strategy: "serial", KeepAll: true}, runtime.Options{}})
			for _, v := range variants() {
				if g.Sync == dag.SyncExplicit && v.plan.Streams != 8 {
					continue // the file states its own schedule
				}
				require.True(t, bytes.Equal(want, contents(t, g, p, v)), "%s: other bits", v)
			}
		})
	}
}

func TestPipelinesMeetTheirExpectations(t *testing.T) {
	p := open(t)
	cpu, err := host.Open(host.Options{Devices: len(p.Devices()), CheckOrder: true, Compilers: &kernels.Compilers{}})
	require.NoError(t, err)
	defer cpu.Close()
	for _, file := range pipelineFiles(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			g := load(t, file, len(p.Devices()))
			if g != nil {
				meetsExpectations(t, g, p, cpu)
			}
		})
	}
}

// Cut in chunks, the workloads of the suite use different kernels.
func TestChunksMeetTheirExpectations(t *testing.T) {
	p := open(t)
	cpu, err := host.Open(host.Options{CheckOrder: true})
	require.NoError(t, err)
	defer cpu.Close()
	for _, path := range pipelineFiles(t) {
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		switch name {
		case "vec", "bs", "ml", "hits", "img", "dl":
			t.Run(name, func(t *testing.T) {
				meetsExpectations(t, load(t, path, 1, file.Override{Name: "chunks", Value: "5"}), p, cpu)
			})
		}
	}
}

func meetsExpectations(t *testing.T, g *dag.Graph, p cudart.Platform, cpu *host.Platform) {
	t.Helper()
	ctx := context.Background()
	for i := range g.Buffers {
		if g.Buffers[i].Expect != nil {
			g.Buffers[i].Save = "" // nothing is written beside the pipelines
		}
	}
	plan, err := planner.New(ctx, g, planner.Options{})
	require.NoError(t, err)
	program, err := runtime.New(ctx, g, plan, p, runtime.Options{Mode: runtime.Auto})
	require.NoError(t, err)
	defer program.Close()
	require.NoError(t, program.Run(ctx, 1))
	results, err := program.Finish(ctx)
	require.NoError(t, err)
	require.Empty(t, results.Failed())
	if len(g.Modules) > 0 {
		return // a user's kernel needs a GPU
	}
	second, err := runtime.New(ctx, g, plan, cpu, runtime.Options{})
	require.NoError(t, err)
	defer second.Close()
	require.NoError(t, second.Run(ctx, 1))
	checks, err := runtime.CompareResults(ctx, program, second)
	require.NoError(t, err)
	for _, c := range checks {
		require.True(t, c.OK, "%s: %s; %d of %d differ, worst by %g", c.Buffer, c.First, c.Wrong, c.Elements, c.Worst)
	}
}

// smallKernels is a graph of many small kernels over a few buffers, whose replays cost mostly submission.
func smallKernels(t *testing.T, nodes int) *dag.Graph {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	b := dag.New("launches")
	b.Use(kernels.Library())
	var device []dag.BufferID
	for i := range 8 {
		device = append(device, b.Device(fmt.Sprintf("d%d", i), dag.I32, 256))
	}
	for i := range nodes {
		b.Kernel(fmt.Sprintf("n%d", i), "axpy", dag.Args{256, 1, b.Whole(dag.BufferID(device[(i+1+r.IntN(2))%8])), b.Whole(device[i%8])})
	}
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

func TestAMillionReplaysKeepMemoryFlat(t *testing.T) {
	p := open(t)
	replays := 1_000_000
	if testing.Short() {
		replays = 20_000
	}
	ctx := context.Background()
	g := smallKernels(t, 4)
	plan, err := planner.New(ctx, g, planner.Options{})
	require.NoError(t, err)
	for _, mode := range []runtime.Mode{runtime.Streams, runtime.Captured} {
		program, err := runtime.New(ctx, g, plan, p, runtime.Options{Mode: mode})
		require.NoError(t, err)
		require.NoError(t, program.Run(ctx, 1000))
		free, _, err := p.MemoryInfo(0)
		require.NoError(t, err)
		before := resident(t)
		require.NoError(t, program.Run(ctx, replays))
		after, _, err := p.MemoryInfo(0)
		require.NoError(t, err)
		grown := resident(t) - before
		t.Logf("%s: %d replays; device memory in use grew by %d bytes, resident host memory by %d", mode, replays, free-after, grown)
		require.LessOrEqual(t, free-after, int64(4<<20))
		require.LessOrEqual(t, grown, int64(16<<20))
		require.Zero(t, testing.AllocsPerRun(1000, func() {
			if program.Replay(ctx) != nil {
				t.Error("a replay failed")
			}
		}), "allocations of a replay")
		require.NoError(t, program.Close())
	}
}
