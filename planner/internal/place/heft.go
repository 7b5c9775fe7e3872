// The heft strategy: takes nodes by longest remaining path and puts each where it ends first, even into an earlier gap. As published
// (Topcuoglu, Hariri and Wu, 2002), with the copy engines as processors of their own.

package place

import (
	"cmp"
	"slices"

	"github.com/dagrun/dagrun/planner/plan"
)

// span is a period in which a processor is busy.
type span struct{ from, to float64 }

// processor holds the busy periods of a stream or a copy engine, in order of time.
type processor struct{ busy []span }

// fit returns the earliest time, not before ready, from which the processor is idle for us microseconds.
func (c *processor) fit(ready, us float64) float64 {
	// Spans that end before ready do not matter.
	at, _ := slices.BinarySearchFunc(c.busy, ready, func(s span, ready float64) int { return cmp.Compare(s.to, ready) })
	start := ready
	for ; at < len(c.busy); at++ {
		if c.busy[at].from >= start+us {
			break
		}
		start = max(start, c.busy[at].to)
	}
	return start
}

func (c *processor) take(from, to float64) {
	// Insert after all spans that start at the same time, so that nodes without duration keep their order.
	at, _ := slices.BinarySearchFunc(c.busy, from, func(s span, from float64) int {
		if s.from <= from {
			return -1
		}
		return 1
	})
	c.busy = slices.Insert(c.busy, at, span{from, to})
}

// Heft plans with the heft strategy.
func Heft(p *Problem) (*Assignment, error) {
	n := p.len()
	s := &Assignment{stream: make([]int32, n)}
	for k := range p.bindings {
		s.streams = append(s.streams, draftStream{pool: p.bindings[k].pool, binding: int32(k)})
	}
	open := make([][]int32, len(p.pools)) // the streams of each pool that nodes may choose from
	for k := range p.bindings {
		if q := p.bindings[k].pool; !p.explicit {
			open[q] = append(open[q], int32(k))
		}
	}
	for q := range p.pools {
		for len(open[q]) < p.evenShare(q) {
			open[q] = append(open[q], int32(len(s.streams)))
			s.streams = append(s.streams, draftStream{pool: int32(q), binding: -1})
		}
	}
	streams := make([]processor, len(s.streams))
	type copies struct {
		pool int32
		kind plan.Engine
	}
	lines := map[copies]int32{} // the stream of a pool's copies of one kind
	engines := map[[2]int32]*processor{}
	start, end := make([]float64, n), make([]float64, n)
	ranked := p.byRank()
	most := len(s.streams) + len(p.pools)*int(plan.EngineKinds)
	r := p.newResolver(most, func(i int32) int32 { return s.stream[i] }, func(a, b int32) bool { return end[a] > end[b] })
	for _, i := range ranked {
		choices := open[p.poolOf(i)]
		var engine *processor
		kind := p.engineOf(i)
		if kind != plan.Compute {
			at := copies{p.poolOf(i), kind}
			k, ok := lines[at]
			if !ok {
				k = int32(len(s.streams))
				lines[at] = k
				s.streams = append(s.streams, draftStream{pool: at.pool, binding: -1})
				streams = append(streams, processor{})
			}
			choices = []int32{k}
			device := [2]int32{int32(kind), p.pools[at.pool].device}
			if kind == plan.HostCopy {
				device[1] = 0
			}
			if engines[device] == nil {
				engines[device] = new(processor)
			}
			if engine = engines[device]; p.machine.Unit {
				engine = nil
			}
		}
		if b := p.boundOf(i); b >= 0 {
			choices = []int32{b}
		}
		before := r.before(i)
		best, bestStart := int32(-1), 0.0
		for _, k := range choices {
			ready := 0.0
			for _, q := range before {
				at := end[q]
				if s.stream[q] != k {
					at += p.sync()
				}
				ready = max(ready, at)
			}
			at := streams[k].fit(ready, p.duration[i])
			for engine != nil {
				later := engine.fit(at, p.duration[i])
				if later == at {
					break
				}
				at = streams[k].fit(later, p.duration[i])
			}
			if best < 0 || at < bestStart {
				best, bestStart = k, at
			}
		}
		s.stream[i] = best
		s.streams[best].computes = s.streams[best].computes || kind == plan.Compute
		start[i], end[i] = bestStart, bestStart+p.duration[i]
		streams[best].take(start[i], end[i])
		if engine != nil {
			engine.take(start[i], end[i])
		}
	}
	place := make([]int32, n)
	for k, i := range ranked {
		place[i] = int32(k)
	}
	s.order = slices.Clone(ranked)
	slices.SortFunc(s.order, func(a, b int32) int { return cmp.Or(cmp.Compare(start[a], start[b]), cmp.Compare(place[a], place[b])) })
	return s, p.ctx.Err()
}

// byRank returns the nodes by longest remaining path, the longest first, each after what it depends on.
func (p *Problem) byRank() []int32 {
	rank := make([]float64, p.vertices())
	for k := len(p.sequence) - 1; k >= 0; k-- {
		i := p.sequence[k]
		for _, s := range p.succs(i) {
			rank[i] = max(rank[i], rank[s])
		}
		rank[i] += p.takes(i)
	}
	place := make([]int32, p.len())
	for k, i := range p.order {
		place[i] = int32(k)
	}
	ranked := slices.Clone(p.order)
	slices.SortFunc(ranked, func(a, b int32) int { return cmp.Or(cmp.Compare(rank[b], rank[a]), cmp.Compare(place[a], place[b])) })
	return ranked
}
