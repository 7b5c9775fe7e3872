// Tensors: what a framework's allocator told at the moment (a block was given out, a block came back) is joined with its own trace, which says how large
// blocks were, on which stream, and when those that other streams used became free.

package recording

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
)

// traced is a line of an allocator's trace.
type traced struct {
	action                 TensorAction
	address, bytes, stream uint64
	sequence               uint64 // of the event at that moment; 0 if there is none
	thread                 uint32
	place                  uint64
	later                  bool // of a request: other streams may still use the block, so it becomes free at some later moment
}

// joinTensors completes the events by the traces, and adds the moments at which blocks became free. Both tell of one address in the same order.
func (p *Process) joinTensors() {
	for _, trace := range whole(p.Traces) {
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
			line.sequence, line.thread, line.place = event.Sequence, event.Thread, event.Place
			line.later = event.Action == TensorFreeRequested && p.usedElsewhere(event)
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

// whole joins the parts of the trace of each device. The first line of a part behind the first is "from" and how many lines were told before.
func whole(traces []TraceInfo) []TraceInfo {
	from := func(t TraceInfo) (lines uint64) {
		_, _ = fmt.Fscanf(bytes.NewReader(t.Text), "from %d", &lines)
		return lines
	}
	sorted := slices.SortedStableFunc(slices.Values(traces), func(a, b TraceInfo) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(from(a), from(b)))
	})
	var out []TraceInfo
	for _, t := range sorted {
		if n := len(out); n > 0 && out[n-1].Device == t.Device && from(t) > 0 {
			out[n-1].Text = slices.Concat(out[n-1].Text, []byte("\n"), t.Text)
			continue
		}
		out = append(out, t)
	}
	return out
}

var rank = map[TensorAction]int{TensorFreeRequested: 0, TensorFreeCompleted: 1, TensorAlloc: 2}

func cmp64(a, b uint64) int {
	if a < b {
		return -1
	}
	return 1
}

// usedElsewhere tells whether a block that comes back was recorded on other streams. The allocator then records an event on each of them at once, in the
// same line of the program, and looks later whether these have happened.
func (p *Process) usedElsewhere(event *TensorEvent) bool {
	from := sort.Search(len(p.Calls), func(k int) bool { return p.Calls[k].Begin > event.Sequence })
	for k := from; k < len(p.Calls); k++ {
		if call := &p.Calls[k]; call.Thread == event.Thread {
			if call.Kind == EventCreate {
				continue
			}
			return call.Kind == EventRecord && p.sameLine(call.Place, event.Place)
		}
	}
	return false
}

// sameLine compares the user's innermost frames of two places.
func (p *Process) sameLine(a, b uint64) bool {
	user := func(place uint64) Frame {
		for _, f := range p.Places[place] {
			if !f.Package {
				return f
			}
		}
		return Frame{}
	}
	x, y := user(a), user(b)
	return x.Python && x.File == y.File && x.Offset == y.Offset && x.Function == y.Function
}

// completed returns the moments at which blocks became free: when the block came back, or, if other streams used it, that of the next line whose moment is
// known, because an allocator looks for blocks that became free when it needs one.
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
		for request := k - 1; request >= 0; request-- {
			if before := &lines[request]; before.address == line.address && before.action == TensorFreeRequested {
				event.Place = before.place
				if before.sequence != 0 && !before.later {
					event.Sequence, event.Thread = before.sequence, before.thread
				}
				break
			}
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
