// The cover strategy: as many streams as nodes can run at once, and the fewest waits that this allows. Looks at no durations.

package place

import (
	"fmt"

	"github.com/dagrun/dagrun/planner/plan"
)

// mostCovered is the size of the largest graph that cover accepts. Matching takes seconds for larger ones.
const mostCovered = 50_000

func Cover(p *Problem) (*Assignment, error) {
	n := int32(p.len())
	if n > mostCovered {
		return nil, fmt.Errorf("cover takes graphs of up to %d nodes, this one has %d; list takes any: %w", mostCovered, n, ErrGraphTooLarge)
	}
	m, err := match(p, func(i int32) bool { return p.boundOf(i) < 0 })
	if err != nil {
		return nil, err
	}
	a := &Assignment{stream: make([]int32, n)}
	for k := range p.bindings {
		a.streams = append(a.streams, draftStream{pool: p.bindings[k].pool, binding: int32(k)})
	}
	for _, i := range p.order {
		k := p.boundOf(i)
		switch {
		case k >= 0:
		case m.prev[i] >= 0:
			k = a.stream[m.prev[i]]
		default:
			k = int32(len(a.streams))
			a.streams = append(a.streams, draftStream{pool: p.poolOf(i), binding: -1})
		}
		a.stream[i] = k
		if p.engineOf(i) == plan.Compute {
			a.streams[k].computes = true
		}
	}
	need := map[int32]int{}
	for _, l := range a.streams {
		if l.computes && l.binding < 0 {
			need[p.pools[l.pool].device]++
		}
	}
	for _, q := range p.pools {
		if need[q.device] > p.streams {
			return nil, fmt.Errorf("cover needs %d compute streams on device %d, one for each node that can run at the same time, and %d are allowed: %w",
				need[q.device], q.device, p.streams, ErrTooManyStreams)
		}
	}
	a.order = submissionOrder(p, a.stream, p.order, len(a.streams))
	return a, p.ctx.Err()
}
