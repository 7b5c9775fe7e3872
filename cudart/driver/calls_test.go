// Tests of library calls on the fake driver, with a library whose products only count themselves.

//go:build linux && (amd64 || arm64)

package driver

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/libraries"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/dl"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/kernels/launch"
)

var (
	countedProducts uintptr
	productStatus   uintptr
	countingLibrary = sync.OnceValue(func() [2]uintptr {
		return [2]uintptr{
			dl.Callback(func(_ uintptr) uintptr { return 0 }),
			dl.Callback(func(_, _, _, _, _, _, _, _, _, _, _, _, _, _ uintptr) uintptr {
				countedProducts++
				return productStatus
			}),
		}
	})
)

func withCountingLibrary(t *testing.T) {
	functions := countingLibrary()
	openLibrary = func(name string) (*libraries.Library, error) {
		return libraries.OpenWith(name, func(symbol string) (uintptr, error) {
			if strings.HasSuffix(symbol, "gemm_v2") {
				return functions[1], nil
			}
			return functions[0], nil
		})
	}
	countedProducts, productStatus = 0, 0
	t.Cleanup(func() { openLibrary = libraries.Open })
}

// product is the command of a product of n x n on device memory.
func product(t *testing.T, p *Platform, m cudart.Module, s cudart.Stream, memory cudart.Ptr, label string) cudart.Command {
	calls := kernels.Library().(dag.CallLibrary).Calls()
	k, err := calls.Kernel("cublas.gemm", []dag.DType{0, 0, 0, dag.F32, dag.F32, 0, dag.F32, 0})
	require.NoError(t, err)
	kernel, err := m.Kernel(k.Entry())
	require.NoError(t, err)
	c := cudart.Command{Kind: cudart.LaunchKernel, Kernel: kernel, Stream: s, Label: label, Node: 3, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
	for _, param := range k.Params() {
		v := cudart.Value{Bits: 4, Size: uint8(param.DType.Size())}
		if param.Buffer {
			v = cudart.Value{Pointer: true, Ptr: memory, Bytes: 64, Size: 8}
		}
		c.Args = append(c.Args, v)
	}
	return c
}

func callModuleOf(t *testing.T, p *Platform) cudart.Module {
	calls := kernels.Library().(dag.CallLibrary).Calls()
	k, err := calls.Kernel("cublas.gemm", []dag.DType{0, 0, 0, dag.F32, dag.F32, 0, dag.F32, 0})
	require.NoError(t, err)
	m, err := p.Load(context.Background(), 0, k.(interface{ Module() *launch.Module }).Module())
	require.NoError(t, err)
	return m
}

func TestCallsInListsAndGraphs(t *testing.T) {
	withCountingLibrary(t)
	d := newFakeDriver(t)
	p := d.open(t)
	m := callModuleOf(t, p)
	s, err := p.NewStream(0, dag.Normal)
	require.NoError(t, err)
	other, err := p.NewStream(0, dag.High)
	require.NoError(t, err)
	fork, err := p.NewEvent(0, false)
	require.NoError(t, err)
	join, err := p.NewEvent(0, false)
	require.NoError(t, err)
	memory, err := p.Alloc(0, 4096)
	require.NoError(t, err)
	commands := []cudart.Command{
		{Kind: cudart.RecordEvent, Stream: s, Event: fork, Node: -1},
		{Kind: cudart.WaitEvent, Stream: other, Event: fork, Node: -1},
		product(t, p, m, s, memory, "a"),
		product(t, p, m, other, memory, "b"),
		{Kind: cudart.RecordEvent, Stream: other, Event: join, Node: -1},
		{Kind: cudart.WaitEvent, Stream: s, Event: join, Node: -1},
		product(t, p, m, s, memory, "c"),
	}
	list, err := p.Encode(commands, cudart.ListOptions{Origin: s})
	require.NoError(t, err)
	require.EqualValues(t, 3, countedProducts, "each is captured once")
	before := len(d.log)
	require.NoError(t, list.Submit())
	require.Equal(t, []function{cuCtxPushCurrent, cuEventRecord, cuStreamWaitEvent, cuGraphLaunch, cuGraphLaunch, cuEventRecord, cuStreamWaitEvent, cuGraphLaunch, cuCtxPopCurrent},
		functionsOf(d.log[before:]))
	first := d.log[before+3].args[0]
	require.NoError(t, list.SetArgs(2, [3]uint32{1, 1, 1}, commands[2].Args))
	require.EqualValues(t, 4, countedProducts)
	before = len(d.log)
	require.NoError(t, list.Submit())
	require.NotEqual(t, first, d.log[before+3].args[0], "another graph is launched")

	before = len(d.log)
	captured, err := list.Capture(cudart.GraphOptions{})
	require.NoError(t, err)
	require.Equal(t, 3, times(d.log[before:], cuGraphAddChildGraphNode))
	require.Equal(t, []uintptr{0, 0, 2}, dependenciesOf(d.log[before:]))
	require.NoError(t, captured.Launch(s))
	require.NoError(t, captured.Update(list))
	require.NoError(t, captured.Launch(s))

	built, err := p.BuildGraph([]cudart.Command{commands[2], commands[6]}, [][]int32{nil, {0}}, cudart.GraphOptions{Origin: s})
	require.NoError(t, err)
	require.NoError(t, built.SetArgs(1, [3]uint32{1, 1, 1}, commands[6].Args))
	require.NoError(t, built.Launch(s))

	require.NoError(t, captured.Close())
	require.NoError(t, built.Close())
	require.NoError(t, list.Close())
	require.NoError(t, p.Free(memory))
	for _, c := range []interface{ Close() error }{fork, join, s, other, m} {
		require.NoError(t, c.Close())
	}
	require.Equal(t, cudart.Live{}, p.Live())
	require.NoError(t, p.Close())
	d.clean(t)
}

func functionsOf(log []fakeCall) []function {
	var list []function
	for _, c := range log {
		list = append(list, c.f)
	}
	return list
}

func times(log []fakeCall, f function) int {
	return len(slices.DeleteFunc(functionsOf(log), func(other function) bool { return other != f }))
}

// dependenciesOf is how many nodes each child graph comes after.
func dependenciesOf(log []fakeCall) []uintptr {
	var list []uintptr
	for _, c := range log {
		if c.f == cuGraphAddChildGraphNode {
			list = append(list, c.args[3])
		}
	}
	return list
}

func TestFailedCallsNameTheirNodeAndLeaveNothing(t *testing.T) {
	withCountingLibrary(t)
	for _, f := range []function{functionCount, cuStreamBeginCapture, cuStreamEndCapture, cuGraphInstantiateWithFlags, cuGraphAddChildGraphNode} {
		d := newFakeDriver(t)
		p := d.open(t)
		m := callModuleOf(t, p)
		s, err := p.NewStream(0, dag.Normal)
		require.NoError(t, err)
		memory, err := p.Alloc(0, 4096)
		require.NoError(t, err)
		command := product(t, p, m, s, memory, "mix")
		productStatus = 0
		if f == functionCount {
			productStatus = 13
		} else {
			d.failOn[f] = 999
		}
		_, listErr := p.Encode([]cudart.Command{command}, cudart.ListOptions{Origin: s})
		_, graphErr := p.BuildGraph([]cudart.Command{command}, [][]int32{nil}, cudart.GraphOptions{Origin: s})
		delete(d.failOn, f)
		if f == functionCount {
			require.EqualError(t, listErr, `node "mix": call cublas.gemm_f32: cublasSgemm: CUBLAS_STATUS_EXECUTION_FAILED (13)`)
		} else if f != cuGraphAddChildGraphNode {
			require.ErrorContains(t, listErr, f.name())
		}
		require.Error(t, graphErr)
		if listErr != nil && f != cuGraphInstantiateWithFlags {
			require.ErrorContains(t, listErr, `node "mix"`)
		}
		require.NoError(t, p.Free(memory))
		require.NoError(t, s.Close())
		require.NoError(t, m.Close())
		require.NoError(t, m.Close(), "a second time")
		left := 0
		for _, maker := range d.alive {
			if maker == cuGraphCreate || maker == cuGraphInstantiateWithFlags {
				left++
			}
		}
		if listErr != nil {
			require.Zero(t, left, "%v", f)
		}
		require.NoError(t, p.Close())
	}
	productStatus = 0
}

func TestCallsWithoutTheirLibrary(t *testing.T) {
	openLibrary = func(string) (*libraries.Library, error) {
		return nil, errors.New("cuBLAS is not installed: no such file")
	}
	t.Cleanup(func() { openLibrary = libraries.Open })
	d := newFakeDriver(t)
	p := d.open(t)
	_, err := p.Load(context.Background(), 0, &launch.Module{Name: "cublas", Kind: launch.Calls})
	require.EqualError(t, err, "cuBLAS is not installed: no such file")
	require.NoError(t, p.Close())

	withCountingLibrary(t)
	d = newFakeDriver(t)
	p = d.open(t)
	m := callModuleOf(t, p)
	_, err = m.Kernel("cublas.nothing_f32")
	require.EqualError(t, err, `module cublas has no call "cublas.nothing_f32"`)
	_, _, err = m.Global("x")
	require.EqualError(t, err, `module cublas: the module has no variable "x"`)
	require.Empty(t, m.Warnings())
	require.NoError(t, m.Close())
	_, err = m.Kernel("cublas.gemm_f32")
	require.EqualError(t, err, "module cublas is closed")
	require.NoError(t, p.Close())
}
