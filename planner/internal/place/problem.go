// The problem: a graph as the strategies see it, with durations, ranks, engines and bindings.

// Package place decides on which stream each node runs, in which order nodes are submitted and where streams wait.
package place

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/scratch"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
)

// pool is a set of nodes that may share a stream: one device, one priority.
type pool struct {
	device   int32
	priority dag.Priority
}

// binding is a stream that the user numbered.
type binding struct {
	number int32 // as declared
	pool   int32
	first  int32 // first node bound to it, in program order
}

// Problem is what every strategy starts from. It does not change after it is made.
type Problem struct {
	ctx      context.Context
	g        *dag.Graph
	machine  *model.Machine
	streams  int
	order    []int32       // a topological order in which bound streams are ordered as declared
	sequence []int32       // the same order with joins, each after what leads to it
	duration []float64     // us
	rank     []float64     // longest remaining path, the node included; of joins too
	engine   []plan.Engine // nil if every node computes
	pool     []int32       // nil if there is only one pool
	bound    []int32       // index into bindings, -1 for none; nil if no node is bound
	pools    []pool
	bindings []binding

	// explicit says that the pipeline has sync: explicit. What must be ordered is then what was declared, not the edges of g.
	explicit bool
	inOrder  bool // nodes are submitted in this order, whatever a strategy would do
	adjacency
}

// adjacency is a directed graph both ways.
type adjacency struct {
	predStart, pred []int32
	succStart, succ []int32
}

func (p *Problem) len() int { return p.g.Len() }

// vertices is the number of nodes and joins. The numbers of joins follow those of the nodes; joins take no time and have no stream.
func (p *Problem) vertices() int { return len(p.predStart) - 1 }

// joined reports whether some dependencies go through joins.
func (p *Problem) joined() bool { return p.vertices() > p.len() }

// sync is the time that a wait takes on the device.
func (p *Problem) sync() float64 {
	if p.machine.Unit {
		return 0
	}
	return p.machine.SyncUS
}

// preds are the nodes and joins that i must wait for.
func (p *Problem) preds(i int32) []int32 { return p.pred[p.predStart[i]:p.predStart[i+1]] }

// succs are the nodes and joins that must wait for i.
func (p *Problem) succs(i int32) []int32 { return p.succ[p.succStart[i]:p.succStart[i+1]] }

func (p *Problem) engineOf(i int32) plan.Engine {
	if p.engine == nil {
		return plan.Compute
	}
	return p.engine[i]
}

func (p *Problem) poolOf(i int32) int32 {
	if p.pool == nil {
		return 0
	}
	return p.pool[i]
}

func (p *Problem) boundOf(i int32) int32 {
	if p.bound == nil {
		return -1
	}
	return p.bound[i]
}

// problems keeps the memory of solved problems for reuse.
var problems = sync.Pool{New: func() any { return new(Problem) }}

// Release lets another problem use the memory. The problem must not be used any more.
func (p *Problem) Release() {
	if p.len() <= scratch.MostKept {
		*p = Problem{rank: p.rank}
		problems.Put(p)
	}
}

// NewProblem reads everything that planning needs from the graph.
func NewProblem(ctx context.Context, g *dag.Graph, machine *model.Machine, duration []float64, streams int) (*Problem, error) {
	p := problems.Get().(*Problem)
	*p = Problem{ctx: ctx, g: g, machine: machine, streams: streams, duration: duration, order: Numbers(g.Topological()), rank: p.rank}
	if numbered := p.classify(); numbered {
		if err := p.bind(); err != nil {
			return nil, err
		}
	}
	p.sequence = Numbers(g.Sequence())
	if g.Sync == dag.SyncExplicit {
		p.explicit, p.sequence = true, p.order
		p.adjacency = declaredOrder(g)
	} else {
		predStart, pred := g.Predecessors()
		succStart, succ := g.Successors()
		p.predStart, p.pred = predStart, Numbers(pred)
		p.succStart, p.succ = succStart, Numbers(succ)
	}
	p.rank = scratch.Sized(p.rank, p.vertices())
	for k := len(p.sequence) - 1; k >= 0; k-- {
		i := p.sequence[k]
		p.rank[i] = p.longestAfter(i) + p.takes(i)
	}
	if p.engine != nil && !machine.Unit {
		p.queueCopies()
	}
	return p, ctx.Err()
}

// KeepOrder makes Finish submit nodes in declared order.
func (p *Problem) KeepOrder() { p.inOrder = true }

// takes returns how long a node takes; a join takes no time.
func (p *Problem) takes(i int32) float64 {
	if int(i) >= len(p.duration) {
		return 0
	}
	return p.duration[i]
}

// longestAfter returns the longest remaining path after a node.
func (p *Problem) longestAfter(i int32) float64 {
	longest := 0.0
	for _, s := range p.succs(i) {
		longest = max(longest, p.rank[s])
	}
	return longest
}

// copyBands is how finely the remaining paths are divided when copies are ordered. Copies of one band are taken in topological order, so
// that the pieces of a buffer come as they are declared, and a kernel that needs a piece and its neighbours can start.
const copyBands = 8

// queueCopies makes ranks include that an engine makes one copy at a time. The copies of an engine are put into a queue, those with the
// longest remaining path after them first, and a remaining path continues through the copies that are queued behind. Without that, all
// pieces that end in a copy are equally urgent, the first step of every piece is taken before the second step of any, and the copies start
// late.
func (p *Problem) queueCopies() {
	longest := slices.Max(p.rank)
	if longest == 0 {
		return
	}
	// By bands, then topologically. Remaining paths never grow along dependencies, so dependencies and queues together have no cycle.
	band := func(i int32) int32 { return int32(copyBands * (longest - p.rank[i] + p.takes(i)) / longest) }
	order := scratch.CountingSort(len(p.sequence), copyBands+1, p.sequence, band)
	engines := max(1, p.machine.CopyEngines)
	behind := make([]int32, len(order)) // the next copy of the same engine, plus 1
	queues := map[[2]int32][]int32{}    // by device and kind of engine, the copies with none behind them yet
	for _, i := range order {
		if int(i) >= p.len() || p.engine[i] == plan.Compute {
			continue
		}
		at := [2]int32{p.pools[p.pool[i]].device, int32(p.engine[i])}
		queue := append(queues[at], i)
		if len(queue) > engines {
			behind[queue[0]] = i + 1
			queue = queue[1:]
		}
		queues[at] = queue
	}
	for k := len(order) - 1; k >= 0; k-- {
		i := order[k]
		after := p.longestAfter(i)
		if next := behind[i]; next > 0 {
			after = max(after, p.rank[next-1])
		}
		p.rank[i] = after + p.takes(i)
	}
}

// classify finds each node's engine and pool. It reports whether users numbered any stream.
func (p *Problem) classify() (numbered bool) {
	g := p.g
	if len(g.Nodes) == 0 {
		return false
	}
	uniform := true
	first := pool{g.Nodes[0].Device, g.Nodes[0].Priority}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		numbered = numbered || n.Stream.Number() >= 0
		uniform = uniform && n.Kind != dag.Memcpy && n.Kind != dag.Memset && n.Device == first.device && n.Priority == first.priority
	}
	if uniform {
		p.pools = []pool{first}
		return numbered
	}
	p.engine = make([]plan.Engine, g.Len())
	p.pool = make([]int32, g.Len())
	for i := range g.Nodes {
		n := &g.Nodes[i]
		p.engine[i] = plan.EngineOf(g, dag.NodeID(i))
		if q := (pool{n.Device, n.Priority}); !slices.Contains(p.pools, q) {
			p.pools = append(p.pools, q)
		}
	}
	slices.SortFunc(p.pools, func(a, b pool) int {
		return cmp.Or(cmp.Compare(a.device, b.device), cmp.Compare(b.priority, a.priority))
	})
	for i := range g.Nodes {
		p.pool[i] = int32(slices.Index(p.pools, pool{g.Nodes[i].Device, g.Nodes[i].Priority}))
	}
	return numbered
}

// bind collects the streams that users numbered, and returns an error if the nodes of one cannot share a stream.
func (p *Problem) bind() error {
	g := p.g
	known := map[int32]int{}
	for _, i := range p.order {
		number := g.Nodes[i].Stream.Number()
		if number < 0 {
			continue
		}
		if p.bound == nil {
			p.bound = make([]int32, g.Len())
			for k := range p.bound {
				p.bound[k] = -1
			}
		}
		k, ok := known[number]
		if !ok {
			k = len(p.bindings)
			known[number] = k
			p.bindings = append(p.bindings, binding{number, p.poolOf(i), i})
		}
		if b := p.bindings[k]; b.pool != p.poolOf(i) {
			first, second := &g.Nodes[b.first], &g.Nodes[i]
			what := fmt.Sprintf("runs on device %d and %q on device %d", first.Device, second.Name, second.Device)
			if first.Device == second.Device {
				what = fmt.Sprintf("has %v priority and %q %v", first.Priority, second.Name, second.Priority)
			}
			return fmt.Errorf("stream %d: %q %s: %w", number, first.Name, what, ErrStreamConflict)
		}
		p.bound[i] = int32(k)
	}
	return nil
}

// declaredOrder returns the order that a pipeline with sync: explicit asks for: by after:, and by the nodes bound to one stream.
func declaredOrder(g *dag.Graph) adjacency {
	a := adjacency{predStart: make([]int32, g.Len()+1)}
	before := make([]int32, g.Len()) // the node before it on its stream, plus 1
	last := map[int32]int32{}
	for _, i := range g.Topological() {
		if k := g.Nodes[i].Stream.Number(); k >= 0 {
			before[i] = last[k]
			last[k] = int32(i + 1)
		}
	}
	for i := range g.Nodes {
		first := len(a.pred)
		a.pred = append(a.pred, Numbers(g.Nodes[i].After)...)
		if before[i] > 0 {
			a.pred = append(a.pred, before[i]-1)
		}
		slices.Sort(a.pred[first:])
		a.pred = a.pred[:first+len(slices.Compact(a.pred[first:]))]
		a.predStart[i+1] = int32(len(a.pred))
	}
	a.reverse()
	return a
}

// reverse sets successors by predecessors.
func (a *adjacency) reverse() {
	n := len(a.predStart) - 1
	a.succStart = make([]int32, n+1)
	for _, q := range a.pred {
		a.succStart[q+1]++
	}
	for i := range n {
		a.succStart[i+1] += a.succStart[i]
	}
	a.succ = make([]int32, len(a.pred))
	next := slices.Clone(a.succStart[:n])
	for i := range n {
		for _, q := range a.pred[a.predStart[i]:a.predStart[i+1]] {
			a.succ[next[q]] = int32(i)
			next[q]++
		}
	}
}
