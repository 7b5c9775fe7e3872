// The proof of a family: what each rank does, and the violations.

package ranks

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/file"
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
	control   *control   // of a loop or branch that communicates, which is like a collective of all ranks
}

// control is a loop or branch that communicates.
type control struct {
	action    string // as the file has it
	condition string // with its numbers and types; "" without one
	facts     [4]int64
	bodies    [][]op
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
func check(f *file.Family) error {
	if f == nil || f.Ranks < 1 || len(f.Class) != int(f.Ranks) || len(f.Firsts) != int(f.Ranks) {
		return errors.New("there are no ranks to prove anything about; make a family with file.ParseFamily")
	}
	subgroups := make([][]*dag.Communication, len(f.Classes)) // by class: the communication that is not of all ranks
	for class, g := range f.Classes {
		if err := g.Check(); err != nil {
			return err
		}
		for _, n := range communicating(nil, g) {
			c := n.Communication
			if !c.Among.All() {
				subgroups[class] = append(subgroups[class], c)
			}
			group := c.Among.Members(f.Ranks)
			if group.Count < 1 || group.Step < 1 || group.Count > f.Ranks || int64(group.Step)*int64(group.Count-1) >= int64(f.Ranks) {
				return fmt.Errorf("node %q has a group of ranks that cannot be", n.Name)
			}
		}
	}
	has := make([]bool, len(f.Classes))
	for rank, class := range f.Class {
		if class < 0 || int(class) >= len(f.Classes) {
			return fmt.Errorf("rank %d is of class %d, and there are %d", rank, class, len(f.Classes))
		}
		has[class] = true
		if len(f.Firsts[rank]) != len(subgroups[class]) {
			return fmt.Errorf("rank %d has %d groups, and its class %d", rank, len(f.Firsts[rank]), len(subgroups[class]))
		}
		for k, c := range subgroups[class] {
			group := dag.Among{First: f.Firsts[rank][k], Count: c.Among.Count, Step: c.Among.Step}
			if last := int64(group.First) + int64(group.Step)*int64(group.Count-1); group.First < 0 || last >= int64(f.Ranks) || group.Index(int32(rank)) < 0 {
				return fmt.Errorf("rank %d is not in its group %v", rank, group)
			}
		}
	}
	if class := slices.Index(has, false); class >= 0 {
		return fmt.Errorf("no rank is of class %d", class)
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

// communicating lists the nodes with a communication in program order, those of bodies where their loop or branch is.
func communicating(list []*dag.Node, g *dag.Graph) []*dag.Node {
	if g == nil || g.Pipeline == nil {
		return list
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Communication != nil {
			list = append(list, n)
		}
		if n.Control != nil {
			for _, body := range n.Control.Bodies {
				list = communicating(list, body)
			}
		}
	}
	return list
}

// communication lists what a class does together with others, in program order. groups counts its collectives that are not of all ranks.
func communication(g *dag.Graph, groups *int) []op {
	if g == nil || g.Pipeline == nil {
		return nil
	}
	ranks := max(g.Ranks, 1)
	var ops []op
	for i := range g.Nodes {
		n := &g.Nodes[i]
		c := n.Communication
		if n.Control != nil && n.Communicates() {
			o := op{node: dag.NodeID(i), name: n.Name, line: n.Pos.Line, group: -1, count: ranks, step: 1, control: newControl(n)}
			for _, body := range n.Control.Bodies {
				o.control.bodies = append(o.control.bodies, communication(body, groups))
			}
			ops = append(ops, o)
		}
		if c == nil {
			continue
		}
		o := op{node: dag.NodeID(i), name: n.Name, line: n.Pos.Line, verb: c.Verb, reduction: c.Reduction, dtype: c.DType, from: c.From.Bytes(),
			to: c.To.Bytes(), group: -1}
		for _, more := range c.More {
			o.more = append(o.more, more.From.Bytes())
		}
		members := c.Among.Members(ranks)
		o.count, o.step = members.Count, members.Step
		if c.Verb == dag.Reduce || c.Verb == dag.Broadcast {
			o.root = members.Index(c.Root)
		}
		if !c.Among.All() {
			o.group = *groups
			*groups++
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

// newControl notes what must be the same on all ranks for them to go through the bodies alike. The elements that a condition reads are those of
// rank 0.
func newControl(n *dag.Node) *control {
	c := n.Control
	made := &control{action: c.Action(n.Kind), facts: [4]int64{int64(n.Kind), c.Times, c.Every, 0}}
	if c.While {
		made.facts[3] = 1
	}
	if c.Condition != nil {
		made.condition = fmt.Sprintf("%q of %s", c.Condition.Bound(), strings.Join(typeNames(c.Condition.Types), ", "))
	}
	return made
}

func typeNames(types []dag.DType) (names []string) {
	for _, dtype := range types {
		names = append(names, dtype.String())
	}
	return names
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

// add notes violations that were found elsewhere.
func (w *world) add(found []Violation) {
	w.found = append(w.found, found...)
	if over := len(w.found) - most; over > 0 {
		w.found, w.more = w.found[:most], w.more+over
	}
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
	case o.control != nil:
		return o.control.action
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

// kind says what a rank may lack.
func (o *op) kind() string {
	if o.control != nil {
		return "loop or branch"
	}
	return "collective"
}

// allNeed says what to do about a loop or branch that a rank lacks.
func (o *op) allNeed() string {
	if o.control != nil {
		return "; all ranks need it, with communication in it"
	}
	return ""
}

// exchanges reports whether a communication is sends and receives.
func (o *op) exchanges() bool { return o.control == nil && o.verb == dag.Exchange }

// alike reports whether two ranks can do these together.
func (o *op) alike(other *op) bool {
	if o.control != nil || other.control != nil {
		return o.control != nil && other.control != nil && o.control.facts == other.control.facts && o.control.condition == other.control.condition &&
			len(o.control.bodies) == len(other.control.bodies)
	}
	return o.verb == other.verb && o.reduction == other.reduction && o.dtype == other.dtype && o.from == other.from && o.to == other.to &&
		o.root == other.root && slices.Equal(o.more, other.more)
}

// at names a node with its line.
func (o *op) at() string {
	if o.line == 0 {
		return fmt.Sprintf("%q", o.name)
	}
	return fmt.Sprintf("%q (line %d)", o.name, o.line)
}
