// Passes of loops and branches in a Chrome trace: a group of tracks of their own, one for the passes of each and one for each stream of each body.

package chrome

import (
	"fmt"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/runtime/internal/spans"
)

func bodyKey(node, body string) string { return body + " " + node }

// hasPasses reports whether any replay shows passes.
func (t *Recording) hasPasses() bool {
	for k := range t.Replays {
		if len(t.Replays[k].Passes) > 0 {
			return true
		}
	}
	return false
}

// passTracks declares the tracks of the loops and branches of a trace.
func (c *writer) passTracks(t *Recording) {
	c.bodies = bodyTracks{map[string]int{}, map[string]int{}}
	if !t.hasPasses() {
		return
	}
	c.event(`{"ph":"M","pid":%d,"name":"process_name","args":{"name":%s}}`, c.first+passesProcess, quoted(c.prefix+"loops and branches"))
	c.event(`{"ph":"M","pid":%d,"name":"process_sort_index","args":{"sort_index":%d}}`, c.first+passesProcess, c.first+passesProcess)
	next := 0
	track := func(text string) int {
		c.event(`{"ph":"M","pid":%d,"tid":%d,"name":"thread_name","args":{"name":%s}}`, c.first+passesProcess, next, quoted(text))
		c.event(`{"ph":"M","pid":%d,"tid":%d,"name":"thread_sort_index","args":{"sort_index":%d}}`, c.first+passesProcess, next, next)
		next++
		return next - 1
	}
	var declare func(g *dag.Graph, p *plan.Plan)
	declare = func(g *dag.Graph, p *plan.Plan) {
		for i := range g.Nodes {
			n := &g.Nodes[i]
			if n.Control == nil {
				continue
			}
			c.bodies.passes[n.Name] = track(n.Name)
			for k, body := range n.Control.Bodies {
				inner, name := p.BodyOf(dag.NodeID(i), k), spans.BodyName(n, k)
				if t.Bodies {
					for s := range inner.Streams {
						text := fmt.Sprintf("%s, stream %d", n.Name, s)
						if n.Kind == dag.Branch {
							text = fmt.Sprintf("%s, %s, stream %d", n.Name, name, s)
						}
						if at := track(text); s == 0 {
							c.bodies.bodies[bodyKey(n.Name, name)] = at
						}
					}
				}
				declare(body, inner)
			}
		}
	}
	declare(c.g, c.plan)
}

// passes writes the passes of one replay.
func (c *writer) passes(r *spans.TracedReplay, number int, base float64) {
	for k := range r.Passes {
		p := &r.Passes[k]
		args := map[string]any{"replay": number, "run": p.Run}
		text := fmt.Sprintf("pass %d", p.First)
		switch {
		case p.Body != spans.BodyRepeat:
			text = p.Body
		case p.LeftOut:
			text, args["left_out"] = fmt.Sprintf("passes %d to %d, not shown one by one", p.First, p.Last), p.Last-p.First+1
		}
		if p.Within >= 0 {
			args["within"] = fmt.Sprintf("%s, pass %d", r.Passes[p.Within].Node, r.Passes[p.Within].First)
		}
		c.span(passesProcess, c.bodies.passes[p.Node], text, "pass", base+p.Start, base+p.End, args)
		first := c.bodies.bodies[bodyKey(p.Node, p.Body)]
		for i := range p.Nodes {
			n := &p.Nodes[i]
			c.span(passesProcess, first+int(n.Stream), n.Node, "body", base+n.Start, base+n.End, map[string]any{"replay": number, "run": p.Run, "pass": p.First})
		}
	}
}

// loopArgs adds what a loop or branch did to what is shown of its node.
func loopArgs(r *spans.TracedReplay, n *dag.Node, args map[string]any) {
	if n.Control == nil {
		return
	}
	for k := range r.Loops {
		l := &r.Loops[k]
		if l.Node != n.Name {
			continue
		}
		if n.Kind == dag.Repeat {
			args["passes"] = l.Passes
		} else {
			args["then"], args["otherwise"] = l.Then, l.Otherwise
		}
		args["shown"] = l.Shown
	}
}

// checkPasses returns an error for passes that are not those of a trace of the graph, or whose times cannot be written.
func checkPasses(r *spans.TracedReplay, g *dag.Graph, p *plan.Plan) error {
	if len(r.Passes) == 0 {
		return nil
	}
	streams := map[string]int{}
	known := map[string]bool{}
	var look func(g *dag.Graph, p *plan.Plan) error
	look = func(g *dag.Graph, p *plan.Plan) error {
		for i := range g.Nodes {
			n := &g.Nodes[i]
			if n.Control == nil {
				continue
			}
			known[n.Name] = true
			for k, body := range n.Control.Bodies {
				inner := p.BodyOf(dag.NodeID(i), k)
				if inner == nil {
					return fmt.Errorf("the plan has no body %d of %q", k, n.Name)
				}
				streams[bodyKey(n.Name, spans.BodyName(n, k))] = len(inner.Streams)
				if err := look(body, inner); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := look(g, p); err != nil {
		return err
	}
	for k := range r.Passes {
		pass := &r.Passes[k]
		switch {
		case !known[pass.Node]:
			return fmt.Errorf("the trace has a pass of %q, which is no loop or branch of the graph", pass.Node)
		case pass.Within < -1 || pass.Within >= k || pass.First < 1 || pass.Last < pass.First:
			return fmt.Errorf("pass %d to %d of %q is in entry %d of the passes, which is not before it", pass.First, pass.Last, pass.Node, pass.Within)
		case !finite(pass.Start, pass.End):
			return fmt.Errorf("a trace in which a pass of %q runs from %v us to %v us cannot be written", pass.Node, pass.Start, pass.End)
		}
		for i := range pass.Nodes {
			n := &pass.Nodes[i]
			if n.Stream < 0 || int(n.Stream) >= streams[bodyKey(pass.Node, pass.Body)] || !finite(n.Start, n.End) {
				return fmt.Errorf("a trace in which node %q of %q runs from %v us to %v us on stream %d cannot be written", n.Node, pass.Node, n.Start, n.End, n.Stream)
			}
		}
	}
	return nil
}
