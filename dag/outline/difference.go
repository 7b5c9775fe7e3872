// The first difference between two graphs, in words for people whose plan does not fit.

package outline

import (
	"fmt"
	"slices"

	"github.com/dagrun/dagrun/dag"
)

// Difference names the first thing in which a graph differs from another one, as a sentence about this one such as
// `node "up_x" is new`, or "" if both their hashes are equal. Differences of structure come before those of work. A program that keeps
// plans for its graphs can tell with it why a plan no longer fits. For a plan from a file, see DifferenceFrom.
func Difference(g, old *dag.Graph) string {
	if g.Check() != nil || old.Check() != nil {
		return ""
	}
	if g.Sync != old.Sync {
		return fmt.Sprintf("sync is %s, it was %s", g.Sync, old.Sync)
	}
	buffer := func(g *dag.Graph) func(int32) string { return func(k int32) string { return g.Buffers[k].Name } }
	if d := firstDifferentName("buffer", len(g.Buffers), len(old.Buffers), buffer(g), buffer(old)); d != "" {
		return d
	}
	node := func(g *dag.Graph) func(int32) string { return func(k int32) string { return g.Nodes[k].Name } }
	if d := firstDifferentName("node", len(g.Nodes), len(old.Nodes), node(g), node(old)); d != "" {
		return d
	}
	for k := range g.Buffers {
		if d := bufferDifference(&g.Buffers[k], &old.Buffers[k]); d != "" {
			return fmt.Sprintf("buffer %q %s", g.Buffers[k].Name, d)
		}
	}
	for i := range g.Nodes {
		if d := nodeDifference(g, old, dag.NodeID(i)); d != "" {
			return fmt.Sprintf("node %q %s", g.Nodes[i].Name, d)
		}
	}
	return WorkDifference(g, WorkOf(old))
}

func bufferDifference(b, old *dag.Buffer) string {
	was := func(what string, is, was any) string { return fmt.Sprintf("has %s %v, it had %v", what, is, was) }
	switch {
	case b.Place != old.Place:
		return fmt.Sprintf("is in %s memory, it was in %s memory", b.Place, old.Place)
	case b.DType != old.DType:
		return fmt.Sprintf("is of type %s, it was of %s", b.DType, old.DType)
	case !slices.Equal(b.Shape, old.Shape):
		return was("shape", b.Shape, old.Shape)
	case b.Device != old.Device:
		return fmt.Sprintf("is on device %d, it was on %d", b.Device, old.Device)
	case b.Pageable != old.Pageable:
		return changed(b.Pageable, "pageable")
	case b.Scratch != old.Scratch:
		return changed(b.Scratch, "scratch")
	case b.Symbol != old.Symbol:
		return fmt.Sprintf("stands for the variable %q, it stood for %q", b.Symbol, old.Symbol)
	}
	for _, part := range []struct {
		name    string
		is, was bool
	}{{"init", b.Init != nil, old.Init != nil}, {"save", b.Save != "", old.Save != ""}, {"expect", b.Expect != nil, old.Expect != nil}} {
		switch {
		case part.is && !part.was:
			return "has " + part.name + ", it had none"
		case part.was && !part.is:
			return "has no " + part.name + ", it had one"
		}
	}
	return ""
}

func changed(is bool, what string) string {
	if is {
		return "is " + what + ", it was not"
	}
	return "is not " + what + ", it was"
}

func nodeDifference(g, old *dag.Graph, i dag.NodeID) string {
	n, o := &g.Nodes[i], &old.Nodes[i]
	switch {
	case n.Kind != o.Kind:
		return fmt.Sprintf("is a %s, it was a %s", n.Kind, o.Kind)
	case n.Device != o.Device:
		return fmt.Sprintf("runs on device %d, it ran on %d", n.Device, o.Device)
	case n.Stream != o.Stream:
		return fmt.Sprintf("is bound to %s, it was bound to %s", streamText(n.Stream.Number()), streamText(o.Stream.Number()))
	case n.Priority != o.Priority:
		return fmt.Sprintf("has priority %s, it had %s", n.Priority, o.Priority)
	case n.Peer != o.Peer:
		return changed(n.Peer, "allowed to use peers")
	}
	for k, a := range g.Accesses(i) {
		if before := old.Accesses(i); k >= len(before) {
			return fmt.Sprintf("uses %s (%s), it did not", g.RangeText(a.Range), a.Mode)
		} else if a != before[k] {
			return fmt.Sprintf("uses %s (%s) where it used %s (%s)", g.RangeText(a.Range), a.Mode, old.RangeText(before[k].Range), before[k].Mode)
		}
	}
	if before := old.Accesses(i); len(before) > len(g.Accesses(i)) {
		gone := before[len(g.Accesses(i))]
		return fmt.Sprintf("does not use %s (%s), it did", old.RangeText(gone.Range), gone.Mode)
	}
	if !slices.Equal(n.After, o.After) {
		for _, from := range n.After {
			if !slices.Contains(o.After, from) {
				return fmt.Sprintf("comes after %q, it did not", g.Nodes[from].Name)
			}
		}
		for _, from := range o.After {
			if !slices.Contains(n.After, from) {
				return fmt.Sprintf("does not come after %q, it did", old.Nodes[from].Name)
			}
		}
		return "lists what it comes after in another order"
	}
	return controlDifference(n.Control, o.Control)
}

func streamText(stream int32) string {
	if stream < 0 {
		return "no stream"
	}
	return fmt.Sprintf("stream %d", stream)
}

// controlDifference says how a loop or branch differs from an older one in structure, or "".
func controlDifference(c, old *dag.Control) string {
	if c == nil || old == nil {
		return ""
	}
	switch {
	case len(c.Bodies) != len(old.Bodies):
		return fmt.Sprintf("has %d bodies, it had %d", len(c.Bodies), len(old.Bodies))
	case c.While != old.While:
		return changed(c.While, "tested before each pass")
	case (c.Condition == nil) != (old.Condition == nil):
		return changed(c.Condition != nil, "tested")
	case (c.Times == 0) != (old.Times == 0):
		return fmt.Sprintf("makes %d passes, it made %d", c.Times, old.Times)
	}
	for k, body := range c.Bodies {
		if d := Difference(body, old.Bodies[k]); d != "" {
			return "has a body in which " + d
		}
	}
	if c.Condition != nil && fmt.Sprint(c.Condition.Operands) != fmt.Sprint(old.Condition.Operands) {
		return "tests other buffers"
	}
	return ""
}
