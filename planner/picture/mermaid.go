// Mermaid: graphs and schedules as flowcharts for Markdown.

package picture

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/planner/plan"
)

// mermaidText escapes text for a quoted Mermaid label. Mermaid has no backslash escapes: characters that are special in Mermaid or
// HTML are written as entity codes that begin with #.
func mermaidText(s string) string {
	var b strings.Builder
	for _, r := range clean(s) {
		switch {
		case r == '\n':
			b.WriteString("<br/>")
		case r < 0x80 && strings.ContainsRune("\"#&<>`\\;{}[]()|*_~$%@", r):
			fmt.Fprintf(&b, "#%d;", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

const mermaidClasses = `  classDef compute fill:#ffe3bd,stroke:#5b6570,color:#1b1f24
  classDef h2d fill:#d3e5ff,stroke:#5b6570,color:#1b1f24
  classDef d2h fill:#d2efd2,stroke:#5b6570,color:#1b1f24
  classDef peer fill:#e8d9ff,stroke:#5b6570,color:#1b1f24
  classDef d2d fill:#e2e6eb,stroke:#5b6570,color:#1b1f24
  classDef host fill:#f9d7e3,stroke:#5b6570,color:#1b1f24
`

// WriteGraphMermaid writes a graph as it was declared: every dependency with its reason, joins as
// circles.
func WriteGraphMermaid(w io.Writer, g *dag.Graph) error {
	if w == nil {
		return words.ErrNoWriter
	}
	if err := g.Check(); err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	out.WriteString("flowchart LR\n" + mermaidClasses)
	for i := range g.Nodes {
		mermaidNode(out, "  ", g, int32(i), "")
	}
	id := func(i dag.NodeID) string {
		if g.IsJoin(i) {
			return fmt.Sprintf("j%d", int(i)-g.Len())
		}
		return fmt.Sprintf("n%d", i)
	}
	for k := range g.Joins() {
		fmt.Fprintf(out, "  %s(( ))\n", id(dag.NodeID(g.Len()+k)))
	}
	for _, e := range g.Edges() {
		arrow := "-->"
		if e.Buffer < 0 {
			arrow = "-.->"
		}
		fmt.Fprintf(out, "  %s %s|\"%s\"| %s\n", id(e.From), arrow, mermaidText(g.EdgeText(e)), id(e.To))
	}
	return out.Flush()
}

func mermaidNode(out *bufio.Writer, indent string, g *dag.Graph, i int32, mark string) {
	fmt.Fprintf(out, "%sn%d[\"%s%s<br/>%s\"]:::%v\n", indent, i, mark, mermaidText(g.Nodes[i].Name), mermaidText(plan.Action(g, dag.NodeID(i))),
		plan.EngineOf(g, dag.NodeID(i)))
}

// WriteMermaid writes the schedule: a box for each stream with its nodes in order, and a thick arrow for every wait with the
// data that caused it. The boxes of a device are in one for the device, if there are several.
func (s *Schedule) WriteMermaid(w io.Writer) error {
	if err := s.drawable(w); err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	out.WriteString("flowchart LR\n" + mermaidClasses)
	for number, band := range s.plan.Bands() {
		if s.plan.Banded() {
			fmt.Fprintf(out, "  subgraph d%d [\"%s\"]\n", number, band.Title())
		}
		for _, k := range band.Streams {
			s.mermaidStream(out, int(k))
		}
		if s.plan.Banded() {
			out.WriteString("  end\n")
		}
	}
	for i := range s.waits {
		if w := &s.waits[i]; w.to >= 0 {
			fmt.Fprintf(out, "  n%d ==>|\"%s\"| n%d\n", w.from, mermaidText(fmt.Sprintf("event %d: %s", w.event, s.reason(w))), w.to)
		}
	}
	return out.Flush()
}

func (s *Schedule) mermaidStream(out *bufio.Writer, k int) {
	fmt.Fprintf(out, "  subgraph s%d [\"%s\"]\n    direction LR\n", k, mermaidText(s.streamLabel(k)))
	last := int32(-1)
	for _, op := range s.plan.Streams[k].Ops {
		if op.Kind != plan.Launch {
			continue
		}
		mark := ""
		if s.critical[op.Node] {
			mark = criticalMark + " "
		}
		mermaidNode(out, "    ", s.graph, int32(op.Node), mark)
		if last >= 0 {
			fmt.Fprintf(out, "    n%d --- n%d\n", last, op.Node)
		}
		last = int32(op.Node)
	}
	out.WriteString("  end\n")
}
