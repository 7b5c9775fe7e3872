// Tests of what the CPU device refuses: each error has the driver's call, code and words, and the device that it is about.

package host

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/launch"
)

func TestRefusalsSayWhatAndWhere(t *testing.T) {
	ctx := context.Background()
	b, foreign := newBench(t, Options{Devices: 3}), newBench(t, Options{})
	load := func(m *launch.Module) cudart.Module {
		loaded, err := b.Load(ctx, 2, m)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, loaded.Close()) })
		return loaded
	}
	s, later, alien := b.streamOn(2, dag.Normal), b.streamOn(2, dag.Normal), foreign.stream()
	closedStream, err := b.NewStream(2, dag.Normal)
	require.NoError(t, err)
	require.NoError(t, closedStream.Close())
	event := func(device int32, timed, closed bool) cudart.Event {
		e, err := b.NewEvent(device, timed)
		require.NoError(t, err)
		if closed {
			require.NoError(t, e.Close())
		} else {
			t.Cleanup(func() { require.NoError(t, e.Close()) })
		}
		return e
	}
	recorded, untimed, ended, elsewhere := event(2, true, false), event(2, false, false), event(2, true, true), event(1, true, false)
	require.NoError(t, b.submit(record(s, recorded), record(s, untimed), record(b.streamOn(1, dag.Normal), elsewhere)))
	require.NoError(t, s.Synchronize(ctx))
	require.NoError(t, b.Synchronize(ctx, 1))
	d, there := b.allocOn(2, 64), foreign.alloc(64)
	noop := func(stream cudart.Stream) cudart.Command {
		k, err := load(testModule()).Kernel("noop")
		require.NoError(t, err)
		return cudart.Command{Kind: cudart.LaunchKernel, Label: "noop", Stream: stream, Kernel: k, Grid: one, Block: one}
	}
	ptx := load(&launch.Module{Name: "code.ptx", Kind: launch.PTX, Code: []byte(".version 7.8\n.target sm_70\n.address_size 64\n.global .u32 cell;\n.visible .entry k() { ret; }\n")})
	broken := load(&launch.Module{Name: "broken.ptx", Kind: launch.PTX, Code: []byte("nonsense")})
	binary := load(&launch.Module{Name: "code.cubin", Kind: launch.Cubin, Code: []byte("code")})
	goOnly := load(testModule())
	closedModule, err := b.Load(ctx, 2, testModule())
	require.NoError(t, err)
	require.NoError(t, closedModule.Close())
	graph := func(commands ...cudart.Command) cudart.Graph {
		g, err := b.BuildGraph(commands, make([][]int32, len(commands)), cudart.GraphOptions{Origin: s})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, g.Close()) })
		return g
	}
	g, closedGraph := graph(noop(nil)), graph()
	require.NoError(t, closedGraph.Close())
	captured, err := b.list(noop(s)).Capture(cudart.GraphOptions{Origin: s})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, captured.Close()) })
	closedList, err := b.Encode([]cudart.Command{noop(s)}, cudart.ListOptions{Origin: s})
	require.NoError(t, err)
	require.NoError(t, closedList.Close())
	list := func(origin cudart.Stream, commands ...cudart.Command) cudart.List {
		l, err := b.Encode(commands, cudart.ListOptions{Origin: origin})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, l.Close()) })
		return l
	}
	nothing := func(values ...any) error { // what comes with an error is nothing
		for _, v := range values[:len(values)-1] {
			require.Zero(t, v)
		}
		err, _ := values[len(values)-1].(error)
		return err
	}
	fails := func(call func() error, device int32, want string) {
		t.Helper()
		err := call()
		require.ErrorContains(t, err, want)
		var e *cudart.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, device, e.Device, "%v", err)
	}
	command := func(c cudart.Command) func() error {
		return func() error { return nothing(b.Encode([]cudart.Command{c}, cudart.ListOptions{})) }
	}
	set := cudart.Command{Kind: cudart.SetMemory, Label: "zero", Stream: s, Dst: d, DstDevice: 2, Bytes: 8, Width: 4}
	invalid, handle := ": CUDA_ERROR_INVALID_VALUE (1): invalid argument: ", ": CUDA_ERROR_INVALID_HANDLE (400): invalid resource handle: "
	for _, c := range []struct {
		call   func() error
		device int32
		want   string
	}{
		{func() error { return nothing(b.Alloc(3, 1)) }, 3, "cuMemAlloc: CUDA_ERROR_INVALID_DEVICE (101): invalid device ordinal: there are 3 CPU devices"},
		{func() error { return nothing(b.Alloc(2, -5)) }, 2, "cuMemAlloc" + invalid + "-5 bytes"},
		{func() error { return nothing(b.AllocHost(-5, false)) }, -1, "cuMemHostAlloc" + invalid + "-5 bytes"},
		{func() error { return nothing(b.AllocHost(1<<62+1, false)) }, -1, "cuMemHostAlloc: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory: 4611686018427387905 bytes"},
		{func() error { return nothing(b.RegisterHost(nil)) }, -1, "cuMemHostRegister" + invalid + "no bytes"},
		{func() error { return b.UnregisterHost(d) }, -1, "cuMemHostUnregister: CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED (713)"},
		{func() error { return b.Free(d + 8) }, -1, "cuMemFree" + invalid + "the address is 8 bytes into 64 bytes of memory of device 2, not their start"},
		{func() error { return nothing(b.MemoryInfo(-2)) }, -2, "cuMemGetInfo: CUDA_ERROR_INVALID_DEVICE (101)"},
		{func() error { return b.EnablePeer(5, 0) }, 5, "cuCtxEnablePeerAccess: CUDA_ERROR_INVALID_DEVICE (101)"},
		{func() error { return b.EnablePeer(0, 6) }, 6, "cuCtxEnablePeerAccess: CUDA_ERROR_INVALID_DEVICE (101)"},
		{func() error { return b.Synchronize(ctx, 9) }, 9, "cuCtxSynchronize: CUDA_ERROR_INVALID_DEVICE (101)"},
		{func() error { return nothing(b.NewStream(3, dag.Normal)) }, 3, "CUDA_ERROR_INVALID_DEVICE (101)"},
		{func() error { return nothing(b.NewEvent(3, true)) }, 3, "cuEventCreate: CUDA_ERROR_INVALID_DEVICE (101)"},
		{func() error { return nothing(b.AdoptStream(2)) }, -1, "cuStreamGetCtx: CUDA_ERROR_NOT_SUPPORTED (801): operation not supported: the per-thread default stream is a different stream"},
		{func() error { return nothing(b.AdoptStream(0x777)) }, -1, "cuStreamGetCtx" + handle + "0x777 is not a stream of this platform"},
		{func() error { return closedStream.Synchronize(ctx) }, 2, "cuStreamSynchronize" + handle + "stream 2 is closed"},
		{func() error { return nothing(closedStream.Query()) }, 2, "cuStreamQuery" + handle + "stream 2 is closed"},
		{command(noop(closedStream)), 2, "cuLaunchKernel" + handle + "stream 2 is closed"},

		{func() error { return nothing(ended.Query()) }, 2, "cuEventQuery" + handle + "the event is closed"},
		{func() error { return ended.Synchronize(ctx) }, 2, "cuEventSynchronize" + handle + "the event is closed"},
		{func() error { return nothing(ended.Since(recorded)) }, 2, "cuEventElapsedTime" + handle + "the event is closed"},
		{func() error { return nothing(recorded.Since(ended)) }, 2, "cuEventElapsedTime" + handle + "the event is closed"},
		{func() error { return nothing(recorded.Since(untimed)) }, 2, "cuEventElapsedTime" + handle + "the event is not timed"},
		{func() error { return nothing(recorded.Since(event(2, true, false))) }, 2, "cuEventElapsedTime" + handle + "the event was never recorded"},
		{func() error { return nothing(recorded.Since(elsewhere)) }, 2, "cuEventElapsedTime" + handle + "the events belong to different devices"},
		{func() error { return nothing(recorded.Since(foreign.event(true))) }, 2, "cuEventElapsedTime" + handle + "the events belong to different devices"},
		{func() error { return nothing(recorded.Since(nil)) }, 2, "cuEventElapsedTime" + handle + "the events belong to different devices"},
		{func() error {
			return nothing(recorded.(interface {
				Helped(cudart.Event) (float64, error)
			}).Helped(elsewhere))
		}, 2, "the events belong to different devices"},
		{command(record(s, ended)), 2, "cuEventRecord" + handle + "the event is closed"},
		{command(record(s, foreign.event(false))), 2, "cuEventRecord" + handle + "the event belongs to another platform"},
		{func() error { return b.submit(record(s, elsewhere)) }, 2, "cuEventRecord" + handle + "an event of device 1 cannot be recorded on a stream of device 2"},

		{func() error { return nothing(b.Load(ctx, 2, nil)) }, 2, "cuModuleLoadData" + invalid + "there is no module to load"},
		{func() error { return nothing(b.Load(ctx, 4, testModule())) }, 4, "cuModuleLoadData: CUDA_ERROR_INVALID_DEVICE (101)"},
		{func() error { return nothing(closedModule.Kernel("noop")) }, 2, "cuModuleGetFunction" + handle + `module "test" is closed`},
		{func() error { return nothing(closedModule.Global("x")) }, 2, "cuModuleGetGlobal" + handle + `module "test" is closed`},
		{func() error { return nothing(goOnly.Kernel("absent")) }, 2, `cuModuleGetFunction: CUDA_ERROR_NOT_SUPPORTED (801): operation not supported: kernel "absent" of module "test" cannot run on the CPU device`},
		{func() error { return nothing(goOnly.Global("x")) }, 2, `cuModuleGetGlobal: CUDA_ERROR_NOT_SUPPORTED (801): operation not supported: variables of module "test" cannot be used`},
		{func() error { return nothing(binary.Kernel("k")) }, 2, `cuModuleGetFunction: CUDA_ERROR_NOT_SUPPORTED (801): operation not supported: kernel "k" of module "code.cubin" cannot run`},
		{func() error { return nothing(binary.Global("x")) }, 2, `cuModuleGetGlobal: CUDA_ERROR_NOT_SUPPORTED (801): operation not supported: variables of module "code.cubin" cannot be used`},
		{func() error { return nothing(ptx.Kernel("absent")) }, 2, `cuModuleGetFunction: CUDA_ERROR_INVALID_IMAGE (200): device kernel image is invalid: code.ptx has no kernel "absent"`},
		{func() error { return nothing(ptx.Global("&absent")) }, 2, `cuModuleGetGlobal: CUDA_ERROR_NOT_FOUND (500): named symbol not found: module "code.ptx" has no variable "absent"`},
		{func() error { return nothing(broken.Kernel("k")) }, 2, "cuModuleGetFunction: CUDA_ERROR_INVALID_IMAGE (200): device kernel image is invalid: "},
		{func() error { return nothing(broken.Global("k")) }, 2, "cuModuleGetGlobal: CUDA_ERROR_INVALID_IMAGE (200): device kernel image is invalid: "},
		{func() error { return noop(s).Kernel.SetMaxShared(sharedMax + 1) }, 2, "cuFuncSetAttribute" + invalid + "232449 bytes of shared memory; a block has at most 232448"},
		{func() error { return nothing(noop(s).Kernel.Occupancy(sharedMax + 1)) }, 2, "cuOccupancyMaxPotentialBlockSize" + invalid + "232449 bytes of shared memory"},

		{command(func() cudart.Command { c := noop(s); c.Stream = alien; return c }()), -1, "cuLaunchKernel" + handle + "the stream belongs to another platform"},
		{command(func() cudart.Command { c := noop(s); c.Kernel = nil; return c }()), 2, "cuLaunchKernel" + handle + "the kernel belongs to another platform"},
		{command(func() cudart.Command { c := set; c.Width = 8; return c }()), -1, `node "zero": cuMemsetD8Async` + invalid + "the pattern has 8 bytes; only 1, 2 and 4 are possible"},
		{command(func() cudart.Command { c := set; c.Bytes = 10; return c }()), 2, "10 bytes at an address that is a multiple of "},
		{command(func() cudart.Command { c := set; c.DstDevice = 1; return c }()), 2, "the destination was declared to be on device 1, but lies in 64 bytes of memory of device 2"},
		{command(func() cudart.Command { c := set; c.DstDevice = -1; return c }()), 2, "the destination was declared to be in host memory, but lies in 64 bytes of memory of device 2"},
		{command(cudart.Command{Kind: cudart.CopyMemory, Stream: s, Dst: d, DstDevice: 2, Src: d + 32, SrcDevice: 0, Bytes: 8}), 2, "the source was declared to be on device 0, but lies in"},
		{command(cudart.Command{Kind: 77, Stream: s}), 2, "there is no kind of command 77"},
		{command(cudart.Command{Kind: cudart.Communicate, Stream: s}), 2, "the command says nothing about what to communicate"},
		{command(cudart.Command{Kind: cudart.RunHost, Stream: s}), 2, "there is no function to run"},
		{func() error { return b.submit(noop(nil)) }, 2, "cuLaunchKernel" + handle + "the command has no stream"},
		{func() error { return nothing(b.Encode(nil, cudart.ListOptions{Origin: alien})) }, -1, "cuStreamGetCtx" + handle + "the origin stream belongs to another platform"},
		{closedList.Submit, -1, "cuLaunchKernel" + handle + "the list is closed"},
		{func() error { return closedList.SetArgs(0, one, nil) }, -1, "cuLaunchKernel" + handle + "the list is closed"},
		{func() error { return closedList.SetCopy(0, 0, 0) }, -1, "cuLaunchKernel" + handle + "the list is closed"},
		{func() error { return nothing(closedList.Capture(cudart.GraphOptions{Origin: s})) }, -1, "cuLaunchKernel" + handle + "the list is closed"},
		{func() error { return list(s, noop(s)).SetArgs(1, one, nil) }, -1, "there is no command 1; the list has 1"},
		{func() error { return list(s, noop(s)).SetArgs(-1, one, nil) }, -1, "there is no command -1; the list has 1"},
		{func() error { return list(s, noop(s)).SetCopy(0, d, d) }, -1, "command 0 is of a kind that this change does not apply to"},
		{func() error { return list(s, noop(s)).SetArgs(0, one, []cudart.Value{scalar(1)}) }, 2, "the launch was encoded with 0 arguments, but 1 are given"},
		{func() error { return nothing(list(nil, noop(s)).Capture(cudart.GraphOptions{})) }, -1, "cuStreamBeginCapture" + handle + "a capture needs an origin stream of this platform"},
		{func() error { return nothing(list(s, noop(s)).Capture(cudart.GraphOptions{Origin: alien})) }, -1, "cuStreamBeginCapture" + handle + "a capture needs an origin stream of this platform"},

		{func() error { return nothing(b.BuildGraph(nil, nil, cudart.GraphOptions{Origin: alien})) }, -1, "cuGraphInstantiate" + handle + "the origin stream belongs to another platform"},
		{func() error {
			return nothing(b.BuildGraph([]cudart.Command{set}, nil, cudart.GraphOptions{Origin: s}))
		}, 2, "cuGraphInstantiate" + invalid + "there are 1 commands, but dependencies for 0"},
		{func() error {
			return nothing(b.BuildGraph([]cudart.Command{set}, [][]int32{{0}}, cudart.GraphOptions{Origin: s}))
		}, -1, "it depends on command 0, which does not come before it"},
		{func() error {
			return nothing(b.BuildGraph([]cudart.Command{set}, [][]int32{{-1}}, cudart.GraphOptions{Origin: s}))
		}, -1, "it depends on command -1, which does not come before it"},
		{func() error {
			return nothing(b.BuildGraph([]cudart.Command{set, set}, [][]int32{nil, {0, 0}}, cudart.GraphOptions{Origin: s}))
		}, -1, "it depends on command 0 twice"},
		{func() error { return closedGraph.Launch(s) }, 2, "cuGraphLaunch" + handle + "the graph is closed"},
		{func() error { return closedGraph.Upload(s) }, 2, "cuGraphUpload" + handle + "the graph is closed"},
		{func() error { return closedGraph.SetArgs(0, one, nil) }, 2, "cuGraphExecKernelNodeSetParams" + handle + "the graph is closed"},
		{func() error { return closedGraph.SetCopy(0, 0, 0) }, 2, "cuGraphExecMemcpyNodeSetParams" + handle + "the graph is closed"},
		{func() error { return closedGraph.Update(list(s, noop(s))) }, 2, "cuGraphExecUpdate" + handle + "the graph is closed"},
		{func() error { return g.Launch(alien) }, 2, "cuGraphLaunch" + handle + "the stream belongs to another platform"},
		{func() error { return g.Launch(closedStream) }, 2, "cuGraphLaunch" + handle + "stream 2 is closed"},
		{func() error { return g.Upload(alien) }, 2, "cuGraphUpload" + handle + "the stream belongs to another platform"},
		{func() error { return g.SetArgs(1, one, nil) }, -1, "cuGraphExecKernelNodeSetParams" + invalid + "there is no command 1; the list has 1"},
		{func() error { return g.SetCopy(0, 0, 0) }, -1, "cuGraphExecMemcpyNodeSetParams" + invalid + "command 0 is of a kind that this change does not apply to"},
		{func() error { return captured.SetArgs(0, one, nil) }, 2, "cuGraphExecKernelNodeSetParams: CUDA_ERROR_NOT_SUPPORTED (801): operation not supported: the nodes of a captured graph are changed by Update"},
		{func() error { return captured.Update(foreign.list()) }, 2, "cuGraphExecUpdate" + invalid + "the list belongs to another platform"},
		{func() error { return captured.Update(nil) }, 2, "cuGraphExecUpdate" + invalid + "the list belongs to another platform"},
		{func() error { return captured.Update(list(s, noop(s), noop(s))) }, 2, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE (910)"},
		{func() error { return captured.Update(list(s, set)) }, 2, `the kind of node "zero" differs`},
	} {
		fails(c.call, c.device, c.want)
	}
	require.NoError(t, later.BeginCapture())
	captures := "cuStreamBeginCapture: CUDA_ERROR_ILLEGAL_STATE (401): the operation cannot be performed in the present state: stream 1 is capturing"
	fails(later.BeginCapture, 2, captures)
	fails(func() error { return nothing(s.EndCapture(cudart.GraphOptions{})) }, 2, "cuStreamEndCapture: CUDA_ERROR_ILLEGAL_STATE (401): the operation cannot be performed in the present state: stream 0 is not capturing")
	fails(func() error { return later.Synchronize(ctx) }, 2, "cuStreamSynchronize: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900)")
	fails(func() error { return nothing(later.EndCapture(cudart.GraphOptions{})) }, 2, "cuStreamEndCapture: CUDA_ERROR_STREAM_CAPTURE_INVALIDATED (901)")
	require.NoError(t, b.Synchronize(ctx, 2), "none of this was a fault")
	require.NotNil(t, foreign.HostBytes(func() cudart.Ptr { p, _ := foreign.host(8); return p }(), 8))
	require.Nil(t, foreign.HostBytes(there, 8))
}
