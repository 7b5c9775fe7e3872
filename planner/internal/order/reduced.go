// The transitive reduction of a plan's order: for the edges of a CUDA graph.

package order

import (
	"slices"

	"github.com/dagrun/dagrun/planner/internal/scratch"
	"github.com/dagrun/dagrun/planner/plan"
)

// link is a pair of launches, one directly after the other. from is -1 once the link is known to be redundant.
type link struct{ from, to int32 }

// front holds the launches that come directly after a point of a stream or after an event's record.
type front []int32

// usualFront is how many launches most fronts have at most.
const usualFront = 4

// Reduced returns the pairs of launches that the plan orders and that no launch between them orders: for the k-th node submitted, those
// before it are from[start[k]:start[k+1]], ascending.
//
// It walks backwards and keeps, for each stream and event, the launches that directly follow this point, and the first launch of every
// stream that starts after one of those has finished. A direct follower is redundant if it also starts after another one has finished.
func (s *Schedule) Reduced(p *plan.Plan) (start, from []int32) {
	r := &reduction{p: p, s: s, seen: make([]int32, len(s.Spots)), links: make([]link, 0, len(p.Order))}
	width := passWidth(len(p.Streams), len(p.Streams)+int(p.Events))
	for low := 0; low < max(1, len(p.Streams)); low += width {
		r.pass(int32(low), min(width, len(p.Streams)-low))
	}
	return r.list()
}

// reduction is a walk against the submission order.
type reduction struct {
	p     *plan.Plan
	s     *Schedule
	links []link

	streams, events         []front
	streamAfter, eventAfter []int32 // rows of positions
	seen                    []int32 // by node: the round in which it was last met
	round                   int32
}

// pass finds links that are redundant because of what comes after them on some streams. The first pass also finds the links.
func (r *reduction) pass(low int32, width int) {
	n, events := len(r.p.Streams), int(r.p.Events)
	fronts := make([]front, n+events)
	room := make([]int32, usualFront*len(fronts))
	for k := range fronts {
		fronts[k] = front(room[usualFront*k:][:0:usualFront])
	}
	r.streams, r.events = fronts[:n], fronts[n:]
	r.streamAfter, r.eventAfter = scratch.Sized(r.streamAfter, n*width), scratch.Sized(r.eventAfter, events*width)
	for i := range r.streamAfter {
		r.streamAfter[i] = never
	}
	for i := range r.eventAfter {
		r.eventAfter[i] = never
	}
	at := 0 // in links
	forEachOpBackward(r.p, func(stream int32, op *plan.Op) {
		after := r.streamAfter[int(stream)*width:][:width]
		switch op.Kind {
		case plan.Launch:
			if low == 0 {
				for _, to := range r.streams[stream] {
					r.links = append(r.links, link{int32(op.Node), to})
				}
			}
			for _, to := range r.streams[stream] {
				spot := r.s.Spots[to]
				if k := int(spot.Stream - low); k >= 0 && k < width && after[k] <= spot.Pos {
					r.links[at].from = -1
				}
				at++
			}
			for _, to := range r.streams[stream] {
				spot := r.s.Spots[to]
				if k := int(spot.Stream - low); k >= 0 && k < width {
					after[k] = min(after[k], spot.Pos)
				}
			}
			r.streams[stream] = append(r.streams[stream][:0], int32(op.Node))
		case plan.Wait:
			r.events[op.Event] = append(r.events[op.Event], r.streams[stream]...)
			lower(r.eventAfter[int(op.Event)*width:][:width], after)
		case plan.Record:
			if len(r.events[op.Event]) > 0 {
				waiting := r.eventAfter[int(op.Event)*width:][:width]
				r.streams[stream] = r.distinct(append(r.streams[stream], r.events[op.Event]...))
				lower(after, waiting)
				for k := range waiting {
					waiting[k] = never
				}
				r.events[op.Event] = r.events[op.Event][:0]
			}
		}
	})
}

// distinct removes duplicates.
func (r *reduction) distinct(nodes front) front {
	r.round++
	return slices.DeleteFunc(nodes, func(node int32) bool {
		again := r.seen[node] == r.round
		r.seen[node] = r.round
		return again
	})
}

// list sorts the needed links by the place of the later node, then by the earlier node.
func (r *reduction) list() (start, from []int32) {
	n := len(r.s.Order)
	place := make([]int32, len(r.s.Spots))
	for k, node := range r.s.Order {
		place[node] = int32(k)
	}
	start = make([]int32, n+1)
	for _, l := range r.links {
		if l.from >= 0 {
			start[place[l.to]+1]++
		}
	}
	for k := range n {
		start[k+1] += start[k]
	}
	from = make([]int32, start[n])
	next := slices.Clone(start[:n])
	for _, l := range r.links {
		if k := place[l.to]; l.from >= 0 {
			from[next[k]] = l.from
			next[k]++
		}
	}
	for k := range n {
		slices.Sort(from[start[k]:start[k+1]])
	}
	return start, from
}
