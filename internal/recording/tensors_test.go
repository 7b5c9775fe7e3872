// Tests of joining what a framework's allocator told at the moment with its own trace.

package recording_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/internal/recording/recordingtest"
)

const (
	given     = uint64(recording.TensorAlloc)
	requested = uint64(recording.TensorFreeRequested)
)

// allocator is a program that uses a framework's allocator. Sequences count events and calls.
type allocator struct {
	recordingtest.Part
	traces []string
}

// event is told at the moment: it has no size and no stream.
func (a *allocator) event(action, address, place uint64) {
	a.Record(0, recording.Tensor, []uint64{a.Sequence(), action, address, 0, 0, 0, place}, nil)
}

// events lists all events once the traces were joined: sequence, action, address, bytes, stream, place.
func (a *allocator) events(t *testing.T) []string {
	t.Helper()
	for device, text := range a.traces {
		a.Record(0, recording.TensorTrace, []uint64{uint64(device)}, []byte(text))
	}
	var out []string
	for _, e := range parse(t, a.Bytes(0)).Tensors {
		sequence := fmt.Sprint(e.Sequence)
		if e.Sequence == 1<<64-1 {
			sequence = "end"
		}
		out = append(out, strings.Join([]string{sequence, []string{"", "given", "requested", "free"}[e.Action], fmt.Sprint(e.Address, " ", e.Bytes, " ", e.Stream, " ", e.Place)}, " "))
	}
	return out
}

// A block that only its own stream used is free when it came back.
func TestTensorsGetTheirSizesFromTheTrace(t *testing.T) {
	a := &allocator{traces: []string{"1 4096 64 7\n1 8192 32 0\n2 4096 64 7\n3 4096 64 7\n1 4096 48 7\n"}}
	a.event(given, 4096, 1)
	a.event(given, 8192, 2)
	a.event(requested, 4096, 3)
	a.event(given, 4096, 4)
	require.Equal(t, []string{"1 given 4096 64 7 1", "2 given 8192 32 0 2", "3 requested 4096 64 7 3", "3 free 4096 64 7 3", "4 given 4096 48 7 4"}, a.events(t))
}

// The trace may come in parts, in any order: dagrun.check tells what is there while the program goes on.
func TestTracesInParts(t *testing.T) {
	lines := strings.SplitAfter("1 4096 64 7\n1 8192 32 0\n2 4096 64 7\n3 4096 64 7\n1 4096 48 7\n", "\n")
	for _, order := range [][]int{{0, 1, 2}, {2, 0, 1}, {1, 2, 0}} {
		parts := []string{strings.Join(lines[:1], ""), "from 1\n" + strings.Join(lines[1:3], ""), "from 3\n" + strings.Join(lines[3:], "")}
		a := &allocator{}
		a.event(given, 4096, 1)
		a.event(given, 8192, 2)
		a.event(requested, 4096, 3)
		a.event(given, 4096, 4)
		for _, k := range order {
			a.Record(0, recording.TensorTrace, []uint64{0}, []byte(parts[k]))
		}
		require.Equal(t, []string{"1 given 4096 64 7 1", "2 given 8192 32 0 2", "3 requested 4096 64 7 3", "3 free 4096 64 7 3", "4 given 4096 48 7 4"}, a.events(t), "%v", order)
	}
}

// A block that other streams used too (record_stream) becomes free when the allocator next looks: at the next line of the trace whose moment is known.
func TestTensorsThatOtherStreamsUsed(t *testing.T) {
	lines := "1 4096 64 7\n2 4096 64 7\n1 8192 32 0\n3 4096 64 7\n1 16384 16 0\n"
	program := func(calls func(a *allocator)) []string {
		a := &allocator{traces: []string{lines}}
		a.Record(0, recording.Code, []uint64{9, 40, 3*256 + 12}, []byte("/home/me/train.py\x00step\x00"))
		a.Record(0, recording.Code, []uint64{8, 40, 3*256 + 12}, []byte("/opt/lib/python3.12/torch.py\x00free\x00"))
		for place, frames := range map[uint64][]uint64{1: {1<<56 | 9, 2}, 2: {1<<56 | 8, 4, 1<<56 | 9, 2}, 3: {1<<56 | 9, 6}} {
			a.Record(0, recording.Place, append([]uint64{place}, frames...), nil)
		}
		a.event(given, 4096, 1)
		a.event(requested, 4096, 1)
		calls(a)
		a.event(given, 8192, 3)
		a.event(given, 16384, 3)
		events := a.events(t)
		return events[:len(events)-1]
	}
	later := []string{"1 given 4096 64 7 1", "2 requested 4096 64 7 1", "7 given 8192 32 0 3", "8 free 4096 64 7 1"}
	require.Equal(t, later, program(func(a *allocator) {
		a.Call(0, recording.EventCreate, 2, 90, 0)
		a.Call(0, recording.EventRecord, 2, 7, 0, 90, 0)
	}), "in the same line of the program the allocator recorded an event")
	now := []string{"1 given 4096 64 7 1", "2 requested 4096 64 7 1", "2 free 4096 64 7 1", "7 given 8192 32 0 3"}
	require.Equal(t, now, program(func(a *allocator) {
		a.Call(0, recording.EventCreate, 2, 90, 0)
		a.Call(0, recording.EventRecord, 3, 7, 0, 90, 0)
	}), "another line recorded it")
	require.Equal(t, now, program(func(a *allocator) {
		a.Call(0, recording.StreamSync, 2, 7)
		a.Call(0, recording.EventRecord, 2, 7, 0, 90, 0)
	}), "after something else")
	require.Equal(t, now, program(func(a *allocator) {
		a.Call(1, recording.EventRecord, 2, 7, 0, 90, 0)
		a.Call(1, recording.EventRecord, 2, 7, 0, 90, 0)
	}), "another thread recorded it")
	require.Equal(t, now, program(func(a *allocator) { a.Sequence(); a.Sequence(); a.Sequence(); a.Sequence() }), "nothing was recorded")
}

// Events without a line keep what they have, and lines without an event say when a block became free only at the end.
func TestTensorsThatTheTraceDoesNotTell(t *testing.T) {
	a := &allocator{traces: []string{"1 4096 64 7\n3 4096 64 7\n"}}
	a.event(given, 8192, 1)
	a.Record(0, recording.Tensor, []uint64{a.Sequence(), given, 4096, 16, 5, 0, 2}, nil)
	require.Equal(t, []string{"1 given 8192 0 0 1", "2 given 4096 16 5 2", "end free 4096 64 7 0"}, a.events(t))
}

// Each device has a trace, and what is no line of one is left out.
func TestTracesOfSeveralDevices(t *testing.T) {
	a := &allocator{traces: []string{"1 4096 64 7\n", "\n1 8192\n1 8192 32 3 4\n0 8192 32 3\n4 8192 32 3\n1 8192 -1 3\n1 8192 32 x\n1 8192 32 3\n2 4096 1 1"}}
	a.event(given, 4096, 1)
	a.event(given, 8192, 2)
	a.event(requested, 8192, 3)
	require.Equal(t, []string{"1 given 4096 64 7 1", "2 given 8192 32 3 2", "3 requested 8192 0 0 3"}, a.events(t))
}

// Blocks of one address follow each other in both: a line that was met is not met again, and those before it are left behind.
func TestTensorsOfOneAddress(t *testing.T) {
	a := &allocator{traces: []string{"1 4096 1 7\n2 4096 1 7\n3 4096 1 7\n1 4096 2 7\n2 4096 2 7\n3 4096 2 7\n1 4096 3 7\n"}}
	a.event(given, 4096, 1)
	a.event(requested, 4096, 2)
	a.event(requested, 4096, 3) // the event before it was lost
	a.event(given, 4096, 4)
	a.event(given, 4096, 5)
	require.Equal(t, []string{"1 given 4096 1 7 1", "2 requested 4096 1 7 2", "2 free 4096 1 7 2", "3 requested 4096 2 7 3", "3 free 4096 2 7 3", "4 given 4096 3 7 4", "5 given 4096 0 0 5"}, a.events(t))
}
