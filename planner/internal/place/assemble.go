// Assembly: turns an assignment and its waits into streams of ops, a submission order and events.

package place

import (
	"slices"
	"sync"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/planted"
	"github.com/dagrun/dagrun/planner/internal/scratch"
	"github.com/dagrun/dagrun/planner/plan"
)

// assembler holds the state of assembly, by node and by stream.
type assembler struct {
	pending []int32 // by node, waits on it that are not submitted yet
	event   []int32 // by node, the event recorded after it
	at      []int32 // by stream, the next op
	size    []int32 // by stream, ops
	device  []int32 // by stream, where in free its device's events are
	free    eventPool
}

var assemblers = sync.Pool{New: func() any { return new(assembler) }}

// Finish numbers the streams of an assignment and makes the streams, order and events of a plan. With single, each record has its
// own event.
func Finish(p *Problem, a *Assignment, single bool, made *plan.Plan) error {
	if p.explicit || p.inOrder { // where explicit, so that the set of races does not depend on priorities
		a.order = p.order
	}
	a.number(p)
	w, err := insertWaits(p, a)
	if err != nil {
		return err
	}
	plantFaults(p, a, w)
	assemble(p, a, w, single, made)
	return nil
}

// plantFaults adds the faults that a test asks for.
func plantFaults(p *Problem, a *Assignment, w *waitList) {
	n := p.len()
	switch last := len(w.from) - 1; {
	case planted.Is(planted.Placement) && n > 0:
		node := a.order[n-1]
		a.stream[node] = (a.stream[node] + 1) % int32(len(a.streams))
	case planted.Is(planted.Order) && n > 1:
		a.order = slices.Clone(a.order)
		for k := n - 1; k > 0; k-- {
			// No wait stands between neighbours of one stream, so the plan stays whole.
			if i, j := a.order[k-1], a.order[k]; a.stream[i] == a.stream[j] {
				a.order[k-1], a.order[k] = j, i
				break
			}
		}
	case planted.Is(planted.Waits) && last >= 0:
		w.from = w.from[:last]
		for k := n; k >= 0 && w.start[k] > int32(last); k-- {
			w.start[k] = int32(last)
		}
	}
}

// assemble fills in the plan's streams, order and events. A record stands right after its node and only where a wait uses it.
func assemble(p *Problem, s *Assignment, w *waitList, single bool, made *plan.Plan) {
	n, streams := p.len(), len(s.streams)
	a := assemblers.Get().(*assembler)
	a.pending, a.event = scratch.Zeroed(a.pending, n), scratch.Sized(a.event, n)
	a.at, a.size, a.device = scratch.Sized(a.at, streams), scratch.Zeroed(a.size, streams), scratch.Sized(a.device, streams)
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
	ops := make([]plan.Op, n+len(w.from)+records)
	made.Streams = make([]plan.Stream, streams)
	begin := int32(0)
	for k, l := range s.streams {
		q := p.pools[l.pool]
		end := begin + size[k]
		made.Streams[k] = plan.Stream{Device: q.device, Priority: q.priority, Ops: ops[begin:end:end]}
		at[k], a.device[k] = begin, a.free.of(q.device)
		begin = end
	}
	made.Order = make([]int32, len(ops))
	order := made.Order
	submitted := 0
	for _, i := range s.order {
		k := s.stream[i]
		next := at[k]
		for _, q := range w.of(i) {
			ops[next] = plan.Op{Kind: plan.Wait, Node: dag.NodeID(q), Event: event[q]}
			next++
			order[submitted] = k
			submitted++
			// A wait uses the record that was submitted last, so after the last wait the event may be recorded again.
			if pending[q]--; pending[q] == 0 {
				a.free.put(a.device[s.stream[q]], event[q])
			}
		}
		ops[next] = plan.Op{Kind: plan.Launch, Node: dag.NodeID(i), Event: -1}
		next++
		order[submitted] = k
		submitted++
		if pending[i] > 0 {
			event[i] = a.free.take(a.device[k])
			ops[next] = plan.Op{Kind: plan.Record, Node: dag.NodeID(i), Event: event[i]}
			next++
			order[submitted] = k
			submitted++
		}
		at[k] = next
	}
	made.Events = a.free.made
	made.Stats.Nodes = n
	made.Stats.Edges = len(p.g.Edges())
	made.Stats.Streams = len(made.Streams)
	made.Stats.Records = records
	made.Stats.Waits = len(w.from)
	made.Stats.Events = int(a.free.made)
	made.Stats.ForkRecords, made.Stats.ForkWaits = made.CountForkJoin()
	if n <= scratch.MostKept {
		assemblers.Put(a)
	}
}

// usualEvents is the initial capacity of a device's list of free events.
const usualEvents = 16

// eventPool hands out events, each to one device only. There are few devices, so a linear search finds one.
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

// of returns the index of a device.
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
