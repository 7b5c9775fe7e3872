// Tests of submission by several threads: whatever the commands, streams keep their order, waits come after their records,
// records after the waits before them, and an error in one thread ends all.

//go:build linux && (amd64 || arm64)

package driver

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
)

// A step is one command of a random program.
type step struct {
	kind   cudart.CommandKind
	stream int
	event  int
}

func drawSteps(t *rapid.T, streams, events int) []step {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		return step{
			kind:   rapid.SampledFrom([]cudart.CommandKind{cudart.SetMemory, cudart.RecordEvent, cudart.WaitEvent}).Draw(t, "kind"),
			stream: rapid.IntRange(0, streams-1).Draw(t, "stream"),
			event:  rapid.IntRange(0, events-1).Draw(t, "event"),
		}
	}), 1, 40).Draw(t, "steps")
}

func TestThreadsKeepEveryOrder(t *testing.T) {
	defer goleak.VerifyNone(t)
	rapid.Check(t, func(r *rapid.T) {
		const replays = 3
		streams, events := rapid.IntRange(1, 6).Draw(r, "streams"), rapid.IntRange(1, 4).Draw(r, "events")
		threads := rapid.IntRange(1, 8).Draw(r, "threads")
		steps := drawSteps(r, streams, events)
		d := newFakeDriver(t)
		p := d.open(t)
		p.cores = 8
		p.patience = uint64(rapid.SampledFrom([]int{1, 3000}).Draw(r, "patience")) // 1: threads park after every replay
		var closers []interface{ Close() error }
		stream, event := make([]cudart.Stream, streams), make([]cudart.Event, events)
		for i := range stream {
			s, err := p.NewStream(0, dag.Normal)
			require.NoError(t, err)
			stream[i], closers = s, append(closers, s)
		}
		for i := range event {
			e, err := p.NewEvent(0, false)
			require.NoError(t, err)
			event[i], closers = e, append(closers, e)
		}
		block, err := p.Alloc(0, 256)
		require.NoError(t, err)
		commands := make([]cudart.Command, len(steps))
		for i, s := range steps {
			commands[i] = cudart.Command{Kind: s.kind, Stream: stream[s.stream], Event: event[s.event], Dst: block, Width: 1, Bytes: 1, Pattern: uint32(i)}
		}
		l, err := p.Encode(commands, cudart.ListOptions{Origin: stream[0], Threads: threads})
		require.NoError(t, err)
		for range replays {
			from := d.mark()
			require.NoError(t, l.Submit())
			checkOrder(r, d.log[from:], steps, stream, event)
		}
		require.NoError(t, l.Close())
		for _, c := range closers {
			require.NoError(t, c.Close())
		}
		require.NoError(t, p.Free(block))
		d.clean(t)
	})
}

// checkOrder finds every step in the log and checks the pairs whose order must not change.
func checkOrder(t *rapid.T, log []fakeCall, steps []step, stream []cudart.Stream, made []cudart.Event) {
	at := make([]int, len(steps))
	next := map[uintptr][]int{} // by stream: steps in order
	for i, s := range steps {
		h := stream[s.stream].Handle()
		next[h] = append(next[h], i)
	}
	count := 0
	for position, c := range log {
		var handle uintptr
		switch c.f {
		case cuMemsetD8Async:
			handle = c.args[3]
		case cuEventRecord:
			handle = c.args[1]
		case cuStreamWaitEvent:
			handle = c.args[0]
		default:
			continue
		}
		i := next[handle][0]
		next[handle] = next[handle][1:]
		count++
		at[i] = position
		s := steps[i]
		same := false
		switch c.f {
		case cuMemsetD8Async:
			same = s.kind == cudart.SetMemory && c.args[1] == uintptr(i)
		case cuEventRecord:
			same = s.kind == cudart.RecordEvent && c.args[0] == made[s.event].(*event).handle
		case cuStreamWaitEvent:
			same = s.kind == cudart.WaitEvent && c.args[1] == made[s.event].(*event).handle
		}
		if !same {
			t.Fatalf("stream %d: step %d is not what was called at %d", s.stream, i, position)
		}
	}
	if count != len(steps) {
		t.Fatalf("%d of %d steps were made", count, len(steps))
	}
	for i, a := range steps {
		for j := i + 1; j < len(steps); j++ {
			b := steps[j]
			records := a.kind == cudart.RecordEvent || b.kind == cudart.RecordEvent
			events := a.kind != cudart.SetMemory && b.kind != cudart.SetMemory
			if events && records && a.event == b.event && at[i] > at[j] {
				t.Fatalf("steps %d and %d use event %d and changed places", i, j, a.event)
			}
		}
	}
}

func TestAnErrorEndsAllThreads(t *testing.T) {
	defer goleak.VerifyNone(t)
	d := newFakeDriver(t)
	p := d.open(t)
	p.cores = 8
	const width = 4
	var commands []cudart.Command
	var closers []interface{ Close() error }
	var streams []cudart.Stream
	for range width {
		s, err := p.NewStream(0, dag.Normal)
		require.NoError(t, err)
		streams, closers = append(streams, s), append(closers, s)
	}
	block, err := p.Alloc(0, 256)
	require.NoError(t, err)
	// A chain over all streams: every thread waits for another.
	var last cudart.Event
	for i := range 40 {
		s := streams[i%width]
		if last != nil {
			commands = append(commands, cudart.Command{Kind: cudart.WaitEvent, Stream: s, Event: last})
		}
		commands = append(commands, cudart.Command{Kind: cudart.SetMemory, Label: fmt.Sprint("set", i), Stream: s, Dst: block, Width: 1, Bytes: 1})
		e, err := p.NewEvent(0, false)
		require.NoError(t, err)
		closers, last = append(closers, e), e
		commands = append(commands, cudart.Command{Kind: cudart.RecordEvent, Stream: s, Event: e})
	}
	l, err := p.Encode(commands, cudart.ListOptions{Origin: streams[0], Threads: width})
	require.NoError(t, err)
	require.NoError(t, l.Submit())
	for k := 1; k < len(commands); k += 7 {
		d.mu.Lock()
		d.calls, d.failAt, d.failCode = 0, k+width, 1
		d.mu.Unlock()
		err := l.Submit()
		var failure *cudart.Error
		require.ErrorAs(t, err, &failure)
		d.mu.Lock()
		d.failAt = 0
		d.mu.Unlock()
		require.NoError(t, l.Submit(), "the next replay is not affected")
	}
	require.NoError(t, l.Close())
	for _, c := range closers {
		require.NoError(t, c.Close())
	}
	require.NoError(t, p.Free(block))
	d.clean(t)
}

func TestSubmittersAreBalanced(t *testing.T) {
	d := newFakeDriver(t)
	p := d.open(t)
	streams := make([]*stream, 6)
	for i := range streams {
		s, err := p.NewStream(0, dag.Normal)
		require.NoError(t, err)
		streams[i] = s.(*stream)
	}
	var list []checked
	for i, s := range streams {
		for range 6 - i {
			list = append(list, checked{Command: cudart.Command{Kind: cudart.LaunchKernel}, stream: s})
		}
	}
	load := map[int32]int{}
	for _, l := range assignSubmitters(list, streams[2], 3) {
		load[l]++
	}
	require.Equal(t, map[int32]int{0: 7, 1: 7, 2: 7}, load)
	for i := range list {
		if list[i].stream == streams[2] {
			require.Zero(t, assignSubmitters(list, streams[2], 3)[i], "the origin is the calling thread's")
		}
	}
	var errs []error
	for _, s := range streams {
		errs = append(errs, s.Close())
	}
	require.NoError(t, errors.Join(errs...))
	d.clean(t)
}
