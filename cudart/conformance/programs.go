// Tests that random programs give the same results as running their commands one after the other: on any number of streams, as a captured
// graph and as one built node by node.

package conformance

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
)

const programBytes = 256 // of each of the two buffers, one of the device and one of the host

// step is one command of a random program: dst[i] = f(src[i], dst[i]) for a kernel.
type step struct {
	kind             cudart.CommandKind
	dst, src         int64 // offsets into both buffers laid end to end, the device's first
	bytes            int64
	stream           int
	pattern          uint32
	dstHost, srcHost bool
}

func drawStep(t *rapid.T, streams int) step {
	s := step{
		kind:    rapid.SampledFrom([]cudart.CommandKind{cudart.LaunchKernel, cudart.LaunchKernel, cudart.CopyMemory, cudart.SetMemory}).Draw(t, "kind"),
		bytes:   4 * rapid.Int64Range(1, 16).Draw(t, "words"),
		stream:  rapid.IntRange(0, streams-1).Draw(t, "stream"),
		pattern: rapid.Uint32().Draw(t, "pattern"),
		dstHost: rapid.Bool().Draw(t, "dst host"), srcHost: rapid.Bool().Draw(t, "src host"),
	}
	if s.kind == cudart.CopyMemory && s.dstHost && s.srcHost {
		s.srcHost = false // would block the submission
	}
	offset := func(host bool, name string) int64 {
		o := 4 * rapid.Int64Range(0, (programBytes-s.bytes)/4).Draw(t, name)
		if host {
			o += programBytes
		}
		return o
	}
	s.dst, s.src = offset(s.dstHost, "dst"), offset(s.srcHost, "src")
	if s.dst < s.src+s.bytes && s.src < s.dst+s.bytes && s.kind != cudart.SetMemory {
		s.src = s.dst // kernels in place; a copy that overlaps itself becomes a set
		if s.kind == cudart.CopyMemory {
			s.kind = cudart.SetMemory
		}
	}
	return s
}

func (s step) accesses() [][3]int64 { // lo, hi, whether written
	if s.kind == cudart.SetMemory {
		return [][3]int64{{s.dst, s.dst + s.bytes, 1}}
	}
	return [][3]int64{{s.dst, s.dst + s.bytes, 1}, {s.src, s.src + s.bytes, 0}}
}

func (s step) conflicts(o step) bool {
	for _, a := range s.accesses() {
		for _, b := range o.accesses() {
			if a[2]+b[2] > 0 && a[0] < b[1] && b[0] < a[1] {
				return true
			}
		}
	}
	return false
}

// apply runs a step on plain slices, as sequential execution would.
func (s step) apply(m []uint32) {
	for i := range s.bytes / 4 {
		d := &m[s.dst/4+i]
		switch s.kind {
		case cudart.LaunchKernel:
			*d = mixed(m[s.src/4+i], *d, s.pattern)
		case cudart.CopyMemory:
			*d = m[s.src/4+i]
		case cudart.SetMemory:
			*d = s.pattern
		}
	}
}

// Programs runs random programs on platforms that open returns, each with a function that closes it.
func Programs(t *testing.T, open func(t *rapid.T) (p cudart.Platform, end func())) {
	rapid.Check(t, func(t *rapid.T) {
		streams := rapid.IntRange(1, 5).Draw(t, "streams")
		steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step { return drawStep(t, streams) }), 1, 30).Draw(t, "steps")
		p, end := open(t)
		before := p.Live()
		want := make([]uint32, 2*programBytes/4)
		for i := range want {
			want[i] = uint32(i)
		}
		initial := slices.Clone(want)
		for _, s := range steps {
			s.apply(want)
		}

		r := newProgramRun(t, p, streams)
		commands, nodes, deps := r.encode(steps)
		list, err := p.Encode(commands, cudart.ListOptions{Origin: r.streams[0]})
		require.NoError(t, err)
		captured, err := list.Capture(cudart.GraphOptions{})
		require.NoError(t, err)
		built, err := p.BuildGraph(nodes, deps, cudart.GraphOptions{Priorities: true})
		require.NoError(t, err)
		require.GreaterOrEqual(t, captured.Nodes(), len(steps), "a timed record that nothing waits for is a node too")
		require.Equal(t, len(steps), built.Nodes())
		for i, run := range []func() error{
			list.Submit,
			func() error { return captured.Launch(r.streams[0]) },
			func() error { return built.Launch(r.streams[streams-1]) },
		} {
			r.write(initial)
			require.NoError(t, run())
			require.NoError(t, p.Synchronize(context.Background(), 0))
			require.Equal(t, want, r.read(), []string{"streams", "captured graph", "built graph"}[i])
		}
		require.NoError(t, captured.Close())
		require.NoError(t, built.Close())
		require.NoError(t, list.Close())
		r.close()
		require.Equal(t, before, p.Live())
		end()
	})
}

// programRun is what a program runs on.
type programRun struct {
	t            require.TestingT
	p            cudart.Platform
	module       cudart.Module
	streams      []cudart.Stream
	events       []cudart.Event
	d, h, staged cudart.Ptr // the two buffers, and pinned memory for the device's contents
	transfer     [2]cudart.List
}

func newProgramRun(t require.TestingT, p cudart.Platform, streams int) *programRun {
	r := &programRun{t: t, p: p}
	var err error
	r.module, err = p.Load(context.Background(), 0, Module())
	require.NoError(t, err)
	r.d, err = p.Alloc(0, programBytes)
	require.NoError(t, err)
	r.h, err = p.AllocHost(programBytes, false)
	require.NoError(t, err)
	r.staged, err = p.AllocHost(programBytes, false)
	require.NoError(t, err)
	for i := range streams {
		s, err := p.NewStream(0, dag.Priority(i%3-1))
		require.NoError(t, err)
		r.streams = append(r.streams, s)
	}
	for i, c := range []cudart.Command{{Dst: r.d, Src: r.staged, SrcDevice: -1}, {Dst: r.staged, DstDevice: -1, Src: r.d}} {
		c.Kind, c.Stream, c.Bytes, c.Label = cudart.CopyMemory, r.streams[0], programBytes, "transfer"
		r.transfer[i], err = p.Encode([]cudart.Command{c}, cudart.ListOptions{})
		require.NoError(t, err)
	}
	return r
}

// write sets both buffers' contents.
func (r *programRun) write(contents []uint32) {
	copy(wordsOf(r.p.HostBytes(r.staged, programBytes)), contents)
	copy(wordsOf(r.p.HostBytes(r.h, programBytes)), contents[programBytes/4:])
	require.NoError(r.t, r.transfer[0].Submit())
	require.NoError(r.t, r.p.Synchronize(context.Background(), 0))
}

// read returns both buffers' contents.
func (r *programRun) read() []uint32 {
	require.NoError(r.t, r.transfer[1].Submit())
	require.NoError(r.t, r.p.Synchronize(context.Background(), 0))
	return slices.Concat(wordsOf(r.p.HostBytes(r.staged, programBytes)), wordsOf(r.p.HostBytes(r.h, programBytes)))
}

func (r *programRun) event() cudart.Event {
	e, err := r.p.NewEvent(0, len(r.events)%3 == 0)
	require.NoError(r.t, err)
	r.events = append(r.events, e)
	return e
}

func (r *programRun) ptr(offset int64) (cudart.Ptr, int32) {
	if offset >= programBytes {
		return r.h + cudart.Ptr(offset-programBytes), -1
	}
	return r.d + cudart.Ptr(offset), 0
}

// encode makes a list that forks from the first stream and joins it, with a wait for each conflict between streams, and the same as
// nodes with dependencies. One event for each stream is recorded again and again: waits take the record before them.
func (r *programRun) encode(steps []step) (commands, nodes []cudart.Command, deps [][]int32) {
	k, err := r.module.Kernel("mix")
	require.NoError(r.t, err)
	var events []cudart.Event
	for range r.streams {
		events = append(events, r.event())
	}
	record := func(s cudart.Stream, e cudart.Event) cudart.Command {
		return cudart.Command{Kind: cudart.RecordEvent, Stream: s, Event: e}
	}
	wait := func(s cudart.Stream, e cudart.Event) cudart.Command {
		return cudart.Command{Kind: cudart.WaitEvent, Stream: s, Event: e}
	}
	commands = append(commands, record(r.streams[0], events[0]))
	for _, s := range r.streams[1:] {
		commands = append(commands, wait(s, events[0]))
	}
	for i, s := range steps {
		var after []int32
		for j, o := range steps[:i] {
			if !s.conflicts(o) {
				continue
			}
			after = append(after, int32(j))
			if o.stream != s.stream {
				commands = append(commands, record(r.streams[o.stream], events[o.stream]), wait(r.streams[s.stream], events[o.stream]))
			}
		}
		c := cudart.Command{Kind: s.kind, Stream: r.streams[s.stream], Label: fmt.Sprint(i), Node: int32(i), Grid: one, Block: [3]uint32{16, 1, 1}, Bytes: s.bytes,
			Pattern: s.pattern, Width: 4, Kernel: k}
		c.Dst, c.DstDevice = r.ptr(s.dst)
		c.Src, c.SrcDevice = r.ptr(s.src)
		c.Args = []cudart.Value{pointer(c.Dst, s.bytes), pointer(c.Src, s.bytes), scalar(uint32(s.bytes / 4)), scalar(s.pattern)}
		for _, a := range s.accesses() {
			p, _ := r.ptr(a[0])
			c.Accesses = append(c.Accesses, cudart.Access{Ptr: p, Bytes: a[1] - a[0], Write: a[2] > 0, Name: "m"})
		}
		commands, nodes, deps = append(commands, c), append(nodes, c), append(deps, after)
	}
	for i, s := range r.streams[1:] {
		commands = append(commands, record(s, events[i+1]), wait(r.streams[0], events[i+1]))
	}
	return commands, nodes, deps
}

func (r *programRun) close() {
	for _, l := range r.transfer {
		require.NoError(r.t, l.Close())
	}
	for _, s := range r.streams {
		require.NoError(r.t, s.Close())
	}
	for _, e := range r.events {
		require.NoError(r.t, e.Close())
	}
	require.NoError(r.t, r.module.Close())
	require.NoError(r.t, r.p.Free(r.d))
	require.NoError(r.t, r.p.Free(r.h))
	require.NoError(r.t, r.p.Free(r.staged))
}
