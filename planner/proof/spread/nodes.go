// Whether the nodes of a spread do the work of the original's, on the same bytes, where their buffers are.

package spread

import (
	"reflect"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/planner/proof"
)

// nodes checks every node against the one that it stands for.
func (c *spreadCheck) nodes() *proof.Violation {
	var v *proof.Violation
	if c.top, v = c.level(c.original, c.g, c.s.Nodes); v != nil {
		return v
	}
	if len(c.bodies) > 0 {
		return wrong("it stands for the nodes of %d bodies more than it has", len(c.bodies))
	}
	return nil
}

// level checks the nodes of the graph or of a body, and of all bodies in it.
func (c *spreadCheck) level(original, g *dag.Graph, nodes []dag.NodeID) (*spreadLevel, *proof.Violation) {
	l := &spreadLevel{original: original, g: g, nodes: nodes, ids: slices.Repeat([]dag.NodeID{-1}, original.Len()), first: int32(len(c.names)),
		inner: map[dag.NodeID][]*spreadLevel{}, changed: map[dag.NodeID]*changes{}}
	for i := range original.Nodes {
		c.names = append(c.names, original.Nodes[i].Name)
	}
	movable := original == c.original && !slices.ContainsFunc(original.Nodes, func(n dag.Node) bool { return n.Communication != nil })
	next := dag.NodeID(0)
	for i := range g.Nodes {
		from := nodes[i]
		if from == plan.Inserted {
			if v := c.inserted(l, dag.NodeID(i)); v != nil {
				return nil, v
			}
			continue
		}
		if from < 0 || int(from) >= original.Len() || from != next && !movable {
			return nil, wrongAt(g, dag.NodeID(i), "%q comes where %s was declared", g.Nodes[i].Name, declaredText(original, next))
		}
		if l.ids[from] >= 0 {
			return nil, wrongAt(g, dag.NodeID(i), "%q is there twice", g.Nodes[i].Name)
		}
		c.moved = c.moved || from != next
		l.ids[from] = dag.NodeID(i)
		next++
	}
	if missing := slices.Index(l.ids, -1); missing >= 0 {
		return nil, wrong("%q is missing", original.Nodes[missing].Name)
	}
	for i := range original.Nodes {
		if v := c.node(l, dag.NodeID(i), l.ids[i]); v != nil {
			return nil, v
		}
		if original.Nodes[i].Control != nil {
			if v := c.control(l, dag.NodeID(i)); v != nil {
				return nil, v
			}
		}
	}
	return l, nil
}

// control checks that a loop or branch tests what it tests in the original, where its elements are, and checks its bodies.
func (c *spreadCheck) control(l *spreadLevel, i dag.NodeID) *proof.Violation {
	k := l.ids[i]
	n := &l.g.Nodes[k]
	o, made := l.original.Nodes[i].Control, n.Control
	if made.Times != o.Times || made.While != o.While || made.Every != o.Every || made.OrStop != o.OrStop || !reflect.DeepEqual(made.Expect, o.Expect) ||
		len(made.Bodies) != len(o.Bodies) || !c.sameTest(o.Condition, made.Condition) {
		return wrongAt(l.g, k, "%q makes other passes or has another condition than in the pipeline", n.Name)
	}
	if made.Condition != nil {
		for _, r := range made.Condition.Operands {
			if b := &c.g.Buffers[r.Buffer]; b.Place != dag.Device || b.Device != n.Device {
				return wrongAt(l.g, k, "%q tests %s on device %d, but it is on %s", n.Name, c.g.RangeText(r), n.Device, c.placeText(r.Buffer))
			}
		}
	}
	for j, body := range made.Bodies {
		if len(c.bodies) == 0 || len(c.bodies[0]) != body.Len() {
			return wrongAt(l.g, k, "nothing says what the nodes of a body of %q stand for", n.Name)
		}
		nodes := c.bodies[0]
		c.bodies = c.bodies[1:]
		inner, v := c.level(o.Bodies[j], body, nodes)
		if v != nil {
			return v
		}
		l.inner[i] = append(l.inner[i], inner)
	}
	return nil
}

// sameTest reports whether two conditions are the same, read from elements that stand for the same.
func (c *spreadCheck) sameTest(o, n *dag.Condition) bool {
	if o == nil || n == nil {
		return o == nil && n == nil
	}
	if o.Text != n.Text || !slices.Equal(o.Types, n.Types) || !reflect.DeepEqual(o.Expr, n.Expr) {
		return false
	}
	return slices.EqualFunc(o.Operands, n.Operands, func(x, y dag.Range) bool { return c.same(y, x) })
}

func declaredText(g *dag.Graph, i dag.NodeID) string {
	if int(i) >= g.Len() {
		return "nothing more"
	}
	return `"` + g.Nodes[i].Name + `"`
}

// inserted checks a node that the original does not have: it may only copy bytes of a device buffer to where the same bytes belong.
func (c *spreadCheck) inserted(l *spreadLevel, i dag.NodeID) *proof.Violation {
	node, accesses := &l.g.Nodes[i], l.g.Accesses(i)
	move := node.Copy
	if node.Kind != dag.Memcpy || move == nil || len(accesses) != 2 || accesses[0] != (dag.Access{Range: move.Src, Mode: dag.Read}) ||
		accesses[1] != (dag.Access{Range: move.Dst, Mode: dag.Write}) {
		return wrongAt(l.g, i, "%q is not in the pipeline, and is no copy", node.Name)
	}
	src, dst := c.s.Buffers[move.Src.Buffer], c.s.Buffers[move.Dst.Buffer]
	if o := &c.original.Buffers[src.Buffer]; src.Buffer != dst.Buffer || o.Place == dag.Host || move.Src.Lo+src.Lo != move.Dst.Lo+dst.Lo ||
		move.Src.Pitch != move.Dst.Pitch {
		return wrongAt(l.g, i, "%q copies %s to %s, which are not the same bytes of one buffer", node.Name, c.g.RangeText(move.Src), c.g.RangeText(move.Dst))
	}
	return c.copyDevice(l, i)
}

// copyDevice checks that a copy runs on a device that one of its sides is on.
func (c *spreadCheck) copyDevice(l *spreadLevel, i dag.NodeID) *proof.Violation {
	node := &l.g.Nodes[i]
	from, to := &c.g.Buffers[node.Copy.Src.Buffer], &c.g.Buffers[node.Copy.Dst.Buffer]
	if from.Place == dag.Device && from.Device == node.Device || to.Place == dag.Device && to.Device == node.Device ||
		from.Place == dag.Host && to.Place == dag.Host {
		return nil
	}
	return wrongAt(l.g, i, "%q runs on device %d, where none of its buffers is", node.Name, node.Device)
}

// same reports whether a range stands for a range of the original.
func (c *spreadCheck) same(r, declared dag.Range) bool {
	at := c.s.Buffers[r.Buffer]
	return at.Buffer == declared.Buffer && r.Lo+at.Lo == declared.Lo && r.Hi+at.Lo == declared.Hi && r.Pitch == declared.Pitch
}

// node checks that node k does what node i of the original does.
func (c *spreadCheck) node(l *spreadLevel, i, k dag.NodeID) *proof.Violation {
	o, n := &l.original.Nodes[i], &l.g.Nodes[k]
	declared, accesses := l.original.Accesses(i), l.g.Accesses(k)
	if n.Name != o.Name || n.Kind != o.Kind || n.Priority != o.Priority || n.Stream != o.Stream || n.Peer != o.Peer || n.HasCost != o.HasCost ||
		n.CostUS != o.CostUS || n.Work != o.Work ||
		n.Function != o.Function || (n.Control == nil) != (o.Control == nil) || n.Communication != o.Communication || !c.sameWork(o, n) {
		return wrongAt(l.g, k, "%q does other work than %q of the pipeline", n.Name, o.Name)
	}
	if o.Control != nil { // what it uses follows from its bodies, and so does where it has to be
		accesses, declared = nil, nil
	}
	if len(accesses) != len(declared) {
		return wrongAt(l.g, k, "%q uses %d ranges, but %d in the pipeline", n.Name, len(accesses), len(declared))
	}
	for j, a := range accesses {
		if a.Mode != declared[j].Mode || !c.same(a.Range, declared[j].Range) {
			return wrongAt(l.g, k, "%q uses %s (%s) where the pipeline says %s (%s)", n.Name, c.g.RangeText(a.Range), a.Mode,
				c.original.RangeText(declared[j].Range), declared[j].Mode)
		}
		if !c.oneAddress(n, a) {
			return wrongAt(l.g, k, "%q declares that it uses %s, but is given another address", n.Name, c.g.RangeText(a.Range))
		}
	}
	for _, before := range o.After {
		if !slices.Contains(n.After, l.ids[before]) {
			return wrongAt(l.g, k, "%q does not come after %q, as the pipeline says", n.Name, l.original.Nodes[before].Name)
		}
	}
	return c.device(l, o, k)
}

// device checks that a node runs where it can.
func (c *spreadCheck) device(l *spreadLevel, o *dag.Node, k dag.NodeID) *proof.Violation {
	n := &l.g.Nodes[k]
	if n.Device < 0 || int(n.Device) >= c.s.Devices {
		return wrongAt(l.g, k, "%q runs on device %d of %d", n.Name, n.Device, c.s.Devices)
	}
	if n.Device != o.Device && (o.Fixed || o.Peer || writesVariables(o)) {
		return wrongAt(l.g, k, "%q runs on device %d, but belongs on device %d", n.Name, n.Device, o.Device)
	}
	if n.Control != nil {
		return nil
	}
	if n.Copy != nil {
		return c.copyDevice(l, k)
	}
	for _, a := range l.g.Accesses(k) {
		b := &c.g.Buffers[a.Buffer]
		at := &c.original.Buffers[c.s.Buffers[a.Buffer].Buffer]
		switch {
		case b.Place != at.Place:
			return wrongAt(l.g, k, "%q uses %q, which is not in %s memory", n.Name, b.Name, at.Place)
		case b.Place == dag.Host:
		case n.Peer && b.Device != at.Device:
			return wrongAt(l.g, k, "%q uses peers, and finds %q on device %d instead of %d", n.Name, b.Name, b.Device, at.Device)
		case !n.Peer && b.Device != n.Device:
			return wrongAt(l.g, k, "%q runs on device %d, but uses %q, which is on device %d", n.Name, n.Device, b.Name, b.Device)
		}
	}
	return nil
}

// writesVariables reports whether a kernel uses variables of its module that are not constant: each device has its own.
func writesVariables(n *dag.Node) bool {
	if n.Launch == nil {
		return false
	}
	user, ok := n.Launch.Kernel.(dag.SymbolUser)
	return ok && slices.ContainsFunc(user.SymbolUses(), func(u dag.SymbolUse) bool { return !u.Symbol.Constant })
}

// sameWork compares what two nodes do, buffers being those of each graph.
func (c *spreadCheck) sameWork(o, n *dag.Node) bool {
	if (o.Copy == nil) != (n.Copy == nil) || (o.Set == nil) != (n.Set == nil) || (o.Launch == nil) != (n.Launch == nil) {
		return false
	}
	switch {
	case o.Copy != nil:
		return c.same(n.Copy.Src, o.Copy.Src) && c.same(n.Copy.Dst, o.Copy.Dst)
	case o.Set != nil:
		return o.Set.Bits == n.Set.Bits && c.same(n.Set.Dst, o.Set.Dst)
	case o.Launch == nil:
		return true
	}
	a, b := o.Launch, n.Launch
	if a.Name != b.Name || a.Module != b.Module || a.Kernel.Entry() != b.Kernel.Entry() || a.Grid != b.Grid || a.Block != b.Block ||
		a.Shared != b.Shared || a.Cooperative != b.Cooperative || a.Cluster != b.Cluster || a.Map != b.Map {
		return false
	}
	return slices.EqualFunc(a.Args, b.Args, func(x, y dag.Arg) bool {
		if x.IsBuffer != y.IsBuffer || x.DType != y.DType || x.Bits != y.Bits || x.Struct != y.Struct || x.Mode != y.Mode || x.Inferred != y.Inferred ||
			x.Texture != y.Texture || x.Start != y.Start {
			return false
		}
		return !x.IsBuffer || c.same(y.Range, x.Range)
	})
}

// oneAddress checks that an access is to the memory that the node is given for these bytes.
func (c *spreadCheck) oneAddress(n *dag.Node, a dag.Access) bool {
	agrees := func(given dag.Range) bool {
		x, y := c.s.Buffers[a.Buffer], c.s.Buffers[given.Buffer]
		overlap := x.Buffer == y.Buffer && a.Lo+x.Lo < given.Hi+y.Lo && given.Lo+y.Lo < a.Hi+x.Lo
		return !overlap || a.Buffer == given.Buffer
	}
	switch {
	case n.Copy != nil:
		return (a.Mode&dag.Read == 0 || agrees(n.Copy.Src)) && (a.Mode&dag.Write == 0 || agrees(n.Copy.Dst))
	case n.Set != nil:
		return agrees(n.Set.Dst)
	case n.Launch != nil:
		for _, arg := range n.Launch.Args {
			if arg.IsBuffer && !agrees(arg.Range) {
				return false
			}
		}
	}
	return true
}
