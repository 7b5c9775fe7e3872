// Loops and branches: nodes whose bodies are graphs of their own, and what such a node reads and writes as seen from outside.

package dag

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/dagrun/dagrun/internal/words"
)

// MaxPasses is the most passes that a loop may be given.
const MaxPasses = 1 << 40

// MaxBodyDepth is how deep loops and branches may be nested in each other.
const MaxBodyDepth = 16

// Control makes a node a loop (Repeat) or a branch (Branch). Builder.Repeat and Builder.If make one; its bodies are complete once the
// graph is.
//
// To the nodes around it, a loop or branch is a single node with the accesses of its bodies together. Bytes that may or may not be
// written count as read and written: afterwards they hold either the new contents or the old.
type Control struct {
	// Times is how many passes a loop without Condition makes, and how many one with a Condition makes at most.
	Times int64
	// Condition ends a loop once it holds (until), or, with While, once it does not. It chooses the body of a branch. nil: a loop of
	// exactly Times passes.
	Condition *Condition
	While     bool   // the loop tests before each pass; otherwise after it
	Every     int64  // the loop tests only every so many passes, and after the last; at least 1
	OrStop    bool   // it is no failure that Times passes were not enough
	Expect    *int64 // how many passes the last replay must have made; nil: not checked

	// Bodies are over the buffers of the pipeline. A loop has one body. A branch has one, or a second that runs if the condition does
	// not hold. All nodes of the bodies run on the node's device.
	Bodies []*Graph

	declared []*Pipeline // the bodies until the graph is made
	effect   effect
}

// effect is what a loop or branch does with bytes.
type effect struct {
	reads rangeSet // before it has certainly written them
	may   rangeSet // written in some run
	must  rangeSet // written in every run
}

// MayOnly reports whether a loop or branch possibly leaves some of the bytes of r unwritten that it writes at other times, and reads none
// of them itself.
func (c *Control) MayOnly(r Range) bool {
	if c == nil || !c.effect.may.meets(r) {
		return false
	}
	return !c.effect.reads.meets(r)
}

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
		if n.Communication != nil {
			return fmt.Errorf("%q communicates; nodes of a body cannot", n.Name)
		}
		if n.Device != owner.Device {
			return fmt.Errorf("%q is on device %d and %q is on device %d; all nodes of a body run on one device", owner.Name, owner.Device, n.Name, n.Device)
		}
		if n.Priority != owner.Priority {
			return fmt.Errorf("%q of its body has %s priority; nodes of a body have the priority of the node around them, which is %s", n.Name, n.Priority, owner.Priority)
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

// firstDevice is where the first node of a body runs.
func (p *Pipeline) firstDevice() int32 {
	if len(p.Nodes) == 0 {
		return 0
	}
	return p.Nodes[0].Device
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

// settle makes graphs of all bodies, the innermost first, and finds the accesses of the nodes that they belong to.
func (p *Pipeline) settle() error {
	if !p.hasControl() {
		return nil
	}
	s := settling{root: p, home: make([][]*Control, len(p.Buffers)), seen: make([]bool, len(p.Buffers))}
	s.locate(p, nil)
	return s.pipeline(p)
}

// settling is the state of settle.
type settling struct {
	root *Pipeline
	home [][]*Control // by buffer: the loops and branches that all its accesses are in, outermost first
	seen []bool
}

// locate finds the home of each buffer.
func (s *settling) locate(p *Pipeline, path []*Control) {
	note := func(b BufferID) {
		if !s.seen[b] {
			s.seen[b], s.home[b] = true, slices.Clone(path)
			return
		}
		k := 0
		for k < len(s.home[b]) && k < len(path) && s.home[b][k] == path[k] {
			k++
		}
		s.home[b] = s.home[b][:k]
	}
	for i := range p.Nodes {
		c := p.Nodes[i].Control
		if c == nil {
			for _, a := range p.Accesses(NodeID(i)) {
				note(a.Buffer)
			}
			continue
		}
		inner := append(slices.Clip(path), c)
		if c.Condition != nil {
			for _, r := range c.Condition.Operands {
				note(r.Buffer)
			}
		}
		for _, body := range c.declared {
			s.locate(body, inner)
		}
	}
}

// pipeline settles the loops and branches of one level and gives them their accesses.
func (s *settling) pipeline(p *Pipeline) error {
	accesses := make([]Access, 0, len(p.accesses))
	start := make([]int32, 1, len(p.Nodes)+1)
	for i := range p.Nodes {
		n := &p.Nodes[i]
		own := p.Accesses(NodeID(i))
		if n.Control != nil {
			if err := s.control(n); err != nil {
				return err
			}
			own = s.seenFromOutside(n.Control)
		}
		accesses = append(accesses, own...)
		if len(accesses) > math.MaxInt32 {
			return fmt.Errorf("there are more than %d accesses", math.MaxInt32)
		}
		start = append(start, int32(len(accesses)))
	}
	p.accesses, p.accessStart = accesses, start
	return nil
}

// control makes the graphs of a node's bodies.
func (s *settling) control(n *Node) error {
	c := n.Control
	for k, body := range c.declared {
		body.Name, body.Sync, body.Dir, body.Rank, body.Ranks = n.Name, s.root.Sync, s.root.Dir, s.root.Rank, s.root.Ranks
		body.Params, body.Modules, body.Buffers, body.MaxEdges = s.root.Params, s.root.Modules, s.root.Buffers, s.root.MaxEdges
		if err := s.pipeline(body); err != nil {
			return err
		}
		if node, problem := body.tileInBody(); node != nil {
			return fmt.Errorf("node %q: %s", node.Name, problem)
		}
		g, err := deriveGraph(body)
		if err != nil {
			return err
		}
		c.Bodies = append(c.Bodies, g)
		e := body.effect()
		switch {
		case k == 0:
			c.effect = e
		default:
			c.effect.reads.addAll(&e.reads)
			c.effect.may.addAll(&e.may)
			c.effect.must.intersect(&e.must)
		}
	}
	c.declared = nil
	if n.Kind == Branch && len(c.Bodies) == 1 || n.Kind == Repeat && (c.While || c.Times == 0) {
		c.effect.must = rangeSet{}
	}
	if c.Condition != nil {
		for _, r := range c.Condition.Operands {
			if n.Kind == Branch || c.While {
				c.effect.reads.add(r)
			} else {
				c.effect.reads.addExcept(r, &c.effect.must) // the test comes after a pass
			}
		}
	}
	return nil
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

// seenFromOutside returns the accesses of a loop or branch as one node. Bytes that are possibly not written keep their old contents, so
// they count as read, unless nothing outside could see the difference: in scratch, and in buffers that are used inside only.
func (s *settling) seenFromOutside(c *Control) []Access {
	var list []Access
	add := func(r Range, mode Mode) {
		if r.Lo < r.Hi {
			list = append(list, Access{r, mode})
		}
	}
	for _, b := range slices.Compact(slices.Sorted(slices.Values(append(c.effect.reads.buffers(), c.effect.may.buffers()...)))) {
		c.effect.cut(b, func(r Range, reads, may, must bool) {
			switch {
			case !may && reads:
				add(r, Read)
			case may && !reads && (must || s.unseen(b, c)):
				add(r, Write)
			case may:
				add(r, ReadWrite)
			}
		})
	}
	return list
}

// unseen reports whether the contents of a buffer are of no use outside a loop or branch.
func (s *settling) unseen(id BufferID, c *Control) bool {
	b := &s.root.Buffers[id]
	return b.InArena() && (b.Scratch || b.Init == nil && b.Save == "" && b.Expect == nil && slices.Contains(s.home[id], c))
}

// bodies checks the nodes of all bodies that have no graph yet.
func (c *checker) bodies(p *Pipeline) {
	var check func(*Pipeline, int)
	names := map[string]bool{}
	for i := range p.Nodes {
		if p.Nodes[i].Control != nil && len(names) == 0 {
			for k := range p.Nodes {
				names[p.Nodes[k].Name] = true
			}
		}
	}
	check = func(level *Pipeline, depth int) {
		for i := range level.Nodes {
			control := level.Nodes[i].Control
			if control == nil {
				continue
			}
			if depth >= MaxBodyDepth {
				c.wrong("node", level.Nodes[i].Name, fmt.Sprintf("loops and branches are nested deeper than %d levels", MaxBodyDepth), "")
				continue
			}
			if p.Sync == SyncExplicit {
				c.wrong("node", level.Nodes[i].Name, explicitControl, "use SyncAuto")
			}
			for _, body := range control.declared {
				body.Buffers, body.Modules = p.Buffers, p.Modules
				c.streams(body)
				for k := range body.Nodes {
					if name := body.Nodes[k].Name; names[name] {
						c.wrong("node", name, "the name is taken", "names of nodes are unique in the whole pipeline, bodies included")
					} else if err := checkName(name); err != nil {
						c.wrong("node", name, err.Error(), "")
					}
					names[body.Nodes[k].Name] = true
					c.node(body, NodeID(k))
				}
				if node, problem := body.tileInBody(); node != nil {
					c.wrong("node", node.Name, problem, noTileHint)
				}
				check(body, depth+1)
			}
		}
	}
	check(p, 0)
}

// tileInBody finds a node of a body that uses a tile. What loops and branches do with bytes is known by ranges of whole rows only.
func (p *Pipeline) tileInBody() (node *Node, problem string) {
	for i := range p.Nodes {
		for _, a := range p.Accesses(NodeID(i)) {
			if a.Tile() {
				return &p.Nodes[i], fmt.Sprintf("it uses the tile %s, and nodes of loops and branches cannot use tiles", p.rangeText(a.Range))
			}
		}
	}
	return nil, ""
}

const noTileHint = "slice whole rows, or copy the tile to a buffer of its own"

const explicitControl = "loops and branches need sync: auto"
