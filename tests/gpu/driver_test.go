// Tests of the driver on a real GPU: memory, streams, events, capture, graphs, faults, and nothing left behind after 10,000 rounds.

package gpu

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/conformance"
	"github.com/dagrun/dagrun/cudart/driver"
	"github.com/dagrun/dagrun/cudart/nvml"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/kernels/launch"
)

// testPTX has kernels that the tests launch besides those of the conformance suite: waiting and scaling.
const testPTX = `.version 6.0
.target sm_60
.address_size 64

.visible .entry spin(.param .u64 cycles)
{
	.reg .pred %p;
	.reg .u64 %rd<5>;
	ld.param.u64 %rd1, [cycles];
	mov.u64 %rd2, %clock64;
again:
	mov.u64 %rd3, %clock64;
	sub.u64 %rd4, %rd3, %rd2;
	setp.lt.u64 %p, %rd4, %rd1;
	@%p bra again;
	ret;
}

.visible .entry scale(.param .u64 x, .param .u32 n, .param .f32 a)
{
	.reg .pred %p;
	.reg .u32 %r<6>;
	.reg .u64 %rd<4>;
	.reg .f32 %f<4>;
	ld.param.u64 %rd1, [x];
	ld.param.u32 %r1, [n];
	ld.param.f32 %f1, [a];
	mov.u32 %r2, %ctaid.x;
	mov.u32 %r3, %ntid.x;
	mov.u32 %r4, %tid.x;
	mad.lo.u32 %r5, %r2, %r3, %r4;
	setp.ge.u32 %p, %r5, %r1;
	@%p bra done;
	mul.wide.u32 %rd2, %r5, 4;
	add.u64 %rd3, %rd1, %rd2;
	ld.global.f32 %f2, [%rd3];
	mul.f32 %f3, %f2, %f1;
	st.global.f32 [%rd3], %f3;
done:
	ret;
}
`

var testModule = &launch.Module{Name: "test", Kind: launch.PTX, Code: []byte(testPTX)}

// open opens the driver, or skips.
func open(t testing.TB) *driver.Platform {
	p, err := driver.Open(driver.Options{Compilers: &kernels.Compilers{}})
	if err != nil {
		t.Skipf("NO GPU: %v", err)
	}
	t.Cleanup(func() {
		require.Equal(t, cudart.Live{}, p.Live(), "something was not closed")
		require.NoError(t, p.Close())
	})
	return p
}

// must ends the test on errors that cannot happen on a healthy GPU.
func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		require.NoError(t, err)
		return v
	}
}

func closing(t testing.TB, c interface{ Close() error }) {
	t.Cleanup(func() { require.NoError(t, c.Close()) })
}

// program holds the objects that most tests need.
type program struct {
	p      *driver.Platform
	stream []cudart.Stream
	event  []cudart.Event
	module cudart.Module
	memory cudart.Ptr
	host   cudart.Ptr
}

const programBytes = 1 << 20

func newProgram(t testing.TB, p *driver.Platform, streams, events int) *program {
	g := &program{p: p}
	for range streams {
		s := must[cudart.Stream](t)(p.NewStream(0, dag.Normal))
		closing(t, s)
		g.stream = append(g.stream, s)
	}
	for range events {
		e := must[cudart.Event](t)(p.NewEvent(0, false))
		closing(t, e)
		g.event = append(g.event, e)
	}
	g.module = must[cudart.Module](t)(p.Load(context.Background(), 0, testModule))
	closing(t, g.module)
	g.memory = must[cudart.Ptr](t)(p.Alloc(0, programBytes))
	t.Cleanup(func() { require.NoError(t, p.Free(g.memory)) })
	g.host = must[cudart.Ptr](t)(p.AllocHost(programBytes, false))
	t.Cleanup(func() { require.NoError(t, p.Free(g.host)) })
	return g
}

func (g *program) kernel(t testing.TB, entry string) cudart.Kernel {
	return must[cudart.Kernel](t)(g.module.Kernel(entry))
}

func (g *program) scale(t testing.TB, stream cudart.Stream, factor float32) cudart.Command {
	return cudart.Command{Kind: cudart.LaunchKernel, Stream: stream, Label: "scale", Kernel: g.kernel(t, "scale"),
		Grid: [3]uint32{programBytes / 4 / 256, 1, 1}, Block: [3]uint32{256, 1, 1},
		Args: []cudart.Value{{Pointer: true, Ptr: g.memory, Bytes: programBytes}, {Bits: programBytes / 4, Size: 4}, {Bits: uint64(math.Float32bits(factor)), Size: 4}}}
}

func (g *program) up(s cudart.Stream) cudart.Command {
	return cudart.Command{Kind: cudart.CopyMemory, Stream: s, Label: "up", Dst: g.memory, Src: g.host, SrcDevice: -1, Bytes: programBytes}
}

func (g *program) down(s cudart.Stream) cudart.Command {
	return cudart.Command{Kind: cudart.CopyMemory, Stream: s, Label: "down", Dst: g.host, Src: g.memory, DstDevice: -1, Bytes: programBytes}
}

// scaledBySix copies up, doubles on one stream, trebles on another, and copies down.
func (g *program) scaledBySix(t testing.TB) []cudart.Command {
	a, b := g.stream[0], g.stream[1]
	return []cudart.Command{g.up(a), g.scale(t, a, 2),
		{Kind: cudart.RecordEvent, Stream: a, Event: g.event[0]}, {Kind: cudart.WaitEvent, Stream: b, Event: g.event[0]},
		g.scale(t, b, 3),
		{Kind: cudart.RecordEvent, Stream: b, Event: g.event[1]}, {Kind: cudart.WaitEvent, Stream: a, Event: g.event[1]},
		g.down(a)}
}

func (g *program) fill(v float32) {
	b := g.p.HostBytes(g.host, programBytes)
	for i := 0; i < programBytes; i += 4 {
		binary.LittleEndian.PutUint32(b[i:], math.Float32bits(v+float32(i%1024)))
	}
}

func (g *program) check(t testing.TB, v, factor float32) {
	b := g.p.HostBytes(g.host, programBytes)
	for i := 0; i < programBytes; i += 4 {
		got, want := math.Float32frombits(binary.LittleEndian.Uint32(b[i:])), (v+float32(i%1024))*factor
		if got != want {
			t.Fatalf("element %d: %g, want %g", i/4, got, want)
		}
	}
}

func TestProperties(t *testing.T) {
	p := open(t)
	for i, d := range p.Devices() {
		t.Logf("device %d: %+v", i, d)
		require.NotEmpty(t, d.Name)
		require.Positive(t, d.Multiprocessors)
		require.GreaterOrEqual(t, d.Capability[0], 6)
		require.Positive(t, d.SharedPerBlockMax)
		free, total, err := p.MemoryInfo(int32(i))
		require.NoError(t, err)
		require.Positive(t, free)
		require.InDelta(t, d.Memory, total, float64(d.Memory)/10)
	}
}

func TestKernelAttributes(t *testing.T) {
	g := newProgram(t, open(t), 1, 0)
	k := g.kernel(t, "scale")
	a := k.Attributes()
	t.Logf("%+v", a)
	require.Equal(t, 1024, a.MaxThreads)
	require.Positive(t, a.Registers)
	if a.ParamSizes != nil {
		require.Equal(t, []int{8, 4, 4}, a.ParamSizes)
	}
	block, perSM, err := k.Occupancy(0)
	require.NoError(t, err)
	require.Positive(t, block)
	require.Positive(t, perSM)
	require.NoError(t, k.SetMaxShared(64<<10))
	require.Error(t, k.SetMaxShared(1<<30))
}

func TestSubmitComputes(t *testing.T) {
	g := newProgram(t, open(t), 2, 2)
	a := g.stream[0]
	commands := g.scaledBySix(t)
	for _, threads := range []int{1, 2} {
		l := must[cudart.List](t)(g.p.Encode(commands, cudart.ListOptions{Origin: a, Threads: threads}))
		for round := range 100 {
			v := float32(round)
			g.fill(v)
			require.NoError(t, l.Submit())
			require.NoError(t, a.Synchronize(context.Background()))
			g.check(t, v, 6)
		}
		require.NoError(t, l.SetArgs(1, [3]uint32{programBytes / 4 / 256, 1, 1}, g.scale(t, a, 5).Args))
		g.fill(1)
		require.NoError(t, l.Submit())
		require.NoError(t, a.Synchronize(context.Background()))
		g.check(t, 1, 15)
		require.NoError(t, l.Close())
	}
}

func TestGraphsComputeTheSame(t *testing.T) {
	g := newProgram(t, open(t), 2, 2)
	a := g.stream[0]
	commands := g.scaledBySix(t)
	l := must[cudart.List](t)(g.p.Encode(commands, cudart.ListOptions{Origin: a}))
	closing(t, l)
	run := func(graph cudart.Graph, factor float32) {
		for round := range 20 {
			g.fill(float32(round))
			require.NoError(t, graph.Launch(a))
			require.NoError(t, a.Synchronize(context.Background()))
			g.check(t, float32(round), factor)
		}
	}
	captured := must[cudart.Graph](t)(l.Capture(cudart.GraphOptions{Origin: a, Priorities: true}))
	closing(t, captured)
	require.Equal(t, 4, captured.Nodes())
	require.NoError(t, captured.Upload(a))
	run(captured, 6)
	require.NoError(t, l.SetArgs(4, [3]uint32{programBytes / 4 / 256, 1, 1}, g.scale(t, a, 7).Args))
	require.NoError(t, captured.Update(l))
	run(captured, 14)
	require.ErrorIs(t, captured.SetCopy(0, 0, 0), cudart.ErrUnsupported)

	nodes := []cudart.Command{{Kind: cudart.Empty}, g.up(nil), g.scale(t, nil, 2), g.scale(t, nil, 3), g.down(nil),
		{Kind: cudart.SetMemory, Label: "clear", Dst: g.memory, Width: 4, Pattern: 0, Bytes: 4096}}
	nothing := g.scale(t, nil, 100)
	nothing.Grid = [3]uint32{}
	nodes = append(nodes, nothing)
	built := must[cudart.Graph](t)(g.p.BuildGraph(nodes, [][]int32{nil, {0}, {1}, {2}, {3, 6}, {4}, {2}}, cudart.GraphOptions{Origin: a, Priorities: true}))
	closing(t, built)
	require.Equal(t, 7, built.Nodes())
	run(built, 6)
	require.NoError(t, built.SetArgs(2, [3]uint32{programBytes / 4 / 256, 1, 1}, g.scale(t, nil, 4).Args))
	run(built, 12)
	other := must[cudart.Ptr](t)(g.p.Alloc(0, 4096))
	require.NoError(t, built.SetCopy(5, other, 0))
	run(built, 12)
	require.NoError(t, g.p.Free(other))
}

func TestEventsMeasure(t *testing.T) {
	p := open(t)
	g := newProgram(t, p, 1, 0)
	from, to := must[cudart.Event](t)(p.NewEvent(0, true)), must[cudart.Event](t)(p.NewEvent(0, true))
	closing(t, from)
	closing(t, to)
	s := g.stream[0]
	spin := cudart.Command{Kind: cudart.LaunchKernel, Stream: s, Kernel: g.kernel(t, "spin"), Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1},
		Args: []cudart.Value{{Bits: 1_000_000, Size: 8}}}
	commands := []cudart.Command{{Kind: cudart.RecordEvent, Stream: s, Event: from}, spin, {Kind: cudart.RecordEvent, Stream: s, Event: to}}
	l := must[cudart.List](t)(p.Encode(commands, cudart.ListOptions{Origin: s}))
	closing(t, l)
	require.NoError(t, l.Submit())
	require.NoError(t, to.Synchronize(context.Background()))
	micros := must[float64](t)(to.Since(from))
	t.Logf("1,000,000 cycles took %.1f us", micros)
	require.Greater(t, micros, 100.0)
	graph := must[cudart.Graph](t)(l.Capture(cudart.GraphOptions{}))
	closing(t, graph)
	require.Equal(t, 3, graph.Nodes(), "time stamps are nodes")
	require.NoError(t, graph.Launch(s))
	require.NoError(t, s.Synchronize(context.Background()))
	require.Greater(t, must[float64](t)(to.Since(from)), 100.0)
	require.NoError(t, l.Submit())
	ctx, cancel := context.WithCancel(context.Background())
	require.NoError(t, s.Synchronize(ctx))
	cancel()
	require.ErrorIs(t, s.Synchronize(ctx), context.Canceled)
}

// The calling thread's context stays what it was: none.
func TestNoContextIsLeftBehind(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	g := newProgram(t, open(t), 1, 0)
	l := must[cudart.List](t)(g.p.Encode([]cudart.Command{g.up(g.stream[0])}, cudart.ListOptions{}))
	closing(t, l)
	require.NoError(t, l.Submit())
	legacy := must[cudart.Stream](t)(g.p.AdoptStream(0))
	closing(t, legacy)
	require.EqualValues(t, 0, legacy.Device())
	own := must[cudart.Stream](t)(g.p.AdoptStream(g.stream[0].Handle()))
	closing(t, own)
	require.NoError(t, own.Synchronize(context.Background()))
	bridged := must[cudart.List](t)(g.p.Encode([]cudart.Command{g.up(legacy), g.scale(t, legacy, 2), g.down(legacy)}, cudart.ListOptions{Origin: legacy}))
	closing(t, bridged)
	g.fill(3)
	require.NoError(t, bridged.Submit())
	require.NoError(t, legacy.Synchronize(context.Background()))
	g.check(t, 3, 2)
	graph := must[cudart.Graph](t)(bridged.Capture(cudart.GraphOptions{}))
	closing(t, graph)
	g.fill(4)
	require.NoError(t, graph.Launch(legacy))
	require.NoError(t, legacy.Synchronize(context.Background()))
	g.check(t, 4, 2)
}

func TestBadInput(t *testing.T) {
	p := open(t)
	ctx := context.Background()
	for name, c := range map[string]struct {
		module *launch.Module
		text   string
	}{
		"broken":       {&launch.Module{Name: "broken", Code: []byte(".version 6.0\n.target sm_60\n.address_size 64\n.visible .entry f() { bad; }\n")}, "line 4"},
		"garbage":      {&launch.Module{Name: "garbage", Kind: launch.Cubin, Code: []byte("garbage")}, "garbage"},
		"architecture": {&launch.Module{Name: "future", Code: []byte(strings.Replace(testPTX, "sm_60", "sm_999", 1))}, "future"},
	} {
		_, err := p.Load(ctx, 0, c.module)
		require.Error(t, err, name)
		t.Logf("%s: %v", name, err)
		require.Contains(t, err.Error(), c.text)
	}
	g := newProgram(t, p, 1, 0)
	_, err := g.module.Kernel("absent")
	t.Log(err)
	require.ErrorContains(t, err, `the module has no kernel "absent"; it has spin, scale`)
	_, err = p.Alloc(0, 1<<50)
	t.Log(err)
	require.ErrorIs(t, err, cudart.ErrOutOfMemory)
	_, err = p.AdoptStream(2)
	require.ErrorIs(t, err, cudart.ErrUnsupported)
}

// A fault is caused in a separate process, because no process keeps a working context after one. Once that process has closed its
// objects, its memory is free for others, although the process is still running.
func TestFault(t *testing.T) {
	if os.Getenv("DAGRUN_FAULT") != "" {
		faultAndClose(t)
		return
	}
	p := open(t)
	before, _, err := p.MemoryInfo(0)
	require.NoError(t, err)
	child := exec.Command(os.Args[0], "-test.run=^TestFault$", "-test.v")
	child.Env = append(os.Environ(), "DAGRUN_FAULT=1")
	child.Stderr = os.Stderr
	waiting, err := child.StdinPipe()
	require.NoError(t, err)
	told, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	seen := false
	for lines := bufio.NewScanner(told); !seen && lines.Scan(); {
		t.Log(lines.Text())
		seen = strings.HasPrefix(lines.Text(), "FAULT SEEN")
	}
	after, _, err := p.MemoryInfo(0)
	require.NoError(t, err)
	require.NoError(t, waiting.Close())
	_, err = io.Copy(io.Discard, told)
	require.NoError(t, err)
	require.NoError(t, child.Wait())
	require.True(t, seen, "the child saw no fault")
	t.Logf("free before: %d bytes; while the process that faulted still lives: %d", before, after)
	require.Less(t, before-after, int64(2<<30), "a process that has closed a device that faulted still holds its memory")
}

// faultAndClose takes more than half of the device's memory, faults, closes everything and waits for its input to end.
func faultAndClose(t *testing.T) {
	p, err := driver.Open(driver.Options{Compilers: &kernels.Compilers{}})
	require.NoError(t, err)
	free, _, err := p.MemoryInfo(0)
	require.NoError(t, err)
	large := must[cudart.Ptr](t)(p.Alloc(0, free/5*3))
	s := must[cudart.Stream](t)(p.NewStream(0, dag.Normal))
	m := must[cudart.Module](t)(p.Load(context.Background(), 0, conformance.Module()))
	l := must[cudart.List](t)(p.Encode([]cudart.Command{{Kind: cudart.LaunchKernel, Stream: s, Label: "bad", Kernel: must[cudart.Kernel](t)(m.Kernel("store")),
		Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, Args: []cudart.Value{{Pointer: true, Ptr: 64}}}}, cudart.ListOptions{}))
	require.NoError(t, l.Submit())
	err = s.Synchronize(context.Background())
	require.ErrorIs(t, err, cudart.ErrPoisoned)
	require.ErrorContains(t, err, "CUDA_ERROR_ILLEGAL_ADDRESS (700)")
	for _, again := range []error{l.Submit(), s.Synchronize(context.Background()), p.Synchronize(context.Background(), 0)} {
		require.ErrorIs(t, again, cudart.ErrPoisoned)
		require.ErrorContains(t, again, "CUDA_ERROR_ILLEGAL_ADDRESS (700)")
	}
	require.NoError(t, l.Close())
	require.NoError(t, m.Close())
	require.NoError(t, s.Close())
	require.NoError(t, p.Free(large))
	require.Equal(t, cudart.Live{}, p.Live())
	require.NoError(t, p.Close())
	fmt.Println("FAULT SEEN", err)
	_, err = io.Copy(io.Discard, os.Stdin)
	require.NoError(t, err)
}

// resident returns the memory of this process that is in RAM.
func resident(t testing.TB) int64 {
	text, err := os.ReadFile("/proc/self/statm")
	require.NoError(t, err)
	var size, pages int64
	_, err = fmt.Sscan(string(text), &size, &pages)
	require.NoError(t, err)
	return pages * int64(os.Getpagesize())
}

func TestNothingGrows(t *testing.T) {
	p := open(t)
	round := func() {
		a, b := must[cudart.Stream](t)(p.NewStream(0, dag.Normal)), must[cudart.Stream](t)(p.NewStream(0, dag.High))
		e, f := must[cudart.Event](t)(p.NewEvent(0, false)), must[cudart.Event](t)(p.NewEvent(0, true))
		m := must[cudart.Module](t)(p.Load(context.Background(), 0, conformance.Module()))
		k := must[cudart.Kernel](t)(m.Kernel("noop"))
		d := must[cudart.Ptr](t)(p.Alloc(0, 4096))
		h := must[cudart.Ptr](t)(p.AllocHost(4096, false))
		noop := func(s cudart.Stream) cudart.Command {
			return cudart.Command{Kind: cudart.LaunchKernel, Stream: s, Kernel: k, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
		}
		commands := []cudart.Command{{Kind: cudart.CopyMemory, Stream: a, Dst: d, Src: h, SrcDevice: -1, Bytes: 4096}, noop(a),
			{Kind: cudart.RecordEvent, Stream: a, Event: e}, {Kind: cudart.WaitEvent, Stream: b, Event: e}, noop(b),
			{Kind: cudart.RecordEvent, Stream: b, Event: f}, {Kind: cudart.WaitEvent, Stream: a, Event: f}}
		l := must[cudart.List](t)(p.Encode(commands, cudart.ListOptions{Origin: a, Threads: 2}))
		require.NoError(t, l.Submit())
		g := must[cudart.Graph](t)(l.Capture(cudart.GraphOptions{}))
		require.NoError(t, g.Launch(a))
		n := must[cudart.Graph](t)(p.BuildGraph([]cudart.Command{noop(nil), commands[0]}, [][]int32{nil, {0}}, cudart.GraphOptions{}))
		require.NoError(t, n.Launch(b))
		require.NoError(t, p.Synchronize(context.Background(), 0))
		for _, c := range []interface{ Close() error }{n, g, l, m, e, f, a, b} {
			require.NoError(t, c.Close())
		}
		require.NoError(t, p.Free(d))
		require.NoError(t, p.Free(h))
	}
	rounds := 10_000
	if testing.Short() {
		rounds = 500
	}
	for range rounds / 10 {
		round()
	}
	debug.FreeOSMemory()
	free, _, err := p.MemoryInfo(0)
	require.NoError(t, err)
	before := resident(t)
	for range rounds {
		round()
	}
	debug.FreeOSMemory()
	freeAfter, _, err := p.MemoryInfo(0)
	require.NoError(t, err)
	grown := resident(t) - before
	t.Logf("%d rounds: device memory in use grew by %d bytes, resident host memory by %d", rounds, free-freeAfter, grown)
	require.LessOrEqual(t, free-freeAfter, int64(2<<20))
	require.Less(t, grown, int64(32<<20))
	require.Equal(t, cudart.Live{}, p.Live())
}

// A CUDA program with host code, a header, a template and overloads is launched as it is, with each compiler that is installed.
func TestSourceAsItIs(t *testing.T) {
	p := open(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	folder := t.TempDir()
	path := filepath.Join(folder, "program.cu")
	require.NoError(t, os.Mkdir(filepath.Join(folder, "include"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "include", "common.h"), []byte(`#pragma once
#include <iostream>
#include <cstdint>
inline void complain(const std::string &text) { std::cerr << text; }
template <int K> __device__ float times(float x) { return K * x; }
`), 0o644))
	code := []byte(`#include <cstdio>
#include <vector>
#include "common.h"
static std::vector<float> results;
namespace filters {
template <int K, typename T> __global__ void scale(T *x, int32_t n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n) x[i] = times<K>(x[i]);
}
}
__global__ void pick(int *x, int n) { if (threadIdx.x < n) x[threadIdx.x] = 1; }
static __global__ void pick(float *x, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n) x[i] *= FACTOR;
}
int main() {
	filters::scale<2, float><<<1, 1>>>(results.data(), 1);
	printf("%zu\n", results.size());
}
`)
	require.NoError(t, os.WriteFile(path, code, 0o644))
	const scale, pick = "filters::scale<2, float>", "(void (*)(float*, int))pick"
	for _, compiler := range []string{"nvrtc", "nvcc", "clang"} {
		t.Run(compiler, func(t *testing.T) {
			m, err := p.Load(context.Background(), 0, &launch.Module{Name: path, Path: path, Kind: launch.Source, Code: code, Build: launch.Build{
				Compiler: compiler, Include: []string{filepath.Join(folder, "include")}, Define: []launch.Definition{{Name: "FACTOR", Value: "2"}}, Names: []string{scale, pick}}})
			if errors.Is(err, launch.ErrNoCompiler) {
				t.Skipf("NO COMPILER: %v", err)
			}
			require.NoError(t, err)
			for _, name := range []string{scale, pick} {
				g := newProgram(t, p, 1, 0)
				c := g.scale(t, g.stream[0], 1)
				c.Kernel, c.Args = must[cudart.Kernel](t)(m.Kernel(name)), c.Args[:2]
				l := must[cudart.List](t)(p.Encode([]cudart.Command{g.up(g.stream[0]), c, g.down(g.stream[0])}, cudart.ListOptions{}))
				g.fill(5)
				require.NoError(t, l.Submit())
				require.NoError(t, g.stream[0].Synchronize(context.Background()))
				g.check(t, 5, 2)
				require.NoError(t, l.Close())
			}
			require.NoError(t, m.Close())
		})
	}
}

// CUDA C is compiled for the GPU of this machine, if the toolkit's compiler is installed.
func TestSource(t *testing.T) {
	p := open(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	source := &launch.Module{Name: "double", Path: "double.cu", Kind: launch.Source,
		Code: []byte("__device__ int calls;\nextern \"C\" __global__ void twice(float *x, int n) {\n\tint i = blockIdx.x * blockDim.x + threadIdx.x;\n\tif (i < n) x[i] *= 2;\n\tif (i == 0) calls++;\n}\n")}
	m, err := p.Load(context.Background(), 0, source)
	if errors.Is(err, launch.ErrNoCompiler) {
		t.Skipf("NO COMPILER: %v", err)
	}
	require.NoError(t, err)
	require.Empty(t, m.Warnings(), "the text shows the variable, so the graph orders what uses it")
	g := newProgram(t, p, 1, 0)
	c := g.scale(t, g.stream[0], 1)
	c.Kernel, c.Args = must[cudart.Kernel](t)(m.Kernel("twice")), c.Args[:2]
	l := must[cudart.List](t)(p.Encode([]cudart.Command{g.up(g.stream[0]), c, g.down(g.stream[0])}, cudart.ListOptions{}))
	g.fill(5)
	require.NoError(t, l.Submit())
	require.NoError(t, g.stream[0].Synchronize(context.Background()))
	g.check(t, 5, 2)
	require.NoError(t, l.Close())
	require.NoError(t, m.Close())
	again, err := p.Load(context.Background(), 0, source)
	require.NoError(t, err, "from the cache")
	require.NoError(t, again.Close())
	_, err = p.Load(context.Background(), 0, &launch.Module{Name: "bad", Path: "bad.cu", Kind: launch.Source, Code: []byte("int x;\n__device__ int y = nonsense;\n")})
	t.Log(err)
	require.ErrorContains(t, err, "bad.cu(2)")
	half := &launch.Module{Name: "half", Path: "half.cu", Kind: launch.Source,
		Code: []byte("#include <cuda_fp16.h>\nextern \"C\" __global__ void h(__half *x) { x[0] = __float2half(1.0f); }\n")}
	withHeaders, err := p.Load(context.Background(), 0, half)
	if err != nil {
		t.Logf("no toolkit headers: %v", err)
		return
	}
	require.NoError(t, withHeaders.Close())
}

func TestManagement(t *testing.T) {
	p := open(t)
	l, err := nvml.Open()
	if errors.Is(err, nvml.ErrUnavailable) {
		t.Skipf("NO NVML: %v", err)
	}
	for i, d := range p.Devices() {
		r, err := l.Read(d.UUID)
		if err != nil {
			t.Logf("device %d: %v", i, err)
			continue
		}
		t.Logf("device %d: %s", i, r)
	}
	require.NoError(t, l.Close())
}

// A chain that goes round eight streams: each step doubles every element, so that a step that runs too early loses a doubling. A few
// events are used again and again, and several submitting threads must keep their records and waits in order.
func TestThreadsCompute(t *testing.T) {
	const width, steps, replays = 8, 16, 50
	for _, events := range []int{1, 3, steps} {
		for _, threads := range []int{1, 2, 4, 8} {
			g := newProgram(t, open(t), width, events)
			commands := []cudart.Command{g.up(g.stream[0])}
			last := 0
			for i := range steps {
				s, e := (i*3+1)%width, g.event[i%events]
				commands = append(commands, cudart.Command{Kind: cudart.RecordEvent, Stream: g.stream[last], Event: e},
					cudart.Command{Kind: cudart.WaitEvent, Stream: g.stream[s], Event: e}, g.scale(t, g.stream[s], 2))
				last = s
			}
			commands = append(commands, cudart.Command{Kind: cudart.RecordEvent, Stream: g.stream[last], Event: g.event[0]},
				cudart.Command{Kind: cudart.WaitEvent, Stream: g.stream[0], Event: g.event[0]}, g.down(g.stream[0]))
			l := must[cudart.List](t)(g.p.Encode(commands, cudart.ListOptions{Origin: g.stream[0], Threads: threads}))
			for round := range replays {
				g.fill(float32(round))
				require.NoError(t, l.Submit())
				require.NoError(t, g.stream[0].Synchronize(context.Background()))
				g.check(t, float32(round), 1<<steps)
			}
			require.NoError(t, l.Close())
		}
	}
}

func TestRegisteredMemory(t *testing.T) {
	p := open(t)
	g := newProgram(t, p, 1, 0)
	memory := make([]byte, programBytes)
	ptr := must[cudart.Ptr](t)(p.RegisterHost(memory))
	for i := range memory {
		memory[i] = byte(i * 7)
	}
	s := g.stream[0]
	back := g.down(s)
	there := g.up(s)
	there.Src = ptr
	l := must[cudart.List](t)(p.Encode([]cudart.Command{there, back}, cudart.ListOptions{}))
	closing(t, l)
	require.NoError(t, l.Submit())
	require.NoError(t, s.Synchronize(context.Background()))
	require.Equal(t, memory, p.HostBytes(g.host, programBytes))
	require.NoError(t, p.UnregisterHost(ptr))
}

// Two devices in one list: work on each, copies between them, peer access enabled twice.
func TestTwoDevices(t *testing.T) {
	p := open(t)
	if len(p.Devices()) < 2 {
		t.Skip("ONE GPU: copies between devices are not tested")
	}
	if p.Devices()[0].Peers[1] {
		require.NoError(t, p.EnablePeer(0, 1))
		require.NoError(t, p.EnablePeer(0, 1))
	}
	g := newProgram(t, p, 1, 2)
	a, b := g.stream[0], must[cudart.Stream](t)(p.NewStream(1, dag.Normal))
	closing(t, b)
	back := must[cudart.Event](t)(p.NewEvent(1, false))
	closing(t, back)
	m := must[cudart.Module](t)(p.Load(context.Background(), 1, testModule))
	closing(t, m)
	other := must[cudart.Ptr](t)(p.Alloc(1, programBytes))
	onB := g.scale(t, b, 3)
	onB.Kernel = must[cudart.Kernel](t)(m.Kernel("scale"))
	onB.Args[0].Ptr = other
	commands := []cudart.Command{g.up(a), g.scale(t, a, 2),
		{Kind: cudart.RecordEvent, Stream: a, Event: g.event[0]}, {Kind: cudart.WaitEvent, Stream: b, Event: g.event[0]},
		{Kind: cudart.CopyMemory, Stream: b, Dst: other, Src: g.memory, DstDevice: 1, SrcDevice: 0, Bytes: programBytes}, onB,
		{Kind: cudart.RecordEvent, Stream: b, Event: back}, {Kind: cudart.WaitEvent, Stream: a, Event: back},
		{Kind: cudart.CopyMemory, Stream: a, Dst: g.memory, Src: other, DstDevice: 0, SrcDevice: 1, Bytes: programBytes}, g.down(a)}
	for _, threads := range []int{1, 2} {
		l := must[cudart.List](t)(p.Encode(commands, cudart.ListOptions{Origin: a, Threads: threads}))
		graph := must[cudart.Graph](t)(l.Capture(cudart.GraphOptions{}))
		for round, run := range []func() error{l.Submit, func() error { return graph.Launch(a) }} {
			g.fill(float32(round))
			require.NoError(t, run())
			require.NoError(t, a.Synchronize(context.Background()))
			g.check(t, float32(round), 6)
		}
		require.NoError(t, graph.Close())
		require.NoError(t, l.Close())
	}
	work := func(i int) cudart.Command { return commands[i] }
	built := must[cudart.Graph](t)(p.BuildGraph([]cudart.Command{work(0), work(1), work(4), work(5), work(8), work(9)},
		[][]int32{nil, {0}, {1}, {2}, {3}, {4}}, cudart.GraphOptions{Origin: a}))
	g.fill(9)
	require.NoError(t, built.Launch(a))
	require.NoError(t, a.Synchronize(context.Background()))
	g.check(t, 9, 6)
	require.NoError(t, built.Close())
	require.NoError(t, p.Free(other))
}

// Cubins and fatbins as nvcc makes them: for this GPU, for this one among others, for another one, and cut short.
func TestBinaries(t *testing.T) {
	p := open(t)
	folder := os.Getenv("DAGRUN_MODULES")
	if folder == "" {
		t.Skip("SKIPPED: DAGRUN_MODULES does not name a folder of binaries; tests/gpu/run makes one where there is nvcc")
	}
	read := func(name string, kind launch.Kind) *launch.Module {
		code, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		return &launch.Module{Name: name, Kind: kind, Code: code}
	}
	for _, source := range []*launch.Module{read("this.cubin", launch.Cubin), read("both.fatbin", launch.Fatbin)} {
		g := newProgram(t, p, 1, 0)
		m := must[cudart.Module](t)(p.Load(context.Background(), 0, source))
		require.Empty(t, m.Warnings())
		c := g.scale(t, g.stream[0], 3)
		c.Kernel = must[cudart.Kernel](t)(m.Kernel("scale"))
		l := must[cudart.List](t)(p.Encode([]cudart.Command{g.up(g.stream[0]), c, g.down(g.stream[0])}, cudart.ListOptions{}))
		g.fill(2)
		require.NoError(t, l.Submit())
		require.NoError(t, g.stream[0].Synchronize(context.Background()))
		g.check(t, 2, 3)
		_, err := m.Kernel("scaling")
		t.Log(err)
		require.ErrorContains(t, err, `the module has no kernel "scaling"`)
		require.NoError(t, l.Close())
		require.NoError(t, m.Close())
		for _, n := range []int{len(source.Code) - 1, len(source.Code) / 2, 100} {
			short := *source
			short.Code = source.Code[:n]
			_, err := p.Load(context.Background(), 0, &short)
			require.Error(t, err, "%s cut to %d bytes", source.Name, n)
			t.Log(err)
		}
	}
	for _, other := range []*launch.Module{read("other.cubin", launch.Cubin), read("other.fatbin", launch.Fatbin)} {
		_, err := p.Load(context.Background(), 0, other)
		t.Log(err)
		require.ErrorContains(t, err, "sm_"+fmt.Sprint(p.Devices()[0].Capability[0]))
	}
}
