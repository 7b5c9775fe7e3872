// The cover strategy: as many streams as nodes can run at once, and the fewest waits that this allows. Looks at no durations.

package place

import (
	"fmt"
	"slices"

	"github.com/dagrun/dagrun/planner/plan"
)

// mostCovered is the size of the largest graph that cover accepts. Matching takes seconds for larger ones.
const mostCovered = 50_000

// mostCoveredPairs is how many pairs of nodes cover compares that depend on each other directly, if the graph has joins. Tests lower it.
var mostCoveredPairs int64 = 4 << 20

func Cover(p *Problem) (*Assignment, error) {
	n := int32(p.len())
	if n > mostCovered {
		return nil, fmt.Errorf("cover takes graphs of up to %d nodes, this one has %d; list takes any: %w", mostCovered, n, ErrGraphTooLarge)
	}
	pairs, err := p.expanded()
	if err != nil {
		return nil, err
	}
	m, err := match(pairs, func(i int32) bool { return p.boundOf(i) < 0 })
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

// expanded returns the problem without joins: with every pair of nodes that these stand for.
func (p *Problem) expanded() (*Problem, error) {
	if !p.joined() {
		return p, nil
	}
	if err := p.wideEnough(); err != nil {
		return nil, err
	}
	n := int32(p.len())
	before := make([]int64, p.vertices()) // of a join, how many nodes there are before it, some perhaps counted twice
	pairs := int64(0)
	for _, i := range p.sequence {
		count := int64(0)
		for _, q := range p.preds(i) {
			if q < n {
				count++
			} else {
				count = min(count+before[q], mostCoveredPairs+1)
			}
		}
		if i >= n {
			before[i] = count
		} else if pairs += count; pairs > mostCoveredPairs {
			return nil, fmt.Errorf("cover compares up to %d pairs of nodes that depend on each other directly, this graph has more; list takes any: %w",
				mostCoveredPairs, ErrGraphTooLarge)
		}
	}
	q := *p
	q.adjacency = adjacency{predStart: make([]int32, n+1)}
	seen := make([]int32, p.vertices()) // the last node that comes after it, plus 1
	var stack []int32
	for i := range n {
		first := len(q.pred)
		for stack = append(stack[:0], i); len(stack) > 0; {
			v := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			for _, from := range p.preds(v) {
				switch {
				case seen[from] == i+1:
				case from < n:
					q.pred = append(q.pred, from)
				default:
					stack = append(stack, from)
				}
				seen[from] = i + 1
			}
		}
		slices.Sort(q.pred[first:])
		q.predStart[i+1] = int32(len(q.pred))
	}
	q.reverse()
	q.sequence = p.order
	return &q, nil
}

// wideEnough refuses a graph in which more nodes than there are streams are the same number of steps from the start, so that they could
// run at the same time.
func (p *Problem) wideEnough() error {
	level := p.levels()
	count := map[[2]int32]int{}
	widest := [2]int32{}
	for _, i := range p.order {
		if p.boundOf(i) >= 0 || p.engineOf(i) != plan.Compute {
			continue
		}
		at := [2]int32{p.pools[p.poolOf(i)].device, level[i]}
		count[at]++
		if count[at] > count[widest] {
			widest = at
		}
	}
	if count[widest] <= p.streams {
		return nil
	}
	return fmt.Errorf("cover needs at least %d compute streams on device %d, one for each node that can run at the same time, and %d are allowed: %w",
		count[widest], widest[0], p.streams, ErrTooManyStreams)
}
