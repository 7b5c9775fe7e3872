// Assembly: an assignment and its waits become streams of ops, a submission order and events. Decides no order and no wait.

package planner

import (
	"slices"
	"sync"
)

// assembler is what assembly keeps by node and by stream.
type assembler struct {
	pending []int32 // by node, waits on it that are not submitted yet
	event   []int32 // by node, the event recorded after it
	at      []int32 // by stream, the next op
	size    []int32 // by stream, ops
	device  []int32 // by stream, where in free its device's events are
	free    eventPool
}

var assemblers = sync.Pool{New: func() any { return new(assembler) }}

// assemble fills in the plan's streams, order and events. A record stands right after its node and only where a wait uses it.
func assemble(p *problem, s *assignment, w *waitList, single bool, plan *Plan) {
	n, streams := p.len(), len(s.lanes)
	a := assemblers.Get().(*assembler)
	a.pending, a.event = zeroed(a.pending, n), sized(a.event, n)
	a.at, a.size, a.device = sized(a.at, streams), zeroed(a.size, streams), sized(a.device, streams)
	a.free.reset(single)
	pending, event, at, size := a.pending, a.event, a.at, a.size
	for _, q := range w.from {
		pending[q]++
	}
	records := 0
	for i, k := range s.stream {
		size[k] += 1 + w.start[i+1] - w.start[i]
		if pending[i] > 0 {
			size[k]++
			records++
		}
	}
	ops := make([]Op, n+len(w.from)+records)
	plan.Streams = make([]Stream, streams)
	begin := int32(0)
	for k, l := range s.lanes {
		q := p.pools[l.pool]
		end := begin + size[k]
		plan.Streams[k] = Stream{Device: q.device, Priority: q.priority, Ops: ops[begin:end:end]}
		at[k], a.device[k] = begin, a.free.of(q.device)
		begin = end
	}
	plan.Order = make([]int32, len(ops))
	order := plan.Order
	submitted := 0
	for _, i := range s.order {
		k := s.stream[i]
		next := at[k]
		for _, q := range w.of(i) {
			ops[next] = Op{Wait, q, event[q]}
			next++
			order[submitted] = k
			submitted++
			// A wait takes the record that was submitted last, so once the last wait is in, the event may be recorded again.
			if pending[q]--; pending[q] == 0 {
				a.free.put(a.device[s.stream[q]], event[q])
			}
		}
		ops[next] = Op{Launch, i, -1}
		next++
		order[submitted] = k
		submitted++
		if pending[i] > 0 {
			event[i] = a.free.take(a.device[k])
			ops[next] = Op{Record, i, event[i]}
			next++
			order[submitted] = k
			submitted++
		}
		at[k] = next
	}
	plan.Events = a.free.made
	plan.Stats.Nodes = n
	plan.Stats.Edges = len(p.g.Edges())
	plan.Stats.Streams = len(plan.Streams)
	plan.Stats.Records = records
	plan.Stats.Waits = len(w.from)
	plan.Stats.Events = int(a.free.made)
	plan.Stats.ForkRecords, plan.Stats.ForkWaits = plan.countForkJoin()
	if n <= mostKept {
		assemblers.Put(a)
	}
}

// usualEvents is how many free events of a device there is room for from the start.
const usualEvents = 16

// eventPool hands out events, each to one device only. Devices are few, so they are searched one by one.
type eventPool struct {
	single  bool
	made    int32
	devices []int32
	free    [][]int32 // by index into devices
}

// reset takes all events back.
func (e *eventPool) reset(single bool) {
	e.single, e.made = single, 0
	e.devices = e.devices[:0]
}

// of returns the number that a device has here.
func (e *eventPool) of(device int32) int32 {
	k := slices.Index(e.devices, device)
	if k < 0 {
		k = len(e.devices)
		e.devices = append(e.devices, device)
		if k == len(e.free) {
			e.free = append(e.free, make([]int32, 0, usualEvents))
		}
		e.free[k] = e.free[k][:0]
	}
	return int32(k)
}

func (e *eventPool) take(device int32) int32 {
	free := e.free[device]
	if len(free) == 0 {
		e.made++
		return e.made - 1
	}
	last := len(free) - 1
	e.free[device] = free[:last]
	return free[last]
}

func (e *eventPool) put(device, id int32) {
	if !e.single {
		e.free[device] = append(e.free[device], id)
	}
}
