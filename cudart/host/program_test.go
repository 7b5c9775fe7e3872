// Random programs give what running their commands one after the other gives: on any number of streams, under disturbed timing, as a
// captured graph and as one built node by node.

package host

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
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

// apply is the sequential meaning of a step.
func (s step) apply(m []uint32) {
	for i := range s.bytes / 4 {
		d := &m[s.dst/4+i]
		switch s.kind {
		case cudart.LaunchKernel:
			*d = mix(m[s.src/4+i], *d, s.pattern)
		case cudart.CopyMemory:
			*d = m[s.src/4+i]
		case cudart.SetMemory:
			*d = s.pattern
		}
	}
}

func mix(x, y, k uint32) uint32 { return x*2654435761 + y*40503 + k }

var mixReference = kernels.Reference{
	Spans: func(c *kernels.Call) int64 { return c.Args[0].Bytes / 4 },
	Run: func(c *kernels.Call, lo, hi int64) {
		words := func(a kernels.Arg) []uint32 { return unsafe.Slice((*uint32)(a.Memory), a.Bytes/4) }
		d, s := words(c.Args[0]), words(c.Args[1])
		for i := lo; i < hi; i++ {
			d[i] = mix(s[i], d[i], uint32(c.Args[2].Bits))
		}
	},
}

func TestProgramsMatchSequentialExecution(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		streams := rapid.IntRange(1, 5).Draw(t, "streams")
		steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step { return drawStep(t, streams) }), 1, 30).Draw(t, "steps")
		p, err := Open(Options{
			Perturb: rapid.Uint64().Draw(t, "seed"), CheckOrder: rapid.Bool().Draw(t, "check"),
			References: map[string]kernels.Reference{"mix": mixReference},
		})
		require.NoError(t, err)

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
			copy(r.device, initial[:programBytes/4])
			copy(r.host, initial[programBytes/4:])
			require.NoError(t, run())
			require.NoError(t, p.Synchronize(0))
			require.Equal(t, want, slices.Concat(r.device, r.host), []string{"streams", "captured graph", "built graph"}[i])
		}
		require.NoError(t, captured.Close())
		require.NoError(t, built.Close())
		require.NoError(t, list.Close())
		r.close()
		require.NoError(t, p.Close())
	})
}

// programRun is what a program runs on.
type programRun struct {
	t            require.TestingT
	p            *Platform
	module       cudart.Module
	streams      []cudart.Stream
	events       []cudart.Event
	d, h         cudart.Ptr
	device, host []uint32
}

func newProgramRun(t require.TestingT, p *Platform, streams int) *programRun {
	r := &programRun{t: t, p: p}
	var err error
	r.module, err = p.Load(context.Background(), 0, &kernels.Module{Name: "programs"})
	require.NoError(t, err)
	r.d, err = p.Alloc(0, programBytes)
	require.NoError(t, err)
	r.h, err = p.AllocHost(programBytes, false)
	require.NoError(t, err)
	words := func(ptr cudart.Ptr) []uint32 {
		return unsafe.Slice((*uint32)(p.memory.lookup(ptr).data), programBytes/4)
	}
	r.device, r.host = words(r.d), words(r.h)
	for i := range streams {
		s, err := p.NewStream(0, dag.Priority(i%3-1))
		require.NoError(t, err)
		r.streams = append(r.streams, s)
	}
	return r
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
		c := cudart.Command{Kind: s.kind, Stream: r.streams[s.stream], Label: fmt.Sprint(i), Node: int32(i), Grid: one, Block: one, Bytes: s.bytes, Pattern: s.pattern, Width: 4, Kernel: k}
		c.Dst, c.DstDevice = r.ptr(s.dst)
		c.Src, c.SrcDevice = r.ptr(s.src)
		c.Args = []cudart.Value{pointer(c.Dst, s.bytes), pointer(c.Src, s.bytes), scalar(uint64(s.pattern))}
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
	for _, s := range r.streams {
		require.NoError(r.t, s.Close())
	}
	for _, e := range r.events {
		require.NoError(r.t, e.Close())
	}
	require.NoError(r.t, r.module.Close())
	require.NoError(r.t, r.p.Free(r.d))
	require.NoError(r.t, r.p.Free(r.h))
}

// TestPerturbationShowsAMissingWait runs a program with a race: its result depends on the seed, and without one it would mostly not.
func TestPerturbationShowsAMissingWait(t *testing.T) {
	results := map[float32]int{}
	for seed := range uint64(200) {
		func() {
			p, err := Open(Options{Perturb: seed + 1, Workers: 1})
			require.NoError(t, err)
			b := &bench{t, p, nil}
			b.module, err = p.Load(context.Background(), 0, testModule())
			require.NoError(t, err)
			d, err := p.Alloc(0, 64)
			require.NoError(t, err)
			h, err := p.AllocHost(64, false)
			require.NoError(t, err)
			s, err := p.NewStream(0, 0)
			require.NoError(t, err)
			u, err := p.NewStream(0, 0)
			require.NoError(t, err)
			*(*float32)(p.memory.lookup(d).data) = 0
			var commands []cudart.Command
			for range 4 {
				commands = append(commands, b.kernel(s, "inc", pointer(d, 64)))
			}
			commands = append(commands, toHost(u, h, d, 64)) // must wait for s
			l, err := p.Encode(commands, cudart.ListOptions{})
			require.NoError(t, err)
			require.NoError(t, l.Submit())
			require.NoError(t, p.Synchronize(0))
			results[*(*float32)(p.memory.lookup(h).data)]++
			require.ErrorIs(t, p.Close(), cudart.ErrLeak)
		}()
	}
	require.Greater(t, len(results), 1, "%v", results)
	t.Log(results)
}
