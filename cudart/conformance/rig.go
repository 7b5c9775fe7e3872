// The rig that every test gets: a platform, buffers, streams, and commands for them. A test that ends early leaves nothing running.

package conformance

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
)

// words is how many 32-bit words each of a rig's buffers has.
const words = 1024

const bytes = 4 * words

// rig is a platform and the objects that tests need: two device buffers, two pinned ones, four streams.
type rig struct {
	*testing.T
	p          cudart.Platform
	module     cudart.Module
	kernels    map[string]cudart.Kernel
	s          []cudart.Stream
	d, e       cudart.Ptr // device
	h, g       cudart.Ptr // pinned
	host, back []uint32   // behind h and g
	flag       *uint32    // what hold waits for
	flagAt     cudart.Ptr
}

func newRig(t *testing.T, p cudart.Platform) *rig {
	r := &rig{T: t, p: p, kernels: map[string]cudart.Kernel{}}
	var err error
	r.module, err = p.Load(context.Background(), 0, Module())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.module.Close()) })
	for _, entry := range []string{"noop", "mix", "hold", "store"} {
		r.kernels[entry], err = r.module.Kernel(entry)
		require.NoError(t, err)
	}
	for range 4 {
		r.s = append(r.s, r.stream(dag.Normal))
	}
	r.d, r.e = r.alloc(bytes), r.alloc(bytes)
	r.h, r.host = r.pinned()
	r.g, r.back = r.pinned()
	var flag []uint32
	r.flagAt, flag = r.pinned()
	r.flag = &flag[0]
	t.Cleanup(r.release)
	// A device on which a held stream blocks the host fails the test; it must not hang it.
	limit := time.AfterFunc(time.Minute, r.release)
	t.Cleanup(func() { limit.Stop() })
	// A driver may be unable to load while a kernel is held, so load everything that it loads at first use now.
	r.submit(r.up(0, r.d, r.h), r.mix(0, r.d, r.d, 0), r.set(0, r.d, 1), r.set(0, r.d, 2), r.set(0, r.d, 4),
		cudart.Command{Kind: cudart.CopyMemory, Stream: r.s[0], Dst: r.e, Src: r.d, Bytes: bytes}, r.down(0, r.g, r.d))
	r.sync()
	return r
}

func (r *rig) stream(priority dag.Priority) cudart.Stream {
	s, err := r.p.NewStream(0, priority)
	require.NoError(r, err)
	r.Cleanup(func() { require.NoError(r, s.Close()) })
	return s
}

func (r *rig) event(timed bool) cudart.Event {
	e, err := r.p.NewEvent(0, timed)
	require.NoError(r, err)
	r.Cleanup(func() { require.NoError(r, e.Close()) })
	return e
}

func (r *rig) alloc(n int64) cudart.Ptr {
	p, err := r.p.Alloc(0, n)
	require.NoError(r, err)
	r.Cleanup(func() { require.NoError(r, r.p.Free(p)) })
	return p
}

// far allocates memory of a second device that the first one can access. Without such a device it returns 0, and the log says what is not run.
func (r *rig) far(what string) cudart.Ptr {
	if devices := r.p.Devices(); len(devices) < 2 || !devices[0].Peers[1] {
		r.Logf("one device, or no peer access between two: %s are not run", what)
		return 0
	}
	p, err := r.p.Alloc(1, bytes)
	require.NoError(r, err)
	r.Cleanup(func() { require.NoError(r, r.p.Free(p)) })
	return p
}

func (r *rig) pinned() (cudart.Ptr, []uint32) {
	p, err := r.p.AllocHost(bytes, false)
	require.NoError(r, err)
	r.Cleanup(func() { require.NoError(r, r.p.Free(p)) })
	w := wordsOf(r.p.HostBytes(p, bytes))
	clear(w)
	return p, w
}

func wordsOf(b []byte) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

// release lets held streams go on. A test that ends early must not leave the device waiting.
func (r *rig) release() { atomic.StoreUint32(r.flag, 1) }

func (r *rig) sync() { require.NoError(r, r.p.Synchronize(context.Background(), 0)) }

func (r *rig) list(origin cudart.Stream, commands ...cudart.Command) cudart.List {
	l, err := r.p.Encode(commands, cudart.ListOptions{Origin: origin})
	require.NoError(r, err)
	r.Cleanup(func() { require.NoError(r, l.Close()) })
	return l
}

func (r *rig) submit(commands ...cudart.Command) {
	require.NoError(r, r.list(nil, commands...).Submit())
}

// try returns the error of encoding or of submitting.
func (r *rig) try(commands ...cudart.Command) error {
	l, err := r.p.Encode(commands, cudart.ListOptions{})
	if err != nil {
		return err
	}
	r.Cleanup(func() { require.NoError(r, l.Close()) })
	return l.Submit()
}

func (r *rig) graph(g cudart.Graph, err error) cudart.Graph {
	require.NoError(r, err)
	r.Cleanup(func() { require.NoError(r, g.Close()) })
	return g
}

// hold keeps a stream until release.
func (r *rig) hold(s int) cudart.Command {
	return r.launch(s, "hold", one, pointer(r.flagAt, 4))
}

func (r *rig) launch(s int, entry string, grid [3]uint32, args ...cudart.Value) cudart.Command {
	return cudart.Command{Kind: cudart.LaunchKernel, Label: entry, Node: -1, Stream: r.s[s], Kernel: r.kernels[entry], Grid: grid, Block: one, Args: args}
}

// mix is dst[i] = mixed(src[i], dst[i], k) for all words.
func (r *rig) mix(s int, dst, src cudart.Ptr, k uint32) cudart.Command {
	return r.mixWords(s, dst, src, words, k)
}

func (r *rig) mixWords(s int, dst, src cudart.Ptr, n int64, k uint32) cudart.Command {
	c := r.launch(s, "mix", [3]uint32{uint32((n + 127) / 128), 1, 1}, pointer(dst, 4*n), pointer(src, 4*n), scalar(uint32(n)), scalar(k))
	c.Block = [3]uint32{128, 1, 1}
	return c
}

func (r *rig) up(s int, dst, src cudart.Ptr) cudart.Command {
	return cudart.Command{Kind: cudart.CopyMemory, Label: "up", Node: -1, Stream: r.s[s], Dst: dst, Src: src, SrcDevice: -1, Bytes: bytes}
}

func (r *rig) down(s int, dst, src cudart.Ptr) cudart.Command {
	return cudart.Command{Kind: cudart.CopyMemory, Label: "down", Node: -1, Stream: r.s[s], Dst: dst, DstDevice: -1, Src: src, Bytes: bytes}
}

func (r *rig) set(s int, dst cudart.Ptr, width uint8) cudart.Command {
	return cudart.Command{Kind: cudart.SetMemory, Label: "set", Node: -1, Stream: r.s[s], Dst: dst, Bytes: bytes, Width: width}
}

func (r *rig) record(s int, e cudart.Event) cudart.Command {
	return cudart.Command{Kind: cudart.RecordEvent, Label: "record", Node: -1, Stream: r.s[s], Event: e}
}

func (r *rig) wait(s int, e cudart.Event) cudart.Command {
	return cudart.Command{Kind: cudart.WaitEvent, Label: "wait", Node: -1, Stream: r.s[s], Event: e}
}

func (r *rig) idle(s cudart.Stream) bool {
	idle, err := s.Query()
	require.NoError(r, err)
	return idle
}

func (r *rig) done(e cudart.Event) bool {
	done, err := e.Query()
	require.NoError(r, err)
	return done
}

// yield gives the device time to run work that must not run yet.
func yield() {
	for range 100 {
		runtime.Gosched()
	}
}

// named requires that an error is the driver's error of the given name.
func (r *rig) named(err error, name string) {
	r.Helper()
	var e *cudart.Error
	require.ErrorAs(r, err, &e)
	require.Equal(r, name, e.Name, "%v", err)
}

var one = [3]uint32{1, 1, 1}

func pointer(p cudart.Ptr, n int64) cudart.Value {
	return cudart.Value{Pointer: true, Ptr: p, Bytes: n, Size: 8}
}

func scalar(v uint32) cudart.Value { return cudart.Value{Bits: uint64(v), Size: 4} }
