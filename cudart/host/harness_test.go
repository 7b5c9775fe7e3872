// Shared by the tests of this package: small kernels and short notation for lists of commands.

package host

import (
	"context"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/launch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func floats(a launch.Arg) []float32 { return unsafe.Slice((*float32)(a.Memory), a.Bytes/4) }

// testModule holds kernels for tests: noop(), add(x, y, z), inc(x), and call(n), which runs calls[n].
func testModule(calls ...func()) *launch.Module {
	return &launch.Module{Name: "test", References: map[string]launch.Reference{
		"noop": {Run: func(*launch.Call, int64, int64) {}},
		"call": {Run: func(c *launch.Call, _, _ int64) { calls[c.Args[0].Bits]() }},
		"inc": {
			Spans: func(c *launch.Call) int64 { return c.Args[0].Bytes / 4 },
			Run: func(c *launch.Call, lo, hi int64) {
				x := floats(c.Args[0])
				for i := lo; i < hi; i++ {
					x[i]++
				}
			},
		},
		"add": {
			Spans: func(c *launch.Call) int64 { return c.Args[0].Bytes / 4 },
			Run: func(c *launch.Call, lo, hi int64) {
				x, y, z := floats(c.Args[0]), floats(c.Args[1]), floats(c.Args[2])
				for i := lo; i < hi; i++ {
					z[i] = x[i] + y[i]
				}
			},
		},
		"overrun": {Run: func(c *launch.Call, _, _ int64) {
			*(*byte)(unsafe.Add(c.Args[0].Memory, c.Args[0].Bytes+int64(c.Args[1].Bits))) = 1
		}},
	}}
}

// bench is a platform and the objects that tests need; everything is closed when the test ends.
type bench struct {
	testing.TB
	*Platform
	module cudart.Module
}

func newBench(t testing.TB, o Options, calls ...func()) *bench {
	p, err := Open(o)
	require.NoError(t, err)
	m, err := p.Load(context.Background(), 0, testModule(calls...))
	require.NoError(t, err)
	b := &bench{t, p, m}
	t.Cleanup(func() {
		require.NoError(t, m.Close())
		require.NoError(t, p.Close())
	})
	return b
}

func (b *bench) stream() *stream { return b.streamOn(0, dag.Normal) }

func (b *bench) streamOn(device int32, priority dag.Priority) *stream {
	s, err := b.NewStream(device, priority)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, s.Close()) })
	return s.(*stream)
}

func (b *bench) event(timed bool) cudart.Event {
	e, err := b.NewEvent(0, timed)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, e.Close()) })
	return e
}

func (b *bench) alloc(bytes int64) cudart.Ptr { return b.allocOn(0, bytes) }

func (b *bench) allocOn(device int32, bytes int64) cudart.Ptr {
	p, err := b.Alloc(device, bytes)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, b.Free(p)) })
	return p
}

func (b *bench) host(bytes int64) (cudart.Ptr, []float32) { return b.hostKind(bytes, false) }

func (b *bench) hostKind(bytes int64, pageable bool) (cudart.Ptr, []float32) {
	p, err := b.AllocHost(bytes, pageable)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, b.Free(p)) })
	return p, unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b.HostBytes(p, bytes)))), bytes/4)
}

func (b *bench) list(commands ...cudart.Command) cudart.List {
	l, err := b.Encode(commands, cudart.ListOptions{})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, l.Close()) })
	return l
}

// submit returns the error of encoding or of submitting.
func (b *bench) submit(commands ...cudart.Command) error {
	l, err := b.Encode(commands, cudart.ListOptions{})
	if err != nil {
		return err
	}
	err = l.Submit()
	require.NoError(b, l.Close())
	return err
}

func (b *bench) kernel(s cudart.Stream, entry string, args ...cudart.Value) cudart.Command {
	k, err := b.module.Kernel(entry)
	require.NoError(b, err)
	return cudart.Command{Kind: cudart.LaunchKernel, Label: entry, Stream: s, Kernel: k, Grid: one, Block: one, Args: args}
}

// gate blocks a stream until it is opened or the test ends, so that a failing test does not leave its platform waiting.
type gate struct {
	opened chan struct{}
	ended  <-chan struct{}
}

func newGate(t *testing.T) gate { return gate{make(chan struct{}), t.Context().Done()} }

func (g gate) open() { close(g.opened) }

func (g gate) hold() {
	select {
	case <-g.opened:
	case <-g.ended:
	}
}

var one = [3]uint32{1, 1, 1}

func pointer(p cudart.Ptr, bytes int64) cudart.Value {
	return cudart.Value{Pointer: true, Ptr: p, Bytes: bytes, Size: 8}
}

func scalar(v uint64) cudart.Value { return cudart.Value{Bits: v, Size: 4} }

func toDevice(s cudart.Stream, dst, src cudart.Ptr, bytes int64) cudart.Command {
	return cudart.Command{Kind: cudart.CopyMemory, Label: "up", Stream: s, Dst: dst, Src: src, SrcDevice: -1, Bytes: bytes}
}

func toHost(s cudart.Stream, dst, src cudart.Ptr, bytes int64) cudart.Command {
	return cudart.Command{Kind: cudart.CopyMemory, Label: "down", Stream: s, Dst: dst, Src: src, DstDevice: -1, Bytes: bytes}
}

func record(s cudart.Stream, e cudart.Event) cudart.Command {
	return cudart.Command{Kind: cudart.RecordEvent, Label: "record", Stream: s, Event: e}
}

func wait(s cudart.Stream, e cudart.Event) cudart.Command {
	return cudart.Command{Kind: cudart.WaitEvent, Label: "wait", Stream: s, Event: e}
}
