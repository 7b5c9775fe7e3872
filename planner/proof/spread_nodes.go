// Whether the nodes of a spread do the work of the original's, on the same bytes, where their buffers are.

package proof

import (
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// nodes checks every node against the one that it stands for.
func (c *spreadCheck) nodes() *Violation {
	c.ids = make([]dag.NodeID, c.original.Len())
	next := dag.NodeID(0)
	for i := range c.g.Nodes {
		from := c.s.Nodes[i]
		if from == plan.Inserted {
			if v := c.inserted(dag.NodeID(i)); v != nil {
				return v
			}
			continue
		}
		if from != next || int(from) >= c.original.Len() {
			return c.wrong("%q comes where %s was declared", c.g.Nodes[i].Name, c.declaredText(next)).node(c.g, dag.NodeID(i))
		}
		c.ids[from] = dag.NodeID(i)
		next++
	}
	if int(next) < c.original.Len() {
		return c.wrong("%q is missing", c.original.Nodes[next].Name)
	}
	for i := range c.original.Nodes {
		if v := c.node(dag.NodeID(i), c.ids[i]); v != nil {
			return v
		}
	}
	return nil
}

func (c *spreadCheck) declaredText(i dag.NodeID) string {
	if int(i) >= c.original.Len() {
		return "nothing more"
	}
	return `"` + c.original.Nodes[i].Name + `"`
}

// inserted checks a node that the original does not have: it may only copy bytes of a device buffer to where the same bytes belong.
func (c *spreadCheck) inserted(i dag.NodeID) *Violation {
	node, accesses := &c.g.Nodes[i], c.g.Accesses(i)
	move := node.Copy
	if node.Kind != dag.Memcpy || move == nil || len(accesses) != 2 || accesses[0] != (dag.Access{Range: move.Src, Mode: dag.Read}) || accesses[1] != (dag.Access{Range: move.Dst, Mode: dag.Write}) {
		return c.wrong("%q is not in the pipeline, and is no copy", node.Name).node(c.g, i)
	}
	src, dst := c.s.Buffers[move.Src.Buffer], c.s.Buffers[move.Dst.Buffer]
	if o := &c.original.Buffers[src.Buffer]; src.Buffer != dst.Buffer || o.Place == dag.Host || move.Src.Lo+src.Lo != move.Dst.Lo+dst.Lo || move.Src.Pitch != move.Dst.Pitch {
		return c.wrong("%q copies %s to %s, which are not the same bytes of one buffer", node.Name, c.g.RangeText(move.Src), c.g.RangeText(move.Dst)).node(c.g, i)
	}
	return c.copyDevice(i)
}

// copyDevice checks that a copy runs on a device that one of its sides is on.
func (c *spreadCheck) copyDevice(i dag.NodeID) *Violation {
	node := &c.g.Nodes[i]
	from, to := &c.g.Buffers[node.Copy.Src.Buffer], &c.g.Buffers[node.Copy.Dst.Buffer]
	if from.Place == dag.Device && from.Device == node.Device || to.Place == dag.Device && to.Device == node.Device || from.Place == dag.Host && to.Place == dag.Host {
		return nil
	}
	return c.wrong("%q runs on device %d, where none of its buffers is", node.Name, node.Device).node(c.g, i)
}

// same reports whether a range stands for a range of the original.
func (c *spreadCheck) same(r, declared dag.Range) bool {
	at := c.s.Buffers[r.Buffer]
	return at.Buffer == declared.Buffer && r.Lo+at.Lo == declared.Lo && r.Hi+at.Lo == declared.Hi && r.Pitch == declared.Pitch
}

// node checks that node k does what node i of the original does.
func (c *spreadCheck) node(i, k dag.NodeID) *Violation {
	o, n := &c.original.Nodes[i], &c.g.Nodes[k]
	declared, accesses := c.original.Accesses(i), c.g.Accesses(k)
	if n.Name != o.Name || n.Kind != o.Kind || n.Priority != o.Priority || n.Stream != o.Stream || n.Peer != o.Peer || n.HasCost != o.HasCost || n.CostUS != o.CostUS || n.Work != o.Work ||
		n.Function != o.Function || n.Control != o.Control || n.Communication != o.Communication || !c.sameWork(o, n) {
		return c.wrong("%q does other work than %q of the pipeline", n.Name, o.Name).node(c.g, k)
	}
	if o.Control != nil && n.Device != o.Device {
		return c.wrong("%q is a loop or branch and must stay on device %d", n.Name, o.Device).node(c.g, k)
	}
	if len(accesses) != len(declared) {
		return c.wrong("%q uses %d ranges, but %d in the pipeline", n.Name, len(accesses), len(declared)).node(c.g, k)
	}
	for j, a := range accesses {
		if a.Mode != declared[j].Mode || !c.same(a.Range, declared[j].Range) {
			return c.wrong("%q uses %s (%s) where the pipeline says %s (%s)", n.Name, c.g.RangeText(a.Range), a.Mode, c.original.RangeText(declared[j].Range), declared[j].Mode).node(c.g, k)
		}
		if !c.oneAddress(n, a) {
			return c.wrong("%q declares that it uses %s, but is given another address", n.Name, c.g.RangeText(a.Range)).node(c.g, k)
		}
	}
	for _, before := range o.After {
		if !slices.Contains(n.After, c.ids[before]) {
			return c.wrong("%q does not come after %q, as the pipeline says", n.Name, c.original.Nodes[before].Name).node(c.g, k)
		}
	}
	return c.device(o, k)
}

// device checks that a node runs where it can.
func (c *spreadCheck) device(o *dag.Node, k dag.NodeID) *Violation {
	n := &c.g.Nodes[k]
	if n.Device < 0 || int(n.Device) >= c.s.Devices {
		return c.wrong("%q runs on device %d of %d", n.Name, n.Device, c.s.Devices).node(c.g, k)
	}
	if n.Device != o.Device && (o.Fixed || o.Peer || writesVariables(o)) {
		return c.wrong("%q runs on device %d, but belongs on device %d", n.Name, n.Device, o.Device).node(c.g, k)
	}
	if n.Copy != nil {
		return c.copyDevice(k)
	}
	for _, a := range c.g.Accesses(k) {
		b := &c.g.Buffers[a.Buffer]
		at := &c.original.Buffers[c.s.Buffers[a.Buffer].Buffer]
		switch {
		case b.Place != at.Place:
			return c.wrong("%q uses %q, which is not in %s memory", n.Name, b.Name, at.Place).node(c.g, k)
		case b.Place == dag.Host:
		case n.Peer && b.Device != at.Device:
			return c.wrong("%q uses peers, and finds %q on device %d instead of %d", n.Name, b.Name, b.Device, at.Device).node(c.g, k)
		case !n.Peer && b.Device != n.Device:
			return c.wrong("%q runs on device %d, but uses %q, which is on device %d", n.Name, n.Device, b.Name, b.Device).node(c.g, k)
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
	if a.Name != b.Name || a.Module != b.Module || a.Kernel.Entry() != b.Kernel.Entry() || a.Grid != b.Grid || a.Block != b.Block || a.Shared != b.Shared || a.Cooperative != b.Cooperative || a.Cluster != b.Cluster || a.Map != b.Map {
		return false
	}
	return slices.EqualFunc(a.Args, b.Args, func(x, y dag.Arg) bool {
		if x.IsBuffer != y.IsBuffer || x.DType != y.DType || x.Bits != y.Bits || x.Struct != y.Struct || x.Mode != y.Mode || x.Inferred != y.Inferred || x.Texture != y.Texture {
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
