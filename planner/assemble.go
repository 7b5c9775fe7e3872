// Assembly: an assignment and its waits become streams of ops, a submission order and events. Decides no order and no wait.

package planner

import "slices"

// assemble fills in the plan's streams, order and events. A record stands right after its node and only where a wait uses it.
func assemble(p *problem, s *assignment, w *waitList, single bool, plan *Plan) {
	n := p.len()
	words := make([]int32, 2*n)
	pending, event := words[:n], words[n:] // by node: waits on it that are not submitted yet, and its event
	for _, q := range w.from {
		pending[q]++
	}
	size := make([]int32, len(s.lanes))
	records := 0
	for i := range int32(n) {
		size[s.stream[i]] += 1 + w.start[i+1] - w.start[i]
		if pending[i] > 0 {
			size[s.stream[i]]++
			records++
		}
	}
	ops := make([]Op, 0, n+len(w.from)+records)
	plan.Streams = make([]Stream, len(s.lanes))
	for k, l := range s.lanes {
		q := p.pools[l.pool]
		end := len(ops) + int(size[k])
		plan.Streams[k] = Stream{Device: q.device, Priority: q.priority, Ops: ops[len(ops):len(ops):end]}
		ops = ops[:end]
	}
	plan.Order = make([]int32, 0, cap(ops))
	free := eventPool{single: single}
	for _, i := range s.order {
		k := s.stream[i]
		stream := &plan.Streams[k]
		for _, q := range w.of(i) {
			stream.Ops = append(stream.Ops, Op{Wait, q, event[q]})
			plan.Order = append(plan.Order, k)
			// A wait takes the record that was submitted last, so once the last wait is in, the event may be recorded again.
			if pending[q]--; pending[q] == 0 {
				free.put(plan.Streams[s.stream[q]].Device, event[q])
			}
		}
		stream.Ops = append(stream.Ops, Op{Launch, i, -1})
		plan.Order = append(plan.Order, k)
		if pending[i] > 0 {
			event[i] = free.take(stream.Device)
			stream.Ops = append(stream.Ops, Op{Record, i, event[i]})
			plan.Order = append(plan.Order, k)
		}
	}
	plan.Events = free.made
	plan.Stats.Nodes = n
	plan.Stats.Edges = len(p.g.Edges())
	plan.Stats.Streams = len(plan.Streams)
	plan.Stats.Records = records
	plan.Stats.Waits = len(w.from)
	plan.Stats.Events = int(free.made)
	plan.Stats.ForkRecords, plan.Stats.ForkWaits = plan.countForkJoin()
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

func (e *eventPool) take(device int32) int32 {
	if k := slices.Index(e.devices, device); k >= 0 && len(e.free[k]) > 0 {
		last := len(e.free[k]) - 1
		id := e.free[k][last]
		e.free[k] = e.free[k][:last]
		return id
	}
	e.made++
	return e.made - 1
}

func (e *eventPool) put(device, id int32) {
	if e.single {
		return
	}
	k := slices.Index(e.devices, device)
	if k < 0 {
		k = len(e.free)
		e.devices = append(e.devices, device)
		e.free = append(e.free, make([]int32, 0, usualEvents))
	}
	e.free[k] = append(e.free[k], id)
}
