// Tests of every pipeline of the repository on the CPU device, which checks the order of every two accesses: as streams and as a graph,
// on one stream and on eight, with shared and with separate memory. Schedules with races are reported at the racing pairs only.

package tests

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/kernels/launch"
	"github.com/dagrun/dagrun/kernels/source/clang"
	"github.com/dagrun/dagrun/kernels/source/nvrtc"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/proof"
	"github.com/dagrun/dagrun/runtime"
)

// flagged is a race as check prints it.
type flagged struct {
	before, node, buffer string
	lo, hi               int64
	line                 string
}

// racy are the schedules with races, and their races.
var racy = map[string][]flagged{
	"race":         {{"fill", "sum", "a", 0, 4 * 65536, "after: [fill]"}},
	"cg-published": {{"update_p.0", "product.1", "d_p", 0, 8 * 240, "after: [update_p.0]"}},
	"lanczos-published": {
		{"broadcast.0", "spmv.0", "d_shared", 0, 4 * 4096, "after: [broadcast.0]"},
		{"broadcast.1", "spmv.1", "d_shared", 0, 4 * 4096, "after: [broadcast.1]"},
	},
}

// needCompiler are the pipelines with CUDA C of their own.
var needCompiler = []string{"custom", "edges", "residual", "smooth", "texture"}

// haveCompiler reports whether the CPU device can run CUDA C here. Where a compiler is required, it must be able to.
func haveCompiler() bool {
	if _, err := nvrtc.Open(nvrtc.Options{}); err == nil || os.Getenv("DAGRUN_PTX_COMPILER") != "" {
		return true
	}
	_, err := clang.Open(clang.Options{})
	return err == nil
}

func pipelineNames(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../pipelines/*.yaml")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 35)
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(f), ".yaml"))
	}
	return names
}

func loadPipeline(t *testing.T, name string, params ...file.Override) *dag.Graph {
	t.Helper()
	dir := filepath.Join("..", "pipelines")
	source, err := os.ReadFile(filepath.Join(dir, name+".yaml"))
	require.NoError(t, err)
	g, err := file.Parse(source, file.Options{Name: name + ".yaml", Dir: dir, Library: kernels.Library(), ReadFile: os.ReadFile, OpenModule: kernels.ModuleOpener(dir, os.ReadFile, nil), Params: params})
	require.NoError(t, err)
	require.Empty(t, g.Warnings().List, "a pipeline to learn from has no warnings")
	return g
}

func openHost(t *testing.T, g *dag.Graph) *host.Platform {
	t.Helper()
	devices := 1
	for i := range g.Buffers {
		devices = max(devices, int(g.Buffers[i].Device)+1)
	}
	p, err := host.Open(host.Options{Devices: devices, CheckOrder: true, Compilers: &kernels.Compilers{}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

func runAndCheck(t *testing.T, g *dag.Graph, p *host.Platform, plan *planner.Plan, options runtime.Options, replays int) {
	t.Helper()
	ctx := context.Background()
	program, err := runtime.New(ctx, g, plan, p, options)
	require.NoError(t, err)
	defer func() { require.NoError(t, program.Close()) }()
	require.NoError(t, program.Run(ctx, replays))
	results, err := program.Finish(ctx)
	require.NoError(t, err)
	require.NotEmpty(t, results.Checks, "nothing is expected of it")
	require.Empty(t, results.Failed())
}

// smaller are the pipelines whose arrays are so large that one run takes a second. They run once at their own size, and in all ways with
// smaller arrays; with DAGRUN_LONG set, in all ways at their own size.
var smaller = map[string][]file.Override{
	"jacobi-until":     {{Name: "n", Value: "131072"}},
	"out-of-memory":    {{Name: "n", Value: "131072"}},
	"uneven-chunks":    {{Name: "n", Value: "131072"}},
	"uneven-downloads": {{Name: "n", Value: "131072"}},
	"uneven-stages":    {{Name: "n", Value: "131072"}},
}

func TestPipelinesMeetTheirExpectationsEveryWay(t *testing.T) {
	counts, layouts := []int{1, 8}, []bool{false, true}
	if testing.Short() { // where streams meet and buffers share bytes
		counts, layouts = []int{8}, []bool{false}
	}
	for _, name := range pipelineNames(t) {
		if racy[name] != nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			if slices.Contains(needCompiler, name) && !haveCompiler() {
				t.Skip("needs a compiler for CUDA C: install clang 14 or newer")
			}
			load := func(params ...file.Override) *dag.Graph {
				g := loadPipeline(t, name, params...)
				for i := range g.Buffers {
					g.Buffers[i].Save = "" // nothing is written beside the pipelines
				}
				return g
			}
			if smaller[name] != nil && !testing.Short() {
				g := load()
				plan, err := planner.New(context.Background(), g, planner.Options{})
				require.NoError(t, err)
				runAndCheck(t, g, openHost(t, g), plan, runtime.Options{}, 1)
			}
			size := smaller[name]
			if os.Getenv("DAGRUN_LONG") != "" {
				size = nil
			}
			g := load(size...)
			p := openHost(t, g)
			for _, streams := range counts {
				for _, apart := range layouts {
					plan, err := planner.New(context.Background(), g, planner.Options{Streams: streams, KeepAll: apart})
					require.NoError(t, err)
					require.NoError(t, planner.Verify(g, plan))
					for _, mode := range []runtime.Mode{runtime.Streams, runtime.Captured, runtime.Built} {
						t.Run(fmt.Sprintf("%d %s apart %v", streams, mode, apart), func(t *testing.T) {
							options := runtime.Options{Mode: mode}
							if apart {
								options.Memory = runtime.Separate
							}
							runAndCheck(t, g, p, plan, options, 1)
						})
					}
				}
			}
		})
	}
}

// dagrun fmt leaves the pipelines of the repository unchanged.
func TestPipelinesAreInCanonicalForm(t *testing.T) {
	for _, name := range pipelineNames(t) {
		source, err := os.ReadFile(filepath.Join("..", "pipelines", name+".yaml"))
		require.NoError(t, err)
		formatted, err := file.Format(source, name+".yaml")
		require.NoError(t, err)
		require.Equal(t, string(formatted), string(source), "go run ./cmd/dagrun fmt -w pipelines/%s.yaml", name)
	}
}

func TestRacesAreFlaggedAtTheirPairs(t *testing.T) {
	names := pipelineNames(t)
	for name := range racy {
		require.Contains(t, names, name)
	}
	for _, name := range names {
		g := loadPipeline(t, name)
		plan, err := planner.New(context.Background(), g, planner.Options{})
		require.NoError(t, err, name)
		left, err := planner.Violations(g, plan, 0)
		require.NoError(t, err, name)
		var found []flagged
		for _, v := range left.Violations {
			found = append(found, flagged{v.BeforeName, v.NodeName, v.BufferName, v.Lo, v.Hi, v.Line})
		}
		require.Equal(t, racy[name], found, name)
		if found != nil {
			_, err := runtime.New(context.Background(), g, plan, openHost(t, g), runtime.Options{})
			require.ErrorIs(t, err, proof.ErrHazard, "%s must be refused", name)
		}
	}
}

// With a Go version of the kernel the same file runs on the CPU device.
func TestCustomKernelWithAReference(t *testing.T) {
	g := loadPipeline(t, "custom", file.Override{Name: "n", Value: "5000"})
	add2 := launch.Reference{Spans: func(*launch.Call) int64 { return 1 }, Run: func(c *launch.Call, _, _ int64) {
		n := int64(c.Args[0].Bits)
		x, y := floats(c.Args[1], n), floats(c.Args[2], n)
		for i := range x {
			y[i] = x[i] + 2
		}
	}}
	p, err := host.Open(host.Options{CheckOrder: true, References: map[string]launch.Reference{"add2": add2}})
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	plan, err := planner.New(context.Background(), g, planner.Options{})
	require.NoError(t, err)
	runAndCheck(t, g, p, plan, runtime.Options{}, 2)
}

func TestImagesOverlapReplays(t *testing.T) {
	g := loadPipeline(t, "images")
	require.Empty(t, g.Carried())
	plan, err := planner.New(context.Background(), g, planner.Options{})
	require.NoError(t, err)
	runAndCheck(t, g, openHost(t, g), plan, runtime.Options{Inflight: 4}, 20)
}

// The sizes and switches that the files' headers mention, at sizes that a CPU can run.
func TestPipelinesAtOtherSizes(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range []struct {
		name   string
		params []file.Override
	}{
		{"vec", []file.Override{{Name: "n", Value: "1000003"}}},
		{"vec", []file.Override{{Name: "n", Value: "1000003"}, {Name: "chunks", Value: "7"}}},
		{"bs", []file.Override{{Name: "n", Value: "777"}, {Name: "portfolios", Value: "3"}, {Name: "chunks", Value: "5"}}},
		{"ml", []file.Override{{Name: "n", Value: "3000"}}},
		{"ml", []file.Override{{Name: "n", Value: "3000"}, {Name: "chunks", Value: "7"}}},
		{"img", []file.Override{{Name: "chunks", Value: "5"}}},
		{"img", []file.Override{{Name: "chunks", Value: "16"}}},
		{"dl", []file.Override{{Name: "chunks", Value: "4"}}},
		{"hits", []file.Override{{Name: "n", Value: "10000"}, {Name: "stride", Value: "6181"}, {Name: "inverse", Value: "4221"}}},
		{"hits", []file.Override{{Name: "n", Value: "10000"}, {Name: "stride", Value: "6181"}, {Name: "inverse", Value: "4221"}, {Name: "chunks", Value: "3"}}},
		{"cholesky", []file.Override{{Name: "tiles", Value: "3"}, {Name: "size", Value: "50"}}},
		{"tiled-cholesky", []file.Override{{Name: "tiles", Value: "3"}, {Name: "n", Value: "64"}}},
		{"gemm", []file.Override{{Name: "tiles", Value: "2"}, {Name: "size", Value: "72"}}},
		{"strassen", []file.Override{{Name: "n", Value: "144"}}},
		{"heat", []file.Override{{Name: "slabs", Value: "2"}, {Name: "rows", Value: "10"}, {Name: "cols", Value: "7"}, {Name: "steps", Value: "5"}}},
		{"fft", []file.Override{{Name: "log", Value: "5"}, {Name: "batches", Value: "1"}}},
		{"wavefront", []file.Override{{Name: "side", Value: "3"}, {Name: "m", Value: "5"}}},
		{"microbatches", []file.Override{{Name: "batches", Value: "3"}}},
		{"taskbench-stencil", []file.Override{{Name: "us", Value: "20"}, {Name: "width", Value: "3"}}},
		{"taskbench-sweep", []file.Override{{Name: "us", Value: "20"}, {Name: "width", Value: "20"}}},
		{"taskbench-fft", []file.Override{{Name: "steps", Value: "3"}, {Name: "width", Value: "5"}}},
		{"taskbench-random", []file.Override{{Name: "seed", Value: "9"}}},
	} {
		if testing.Short() && seen[c.name] {
			continue
		}
		seen[c.name] = true
		t.Run(c.name, func(t *testing.T) {
			g := loadPipeline(t, c.name, c.params...)
			plan, err := planner.New(context.Background(), g, planner.Options{})
			require.NoError(t, err)
			runAndCheck(t, g, openHost(t, g), plan, runtime.Options{}, 2)
		})
	}
}

// The published shape of each Task Bench pattern: how many tasks, and how many of their dependencies are different.
func TestTaskBenchPatternsHaveTheirShape(t *testing.T) {
	const width, steps = 8, 16
	edges := map[string]func(step, i int) []int{
		"trivial": func(int, int) []int { return nil },
		"stencil": func(_, i int) []int { return []int{i - 1, i, i + 1} },
		"fft":     func(t, i int) []int { return []int{i - 1<<(t-1), i, i + 1<<(t-1)} },
	}
	for name, reads := range edges {
		want := map[string]bool{}
		for t := 1; t < steps; t++ {
			for i := range width {
				for _, from := range reads(t, i) {
					if from >= 0 && from < width {
						want[fmt.Sprintf("t%d.%d -> t%d.%d", t-1, from, t, i)] = true
					}
				}
			}
		}
		g := loadPipeline(t, "taskbench-"+name)
		got := map[string]bool{}
		for i := range g.Nodes {
			for _, from := range g.Nodes[i].After {
				if g.Nodes[i].Name != "join" {
					got[g.Nodes[from].Name+" -> "+g.Nodes[i].Name] = true
				}
			}
			if g.Nodes[i].Name == "join" {
				require.Len(t, g.Nodes[i].After, width*steps, name)
			}
		}
		require.Equal(t, want, got, name)
	}
}
