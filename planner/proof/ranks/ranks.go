// The proof of a family: what each rank does, and the violations.

package ranks

import (
	"errors"
	"fmt"

	"github.com/dagrun/dagrun/dag"
)

// Violation is something that several ranks do wrong together.
type Violation struct {
	Ranks []int32 // whom it concerns
	Text  string
}

func (v Violation) Error() string { return v.Text }

// most is how many violations are told.
const most = 20

// op is a communication as its class does it. Peers are relative to the rank.
type op struct {
	node      dag.NodeID
	name      string
	line      int32
	verb      dag.Verb
	reduction dag.Reduction
	dtype     dag.DType
	from, to  int64   // bytes
	more      []int64 // of a bucket: the bytes of its other all-reduces
	root      int32   // its place in the group
	group     int     // of a collective: index into the rank's firsts; -1: all ranks
	count     int32   // of the group
	step      int32
	transfers []transfer // of an exchange; only those that meet somebody
}

// transfer is a send or a receive. peer counts from the rank.
type transfer struct {
	receive bool
	peer    int32
	bytes   int64
	dtype   dag.DType
	buffer  string
}

// check refuses a family that ParseFamily did not make.
func check(f *dag.Family) error {
	if f == nil || f.Ranks < 1 || len(f.Class) != int(f.Ranks) || len(f.Firsts) != int(f.Ranks) {
		return errors.New("there are no ranks to prove anything about; make a family with dag.ParseFamily")
	}
	subgroups := make([]int, len(f.Classes))
	for class, g := range f.Classes {
		if err := g.Check(); err != nil {
			return err
		}
		for i := range g.Nodes {
			c := g.Nodes[i].Communication
			if c == nil {
				continue
			}
			if !c.Among.All() {
				subgroups[class]++
			}
			group := c.Among.Members(f.Ranks)
			if group.Count < 1 || group.Step < 1 || group.Count > f.Ranks || int64(group.Step)*int64(group.Count-1) >= int64(f.Ranks) {
				return fmt.Errorf("node %q has a group of ranks that cannot be", g.Nodes[i].Name)
			}
		}
	}
	for rank, class := range f.Class {
		if class < 0 || int(class) >= len(f.Classes) {
			return fmt.Errorf("rank %d is of class %d, and there are %d", rank, class, len(f.Classes))
		}
		if len(f.Firsts[rank]) != subgroups[class] {
			return fmt.Errorf("rank %d has %d groups, and its class %d", rank, len(f.Firsts[rank]), subgroups[class])
		}
		at := 0
		for i := range f.Classes[class].Nodes {
			if c := f.Classes[class].Nodes[i].Communication; c != nil && !c.Among.All() {
				group := dag.Among{First: f.Firsts[rank][at], Count: c.Among.Count, Step: c.Among.Step}
				at++
				if last := int64(group.First) + int64(group.Step)*int64(group.Count-1); group.First < 0 || last >= int64(f.Ranks) || group.Index(int32(rank)) < 0 {
					return fmt.Errorf("rank %d is not in its group %v", rank, group)
				}
			}
		}
	}
	return nil
}

func lowest(classes []int32, class int32) int32 {
	for rank, c := range classes {
		if c == class {
			return int32(rank)
		}
	}
	return 0
}

// communication lists what a class does together with others, in program order.
func communication(g *dag.Graph) []op {
	ranks := max(g.Ranks, 1)
	var ops []op
	groups := 0
	for i := range g.Nodes {
		n := &g.Nodes[i]
		c := n.Communication
		if c == nil {
			continue
		}
		o := op{node: dag.NodeID(i), name: n.Name, line: n.Pos.Line, verb: c.Verb, reduction: c.Reduction, dtype: c.DType, from: c.From.Bytes(), to: c.To.Bytes(), group: -1}
		for _, more := range c.More {
			o.more = append(o.more, more.From.Bytes())
		}
		members := c.Among.Members(ranks)
		o.count, o.step = members.Count, members.Step
		if c.Verb == dag.Reduce || c.Verb == dag.Broadcast {
			o.root = members.Index(c.Root)
		}
		if !c.Among.All() {
			o.group = groups
			groups++
		}
		for _, t := range c.Transfers {
			if t.Rank >= 0 && t.Rank < ranks {
				b := &g.Buffers[t.Range.Buffer]
				o.transfers = append(o.transfers, transfer{t.Receive, t.Rank - g.Rank, t.Range.Bytes(), b.DType, g.RangeText(t.Range)})
			}
		}
		ops = append(ops, o)
	}
	return ops
}

// world is all ranks while they are proved.
type world struct {
	ranks   int32
	class   []int32
	firsts  [][]int32
	classes [][]op
	found   []Violation
	more    int

	partners [][][]int32 // by rank and op: for each transfer, which op of the peer it meets
	instance [][]int32   // by rank and op: which collective of all it is; -1 for an exchange
	members  []int32     // by collective: how many ranks take part
}

func (w *world) ops(rank int32) []op { return w.classes[w.class[rank]] }

func (w *world) wrong(ranks []int32, format string, args ...any) {
	if len(w.found) >= most {
		w.more++
		return
	}
	w.found = append(w.found, Violation{ranks, fmt.Sprintf(format, args...)})
}

func (w *world) told() []Violation {
	if w.more > 0 {
		w.found = append(w.found, Violation{nil, fmt.Sprintf("and %d more", w.more)})
	}
	return w.found
}

// what describes a communication.
func (o *op) what() string {
	switch {
	case o.verb == dag.Exchange:
		return "an exchange"
	case len(o.more) > 0:
		sizes := fmt.Sprint(o.from)
		for _, bytes := range o.more {
			sizes += fmt.Sprintf(", %d", bytes)
		}
		return fmt.Sprintf("a bucket of %s of %s bytes of %s with op %s", o.verb, sizes, o.dtype, o.reduction)
	case o.reduction != dag.NoReduction:
		return fmt.Sprintf("%s of %d bytes of %s with op %s", o.verb, o.from, o.dtype, o.reduction)
	}
	return fmt.Sprintf("%s of %d bytes of %s", o.verb, o.from, o.dtype)
}

// at names a node with its line.
func (o *op) at() string {
	if o.line == 0 {
		return fmt.Sprintf("%q", o.name)
	}
	return fmt.Sprintf("%q (line %d)", o.name, o.line)
}
