// Tests of every path on a fake driver of callbacks, without a GPU: which calls are made, in which order, and what a failure leaves behind.

//go:build linux && (amd64 || arm64)

package driver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/conformance"
	"github.com/dagrun/dagrun/cudart/driver/internal/probe"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/ptx"
	"github.com/dagrun/dagrun/kernels/launch"
)

var testModule = &launch.Module{Name: "test", Kind: launch.PTX, Code: []byte(".version 7.0\n.target sm_60\n.visible .entry scale(\n.param .u64 a,\n.param .u32 n)\n{ ret; }\n")}

func TestStructureSizes(t *testing.T) {
	sizes := map[function]uintptr{
		cuGraphAddKernelNode: unsafe.Sizeof(kernelNodeParams{}), cuGraphExecKernelNodeSetParams: unsafe.Sizeof(kernelNodeParams{}),
		cuGraphAddMemcpyNode: unsafe.Sizeof(memcpy3D{}), cuGraphExecMemcpyNodeSetParams: unsafe.Sizeof(memcpy3D{}),
		cuGraphAddMemsetNode: unsafe.Sizeof(memsetNodeParams{}), cuGraphExecMemsetNodeSetParams: unsafe.Sizeof(memsetNodeParams{}),
		cuGraphKernelNodeSetAttribute: unsafe.Sizeof(kernelNodeAttribute{}),
		cuDeviceGetUuid:               16, cuGraphExecUpdate: 4, cuMemcpy2DAsync: 128, cuLaunchKernelEx: unsafe.Offsetof(launchConfig{}.list), cuGraphAddDependencies2: 8,
		cuGraphAddNode: unsafe.Sizeof(conditionalNodeParams{}), cuGraphAddHostNode: unsafe.Sizeof(hostNodeParams{}),
		cuTexObjectCreate: unsafe.Sizeof(resourceDesc{}), cuIpcGetMemHandle: unsafe.Sizeof(memHandle{}),
	}
	for f := range functionCount {
		require.Equal(t, sizes[f], table[f].record, table[f].symbol)
	}
	var k kernelNodeParams
	require.EqualValues(t, [...]uintptr{0, 8, 20, 32, 40, 48},
		[...]uintptr{unsafe.Offsetof(k.function), unsafe.Offsetof(k.grid), unsafe.Offsetof(k.block), unsafe.Offsetof(k.shared), unsafe.Offsetof(k.params), unsafe.Offsetof(k.extra)})
	var c conditionalNodeParams
	require.EqualValues(t, [...]uintptr{0, 16, 24, 28, 32, 40},
		[...]uintptr{unsafe.Offsetof(c.kind), unsafe.Offsetof(c.handle), unsafe.Offsetof(c.loop), unsafe.Offsetof(c.count), unsafe.Offsetof(c.graphs), unsafe.Offsetof(c.context)})
	var m memcpy3D
	require.EqualValues(t, [...]uintptr{32, 40, 48, 72, 88, 120, 128, 136, 160, 176, 192},
		[...]uintptr{unsafe.Offsetof(m.srcType), unsafe.Offsetof(m.srcHost), unsafe.Offsetof(m.srcDevice), unsafe.Offsetof(m.srcPitch), unsafe.Offsetof(m.dstX),
			unsafe.Offsetof(m.dstType), unsafe.Offsetof(m.dstHost), unsafe.Offsetof(m.dstDevice), unsafe.Offsetof(m.dstPitch), unsafe.Offsetof(m.width), unsafe.Offsetof(m.depth)})
}

func TestTableIsWhole(t *testing.T) {
	seen := map[string]bool{}
	for f := range functionCount {
		e := table[f]
		require.NotEmpty(t, e.symbol, "row %d", f)
		require.False(t, seen[e.symbol], e.symbol)
		seen[e.symbol] = true
		require.True(t, e.optional == (e.abi > minimumDriver), "%s: a function newer than CUDA 11.4 must be optional, and no other", e.symbol)
		require.NotContains(t, e.symbol, "_pt", "per-thread default streams are never used")
		require.LessOrEqual(t, len(strings.Split(e.params, ",")), 11)
	}
}

func TestOpenFailures(t *testing.T) {
	cases := []struct {
		name string
		set  func(*fakeDriver)
		is   error
		text string
	}{
		{"no version function", func(d *fakeDriver) { d.missing["cuDriverGetVersion"] = true }, cudart.ErrNoDriver,
			"no NVIDIA driver: the library has no cuDriverGetVersion"},
		{"too old", func(d *fakeDriver) { d.version = 11020 }, cudart.ErrNoDriver,
			"no NVIDIA driver: the driver supports CUDA 11.2, but CUDA 11.4 or newer is needed (driver 470 or newer)"},
		{"function missing", func(d *fakeDriver) { d.missing["cuGraphUpload"] = true }, cudart.ErrNoDriver,
			"no NVIDIA driver: the driver (CUDA 12.4) has no function cuGraphUpload, which every driver since CUDA 11.1 has"},
		{"no device", func(d *fakeDriver) { d.failOn[cuInit] = 100 }, cudart.ErrNoDevice, "cuInit: CUDA_ERROR_FAKE (100): CUDA_ERROR_FAKE"},
		{"no device visible", func(d *fakeDriver) { d.devices = 0 }, cudart.ErrNoDevice,
			"no device: the driver (CUDA 12.4) sees no GPU; is CUDA_VISIBLE_DEVICES set?"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := newFakeDriver(t)
			c.set(d)
			_, err := open(d.resolve, Options{})
			require.ErrorIs(t, err, c.is)
			require.EqualError(t, err, c.text)
		})
	}
}

func TestOptionalFunctionsMayBeMissing(t *testing.T) {
	d := newFakeDriver(t)
	for f := range functionCount {
		if table[f].optional {
			d.missing[table[f].symbol] = true
		}
	}
	p := d.open(t)
	m, err := p.Load(context.Background(), 0, testModule)
	require.NoError(t, err)
	k, err := m.Kernel("scale")
	require.NoError(t, err)
	require.Nil(t, k.Attributes().ParamSizes)
	_, err = p.BuildGraph([]cudart.Command{{Kind: cudart.LaunchKernel, Label: "n", Kernel: k, Block: [3]uint32{1, 1, 1}}}, [][]int32{nil}, cudart.GraphOptions{})
	require.EqualError(t, err, `node "n": a launch of an empty grid in a graph: not supported: the driver (CUDA 12.4) has no cuGraphNodeSetEnabled, which came with CUDA 11.6`)
	require.NoError(t, m.Close())
	require.NoError(t, p.Close())
	d.clean(t)
}

func TestPropertiesNeedNoContext(t *testing.T) {
	d := newFakeDriver(t)
	p := d.open(t)
	infos := p.Devices()
	require.Len(t, infos, 2)
	require.Equal(t, "Fake GPU", infos[0].Name)
	require.Equal(t, "GPU-30313233-3435-3637-3839-616263646566", infos[0].UUID)
	require.Equal(t, [2]int{9, 0}, infos[0].Capability)
	require.Equal(t, []bool{false, true}, infos[0].Peers)
	require.Equal(t, "12.4", infos[0].Driver)
	require.NotContains(t, d.names(0), "cuDevicePrimaryCtxRetain")
	require.NoError(t, p.Close())
}

// bench holds what a program usually makes: two devices, streams, events, memory, a kernel.
type bench struct {
	p              *Platform
	origin, second cudart.Stream
	event, joined  cudart.Event
	device, host   cudart.Ptr
	module         cudart.Module
	kernel         cudart.Kernel
	deciders       cudart.Module // nil unless decide loaded one
}

func newBench(p *Platform) (w *bench, err error) {
	w = &bench{p: p}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if w.origin, err = p.NewStream(0, dag.Normal); err != nil {
		return
	}
	if w.second, err = p.NewStream(0, dag.High); err != nil {
		return
	}
	if w.event, err = p.NewEvent(0, false); err != nil {
		return
	}
	if w.joined, err = p.NewEvent(0, false); err != nil {
		return
	}
	if w.device, err = p.Alloc(0, 1024); err != nil {
		return
	}
	if w.host, err = p.AllocHost(2048, false); err != nil {
		return
	}
	if w.module, err = p.Load(context.Background(), 0, testModule); err != nil {
		return
	}
	w.kernel, err = w.module.Kernel("scale")
	return
}

func (w *bench) close() error {
	var errs []error
	for _, c := range []interface{ Close() error }{w.origin, w.second, w.event, w.joined, w.module, w.deciders} {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	for _, ptr := range []cudart.Ptr{w.device, w.host} {
		if ptr != 0 {
			errs = append(errs, w.p.Free(ptr))
		}
	}
	return errors.Join(errs...)
}

func (w *bench) launch(stream cudart.Stream, label string) cudart.Command {
	return cudart.Command{Kind: cudart.LaunchKernel, Stream: stream, Label: label, Kernel: w.kernel, Grid: [3]uint32{4, 1, 1}, Block: [3]uint32{64, 1, 1},
		Args: []cudart.Value{{Pointer: true, Ptr: w.device, Bytes: 1024}, {Bits: 7, Size: 4}}}
}

// commands fork from the origin, work on two streams and join.
func (w *bench) commands() []cudart.Command {
	return []cudart.Command{
		{Kind: cudart.CopyMemory, Stream: w.origin, Label: "up", Node: 0, Dst: w.device, Src: w.host, SrcDevice: -1, Bytes: 1024},
		{Kind: cudart.RecordEvent, Stream: w.origin, Event: w.event, Node: -1},
		{Kind: cudart.WaitEvent, Stream: w.second, Event: w.event, Node: -1},
		w.launch(w.origin, "a"),
		w.launch(w.second, "b"),
		{Kind: cudart.SetMemory, Stream: w.second, Label: "fill", Dst: w.device, Bytes: 512, Pattern: 5, Width: 1},
		{Kind: cudart.RecordEvent, Stream: w.second, Event: w.joined, Node: -1},
		{Kind: cudart.WaitEvent, Stream: w.origin, Event: w.joined, Node: -1},
		{Kind: cudart.CopyMemory, Stream: w.origin, Label: "down", Dst: w.host, Src: w.device, DstDevice: -1, Bytes: 1024},
	}
}

var submitCalls = []string{"cuCtxPushCurrent", "cuMemcpyHtoDAsync", "cuEventRecord", "cuStreamWaitEvent", "cuLaunchKernel", "cuLaunchKernel",
	"cuMemsetD8Async", "cuEventRecord", "cuStreamWaitEvent", "cuMemcpyDtoHAsync", "cuCtxPopCurrent"}

func TestSubmit(t *testing.T) {
	d := newFakeDriver(t)
	p := d.open(t)
	w, err := newBench(p)
	require.NoError(t, err)
	require.Equal(t, cudart.Live{Memory: 2, Streams: 2, Events: 2, Modules: 1}, p.Live())
	l, err := p.Encode(w.commands(), cudart.ListOptions{Origin: w.origin})
	require.NoError(t, err)
	p.HostBytes(w.host, 1024)[700] = 9
	for range 3 {
		from := d.mark()
		require.NoError(t, l.Submit())
		require.Equal(t, submitCalls, d.names(from))
	}
	require.EqualValues(t, 5, p.HostBytes(w.host, 1024)[511])
	require.EqualValues(t, 9, p.HostBytes(w.host, 1024)[700])
	launch := d.log[len(d.log)-6]
	require.Equal(t, cuLaunchKernel, launch.f)
	require.Equal(t, []uintptr{4, 1, 1, 64, 1, 1, 0, w.second.Handle()}, launch.args[1:9])
	params := launch.args[9]
	require.EqualValues(t, w.device, peek[uint64](peek[uintptr](params)))
	require.EqualValues(t, 7, peek[uint32](peek[uintptr](params+8)))

	require.NoError(t, l.SetArgs(4, [3]uint32{8, 2, 1}, []cudart.Value{{Pointer: true, Ptr: 64}, {Bits: 11, Size: 4}}))
	require.NoError(t, l.SetCopy(8, w.host+512, w.device))
	require.NoError(t, l.SetArgs(3, [3]uint32{}, []cudart.Value{{Pointer: true, Ptr: 64}, {Bits: 11, Size: 4}}))
	from := d.mark()
	require.NoError(t, l.Submit())
	require.Equal(t, append(append([]string{}, submitCalls[:4]...), submitCalls[5:]...), d.names(from), "a launch of nothing is not made")
	launch = d.log[from+4]
	require.Equal(t, []uintptr{8, 2, 1}, launch.args[1:4])
	require.EqualValues(t, 11, peek[uint32](peek[uintptr](launch.args[9]+8)))

	require.NoError(t, l.Close())
	require.NoError(t, w.close())
	require.Equal(t, cudart.Live{}, p.Live())
	require.NoError(t, p.Close())
	require.Zero(t, d.retained[10])
	d.clean(t)
}

func TestReplaysAllocateNothing(t *testing.T) {
	d := newFakeDriver(t)
	d.quiet = true
	p := d.open(t)
	w, err := newBench(p)
	require.NoError(t, err)
	l, err := p.Encode([]cudart.Command{{Kind: cudart.Empty, Stream: w.origin}}, cudart.ListOptions{Origin: w.origin})
	require.NoError(t, err)
	code := l.(*list).code // without the callbacks into this file's Go code, which allocate
	for i := range code.submitters[0].rows {
		code.submitters[0].rows[i].fn = rowNothing
	}
	code.submitters[0].walk.setEpilogue(nil)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if l.Submit() != nil {
			t.Fail()
		}
	}))
	// All functions are replaced by one of the C library that returns 0.
	g, err := l.Capture(cudart.GraphOptions{})
	require.NoError(t, err)
	saved := p.lib.address
	for f := range p.lib.address {
		p.lib.address[f] = schedYield()
	}
	code.submitters[0].walk.setEpilogue(code.submitters[0].epilogue)
	for i := range g.(*graph).launch.epilogue {
		g.(*graph).launch.epilogue[i].fn = schedYield()
	}
	g.(*graph).launch.rows[launchPush].fn = schedYield()
	for name, f := range map[string]func() error{
		"launch": func() error { return g.Launch(w.second) },
		"query":  func() error { _, err := w.origin.Query(); return err },
		"wait":   func() error { return w.event.Synchronize(context.Background()) },
	} {
		require.Zero(t, testing.AllocsPerRun(100, func() {
			if f() != nil {
				t.Fail()
			}
		}), name)
	}
	p.lib.address = saved
	require.NoError(t, g.Close())
	require.NoError(t, l.Close())
	require.NoError(t, w.close())
	d.clean(t)
}

// Every call in the life of a program fails in turn; each time the error names the call, and nothing is left behind.
func TestEveryCallFails(t *testing.T) {
	defer goleak.VerifyNone(t)
	for _, threads := range []int{1, 3} {
		for k := 1; ; k++ {
			d := newFakeDriver(t)
			d.failAt, d.failCode = k, 999
			failed := lifetime(d, threads)
			if d.calls < k {
				require.NoError(t, failed)
				require.Greater(t, k, 100)
				break
			}
			if failed != nil {
				require.Contains(t, failed.Error(), "999")
			}
			// Only what the driver failed to destroy may remain.
			for handle, maker := range d.alive {
				if maker != cuDevicePrimaryCtxRetain && !strings.Contains(d.log[k-1].f.name(), "Destroy") && !strings.Contains(d.log[k-1].f.name(), "Free") &&
					d.log[k-1].f != cuModuleUnload && d.log[k-1].f != cuCtxPushCurrent && d.log[k-1].f != cuCtxPopCurrent {
					t.Errorf("threads %d, call %d (%s) failed: %#x of %s was left behind", threads, k, d.log[k-1].f.name(), handle, maker.name())
				}
			}
			require.Empty(t, d.bad, "call %d (%s)", k, d.log[k-1].f.name())
			require.Zero(t, d.capture, "call %d (%s)", k, d.log[k-1].f.name())
		}
	}
}

// lifetime makes one object of every kind, uses it and closes it, and returns the first error.
func lifetime(d *fakeDriver, threads int) error {
	p, err := open(d.resolve, Options{})
	if err != nil {
		return err
	}
	p.cores = 8
	w, err := newBench(p)
	if err != nil {
		return errors.Join(err, p.Close())
	}
	err = use(p, w, threads)
	err = errors.Join(err, w.close())
	if live := p.Live(); live != (cudart.Live{}) {
		err = errors.Join(err, fmt.Errorf("live: %+v", live))
		panic(err)
	}
	return errors.Join(err, p.Close())
}

func use(p *Platform, w *bench, threads int) error {
	l, err := p.Encode(w.commands(), cudart.ListOptions{Origin: w.origin, Threads: threads})
	if err != nil {
		return err
	}
	defer l.Close()
	for range 2 {
		if err := l.Submit(); err != nil {
			return err
		}
	}
	g, err := l.Capture(cudart.GraphOptions{Origin: w.origin, Priorities: true})
	if err != nil {
		return err
	}
	defer g.Close()
	if err := errors.Join(g.Upload(w.origin), g.Launch(w.second), g.Update(l)); err != nil {
		return err
	}
	if _, err := w.origin.Query(); err != nil {
		return err
	}
	deps := [][]int32{nil, {0}, {1}, {1}, {2, 3}, {4}, {5}, {6}, {3, 7}}
	deps[3], deps[2] = []int32{1}, []int32{3} // one edge from a command that comes later
	built, err := p.BuildGraph(w.commands(), deps, cudart.GraphOptions{Origin: w.origin, Priorities: true})
	if err != nil {
		return err
	}
	defer built.Close()
	if err := built.SetArgs(3, [3]uint32{1, 1, 1}, w.commands()[3].Args); err != nil {
		return err
	}
	if err := errors.Join(built.SetCopy(0, w.device, w.host), built.SetCopy(5, w.device, 0), built.Launch(w.origin)); err != nil {
		return err
	}
	return errors.Join(w.origin.Synchronize(context.Background()), p.Synchronize(context.Background(), 0), p.EnablePeer(0, 1), w.event.Synchronize(context.Background()))
}

func TestErrorsNameTheCommand(t *testing.T) {
	d := newFakeDriver(t)
	p := d.open(t)
	w, err := newBench(p)
	require.NoError(t, err)
	p.cores = 2
	for _, threads := range []int{1, 2} {
		l, err := p.Encode(w.commands(), cudart.ListOptions{Origin: w.origin, Threads: threads})
		require.NoError(t, err)
		d.failOn[cuMemsetD8Async] = 1
		err = l.Submit()
		require.EqualError(t, err, `node "fill": cuMemsetD8Async: CUDA_ERROR_FAKE (1): CUDA_ERROR_FAKE`)
		var failure *cudart.Error
		require.ErrorAs(t, err, &failure)
		require.Equal(t, 5, failure.Index)
		require.EqualValues(t, 0, failure.Device)
		delete(d.failOn, cuMemsetD8Async)
		require.NoError(t, l.Submit())
		require.NoError(t, l.Close())
	}
	require.NoError(t, w.close())
	d.clean(t)
}

func TestAfterAFaultTheDeviceIsUnusable(t *testing.T) {
	d := newFakeDriver(t)
	p := d.open(t)
	w, err := newBench(p)
	require.NoError(t, err)
	l, err := p.Encode(w.commands(), cudart.ListOptions{Origin: w.origin})
	require.NoError(t, err)
	d.failOn[cuMemsetD8Async] = 700
	err = l.Submit()
	require.ErrorIs(t, err, cudart.ErrPoisoned)
	from := d.mark()
	const later = "device 0: the device context is unusable after an earlier fault; a new process is needed: " +
		"node \"fill\": cuMemsetD8Async: CUDA_ERROR_FAKE (700): CUDA_ERROR_FAKE\nthe fault comes from work submitted earlier; the driver reports it only now"
	require.EqualError(t, l.Submit(), later)
	_, err = p.Alloc(0, 1)
	require.EqualError(t, err, later)
	_, err = w.origin.Query()
	require.ErrorIs(t, err, cudart.ErrPoisoned)
	require.ErrorIs(t, w.origin.Synchronize(context.Background()), cudart.ErrPoisoned)
	_, err = l.Capture(cudart.GraphOptions{Origin: w.origin})
	require.ErrorIs(t, err, cudart.ErrPoisoned)
	_, err = p.Encode(w.commands(), cudart.ListOptions{Origin: w.origin})
	require.EqualError(t, err, later)
	require.NoError(t, w.close(), "what a lost context held is gone with it")
	require.NoError(t, l.Close())
	require.Empty(t, d.names(from), "the driver is not called again")
	_, err = p.Alloc(1, 1)
	require.NoError(t, err, "the other device works on")
	from = d.mark()
	require.NoError(t, p.Close())
	require.Equal(t, []string{"cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxRelease"}, d.names(from), "a lost context keeps its memory until it is released")
}

func TestALostContextIsReleasedWhateverItAnswers(t *testing.T) {
	d := newFakeDriver(t)
	d.devices = 1
	p := d.open(t)
	d.failOn[cuCtxSynchronize], d.failOn[cuDevicePrimaryCtxRelease] = 700, 700
	require.ErrorIs(t, p.Synchronize(context.Background(), 0), cudart.ErrPoisoned)
	from := d.mark()
	require.NoError(t, p.Close(), "the fault has been told of")
	require.Equal(t, []string{"cuDevicePrimaryCtxRelease"}, d.names(from))
}

func TestChecksBeforeLaunch(t *testing.T) {
	d := newFakeDriver(t)
	p := d.open(t)
	w, err := newBench(p)
	require.NoError(t, err)
	cases := []struct {
		change func(*cudart.Command)
		text   string
	}{
		{func(c *cudart.Command) { c.Block = [3]uint32{1025, 1, 1} }, `node "k": kernel scale: a block of 1025 threads; the kernel runs with at most 1024 on device 0 (32 registers a thread)`},
		{func(c *cudart.Command) { c.Block = [3]uint32{1, 1, 128} }, `node "k": kernel scale: a block of 128 threads in z; device 0 allows 64`},
		{func(c *cudart.Command) { c.Block = [3]uint32{0, 1, 1} }, `node "k": kernel scale: a block of 0x1x1 threads`},
		{func(c *cudart.Command) { c.Grid = [3]uint32{1, 65536, 1} }, `node "k": kernel scale: a grid of 65536 blocks in y; device 0 allows 65535`},
		{func(c *cudart.Command) { c.Args = c.Args[:1] }, `node "k": kernel scale takes 2 arguments, but 1 are given`},
		{func(c *cudart.Command) { c.Args[1].Size = 8 }, `node "k": kernel scale: argument 1 has 8 bytes, but its parameter has 4`},
		{func(c *cudart.Command) { c.Shared = 1 << 20 }, `node "k": kernel scale: 1048576 bytes of dynamic shared memory; device 0 allows 232448 (232448 a block, 0 of them static)`},
	}
	for _, c := range cases {
		command := w.launch(w.origin, "k")
		c.change(&command)
		_, err := p.Encode([]cudart.Command{command}, cudart.ListOptions{})
		require.EqualError(t, err, c.text)
	}
	_, err = w.module.Kernel("absent")
	require.EqualError(t, err, "module test: cuModuleGetFunction: CUDA_ERROR_FAKE (500): CUDA_ERROR_FAKE\n"+
		"the module has no kernel \"absent\"; it has scale; names of kernels not declared extern \"C\" are mangled")
	binary, err := p.Load(context.Background(), 0, &launch.Module{Name: "fat", Kind: launch.Fatbin, Code: []byte("anything")})
	require.NoError(t, err)
	_, err = binary.Kernel("absent")
	require.ErrorContains(t, err, "\nthe module has no kernel \"absent\"; it has blur, sharpen; names")
	require.NoError(t, binary.Close())
	require.NoError(t, w.close())
	d.clean(t)
}

func TestLegacyStreamIsBridged(t *testing.T) {
	d := newFakeDriver(t)
	p := d.open(t)
	_, err := p.AdoptStream(streamPerThread)
	require.ErrorIs(t, err, cudart.ErrUnsupported)
	s, err := p.AdoptStream(0)
	require.NoError(t, err)
	l, err := p.Encode([]cudart.Command{{Kind: cudart.SetMemory, Stream: s, Dst: 1, Width: 1, Bytes: 0}}, cudart.ListOptions{Origin: s})
	require.NoError(t, err)
	from := d.mark()
	require.NoError(t, l.Submit())
	require.Equal(t, []string{"cuCtxPushCurrent", "cuEventRecord", "cuStreamWaitEvent", "cuEventRecord", "cuStreamWaitEvent", "cuCtxPopCurrent"}, d.names(from))
	require.EqualValues(t, streamLegacy, d.log[from+1].args[1])
	require.EqualValues(t, streamLegacy, d.log[from+4].args[0])
	g, err := l.Capture(cudart.GraphOptions{})
	require.NoError(t, err)
	from = d.mark()
	require.NoError(t, g.Launch(s))
	require.Equal(t, []string{"cuCtxPushCurrent", "cuEventRecord", "cuStreamWaitEvent", "cuGraphLaunch", "cuEventRecord", "cuStreamWaitEvent", "cuCtxPopCurrent"}, d.names(from))
	require.NoError(t, errors.Join(g.Close(), l.Close(), s.Close()))
	d.clean(t)
}

func TestAdoptedStreams(t *testing.T) {
	d := newFakeDriver(t)
	p := d.open(t)
	d.foreign = 0x77
	s, err := p.AdoptStream(0x1234)
	require.NoError(t, err, "nothing is made on the device yet, so the stream's context becomes its own")
	require.EqualValues(t, 0x1234, s.Handle())
	event, err := p.NewEvent(0, false)
	require.NoError(t, err)
	require.Zero(t, d.retained[10])
	from := d.mark()
	require.NoError(t, s.Synchronize(context.Background()))
	require.EqualValues(t, 0x77, d.log[from].args[0])
	require.NoError(t, errors.Join(event.Close(), s.Close(), p.Close()))
	require.NotContains(t, d.names(0), "cuStreamDestroy", "it is the caller's")
	require.NotContains(t, d.names(0), "cuDevicePrimaryCtxRelease", "so is its context")
	d.clean(t)

	d = newFakeDriver(t)
	p = d.open(t)
	own, err := p.NewStream(0, dag.Normal)
	require.NoError(t, err)
	s, err = p.AdoptStream(0x1234)
	require.NoError(t, err, "of the primary context")
	d.foreign = 0x77
	_, err = p.AdoptStream(0x5678)
	require.EqualError(t, err, "not supported: the stream belongs to another context of device 0 than the one in use; "+
		"adopt the stream before anything else is made on the device, or create it in the primary context")
	require.NoError(t, errors.Join(own.Close(), s.Close(), p.Close()))
	require.Equal(t, cudart.Live{}, p.Live())
	require.Zero(t, d.retained[10])
	_, err = p.Alloc(1, 1)
	require.EqualError(t, err, "the platform is closed")
	d.clean(t)
}

// Two devices: a context row precedes every change, and copies between them go peer to peer.
func TestTwoDevices(t *testing.T) {
	d := newFakeDriver(t)
	p := d.open(t)
	a, err := p.NewStream(0, dag.Normal)
	require.NoError(t, err)
	b, err := p.NewStream(1, dag.Normal)
	require.NoError(t, err)
	x, err := p.Alloc(0, 64)
	require.NoError(t, err)
	y, err := p.Alloc(1, 64)
	require.NoError(t, err)
	l, err := p.Encode([]cudart.Command{
		{Kind: cudart.SetMemory, Stream: a, Dst: x, Width: 1, Pattern: 3, Bytes: 64},
		{Kind: cudart.CopyMemory, Stream: b, Dst: y, Src: x, DstDevice: 1, SrcDevice: 0, Bytes: 64},
		{Kind: cudart.SetMemory, Stream: a, Dst: x, Width: 4, Bytes: 64},
	}, cudart.ListOptions{Origin: a})
	require.NoError(t, err)
	from := d.mark()
	require.NoError(t, l.Submit())
	require.Equal(t, []string{"cuCtxPushCurrent", "cuMemsetD8Async", "cuCtxSetCurrent", "cuMemcpyAsync", "cuCtxSetCurrent", "cuMemsetD32Async", "cuCtxPopCurrent"}, d.names(from))
	require.EqualValues(t, 16, d.log[from+5].args[2], "elements, not bytes")
	require.NoError(t, errors.Join(l.Close(), a.Close(), b.Close(), p.Free(x), p.Free(y)))
	d.clean(t)
}

func TestHostMemory(t *testing.T) {
	d := newFakeDriver(t)
	p := d.open(t)
	for _, pageable := range []bool{false, true} {
		ptr, err := p.AllocHost(0, pageable)
		require.NoError(t, err)
		require.Len(t, p.HostBytes(ptr+8, 16), 16)
		require.Nil(t, p.HostBytes(ptr, 1<<20))
		require.NoError(t, p.Free(ptr))
		require.Error(t, p.Free(ptr))
		require.Nil(t, p.HostBytes(ptr, 1))
	}
	memory := make([]byte, 8192)
	ptr, err := p.RegisterHost(memory)
	require.NoError(t, err)
	require.Error(t, p.Free(ptr), "registered memory is not ours to free")
	p.HostBytes(ptr, 8192)[8191] = 1
	require.EqualValues(t, 1, memory[8191])
	require.NoError(t, p.UnregisterHost(ptr))
	require.Error(t, p.UnregisterHost(ptr))
	d.clean(t)
}

func TestImages(t *testing.T) {
	m, err := ptx.Parse(".version 7.0\n.target sm_60, debug\n.address_size 64\n.visible .global .align 4 .u32 counter;\n.global .align 16 .b8 table[64];\n" +
		".const .align 4 .f32 pi;\n.visible .entry first(\n)\n{\n\t.shared .align 4 .b8 tile[64];\n.reg .b32 r; ld.global.u32 r, [table]; st.global.u32 [counter], r;\n}\n" +
		"\t.weak .entry _Z6secondPf(\n\t.param .u64 a_param_0,\n\t.param .align 8 .b8 a_param_1[24]\n) {}\n// .entry third\n")
	require.NoError(t, err)
	entries, parameters := ptxEntries(m)
	require.Equal(t, []string{"first", "_Z6secondPf"}, entries)
	require.Equal(t, map[string]int{"first": 0, "_Z6secondPf": 2}, parameters)
	require.Equal(t, "sm_60", ptxTarget([]byte(".version 7.0\n.target sm_60, debug\n.address_size 64\nwhat the driver refuses\n")))
	require.Equal(t, "", ptxTarget([]byte("no PTX")))
	require.Nil(t, writableGlobalsOfCubin("m", []byte("no ELF")))
}

// A truncated binary is refused before the driver reads past its end. The test's own executable serves as the ELF file.
func TestBinariesCutShort(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	program, err := os.ReadFile(self)
	require.NoError(t, err)
	require.NoError(t, checkImage(program))
	for _, n := range []int{len(program) - 1, len(program) / 2, 4096, 64, 63, 5} {
		require.Error(t, checkImage(program[:n]), "%d bytes", n)
	}
	fatbin := append([]byte{0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 100, 0, 0, 0, 0, 0, 0, 0}, make([]byte, 100)...)
	require.NoError(t, checkImage(fatbin))
	for _, n := range []int{115, 16, 15, 4} {
		require.ErrorIs(t, checkImage(fatbin[:n]), errCutShort, "%d bytes", n)
	}
	require.NoError(t, checkImage([]byte(".version 7.0")))
}

func TestLoadFailuresSayWhatToDo(t *testing.T) {
	cases := []struct {
		code uint32
		kind launch.Kind
		text string
		want string
	}{
		{codeNoBinary, launch.PTX, ".version 8.6\n.target sm_100\n", "the PTX is for sm_100 and the device is sm_90; compile it for sm_90 or older"},
		{codeNoBinary, launch.Cubin, "x", "a cubin runs only on the architecture it was built for, and the device is sm_90; build it with -arch=sm_90, or ship PTX"},
		{codeNoBinary, launch.Fatbin, "x", "the file holds no code for sm_90; add it, or PTX for sm_90 or older"},
		{codeUnsupportedPTX, launch.PTX, "x", "the PTX comes from a newer toolkit than the driver (CUDA 12.4) supports; update the driver or compile with an older toolkit"},
		{codeInvalidPTX, launch.PTX, ".version 8.6\n.target sm_100a\n", "the PTX is for sm_100a and the device is sm_90; compile it for sm_90 or older"},
		{codeInvalidImage, launch.Fatbin, "x", "the file is incomplete, or is not PTX, a cubin or a fatbin that this driver can read"},
	}
	for _, c := range cases {
		d := newFakeDriver(t)
		p := d.open(t)
		d.failOn[cuModuleLoadDataEx] = c.code
		_, err := p.Load(context.Background(), 0, &launch.Module{Name: "mine", Kind: c.kind, Code: []byte(c.text)})
		require.EqualError(t, err, fmt.Sprintf("module mine: cuModuleLoadDataEx: CUDA_ERROR_FAKE (%d): CUDA_ERROR_FAKE\n%s", c.code, c.want))
		require.NoError(t, p.Close())
		d.clean(t)
	}
}

// A capture that cannot end returns an error with the reason, and leaves neither a capture nor a graph.
func TestCaptureOfAnUnjoinedStream(t *testing.T) {
	d := newFakeDriver(t)
	p := d.open(t)
	w, err := newBench(p)
	require.NoError(t, err)
	l, err := p.Encode(w.commands()[:7], cudart.ListOptions{Origin: w.origin})
	require.NoError(t, err)
	d.failOn[cuStreamEndCapture] = codeCaptureUnjoined
	d.capture = 0
	_, err = l.Capture(cudart.GraphOptions{})
	require.EqualError(t, err, "cuStreamEndCapture: CUDA_ERROR_FAKE (904): CUDA_ERROR_FAKE\n"+
		"a stream that joined the capture was not joined back; every stream must join back into the origin")
	delete(d.failOn, cuStreamEndCapture)
	d.failOn[cuLaunchKernel] = 1
	_, err = l.Capture(cudart.GraphOptions{})
	require.EqualError(t, err, `node "a": cuLaunchKernel: CUDA_ERROR_FAKE (1): CUDA_ERROR_FAKE`)
	require.Zero(t, d.capture, "the capture was ended")
	// If beginning a capture fails, it is not ended: the stream may be in the middle of its owner's capture.
	delete(d.failOn, cuLaunchKernel)
	d.failOn[cuStreamBeginCapture] = 1
	from := d.mark()
	_, err = l.Capture(cudart.GraphOptions{})
	require.Error(t, err)
	require.Equal(t, []string{"cuCtxPushCurrent", "cuStreamBeginCapture", "cuCtxPopCurrent"}, d.names(from))
	require.NoError(t, l.Close())
	require.NoError(t, w.close())
	d.clean(t)
}

func TestGraphsWaitInAnyOrder(t *testing.T) {
	d := newFakeDriver(t)
	p := d.open(t)
	w, err := newBench(p)
	require.NoError(t, err)
	nodes := []cudart.Command{{Kind: cudart.Empty}, {Kind: cudart.Empty}, {Kind: cudart.Empty, Label: "c"}}
	from := d.mark()
	g, err := p.BuildGraph(nodes, [][]int32{{1, 2}, nil, {1}}, cudart.GraphOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"cuCtxPushCurrent", "cuGraphCreate", "cuCtxPopCurrent", "cuCtxPushCurrent", "cuGraphAddEmptyNode", "cuGraphAddEmptyNode",
		"cuGraphAddEmptyNode", "cuGraphAddDependencies", "cuCtxPopCurrent", "cuCtxPushCurrent", "cuGraphGetNodes", "cuGraphInstantiateWithFlags", "cuCtxPopCurrent"}, d.names(from))
	require.EqualValues(t, 0, d.log[from+4].args[3])
	require.EqualValues(t, 1, d.log[from+6].args[3])
	require.EqualValues(t, 2, d.log[from+7].args[3], "the edges from later commands")
	require.NoError(t, g.Close())
	for _, wrong := range []int32{2, 3, -1} {
		_, err = p.BuildGraph(nodes, [][]int32{nil, nil, {wrong}}, cudart.GraphOptions{})
		require.EqualError(t, err, fmt.Sprintf(`node "c": it waits for command %d, but there are 3 commands`, wrong))
	}
	for i := range nodes {
		nodes[i].Label = string(rune('a' + i))
	}
	for _, c := range []struct {
		deps [][]int32
		name string
	}{{[][]int32{nil, {2}, {1}}, "b"}, {[][]int32{{1}, {2}, {0}}, "a"}, {[][]int32{{2}, {2}, {1}}, "b"}} {
		_, err = p.BuildGraph(nodes, c.deps, cudart.GraphOptions{})
		require.EqualError(t, err, fmt.Sprintf("node %q: it waits for itself through other nodes", c.name))
	}
	require.NoError(t, w.close())
	d.clean(t)
}

func TestEmptyList(t *testing.T) {
	d := newFakeDriver(t)
	p := d.open(t)
	for _, threads := range []int{0, 8} {
		l, err := p.Encode(nil, cudart.ListOptions{Threads: threads})
		require.NoError(t, err)
		require.NoError(t, l.Submit())
		require.Zero(t, l.Len())
		_, err = l.Capture(cudart.GraphOptions{})
		require.EqualError(t, err, "capture of a list without an origin stream")
		require.NoError(t, l.Close())
		require.NoError(t, l.Close())
		require.EqualError(t, l.Submit(), "submit of a closed list")
	}
	d.clean(t)
}

// The cost of a replay without the driver's: 1,000 rows on 8 streams, each calling a C function that does almost nothing.
func BenchmarkSubmit(b *testing.B) {
	for _, threads := range []int{1, 2, 4, 8} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			d := newFakeDriver(b)
			p := d.open(b)
			var streams []cudart.Stream
			for range 8 {
				s, err := p.NewStream(0, dag.Normal)
				require.NoError(b, err)
				streams = append(streams, s)
			}
			for f := range p.lib.address {
				p.lib.address[f] = schedYield()
			}
			p.lib.address[cuMemsetD8Async] = probe.Code() // of a destination of 0
			commands := make([]cudart.Command, 1000)
			for i := range commands {
				commands[i] = cudart.Command{Kind: cudart.SetMemory, Stream: streams[i%8], Width: 1, Bytes: 1}
			}
			l, err := p.Encode(commands, cudart.ListOptions{Origin: streams[0], Threads: threads})
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				if err := l.Submit(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/node")
			require.NoError(b, l.Close())
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	const n = 10_000
	d := newFakeDriver(b)
	d.quiet = true
	p := d.open(b)
	w, err := newBench(p)
	require.NoError(b, err)
	var commands []cudart.Command
	for len(commands) < n {
		commands = append(commands, w.commands()...)
	}
	b.ReportAllocs()
	for b.Loop() {
		l, err := p.Encode(commands, cudart.ListOptions{Origin: w.origin})
		if err != nil {
			b.Fatal(err)
		}
		l.Close()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(commands)), "ns/command")
	require.NoError(b, w.close())
}

// Runs the suite of misuse on a fake driver, because a wrong call of a real driver may end the process.
func TestMisuse(t *testing.T) {
	d := newFakeDriver(t)
	d.missing["cuFuncGetParamInfo"] = true // kernels have the parameters of their PTX, which callbacks do not read
	p := d.open(t)
	conformance.Misuse(t, p)
	require.NoError(t, p.Close())
	d.clean(t)
}

// A kind that check knows and encoding does not must not vanish from the list.
func TestEncodingRefusesKindsThatItDoesNotKnow(t *testing.T) {
	p := newFakeDriver(t).open(t)
	defer func() { require.NoError(t, p.Close()) }()
	e := &encoded{p: p, places: make([]place, 1)}
	for _, kind := range []cudart.CommandKind{cudart.RunBodies, 99} {
		c := &checked{Command: cudart.Command{Kind: kind, Label: "odd"}}
		require.EqualError(t, e.command(&submitter{}, 0, 0, c), fmt.Sprintf(`node "odd": a list cannot hold a command of kind %d`, kind))
	}
	require.NoError(t, e.command(&submitter{}, 0, 0, &checked{Command: cudart.Command{Kind: cudart.Empty}}))
}
