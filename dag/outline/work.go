// What nodes do, in words that a saved plan can hold, and the first difference between two graphs of one structure.

package outline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/dag"
)

// Work says what the nodes of a graph do. It holds all that Graph.WorkHash hashes.
type Work struct {
	Modules []string   // "name=path"
	Nodes   [][]string // by node, what Parts returns
}

// WorkOf returns what the nodes of a graph do.
func WorkOf(g *dag.Graph) *Work {
	if g.Check() != nil {
		return &Work{}
	}
	o := &Work{Modules: Modules(g), Nodes: make([][]string, g.Len())}
	for i := range g.Nodes {
		o.Nodes[i] = Parts(g, dag.NodeID(i))
	}
	return o
}

// Modules lists the modules of a graph, each as name=path.
func Modules(g *dag.Graph) []string {
	if g.Check() != nil {
		return nil
	}
	var parts []string
	for _, m := range g.Modules {
		parts = append(parts, m.Name+"="+m.Path)
	}
	return parts
}

// Parts says what a node does, each part as name=value: the kernel or formula, its scalar arguments, the launch shape, the declared
// cost and what is estimated. The buffers are left out, since the structure has them.
func Parts(g *dag.Graph, i dag.NodeID) []string {
	if g.Check() != nil || i < 0 || int(i) >= g.Len() {
		return nil
	}
	n := &g.Nodes[i]
	var parts []string
	if l := n.Launch; l != nil {
		parts = launchParts(l, n.Kind)
	}
	if n.Function != "" {
		parts = append(parts, "host="+n.Function)
	}
	if n.Communication != nil {
		parts = append(parts, communicationParts(n.Communication)...)
	}
	if n.Control != nil {
		parts = controlParts(n.Control, n.Kind)
	}
	if n.HasCost {
		parts = append(parts, fmt.Sprintf("cost=%v us", n.CostUS))
	}
	for _, part := range []struct {
		name  string
		value int64
	}{{"bytes", n.Work.Bytes}, {"operations", n.Work.Flops}, {"blocks", n.Work.Blocks}, {"threads", int64(n.Work.Threads)}, {"shared", int64(n.Work.Shared)}} {
		if part.value != 0 {
			parts = append(parts, fmt.Sprintf("estimated %s=%d", part.name, part.value))
		}
	}
	if n.Work.US != 0 {
		parts = append(parts, fmt.Sprintf("estimated us=%v", n.Work.US))
	}
	return parts
}

func communicationParts(c *dag.Communication) []string {
	parts := []string{"communication=" + c.Verb.String()}
	if c.Reduction != dag.NoReduction {
		parts = append(parts, "op="+c.Reduction.String())
	}
	if c.Verb == dag.Reduce || c.Verb == dag.Broadcast {
		parts = append(parts, fmt.Sprintf("root=%d", c.Root))
	}
	if !c.Among.All() {
		parts = append(parts, fmt.Sprintf("among=[%d, %d, %d]", c.Among.First, c.Among.Count, c.Among.Step))
	}
	if len(c.More) > 0 {
		parts = append(parts, fmt.Sprintf("bucket=%d", len(c.More)+1))
	}
	for k, t := range c.Transfers {
		word := "to"
		if t.Receive {
			word = "from"
		}
		parts = append(parts, fmt.Sprintf("transfer %d=%d bytes %s rank %d", k+1, t.Range.Bytes(), word, t.Rank))
	}
	return parts
}

func launchParts(l *dag.Launch, kind dag.Kind) []string {
	parts := make([]string, 0, len(l.Args)+6)
	if l.Map != nil {
		parts = append(parts, "formula="+l.Map.Text)
	} else {
		parts = append(parts, kind.String()+"="+l.Name)
	}
	var params []dag.KernelParam
	if l.Kernel != nil {
		params = l.Kernel.Params()
	}
	for k := range l.Args {
		if a := &l.Args[k]; !a.IsBuffer || a.Texture != nil || a.Start > 0 {
			name := fmt.Sprintf("argument %d", k+1)
			if k < len(params) && params[k].Name != "" {
				name = params[k].Name
			}
			text := a.DType.Text(a.Bits)
			if a.Struct != "" {
				text = fmt.Sprintf("%x", a.Struct)
			} else if a.Texture != nil {
				text = "{" + a.Texture.String() + "}"
			} else if a.Start > 0 {
				text = fmt.Sprintf("{at: %d}", a.Start/a.DType.Size())
			}
			parts = append(parts, name+"="+text)
		}
	}
	parts = append(parts, fmt.Sprintf("grid=%v", l.Grid), fmt.Sprintf("block=%v", l.Block))
	if l.Cooperative {
		parts = append(parts, "cooperative")
	}
	if l.Cluster != [3]uint32{} {
		parts = append(parts, fmt.Sprintf("cluster=%v", l.Cluster))
	}
	if l.Shared > 0 {
		parts = append(parts, fmt.Sprintf("shared=%d", l.Shared))
	}
	return parts
}

// WorkDifference names the first thing in which a graph's work differs from an older outline of the same structure, such as
// `node "spin" has us=100000, it had us=10`, or "" where there is no difference.
func WorkDifference(g *dag.Graph, old *Work) string {
	if old == nil || g.Check() != nil {
		return ""
	}
	modules := Modules(g)
	module := func(modules []string) func(int32) string { return func(k int32) string { return partName(modules[k]) } }
	if d := firstDifferentName("module", len(modules), len(old.Modules), module(modules), module(old.Modules)); d != "" {
		return d
	}
	for k, m := range modules {
		if was := old.Modules[k]; m != was {
			return fmt.Sprintf("module %q is %s, it was %s", partName(m), m[len(partName(m))+1:], strings.TrimPrefix(was, partName(was)+"="))
		}
	}
	for i := range min(g.Len(), len(old.Nodes)) {
		if is, was := partsDifference(Parts(g, dag.NodeID(i)), old.Nodes[i]); is != "" {
			return fmt.Sprintf("node %q has %s, it had %s", g.Nodes[i].Name, is, was)
		}
	}
	return ""
}

// partsDifference returns the first part that differs, as it is and as it was, or "" twice.
func partsDifference(parts, old []string) (is, was string) {
	for k := range max(len(parts), len(old)) {
		switch {
		case k >= len(parts):
			return "no " + partName(old[k]), old[k]
		case k >= len(old):
			return parts[k], "no " + partName(parts[k])
		case parts[k] == old[k]:
		case partName(parts[k]) == partName(old[k]):
			return parts[k], old[k]
		case slices.ContainsFunc(parts[k:], func(part string) bool { return partName(part) == partName(old[k]) }):
			return parts[k], "no " + partName(parts[k])
		default:
			return "no " + partName(old[k]), old[k]
		}
	}
	return "", ""
}

func partName(part string) string {
	name, _, _ := strings.Cut(part, "=")
	return name
}

// firstDifferentName names the first id at which the names differ: something new, something gone, or another order.
func firstDifferentName(what string, n, oldN int, name, oldName func(k int32) string) string {
	for k := range int32(max(n, oldN)) {
		if int(k) < min(n, oldN) && name(k) == oldName(k) {
			continue
		}
		is, was := make(map[string]bool, n), make(map[string]bool, oldN)
		for k := range int32(n) {
			is[name(k)] = true
		}
		for k := range int32(oldN) {
			was[oldName(k)] = true
		}
		switch {
		case int(k) < n && !was[name(k)]:
			return fmt.Sprintf("%s %q is new", what, name(k))
		case int(k) < oldN && !is[oldName(k)]:
			return fmt.Sprintf("%s %q is gone", what, oldName(k))
		case int(k) < min(n, oldN):
			return fmt.Sprintf("%s %q stands where %q stood", what, name(k), oldName(k))
		}
	}
	return ""
}

// controlParts says what a loop or branch does, each part as name=value.
func controlParts(c *dag.Control, kind dag.Kind) []string {
	var parts []string
	if kind == dag.Repeat {
		parts = append(parts, fmt.Sprintf("passes=%d", c.Times), fmt.Sprintf("tested every=%d", c.Every))
	}
	if c.Condition != nil {
		parts = append(parts, "condition="+c.Condition.Bound())
	}
	for k, body := range c.Bodies {
		parts = append(parts, fmt.Sprintf("work of body %d=%s", k, body.WorkHash()))
	}
	return parts
}
