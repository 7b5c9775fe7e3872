// Dispatching: how long a placement takes if every device always runs the most urgent node that is ready. It is the estimate that the search
// uses. Nothing is planned or laid out for it, so it is some ten times faster than the simulator, which judges the finalists.

package placement

import (
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/scratch"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
)

// When an edge holds its target back.
const (
	always     uint8 = iota
	sameDevice       // only where both nodes run on one device: elsewhere the bytes are another piece of memory
)

// dispatcher runs placements. What follows from the graph alone is found once.
type dispatcher struct {
	e     *estimator
	buses *model.Buses

	succStart []int32 // by vertex: its edges are succTo[succStart[v]:succStart[v+1]]
	succTo    []int32
	succWhen  []uint8
	readStart []int32 // by datum: the nodes that read it are readers[readStart[id]:readStart[id+1]], in declared order
	readers   []int32
	wroteFrom []int32 // by node, and the start: the data that it writes are wrote[wroteFrom[i]:wroteFrom[i+1]]
	wrote     []int32
	place     []int32 // by node: its place in the order of urgency

	need    []int32 // by vertex: what it still waits for
	ready   []float64
	by      []int32 // by vertex: the node that it waited for last, -1 for none
	devices []deviceState
	engines []float64 // by device and copier
	busFree []float64 // by direction of a bus
	arrived []int32   // scratch: the devices that have a datum, in the order in which they get it
	rounds  []int32
	hops    []move // that wait for another to bring what they send on
	moves   []move // that are ready
	route   []int32
	events  scratch.Heap[dispatched]
	host    float64
	end     float64
	last    int32
}

// deviceState is what a device runs.
type deviceState struct {
	running int
	used    float64
	waiting scratch.Heap[placed] // of nodes that are ready

	sending bool
	outbox  scratch.Heap[placed] // of copies to other devices that are ready, by the most urgent reader; the numbers of moves
}

// placed is a place in the order of urgency, and what is there.
type placed struct{ place, what int32 }

// Before puts what is more urgent first.
func (p placed) Before(o placed) bool { return p.place < o.place }

// move is a copy of a datum from one device to another.
type move struct{ datum, from, to int32 }

// dispatched is something that happens at a time: a node is ready or ends, or a datum arrives.
type dispatched struct {
	us   float64
	kind uint8
	a, b int32
}

const (
	ends uint8 = iota
	sent       // a is the device that sent, which is free again
	arrives
	isReady
)

func newDispatcher(e *estimator) *dispatcher {
	p := e.p
	g := p.Graph
	n, vertices := g.Len(), g.Vertices()
	d := &dispatcher{e: e, buses: model.BusesOf(e.m, p.Devices), need: make([]int32, vertices), ready: make([]float64, vertices), by: make([]int32, vertices),
		devices: make([]deviceState, p.Devices), engines: make([]float64, p.Devices*copiers), place: make([]int32, n)}
	d.busFree = make([]float64, len(d.buses.Rates()))
	for k, i := range e.order {
		d.place[i] = int32(k)
	}
	d.succStart = make([]int32, vertices+1)
	each := func(visit func(from, to int32, when uint8)) {
		for v := range vertices {
			edges := g.PredEdges(dag.NodeID(v))
			for k, from := range g.Preds(dag.NodeID(v)) {
				edge := &g.Edges()[edges[k]]
				switch {
				case g.IsJoin(from) || g.IsJoin(dag.NodeID(v)) || edge.Declared || p.stays[edge.Buffer]:
					visit(int32(from), int32(v), always)
				case edge.Why != dag.RAW:
					visit(int32(from), int32(v), sameDevice)
				}
			}
		}
	}
	each(func(from, _ int32, _ uint8) { d.succStart[from+1]++ })
	for v := range vertices {
		d.succStart[v+1] += d.succStart[v]
	}
	d.succTo, d.succWhen = make([]int32, d.succStart[vertices]), make([]uint8, d.succStart[vertices])
	next := append([]int32(nil), d.succStart...)
	each(func(from, to int32, when uint8) {
		d.succTo[next[from]], d.succWhen[next[from]] = to, when
		next[from]++
	})
	f := e.flows
	d.readStart = make([]int32, len(f.data)+1)
	for _, id := range f.reads {
		d.readStart[id+1]++
	}
	for id := range f.data {
		d.readStart[id+1] += d.readStart[id]
	}
	d.readers, next = make([]int32, len(f.reads)), append([]int32(nil), d.readStart...)
	for i := range n {
		for _, id := range f.reads[f.start[i]:f.start[i+1]] {
			d.readers[next[id]] = int32(i)
			next[id]++
		}
	}
	d.wroteFrom = make([]int32, n+2)
	for id := range f.data {
		d.wroteFrom[f.data[id].writer+2]++
	}
	for i := range n + 1 {
		d.wroteFrom[i+1] += d.wroteFrom[i]
	}
	d.wrote, next = make([]int32, len(f.data)), append([]int32(nil), d.wroteFrom...)
	for id := range f.data {
		at := &next[f.data[id].writer+1]
		d.wrote[*at] = int32(id)
		*at++
	}
	return d
}

// makespan runs a placement. The nodes on which its end depends can be found with critical.
func (d *dispatcher) makespan(at []int32) float64 {
	e := d.e
	g := e.p.Graph
	n := g.Len()
	e.steps += n
	e.home(at)
	clear(d.need)
	clear(d.ready)
	clear(d.engines)
	clear(d.busFree)
	for k := range d.devices {
		d.devices[k] = deviceState{waiting: d.devices[k].waiting[:0], outbox: d.devices[k].outbox[:0]}
	}
	d.moves = d.moves[:0]
	d.events, d.hops, d.host, d.end, d.last = d.events[:0], d.hops[:0], 0, 0, -1
	for v := range d.need {
		d.by[v] = -1
		for k := d.succStart[v]; k < d.succStart[v+1]; k++ {
			if d.succWhen[k] == always || at[v] == at[d.succTo[k]] {
				d.need[d.succTo[k]]++
			}
		}
	}
	for i := range n {
		d.need[i] += e.flows.start[i+1] - e.flows.start[i]
	}
	for v := range d.need {
		if d.need[v] == 0 {
			d.release(int32(v), 0, -1, at)
		}
	}
	d.send(-1, 0, at)
	for len(d.events) > 0 {
		x := d.events.Pop()
		switch x.kind {
		case ends:
			d.finish(x.a, x.us, at)
		case sent:
			d.devices[x.a].sending = false
			d.ship(x.a, x.us)
		case arrives:
			d.arrive(x.a, x.b, x.us, at)
		case isReady:
			d.enter(x.a, x.us, at)
		}
	}
	for _, f := range e.flows.final {
		if from, to := at[f.writer], e.homes[f.buffer]; from != to {
			if end := d.transfer(d.ready[f.writer], from, to, f.bytes); end > d.end {
				d.end, d.last = end, f.writer
			}
		}
	}
	return d.end
}

// critical lists nodes each of which waited for the next.
func (d *dispatcher) critical(list []int32) []int32 {
	for i := d.last; i >= 0 && len(list) < len(d.by); i = d.by[i] {
		if int(i) < len(d.place) {
			list = append(list, i)
		}
	}
	return list
}

// release notes that a vertex waits for one thing less, from a time on.
func (d *dispatcher) release(v int32, us float64, by int32, at []int32) {
	if us >= d.ready[v] {
		d.ready[v], d.by[v] = us, by
	}
	if d.need[v]--; d.need[v] > 0 {
		return
	}
	d.need[v] = -1
	if int(v) >= len(d.place) { // a join
		d.follow(v, d.ready[v], v, at)
		return
	}
	d.events.Push(dispatched{d.ready[v], isReady, v, 0})
}

// follow releases what comes after a vertex.
func (d *dispatcher) follow(v int32, us float64, by int32, at []int32) {
	for k := d.succStart[v]; k < d.succStart[v+1]; k++ {
		if to := d.succTo[k]; d.succWhen[k] == always || at[v] == at[to] {
			d.release(to, us, by, at)
		}
	}
}

// enter lets a node that is ready wait for its device, or starts it.
func (d *dispatcher) enter(i int32, us float64, at []int32) {
	e := d.e
	if e.engine[i] == plan.Compute {
		s := &d.devices[e.sharer(at[i])]
		s.waiting.Push(placed{d.place[i], i})
		d.serve(s, us)
		return
	}
	begin := max(us, d.submit())
	if !e.m.Unit && e.engine[i] != plan.HostCopy {
		clock := &d.engines[int(at[i])*copiers+copierOf(e.engine[i])]
		begin = max(begin, *clock)
		*clock = begin + e.times[i]
	}
	d.events.Push(dispatched{begin + e.times[i], ends, i, 0})
}

// The copiers of a device.
const (
	up = iota
	down
	local
	out
	copiers
)

// copierOf is the copier of a node that does not compute.
func copierOf(e plan.Engine) int {
	switch e {
	case plan.Upload:
		return up
	case plan.Download:
		return down
	case plan.PeerCopy:
		return out
	}
	return local
}

// submit is when the host can have submitted one more node.
func (d *dispatcher) submit() float64 {
	d.host += d.e.m.LaunchUS
	return d.host
}

// serve starts the most urgent nodes that fit.
func (d *dispatcher) serve(s *deviceState, us float64) {
	e := d.e
	for len(s.waiting) > 0 {
		i := s.waiting[0].what
		if s.running > 0 && (s.running >= e.slots || s.used+e.shares[i] > 1+1e-9) {
			return
		}
		s.waiting.Pop()
		s.running++
		s.used += e.shares[i]
		d.events.Push(dispatched{max(us, d.submit()) + e.times[i], ends, i, 0})
	}
}

// finish ends a node.
func (d *dispatcher) finish(i int32, us float64, at []int32) {
	e := d.e
	if us > d.end {
		d.end, d.last = us, i
	}
	d.ready[i] = us
	if e.engine[i] == plan.Compute {
		s := &d.devices[e.sharer(at[i])]
		s.running--
		if s.used -= e.shares[i]; s.running == 0 {
			s.used = 0
		}
		if len(s.waiting) > 0 {
			if j := s.waiting[0].what; d.ready[j] < us { // it waited for the device
				d.by[j] = i
			}
		}
		d.serve(s, us)
	}
	d.follow(i, us+e.m.GapUS, i, at)
	d.send(i, us, at)
}

// send brings what a node wrote to the devices that read it, along a tree as the walk makes it.
func (d *dispatcher) send(writer int32, us float64, at []int32) {
	e := d.e
	for _, id := range d.wrote[d.wroteFrom[writer+1]:d.wroteFrom[writer+2]] {
		from := e.flows.from(id, e.homes, at)
		if writer >= 0 {
			from = at[writer]
		}
		d.arrived, d.rounds = append(d.arrived[:0], from), append(d.rounds[:0], 0)
		for _, r := range d.readers[d.readStart[id]:d.readStart[id+1]] {
			to := at[r]
			if to == from {
				d.release(r, us+e.m.GapUS, writer, at)
				continue
			}
			if d.has(to) {
				continue
			}
			sender := 0
			for k := range d.arrived {
				if d.rounds[k] < d.rounds[sender] || d.rounds[k] == d.rounds[sender] && d.arrived[k] < d.arrived[sender] {
					sender = k
				}
			}
			d.rounds[sender]++
			if d.arrived[sender] == from {
				d.post(move{id, from, to}, us, at)
			} else {
				d.hops = append(d.hops, move{id, d.arrived[sender], to})
			}
			d.arrived, d.rounds = append(d.arrived, to), append(d.rounds, d.rounds[sender])
		}
	}
}

func (d *dispatcher) has(device int32) bool {
	for _, a := range d.arrived {
		if a == device {
			return true
		}
	}
	return false
}

// arrive lets the readers of a datum on a device go on, and the copies that send it on.
func (d *dispatcher) arrive(id, device int32, us float64, at []int32) {
	writer := d.e.flows.data[id].writer
	for _, r := range d.readers[d.readStart[id]:d.readStart[id+1]] {
		if at[r] == device {
			d.release(r, us+d.e.m.SyncUS+d.e.m.GapUS, writer, at)
		}
	}
	for k := 0; k < len(d.hops); k++ {
		if h := d.hops[k]; h.datum == id && h.from == device {
			d.post(h, us, at)
			d.hops[k] = d.hops[len(d.hops)-1]
			d.hops = d.hops[:len(d.hops)-1]
			k--
		}
	}
}

// post lets a copy wait for its turn on the device that sends it.
func (d *dispatcher) post(m move, us float64, at []int32) {
	place := int32(len(d.place))
	for _, r := range d.readers[d.readStart[m.datum]:d.readStart[m.datum+1]] {
		if at[r] == m.to {
			place = min(place, d.place[r])
		}
	}
	d.devices[m.from].outbox.Push(placed{place, int32(len(d.moves))})
	d.moves = append(d.moves, m)
	d.ship(m.from, us)
}

// ship starts the most urgent copy of a device that sends none.
func (d *dispatcher) ship(from int32, us float64) {
	s := &d.devices[from]
	if s.sending || len(s.outbox) == 0 {
		return
	}
	m := d.moves[s.outbox.Pop().what]
	end := d.transfer(us, from, m.to, d.e.flows.data[m.datum].bytes)
	s.sending = true
	d.events.Push(dispatched{end, sent, from, 0})
	d.events.Push(dispatched{end, arrives, m.datum, m.to})
}

// transfer returns when bytes that are sent from a time on arrive on another device. A bus is busy until it has carried all bytes so far.
func (d *dispatcher) transfer(us float64, from, to int32, bytes int64) float64 {
	e := d.e
	begin := max(us, d.submit())
	end := begin + e.copyUS + float64(bytes)/e.rate
	d.route = d.buses.Between(from, to, d.route[:0])
	for _, b := range d.route {
		free := &d.busFree[b]
		*free = max(*free, begin) + float64(bytes)/d.buses.Rates()[b]
		end = max(end, *free)
	}
	return end
}

// Before puts what happens earlier first.
func (x dispatched) Before(o dispatched) bool {
	if x.us != o.us {
		return x.us < o.us
	}
	if x.kind != o.kind {
		return x.kind < o.kind
	}
	return x.a < o.a || x.a == o.a && x.b < o.b
}
