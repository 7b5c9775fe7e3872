// Plans of bodies: the schedules of what loops and branches run, each a plan of its own.

package plan

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"strings"

	"github.com/dagrun/dagrun/dag"
)

// Body is the plan of one body of a loop or branch. Its memory is that of the plan around it, so its Memory and Kept are empty. Its first
// stream is that of the node itself; it begins there and ends there.
type Body struct {
	Node dag.NodeID
	Body int32 // index into the node's Control.Bodies
	Plan *Plan
}

// BodyOf returns the plan of body k of a node, or nil.
func (p *Plan) BodyOf(node dag.NodeID, k int) *Plan {
	if p == nil {
		return nil
	}
	for i := range p.Bodies {
		if b := &p.Bodies[i]; b.Node == node && int(b.Body) == k {
			return b.Plan
		}
	}
	return nil
}

// bodyOf returns the graph of a body, or nil.
func bodyOf(g *dag.Graph, node dag.NodeID, k int32) *dag.Graph {
	if node < 0 || int(node) >= g.Len() || g.Nodes[node].Control == nil || k < 0 || int(k) >= len(g.Nodes[node].Control.Bodies) {
		return nil
	}
	return g.Nodes[node].Control.Bodies[k]
}

// bodyTitle names a body for people: solve (repeat 20 times), or the else of refine.
func bodyTitle(g *dag.Graph, node dag.NodeID, k int32) string {
	n := &g.Nodes[node]
	if name := n.Control.BodyName(int(k)); name != "" {
		return fmt.Sprintf("%s, %s", n.Name, name)
	}
	return fmt.Sprintf("%s (%s)", n.Name, n.Control.Action(n.Kind))
}

// writeBodies writes the bodies' schedules, indented.
func (p *Plan) writeBodies(out *bufio.Writer, g *dag.Graph) error {
	for _, b := range p.Bodies {
		body := bodyOf(g, b.Node, b.Body)
		if body == nil || b.Plan == nil {
			return fmt.Errorf("%w: the plan has body %d of node %d, which the graph does not have", ErrPlanShape, b.Body, b.Node)
		}
		if err := b.Plan.checkNodes(body); err != nil {
			return err
		}
		var text bytes.Buffer
		inner := bufio.NewWriter(&text)
		b.Plan.writeStreams(inner, body, nil)
		if err := b.Plan.writeBodies(inner, body); err != nil {
			return err
		}
		if err := inner.Flush(); err != nil {
			return err
		}
		fmt.Fprintf(out, "\nin %s\n", bodyTitle(g, b.Node, b.Body))
		for _, line := range strings.Split(strings.Trim(text.String(), "\n"), "\n") {
			if line != "" {
				line = "  " + line
			}
			fmt.Fprintf(out, "%s\n", line)
		}
	}
	return nil
}

// bodies draws each body as a cluster that the node points to.
func (d *dotWriter) bodies() {
	for i := range d.g.Nodes {
		n := &d.g.Nodes[i]
		if n.Control == nil {
			continue
		}
		for k, g := range n.Control.Bodies {
			inner := &dotWriter{Writer: d.Writer, g: g, path: append(append([]int{}, d.path...), i, k)}
			d.WriteString("  subgraph cluster_")
			inner.id('b')
			d.WriteString(" {\n    graph [label=")
			d.label(bodyTitle(d.g, dag.NodeID(i), int32(k)))
			d.WriteString(", labelloc=t, style=\"dashed,rounded\", color=\"#555555\"];\n")
			for j := range g.Nodes {
				inner.node("    ", int32(j), colour(int(EngineOf(g, dag.NodeID(j))), light))
			}
			inner.edges()
			inner.bodies()
			d.WriteString("  }\n  ")
			d.id('n', i)
			d.WriteString(" -> ")
			inner.id('n', 0)
			d.WriteString(" [style=dotted, arrowhead=none, color=\"#555555\"];\n")
		}
	}
}

// bodies writes the plans of the bodies, each as a plan of its own.
func (e *planEncoder) bodies(p *Plan) error {
	if len(p.Bodies) == 0 {
		return nil
	}
	e.WriteString(",\n  \"bodies\": [")
	for k, b := range p.Bodies {
		body := bodyOf(e.g, b.Node, b.Body)
		if body == nil || b.Plan == nil {
			return fmt.Errorf("%w: the plan has body %d of node %d, which the graph does not have", ErrPlanShape, b.Body, b.Node)
		}
		e.item(k, "    ")
		e.WriteString(`{"node": `)
		e.node(int32(b.Node))
		e.WriteString(`, "body": `)
		e.int(int64(b.Body))
		e.WriteString(`, "plan": `)
		if err := b.Plan.encode(e.Writer, body); err != nil {
			return err
		}
		e.WriteString("}")
	}
	e.close(len(p.Bodies))
	return nil
}

var bodyKeys = []string{"node", "body", "plan"}

// body reads the plan of one body.
func (d *planDecoder) body(int) {
	b := Body{Node: -1}
	d.Object(bodyKeys, 0, func(key int) {
		switch bodyKeys[key] {
		case "node":
			b.Node = dag.NodeID(d.node())
		case "body":
			b.Body = int32(d.Int(0, math.MaxInt32))
		case "plan":
			g := bodyOf(d.g, b.Node, b.Body)
			if g == nil {
				d.misfit(d.At, "this graph has no such body; node and body must stand before the plan")
				return
			}
			inner := &planDecoder{Reader: d.Reader, g: g, p: &Plan{}, hash: g.Hash(), within: true}
			at := d.At
			inner.read()
			d.Reader, d.misfits = inner.Reader, d.misfits || inner.misfits
			if d.Err == nil && inner.p.Graph != inner.hash {
				d.misfit(at, "this is the plan of another body")
			}
			b.Plan = inner.p
		}
	})
	d.p.Bodies = append(d.p.Bodies, b)
}
