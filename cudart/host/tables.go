// The commands of a graph as a table, with the dependencies of each and what waits for it.

package host

import (
	"slices"
	"sync/atomic"

	"github.com/dagrun/dagrun/cudart"
)

// newTable checks the dependencies of commands and reverses them. Every command must come after its dependencies.
func newTable(commands []*command, deps [][]int32) (*table, error) {
	const call = "cuGraphInstantiate"
	n := len(commands)
	t := &table{commands: commands, depStart: make([]int32, n+1), afterStart: make([]int32, n+1)}
	for i, c := range commands {
		for _, d := range deps[i] {
			if d < 0 || int(d) >= i {
				return nil, c.blame(fail(call, invalidValue, -1, "it depends on command %d, which does not come before it", d))
			}
			if slices.Contains(t.deps[t.depStart[i]:], d) {
				return nil, c.blame(fail(call, invalidValue, -1, "it depends on command %d twice", d))
			}
			t.deps = append(t.deps, d)
			t.afterStart[d+1]++
		}
		t.depStart[i+1] = int32(len(t.deps))
		if c.kind == cudart.RecordEvent && c.event.timed {
			t.stamps = append(t.stamps, int32(i))
		}
	}
	for i := range n {
		t.afterStart[i+1] += t.afterStart[i]
	}
	t.afters = make([]int32, len(t.deps))
	next := slices.Clone(t.afterStart)
	for i := range int32(n) {
		for _, d := range t.before(i) {
			t.afters[next[d]] = i
			next[d]++
		}
	}
	return t, nil
}

// after returns the nodes that wait for a node.
func (t *table) after(n int32) []int32 { return t.afters[t.afterStart[n]:t.afterStart[n+1]] }

func (p *Platform) newGraph(t *table, d *device, priorities, indexed bool) *graph {
	p.graphs.Add(1)
	n := len(t.commands)
	return &graph{
		platform: p, device: d, priorities: priorities, indexed: indexed, table: t, batch: batch{pool: &p.pool},
		waits: make([]atomic.Int32, n), versions: make([]atomic.Uint64, n), sequence: p.order.newSequence(),
	}
}

const (
	firstHandle     = 0x10000
	legacyHandle    = 1 // CU_STREAM_LEGACY
	perThreadHandle = 2 // CU_STREAM_PER_THREAD
)
