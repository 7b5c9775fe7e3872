// Package bucket makes small all-reduces that follow each other one node, which costs the latency of one.
package bucket

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/internal/ids"
)

// ErrImpossible is what AllReduces returns for a graph whose communication cannot be bucketed.
var ErrImpossible = errors.New("all-reduces cannot be bucketed")

// mostInBucket is how many all-reduces one bucket has; NCCL takes 2,048 in one group.
const mostInBucket = 256

// AllReduces returns a graph in which all-reduces that follow each other in the order of communication are one node, as long as they are of all ranks, of
// the same operation, type and device, and have at most so many bytes in all. One that needs what an earlier one of the bucket has led to, begins
// another bucket. Nodes that use a result come after the bucket; the order of all that touch the same memory stays. Each body of a loop or branch
// has buckets of its own. Without several ranks, or where nothing is bucketed, the graph is g itself.
//
// Elements are combined as before on the CPU device. NCCL runs a bucket as a group of calls.
func AllReduces(g *dag.Graph, bytes int64) (*dag.Graph, error) {
	if err := g.Check(); err != nil {
		return nil, err
	}
	if bytes < 1 {
		return nil, fmt.Errorf("a bucket of %d bytes: want at least 1", bytes)
	}
	if g.Ranks <= 1 {
		return g, nil
	}
	if g.Sync == dag.SyncExplicit {
		return nil, fmt.Errorf("%w: the file orders its nodes itself (sync: explicit)", ErrImpossible)
	}
	m := bucketing{b: g.Empty(), bytes: bytes, names: map[string]bool{}}
	found := false
	g.EachGraph(func(g *dag.Graph, _ []string) {
		found = found || len(bucketsOf(g, bytes)) > 0
		for i := range g.Nodes {
			m.names[g.Nodes[i].Name] = true
		}
	})
	if !found {
		return g, nil
	}
	for k := range g.Buffers {
		m.b.Buffer(g.Buffers[k])
	}
	m.declare(g)
	made, err := m.b.Graph()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrImpossible, err)
	}
	return made.WithWarnings(*g.Warnings()), nil
}

// bucketsOf lists the all-reduces of each bucket of more than one, in the order of communication.
func bucketsOf(g *dag.Graph, bytes int64) [][]dag.NodeID {
	var buckets [][]dag.NodeID
	var now []dag.NodeID
	size, first := int64(0), int32(0) // of now: its bytes, and the number of its first communication
	end := func() {
		if len(now) > 1 {
			buckets = append(buckets, now)
		}
		now = nil
	}
	needs := communicationNeeded(g)
	number := int32(0)
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if !n.Communicates() {
			continue
		}
		c := n.Communication // nil: bodies communicate
		fits := c != nil && c.Verb == dag.AllReduce && c.Among.All() && len(c.More) == 0 && !n.HasCost && n.Stream.Number() < 0 && c.From.Bytes() <= bytes
		if len(now) > 0 && fits {
			last := &g.Nodes[now[0]]
			fits = c.Reduction == last.Communication.Reduction && c.DType == last.Communication.DType && n.Device == last.Device && size+c.From.Bytes() <= bytes &&
				len(now) < mostInBucket && needs[i] < first
			if !fits {
				end()
				fits = true // it may begin the next one
			}
		}
		switch {
		case !fits:
			end()
		case len(now) == 0:
			now, size, first = []dag.NodeID{dag.NodeID(i)}, c.From.Bytes(), number
		default:
			now, size = append(now, dag.NodeID(i)), size+c.From.Bytes()
		}
		number++
	}
	end()
	return buckets
}

// communicationNeeded is, by vertex, the number of the last communication that must be finished before it begins, -1 for none. Of a communication it
// leaves out that all communication follows each other.
func communicationNeeded(g *dag.Graph) []int32 {
	number, count := make([]int32, g.Vertices()), int32(0)
	for i := range number {
		number[i] = -1
		if i < g.Len() && g.Nodes[i].Communicates() {
			number[i] = count
			count++
		}
	}
	needs := make([]int32, g.Vertices())
	for _, i := range g.Sequence() {
		needs[i] = -1
		preds, edges := g.Preds(i), g.PredEdges(i)
		for k, q := range preds {
			switch {
			case number[q] < 0:
				needs[i] = max(needs[i], needs[q])
			case number[i] < 0 || g.Edges()[edges[k]].Why != dag.After:
				needs[i] = max(needs[i], number[q])
			}
		}
	}
	return needs
}

// bucketing is a graph that is made with buckets.
type bucketing struct {
	b     *dag.Builder
	bytes int64
	names map[string]bool // of all nodes, those of bodies included
}

// declare declares the nodes of a graph or of a body. They are in the order of declaration, as far as the buckets allow: a bucket is where its last
// all-reduce was.
func (m *bucketing) declare(g *dag.Graph) {
	into := make([]dag.NodeID, g.Vertices()) // by vertex: the last of its bucket, or itself
	for i := range into {
		into[i] = dag.NodeID(i)
	}
	members := map[dag.NodeID][]dag.NodeID{}
	for _, list := range bucketsOf(g, m.bytes) {
		last := list[len(list)-1]
		members[last] = list
		for _, i := range list {
			into[i] = last
		}
	}
	ids := make([]dag.NodeID, g.Len())
	for _, i := range bucketOrder(g, into) {
		list := members[i]
		if list == nil {
			ids[i] = m.node(g, i)
			continue
		}
		id := m.bucket(g, list)
		for _, other := range list {
			ids[other] = id
		}
	}
	for i := range g.Nodes {
		for _, before := range g.Nodes[i].After {
			if n := m.b.At(ids[i]); ids[before] != ids[i] && !slices.Contains(n.After, ids[before]) {
				n.After = append(n.After, ids[before])
			}
		}
	}
}

// node declares a node that is in no bucket.
func (m *bucketing) node(g *dag.Graph, i dag.NodeID) dag.NodeID {
	node := g.Nodes[i]
	node.After = nil
	if node.Control == nil {
		return m.b.Node(node, slices.Clone(g.Accesses(i))...)
	}
	var operands []dag.Range
	if c := node.Control.Condition; c != nil {
		operands = c.Operands
	}
	var bodies []func()
	for _, body := range node.Control.Bodies {
		bodies = append(bodies, func() { m.declare(body) })
	}
	return m.b.ControlLike(node, operands, bodies...)
}

// bucket declares the node that does what these do.
func (m *bucketing) bucket(g *dag.Graph, list []dag.NodeID) dag.NodeID {
	node := g.Nodes[list[len(list)-1]]
	c := *g.Nodes[list[0]].Communication
	var accesses []dag.Access
	work := dag.Work{}
	for k, other := range list {
		if from := g.Nodes[other].Communication; k > 0 {
			c.More = append(c.More, dag.Pair{From: from.From, To: from.To})
		}
		accesses = append(accesses, g.Accesses(other)...)
		work.Bytes += g.Nodes[other].Work.Bytes
	}
	node.After, node.Name, node.Pos = nil, bucketName(g, list, m.names), g.Nodes[list[0]].Pos
	node.Communication, node.Work = &c, work
	return m.b.Node(node, accesses...)
}

// bucketName makes a name that no other node has.
func bucketName(g *dag.Graph, list []dag.NodeID, names map[string]bool) string {
	const room = 16 // for the number
	name := g.Nodes[list[0]].Name + ".." + g.Nodes[list[len(list)-1]].Name
	for len(name) > dag.MaxName-room {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	full := name
	for k := 2; names[full]; k++ {
		full = fmt.Sprintf("%s #%d", name, k)
	}
	names[full] = true
	return full
}

// bucketOrder sorts the nodes, with the last of a bucket in place of all of it, so that each comes after all that it depends on, and before those
// declared later where it can.
func bucketOrder(g *dag.Graph, into []dag.NodeID) []dag.NodeID {
	waiting := make([]int32, g.Vertices())
	for e := range g.Edges() {
		if from, to := into[g.Edges()[e].From], into[g.Edges()[e].To]; from != to {
			waiting[to]++
		}
	}
	members := make([][]dag.NodeID, g.Vertices())
	var ready ids.Heap[dag.NodeID]
	for i := range into {
		members[into[i]] = append(members[into[i]], dag.NodeID(i))
	}
	var joins, order []dag.NodeID
	begin := func(i dag.NodeID) {
		if g.IsJoin(i) {
			joins = append(joins, i)
		} else {
			ready.Push(i)
		}
	}
	for i := range into {
		if into[i] == dag.NodeID(i) && waiting[i] == 0 {
			begin(dag.NodeID(i))
		}
	}
	for len(ready)+len(joins) > 0 {
		var i dag.NodeID
		if n := len(joins); n > 0 { // a join is passed as soon as all before it are done
			i, joins = joins[n-1], joins[:n-1]
		} else {
			i = ready.Pop()
			order = append(order, i)
		}
		for _, member := range members[i] {
			for _, e := range g.OutEdges(member) {
				if to := into[e.To]; to != i {
					if waiting[to]--; waiting[to] == 0 {
						begin(to)
					}
				}
			}
		}
	}
	return order
}
