// Loops and branches as seen from outside: what they do with bytes, and what can be wrong with them. assemble.go makes graphs of their bodies.

package dag

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/dagrun/dagrun/internal/words"
)

// MaxPasses is the most passes that a loop may be given.
const MaxPasses = 1 << 40

// MaxBodyDepth is how deep loops and branches may be nested in each other.
const MaxBodyDepth = 16

// MayOnly reports whether a loop or branch possibly leaves some of the bytes of r unwritten that it writes at other times, and reads none
// of them itself.
func (c *Control) MayOnly(r Range) bool {
	if c == nil || !c.effect.may.meets(r) {
		return false
	}
	return !c.effect.reads.meets(r)
}

// Carries reports whether the passes of a loop need what the passes before them left in a buffer: because a pass reads bytes of it before it
// has certainly written them, or because it writes some of its bytes in some passes only. Nothing is known of branches.
func (c *Control) Carries(b BufferID) bool {
	if c == nil {
		return false
	}
	_, found := slices.BinarySearch(c.carried, b)
	return found
}

// MakesAPass reports whether each replay makes a pass of a loop: one of while tests its condition first, and one of 0 times has none.
func (c *Control) MakesAPass() bool { return c != nil && !c.While && c.Times > 0 }

// Action says what the node does in a few words, such as "repeat until d_rr < tol, at most 500 times".
func (c *Control) Action(kind Kind) string {
	switch {
	case c == nil:
		return kind.String()
	case kind == Branch && len(c.Bodies) > 1:
		return "if " + c.Condition.String() + ", else"
	case kind == Branch:
		return "if " + c.Condition.String()
	case c.Condition == nil:
		return "repeat " + words.Count(c.Times, "time", "times")
	}
	word := "until"
	if c.While {
		word = "while"
	}
	every := ""
	if c.Every > 1 {
		every = fmt.Sprintf(", tested every %d", c.Every)
	}
	return fmt.Sprintf("repeat %s %s, at most %s%s", word, c.Condition, words.Count(c.Times, "time", "times"), every)
}

// BodyName says which body of a node this is: "", or "else" for the second body of a branch.
func (c *Control) BodyName(k int) string {
	if k == 1 {
		return "else"
	}
	return ""
}

// HasControl reports whether the graph has a loop or branch.
func (g *Graph) HasControl() bool {
	if g == nil || g.Pipeline == nil {
		return false
	}
	for i := range g.Nodes {
		if g.Nodes[i].Control != nil {
			return true
		}
	}
	return false
}

// EachGraph calls visit with the graph and, after it, with every body of its loops and branches, outer ones first. The path is the names
// of the nodes around it.
func (g *Graph) EachGraph(visit func(g *Graph, path []string)) {
	if visit != nil {
		g.eachGraph(visit, nil)
	}
}

func (g *Graph) eachGraph(visit func(*Graph, []string), path []string) {
	if g == nil || g.Pipeline == nil {
		return
	}
	visit(g, path)
	for i := range g.Nodes {
		c := g.Nodes[i].Control
		if c == nil {
			continue
		}
		inner := append(slices.Clip(path), g.Nodes[i].Name)
		for _, body := range c.Bodies {
			body.eachGraph(visit, inner)
		}
	}
}

// problem says what is wrong with a loop or branch, or nil.
func (c *Control) problem(p *Pipeline, n *Node) error {
	loop := n.Kind == Repeat
	switch {
	case len(c.declared) == 0 && len(c.Bodies) == 0:
		return fmt.Errorf("the %s has no body; declare it with Builder.Repeat or Builder.If", n.Kind)
	case loop && len(c.declared) > 1, len(c.declared) > 2:
		return fmt.Errorf("the %s has %d bodies", n.Kind, len(c.declared))
	case !loop && c.Condition == nil:
		return errors.New("the branch has no condition")
	case loop && (c.Times < 0 || c.Times > MaxPasses):
		return fmt.Errorf("%d passes; there can be from 0 to %d", c.Times, int64(MaxPasses))
	case loop && c.Condition != nil && c.Times < 1:
		return errors.New("the most passes of a loop with a condition must be at least 1")
	case loop && c.Condition != nil && c.Every < 1:
		return fmt.Errorf("the condition is tested every %d passes; the number must be at least 1", c.Every)
	}
	if c.Condition != nil {
		if err := c.Condition.problem(p, n.Device); err != nil {
			return fmt.Errorf("condition: %w", err)
		}
	}
	for _, body := range c.declared {
		if err := body.bodyProblem(n); err != nil {
			return err
		}
	}
	return nil
}

// bodyProblem says what a body has that no body may have, or nil.
func (p *Pipeline) bodyProblem(owner *Node) error {
	if len(p.Nodes) == 0 {
		return errors.New("the body has no nodes")
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Priority != owner.Priority {
			return fmt.Errorf("%q of its body has %s priority; nodes of a body have the priority of the node around them, which is %s", n.Name, n.Priority,
				owner.Priority)
		}
	}
	return nil
}

// inherit gives a body's nodes the priority of the node around them, unless they have one of their own, which is then refused.
func (p *Pipeline) inherit(priority Priority) {
	for i := range p.Nodes {
		if p.Nodes[i].Priority == Normal {
			p.Nodes[i].Priority = priority
		}
	}
	p.inheritAll()
}

// inheritAll gives the nodes of all bodies the priority of the node around them.
func (p *Pipeline) inheritAll() {
	for i := range p.Nodes {
		if c := p.Nodes[i].Control; c != nil {
			for _, body := range c.declared {
				body.inherit(p.Nodes[i].Priority)
			}
		}
	}
}

// Enclose gives a loop or branch its bodies, whose nodes take its device and its priority unless they have their own.
func (d *Draft) Enclose(node *Node, bodies []*Draft) error {
	d.enclose(node, bodies)
	for _, body := range bodies {
		body.inherit(node.Priority)
	}
	return node.Control.problem(&d.Pipeline, node)
}

func (d *Draft) enclose(node *Node, bodies []*Draft) {
	for _, body := range bodies {
		node.Control.declared = append(node.Control.declared, &body.Pipeline)
	}
	node.Device = node.Control.home(&d.Pipeline)
	for _, body := range bodies {
		body.placeHostFunctions(node.Device)
	}
}

// placeHostFunctions puts the host functions of a body on its device, unless they name another.
func (p *Pipeline) placeHostFunctions(device int32) {
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.Kind == HostFunction && !n.Fixed {
			n.Device = device
		}
	}
}

// Declared returns the bodies as they were declared.
func (c *Control) Declared() []*Pipeline {
	if c == nil {
		return nil
	}
	return c.declared
}

// home is the device that a loop or branch belongs to: where its condition is read, or else where the first node of its bodies runs.
func (c *Control) home(p *Pipeline) int32 {
	if c.Condition != nil && len(c.Condition.Operands) > 0 && p.rangeProblem(c.Condition.Operands[0]) == nil {
		return p.Buffers[c.Condition.Operands[0].Buffer].Device
	}
	return c.declared[0].firstDevice()
}

// firstDevice is where the first node of a body runs that is on some device.
func (p *Pipeline) firstDevice() int32 {
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.Kind != HostFunction || n.Fixed {
			return n.Device
		}
	}
	return 0
}

// hasControl reports whether a pipeline has loops or branches whose bodies are not graphs yet.
func (p *Pipeline) hasControl() bool {
	for i := range p.Nodes {
		if c := p.Nodes[i].Control; c != nil && len(c.declared) > 0 {
			return true
		}
	}
	return false
}

// effect finds what a body does with bytes in one pass. Its nodes are taken in the order of declaration, which all accesses to the same
// bytes keep.
func (p *Pipeline) effect() effect {
	var e effect
	for i := range p.Nodes {
		if c := p.Nodes[i].Control; c != nil {
			for _, r := range c.effect.reads.ranges() {
				e.reads.addExcept(r, &e.must)
			}
			e.may.addAll(&c.effect.may)
			e.must.addAll(&c.effect.must)
			continue
		}
		accesses := p.Accesses(NodeID(i))
		for _, a := range accesses {
			if a.Mode&Read != 0 {
				e.reads.addExcept(a.Range, &e.must)
			}
		}
		for _, a := range accesses {
			if a.Mode&Write != 0 {
				e.may.add(a.Range)
				e.must.add(a.Range)
			}
		}
	}
	return e
}

// piece is a part of a row that an effect treats alike.
type piece struct {
	byteSpan
	reads, may, must bool
}

// cut calls visit for the pieces of a buffer that the effect treats alike, by where they end, neighbours that are alike as one.
func (e *effect) cut(b BufferID, visit func(r Range, reads, may, must bool)) {
	sets := [3]*rangeSet{&e.reads, &e.may, &e.must}
	var pitch int64
	for _, set := range sets {
		if a := set.of[b]; a != nil {
			pitch = max(pitch, a.pitch)
		}
	}
	var areas [3]area
	var rows []int64
	for k, set := range sets {
		areas[k] = set.common(b, pitch)
		for _, band := range areas[k].bands {
			rows = append(rows, band.top, band.bottom)
		}
	}
	slices.Sort(rows)
	rows = slices.Compact(rows)
	var open []tall
	for _, row := range rows { // nothing goes on below the last
		next := pieces(areas[0].columns(row), areas[1].columns(row), areas[2].columns(row))
		for k := range next {
			next[k].top = row
			at, found := slices.BinarySearchFunc(open, next[k].lo, func(t tall, lo int64) int { return cmp.Compare(t.lo, lo) })
			if found && open[at].piece == next[k].piece {
				next[k].top, open[at].top = open[at].top, row // the piece goes on
			}
		}
		for _, t := range open {
			if t.top < row {
				visit(rangeOf(b, pitch, box{t.top, row, t.lo, t.hi}), t.reads, t.may, t.must)
			}
		}
		open = next
	}
}

// tall is a piece of several rows.
type tall struct {
	piece
	top int64
}

// pieces cuts a row.
func pieces(reads, may, must []byteSpan) []tall {
	var at []int64
	for _, list := range [3][]byteSpan{reads, may, must} {
		for _, c := range list {
			at = append(at, c.lo, c.hi)
		}
	}
	slices.Sort(at)
	at = slices.Compact(at)
	var list []tall
	var next [3]int // the first span that does not end before the piece
	has := func(k int, spans []byteSpan, x byteSpan) bool {
		for next[k] < len(spans) && spans[next[k]].hi <= x.lo {
			next[k]++
		}
		return next[k] < len(spans) && spans[next[k]].lo < x.hi
	}
	for k := range max(len(at)-1, 0) {
		x := byteSpan{at[k], at[k+1]}
		p := piece{x, has(0, reads, x), has(1, may, x), has(2, must, x)}
		if n := len(list); n > 0 && list[n-1].hi == x.lo && list[n-1].reads == p.reads && list[n-1].may == p.may && list[n-1].must == p.must {
			list[n-1].hi = x.hi
		} else if p.reads || p.may || p.must {
			list = append(list, tall{piece: p})
		}
	}
	return list
}

// buffers returns the buffers that are read or may be written, ascending.
func (e *effect) buffers() []BufferID {
	list := append(e.reads.buffers(), e.may.buffers()...)
	slices.Sort(list)
	return slices.Compact(list)
}

// carried returns the buffers whose contents one pass may take from the pass before, ascending.
func (e *effect) carried() []BufferID {
	var list []BufferID
	for _, b := range e.buffers() {
		found := false
		e.cut(b, func(_ Range, reads, may, must bool) { found = found || reads || may && !must })
		if found {
			list = append(list, b)
		}
	}
	return list
}
