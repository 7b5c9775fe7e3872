// Hashes of a graph: one of what makes a plan correct, one of what makes it fast.

package dag

import (
	"math"
	"strings"

	"github.com/dagrun/dagrun/dag/internal/digest"
)

// Hash returns "sha256:" and a hash of the structure: nodes, the ranges they use, buffers and dependencies. A plan is correct for
// every graph of this hash. It is "" where Check finds a fault. For how long its nodes take see WorkHash.
func (g *Graph) Hash() string {
	if g.Check() != nil {
		return ""
	}
	h := digest.New("dagrun graph 1")
	h.Numbers(int64(g.Sync), int64(len(g.Buffers)), int64(len(g.Nodes)))
	for k := range g.Buffers {
		b := &g.Buffers[k]
		h.Text(b.Name)
		h.Numbers(bufferFacts(b)...)
		h.Numbers(int64(len(b.Shape)))
		h.Numbers(b.Shape...)
		if b.Symbol != "" {
			h.Text(b.Symbol)
		}
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		h.Text(n.Name)
		accesses := g.Accesses(NodeID(i))
		h.Numbers(int64(n.Kind), int64(n.Device), int64(n.Stream.Number()), int64(n.Priority), digest.Flag(n.Peer), int64(len(accesses)), int64(len(n.After)))
		for _, a := range accesses {
			h.Numbers(int64(a.Buffer), a.Lo, a.Hi, int64(a.Mode))
			if a.Pitch != 0 {
				h.Numbers(int64(a.Pitch))
			}
		}
		for _, from := range n.After {
			h.Numbers(int64(from))
		}
		n.Control.hashStructure(h)
	}
	return h.Sum()
}

// WorkHash returns "sha256:" and a hash of what the nodes do: kernels, their scalar arguments, launch shapes, declared costs, and
// bytes and operations as estimated. A plan made for a graph of the same Hash and another WorkHash is still correct, but it was
// chosen for nodes that take other times. The value that a memset writes makes no difference. WorkParts says
// all of it in words. It is "" where Check finds a fault.
func (g *Graph) WorkHash() string {
	if g.Check() != nil {
		return ""
	}
	h := digest.New("dagrun work 2")
	h.Numbers(int64(len(g.Modules)), int64(len(g.Nodes)))
	for _, m := range g.Modules {
		h.Text(m.Name)
		h.Text(m.Path)
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		w := &n.Work
		h.Numbers(digest.Flag(n.HasCost)+2*digest.Flag(w.US > 0), int64(math.Float64bits(n.CostUS)), w.Bytes, w.Flops, w.Blocks, int64(w.Threads),
			int64(w.Shared), digest.Flag(n.Launch != nil))
		if w.US > 0 {
			h.Numbers(int64(math.Float64bits(w.US)))
		}
		if c := n.Communication; c != nil {
			h.Numbers(c.facts()...)
		}
		if n.Function != "" {
			h.Text(n.Function)
		}
		n.Control.hashWork(h)
		if l := n.Launch; l != nil {
			h.Text(l.Name)
			h.Text(mapText(l))
			h.Numbers(int64(l.Shared), int64(l.scalars())+digest.Flag(l.Cooperative)<<32+l.clusterFact()<<33)
			for k := range 3 {
				h.Numbers(int64(l.Grid[k]), int64(l.Block[k]))
			}
			for k := range l.Args {
				if a := &l.Args[k]; a.Texture != nil {
					h.Text(a.Texture.String())
				} else if a.Start > 0 {
					h.Numbers(int64(k), a.Start)
				} else if !a.IsBuffer {
					h.Numbers(int64(a.Bits))
					if a.Struct != "" {
						h.Text(a.Struct)
					}
				}
			}
		}
	}
	return h.Sum()
}

// scalars is how many arguments are not buffers.
func (l *Launch) scalars() int {
	count := 0
	for k := range l.Args {
		if !l.Args[k].IsBuffer {
			count++
		}
	}
	return count
}

func mapText(l *Launch) string {
	if l.Map == nil {
		return ""
	}
	return l.Map.Text
}

// bufferFacts is what a plan relies on beside a buffer's name and shape.
func bufferFacts(b *Buffer) []int64 {
	return []int64{int64(b.Place), int64(b.DType), int64(b.Device), b.Bytes, digest.Flag(b.Pageable), digest.Flag(b.Scratch), digest.Flag(b.Init != nil),
		digest.Flag(b.Save != ""), digest.Flag(b.Expect != nil) + 2*digest.Flag(b.Symbol != "")}
}

// hashStructure adds what makes a plan correct.
func (c *Control) hashStructure(h *digest.Digest) {
	if c == nil {
		return
	}
	h.Numbers(int64(len(c.Bodies)), digest.Flag(c.While), digest.Flag(c.Condition != nil), digest.Flag(c.Times == 0))
	if c.Condition != nil {
		for _, r := range c.Condition.Operands {
			h.Numbers(int64(r.Buffer), r.Lo, r.Hi)
		}
	}
	for _, body := range c.Bodies {
		h.Text(body.Hash())
	}
}

// hashWork adds what the node does.
func (c *Control) hashWork(h *digest.Digest) {
	if c == nil {
		return
	}
	c.hashTest(h)
	for _, body := range c.Bodies {
		h.Text(body.WorkHash())
	}
}

// hashTest adds how often a loop runs, or what it or a branch tests.
func (c *Control) hashTest(h *digest.Digest) {
	h.Numbers(c.Times, c.Every)
	h.Text(c.Condition.Bound())
}

// Bound is the condition with the values of params in it, and "operand 0" and so on for what it reads.
func (c *Condition) Bound() string {
	if c == nil || c.Expr == nil {
		return ""
	}
	return strings.ReplaceAll(c.Expr.String(), operandMark, "operand ")
}

// facts is what makes two communications of the same accesses different.
func (c *Communication) facts() []int64 {
	list := []int64{int64(c.Verb), int64(c.Reduction), int64(c.DType), int64(c.Root), int64(c.Among.First), int64(c.Among.Count), int64(c.Among.Step)}
	for _, more := range c.More {
		list = append(list, int64(more.From.Buffer), more.From.Lo, more.From.Hi, int64(more.To.Buffer), more.To.Lo, more.To.Hi)
	}
	for _, t := range c.Transfers {
		list = append(list, digest.Flag(t.Receive), int64(t.Rank), int64(t.Range.Buffer), t.Range.Lo, t.Range.Hi)
	}
	return list
}
