// A plain definition of correct plans, for comparing the proof with: reachability over every pair of ops, every pair of accesses,
// every byte. Shares no code with the proof, and is too slow for all but small graphs.

package planner

import (
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// reach records which of n things can be reached from which.
type reach [][]bool

func newReach(n int) reach {
	r := make(reach, n)
	for i := range r {
		r[i] = make([]bool, n)
	}
	return r
}

// close follows links that all lead to higher numbers.
func (r reach) close() {
	for j := range r {
		for i := range j {
			if r[i][j] {
				for k := range i {
					r[k][j] = r[k][j] || r[k][i]
				}
			}
		}
	}
}

// plainOp is an op and its stream.
type plainOp struct {
	op     plan.Op
	stream int32
}

// plainOps lists a plan's ops in submission order, if all of them are valid.
func plainOps(s *subject) ([]plainOp, bool) {
	p, n := s.plan, s.g.Len()
	var ops []plainOp
	next := make([]int, len(p.Streams))
	for _, k := range p.Order {
		if next[k] >= len(p.Streams[k].Ops) {
			return nil, false
		}
		ops = append(ops, plainOp{p.Streams[k].Ops[next[k]], k})
		next[k]++
	}
	launched := make([]int, n)
	for k, o := range ops {
		switch o.op.Kind {
		case plan.Launch:
			launched[o.op.Node]++
			node, stream := &s.g.Nodes[o.op.Node], &p.Streams[o.stream]
			if node.Device != stream.Device || node.Priority != stream.Priority {
				return nil, false
			}
			for _, other := range ops {
				if q := other.op; q.Kind == plan.Launch && node.Stream.Number() >= 0 && s.g.Nodes[q.Node].Stream.Number() >= 0 && (s.g.Nodes[q.Node].Stream == node.Stream) != (other.stream == o.stream) {
					return nil, false
				}
			}
		case plan.Record:
			before := -1
			for i := range k {
				if ops[i].stream == o.stream && ops[i].op.Kind == plan.Launch {
					before = int(ops[i].op.Node)
				}
			}
			if before != int(o.op.Node) {
				return nil, false
			}
			for _, other := range ops {
				if other.op.Kind == plan.Record && other.op.Event == o.op.Event && p.Streams[other.stream].Device != p.Streams[o.stream].Device {
					return nil, false
				}
			}
		case plan.Wait:
			if r := latestRecord(ops, k); r < 0 || ops[r].op.Node != o.op.Node {
				return nil, false
			}
		}
	}
	records := 0
	for _, o := range ops {
		if o.op.Kind == plan.Record {
			records++
		}
	}
	return ops, !slices.ContainsFunc(launched, func(times int) bool { return times != 1 }) && int(p.Events) <= records
}

// latestRecord returns the record that the wait at k waits for; -1 if there is none.
func latestRecord(ops []plainOp, k int) int {
	for i := k - 1; i >= 0; i-- {
		if ops[i].op.Kind == plan.Record && ops[i].op.Event == ops[k].op.Event {
			return i
		}
	}
	return -1
}

// links returns which ops come directly after which.
func links(ops []plainOp) reach {
	r := newReach(len(ops))
	for k := range ops {
		for i := range k {
			r[i][k] = ops[i].stream == ops[k].stream
		}
		if ops[k].op.Kind == plan.Wait {
			if from := latestRecord(ops, k); from >= 0 {
				r[from][k] = true
			}
		}
	}
	return r
}

// between is reach among nodes.
func betweenNodes(s *subject, ops []plainOp) reach {
	all := links(ops)
	all.close()
	r := newReach(s.g.Len())
	for i := range ops {
		for j := range ops {
			if ops[i].op.Kind == plan.Launch && ops[j].op.Kind == plan.Launch {
				r[ops[i].op.Node][ops[j].op.Node] = all[i][j]
			}
		}
	}
	return r
}

func plainlyRight(s *subject) bool {
	ops, whole := plainOps(s)
	if !whole {
		return false
	}
	before := betweenNodes(s, ops)
	return plainlyOrdered(s, before) && plainlyPlaced(s, before)
}

// plainlyOrdered compares every two nodes.
func plainlyOrdered(s *subject, before reach) bool {
	for j := range s.g.Nodes {
		for _, i := range s.g.Nodes[j].After {
			if !before[i][j] {
				return false
			}
		}
		for i := range j {
			if plainlyConflict(s.g, int32(i), int32(j)) && !before[i][j] {
				return false
			}
		}
	}
	return true
}

func plainlyConflict(g *dag.Graph, i, j int32) bool {
	for _, a := range g.Accesses(dag.NodeID(i)) {
		for _, b := range g.Accesses(dag.NodeID(j)) {
			if a.Buffer == b.Buffer && plainlyMeet(a.Range, b.Range) && (a.Mode == dag.Write || b.Mode == dag.Write || a.Mode == dag.ReadWrite || b.Mode == dag.ReadWrite) {
				return true
			}
		}
	}
	return false
}

// plainlyPlaced compares every two buffers.
func plainlyPlaced(s *subject, before reach) bool {
	g, p := s.g, s.plan
	var placed []int32
	end := map[int32]int64{}
	for _, m := range p.Memory {
		placed = append(placed, int32(m.Buffer))
		b := &g.Buffers[m.Buffer]
		if b.Place != dag.Device || m.Device != b.Device || m.Bytes != b.Bytes || m.Offset < 0 || m.Offset%256 != 0 {
			return false
		}
		end[m.Device] = max(end[m.Device], m.Offset+m.Bytes)
	}
	total := int64(0)
	for _, e := range end {
		total += e
	}
	if p.Stats.PeakDeviceBytes > 0 && total > p.Stats.PeakDeviceBytes {
		return false
	}
	var device []int32
	for b := range g.Buffers {
		if g.Buffers[b].Place == dag.Device {
			device = append(device, int32(b))
			if plainlyNeeded(g, int32(b)) && !slices.Contains(p.Kept, dag.BufferID(b)) {
				return false
			}
		} else if slices.Contains(p.Kept, dag.BufferID(b)) {
			return false
		}
	}
	if !slices.Equal(device, placed) {
		return false
	}
	for k, a := range p.Memory {
		for _, b := range p.Memory[:k] {
			if a.Device != b.Device || a.Offset >= b.Offset+b.Bytes || b.Offset >= a.Offset+a.Bytes {
				continue
			}
			if slices.Contains(p.Kept, a.Buffer) || slices.Contains(p.Kept, b.Buffer) {
				return false
			}
			if !plainlyDone(g, before, int32(a.Buffer), int32(b.Buffer)) && !plainlyDone(g, before, int32(b.Buffer), int32(a.Buffer)) {
				return false
			}
		}
	}
	return true
}

// plainlyDone reports whether every node that touches one buffer comes before every node that touches the other.
func plainlyDone(g *dag.Graph, before reach, one, other int32) bool {
	for i := range g.Nodes {
		for j := range g.Nodes {
			if plainlyTouches(g, i, one) && plainlyTouches(g, j, other) && !before[i][j] {
				return false
			}
		}
	}
	return true
}

// plainlyHolds reports whether a byte of its buffer is in a range, given one between its first and its last.
func plainlyHolds(r dag.Range, at int64) bool {
	if r.Pitch == 0 {
		return r.Lo <= at && at < r.Hi
	}
	column := at % int64(r.Pitch)
	return r.Lo <= at && at < r.Hi && column >= r.Lo%int64(r.Pitch) && column <= (r.Hi-1)%int64(r.Pitch)
}

func plainlyMeet(a, b dag.Range) bool {
	for at := max(a.Lo, b.Lo); at < min(a.Hi, b.Hi); at++ {
		if plainlyHolds(a, at) && plainlyHolds(b, at) {
			return true
		}
	}
	return false
}

func plainlyTouches(g *dag.Graph, node int, buffer int32) bool {
	return slices.ContainsFunc(g.Accesses(dag.NodeID(node)), func(a dag.Access) bool { return a.Buffer == dag.BufferID(buffer) && a.Lo < a.Hi })
}

// plainlyNeeded reports, byte by byte, whether a buffer's contents are needed before or after a replay.
func plainlyNeeded(g *dag.Graph, buffer int32) bool {
	b := &g.Buffers[buffer]
	if b.Init != nil || b.Save != "" || b.Expect != nil {
		return true
	}
	early, _ := plainlyEarly(g, buffer)
	return early && !b.Scratch
}

// plainlyEarly reports whether a byte is read before it is written, and whether such a byte is written afterwards.
func plainlyEarly(g *dag.Graph, buffer int32) (early, carried bool) {
	written, read := make([]bool, g.Buffers[buffer].Bytes), make([]bool, g.Buffers[buffer].Bytes)
	for i := range g.Nodes {
		for _, a := range g.Accesses(dag.NodeID(i)) {
			for at := a.Lo; at < a.Hi && a.Buffer == dag.BufferID(buffer) && a.Mode != dag.Write; at++ {
				if plainlyHolds(a.Range, at) && !written[at] {
					early, read[at] = true, true
				}
			}
		}
		for _, a := range g.Accesses(dag.NodeID(i)) {
			for at := a.Lo; at < a.Hi && a.Buffer == dag.BufferID(buffer) && a.Mode != dag.Read; at++ {
				if plainlyHolds(a.Range, at) {
					written[at] = true
					carried = carried || read[at]
				}
			}
		}
	}
	return early, carried
}

// plainlyRightEdges reports whether the edges keep the order of streams, of conflicts and of shared memory.
func plainlyRightEdges(s *subject) bool {
	ops, _ := plainOps(s)
	var order []int32
	stream := make([]int32, s.g.Len())
	for _, o := range ops {
		if o.op.Kind == plan.Launch {
			order = append(order, int32(o.op.Node))
			stream[o.op.Node] = o.stream
		}
	}
	place := make([]int, s.g.Len())
	for k, node := range order {
		place[node] = k
	}
	r := newReach(s.g.Len())
	for _, e := range s.edges {
		if e.From == plan.GraphRoot {
			if e.To < 0 {
				return false
			}
			continue
		}
		if e.To < 0 || place[e.From] >= place[e.To] {
			return false
		}
		r[place[e.From]][place[e.To]] = true
	}
	r.close()
	before := newReach(s.g.Len())
	for i := range order {
		for j := range order {
			before[order[i]][order[j]] = r[i][j]
			if i < j && stream[order[i]] == stream[order[j]] && !r[i][j] {
				return false
			}
		}
	}
	return plainlyOrdered(s, before) && plainlyPlaced(s, before)
}

// plainlyRightReplay puts one node before a replay and one after it on the origin stream: every launch must run between them.
func plainlyRightReplay(s *subject) bool {
	ops := []plainOp{{plan.Op{Kind: plan.Launch, Node: -2, Event: -1}, 0}}
	recorded := map[int32]int{}
	for _, o := range s.replay.Ops {
		if o.Node < 0 {
			if o.Kind == plan.Record {
				recorded[o.Event]++
			}
			if recorded[o.Event] != 1 {
				return false
			}
		}
		ops = append(ops, plainOp{o.Op, o.Stream})
	}
	ops = append(ops, plainOp{plan.Op{Kind: plan.Launch, Node: -3, Event: -1}, 0})
	r := links(ops)
	r.close()
	for k, o := range ops {
		if o.op.Kind == plan.Launch && o.op.Node >= 0 && !(r[0][k] && r[k][len(ops)-1]) {
			return false
		}
	}
	if s.replay.Instances > 1 {
		for b := range s.g.Buffers {
			if _, carried := plainlyEarly(s.g, int32(b)); carried {
				return false
			}
		}
	}
	return true
}
