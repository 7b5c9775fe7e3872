// Tensors: what a framework's allocator told at the moment (a block was given out, a block came back) is joined with its own trace, which says how large
// blocks were, on which stream, and when those that other streams used became free.

package recording

import (
	"bytes"
	"math"
	"slices"
	"strconv"
)

// traced is a line of an allocator's trace.
type traced struct {
	action                 TensorAction
	address, bytes, stream uint64
	sequence               uint64 // of the event at that moment; 0 if there is none
	thread                 uint32
}

// joinTensors completes the events by the traces, and adds the moments at which blocks became free. Both tell of one address in the same order.
func (p *Process) joinTensors() {
	for _, trace := range p.Traces {
		lines := trace.lines()
		ahead := map[uint64][]int{} // lines of an address that are still to be met
		for k, line := range lines {
			if line.action != TensorFreeCompleted {
				ahead[line.address] = append(ahead[line.address], k)
			}
		}
		for k := range p.Tensors {
			event := &p.Tensors[k]
			list := ahead[event.Address]
			at := slices.IndexFunc(list, func(line int) bool { return lines[line].action == event.Action })
			if at < 0 || event.Bytes != 0 {
				continue
			}
			line := &lines[list[at]]
			ahead[event.Address] = list[at+1:]
			event.Bytes, event.Stream = line.bytes, line.stream
			line.sequence, line.thread = event.Sequence, event.Thread
		}
		p.Tensors = append(p.Tensors, completed(lines)...)
	}
	// A block becomes free before what happens next, and after it came back.
	slices.SortStableFunc(p.Tensors, func(a, b TensorEvent) int {
		if a.Sequence != b.Sequence {
			return cmp64(a.Sequence, b.Sequence)
		}
		return int(rank[a.Action]) - int(rank[b.Action])
	})
}

var rank = map[TensorAction]int{TensorFreeRequested: 0, TensorFreeCompleted: 1, TensorAlloc: 2}

func cmp64(a, b uint64) int {
	if a < b {
		return -1
	}
	return 1
}

// completed returns the moments at which blocks became free: that of the line before if that is when the block came back, otherwise that of the next line whose moment
// is known, because an allocator looks for blocks that became free when it needs one.
func completed(lines []traced) []TensorEvent {
	var events []TensorEvent
	next, thread := uint64(math.MaxUint64), uint32(0)
	for k := len(lines) - 1; k >= 0; k-- {
		line := lines[k]
		if line.action != TensorFreeCompleted {
			if line.sequence != 0 {
				next, thread = line.sequence, line.thread
			}
			continue
		}
		event := TensorEvent{Sequence: next, Address: line.address, Bytes: line.bytes, Stream: line.stream, Action: TensorFreeCompleted, Thread: thread}
		if k > 0 && lines[k-1].action == TensorFreeRequested && lines[k-1].address == line.address && lines[k-1].sequence != 0 {
			event.Sequence, event.Thread = lines[k-1].sequence, lines[k-1].thread
		}
		events = append(events, event)
	}
	return events
}

// lines reads a trace. A line that is none is left out: the allocator's own words are not a file format.
func (t *TraceInfo) lines() []traced {
	var lines []traced
	for text := range bytes.Lines(t.Text) {
		fields := bytes.Fields(text)
		var numbers [4]uint64
		ok := len(fields) == len(numbers)
		for k := range min(len(fields), len(numbers)) {
			n, err := strconv.ParseUint(string(fields[k]), 10, 64)
			numbers[k], ok = n, ok && err == nil
		}
		if ok && numbers[0] >= uint64(TensorAlloc) && numbers[0] <= uint64(TensorFreeCompleted) {
			lines = append(lines, traced{action: TensorAction(numbers[0]), address: numbers[1], bytes: numbers[2], stream: numbers[3]})
		}
	}
	return lines
}
