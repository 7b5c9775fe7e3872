// Blocks: the boxes of a picture. A box stands for one node, or for several neighbours if there are too many nodes to read.

package picture

import (
	"fmt"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/planner/plan"
)

// block is a box: one node, or several neighbours of one row.
type block struct {
	nodes    []int32
	row      int
	x, w     float64
	engine   plan.Engine
	mixed    bool // nodes of several engines
	critical bool
}

// gather puts nodes into boxes: one node per box, or, if that makes more boxes than limit, as few nodes per box as possible. It first joins
// nodes that a foreach made from one line, and then the nodes of one repetition.
func gather(g *dag.Graph, rows [][]int32, limit int) []block {
	total := 0
	for _, row := range rows {
		total += len(row)
	}
	if total <= limit {
		return join(rows, nil, 1)
	}
	families, rounds := make([]string, g.Len()), make([]string, g.Len())
	for i := range families {
		families[i], rounds[i] = family(g.Nodes[i].Name), round(g.Nodes[i].Name)
		if rounds[i] == "" {
			rounds[i] = g.Nodes[i].Name
		}
	}
	for _, alike := range [][]string{families, rounds, nil} {
		for most := 2; ; most *= 2 {
			blocks := join(rows, alike, most)
			if len(blocks) <= limit || alike == nil && most >= total {
				return blocks
			}
			if most >= total {
				break
			}
		}
	}
	return nil
}

// join puts up to most neighbours into a box. If alike is given, only nodes with equal entries share a box.
func join(rows [][]int32, alike []string, most int) []block {
	var blocks []block
	for k, row := range rows {
		for at := 0; at < len(row); {
			end := at + 1
			for end < len(row) && end-at < most && (alike == nil || alike[row[end]] == alike[row[at]]) {
				end++
			}
			blocks = append(blocks, block{nodes: row[at:end], row: k})
			at = end
		}
	}
	return blocks
}

// look sets what a box shows about its nodes.
func (b *block) look(g *dag.Graph, critical []bool) {
	b.engine = plan.EngineOf(g, dag.NodeID(b.nodes[0]))
	for _, i := range b.nodes {
		b.mixed = b.mixed || plan.EngineOf(g, dag.NodeID(i)) != b.engine
		b.critical = b.critical || critical != nil && critical[i]
	}
}

// name is the first line of a box.
func (b *block) name(g *dag.Graph) string {
	if len(b.nodes) == 1 {
		return g.Nodes[b.nodes[0]].Name
	}
	times := fmt.Sprintf(" ×%d", len(b.nodes))
	if same(b.nodes, func(i int32) string { return family(g.Nodes[i].Name) }) {
		return family(g.Nodes[b.nodes[0]].Name) + times
	}
	if r := round(g.Nodes[b.nodes[0]].Name); r != "" && same(b.nodes, func(i int32) string { return round(g.Nodes[i].Name) }) {
		return "*" + r + times
	}
	return words.Count(len(b.nodes), "node", "nodes")
}

// same reports whether all nodes have the same value of some property.
func same(nodes []int32, of func(i int32) string) bool {
	for _, i := range nodes[1:] {
		if of(i) != of(nodes[0]) {
			return false
		}
	}
	return true
}

// detail is the line below the name: kind and size, or, for several nodes, the first and the last.
func (b *block) detail(g *dag.Graph) string {
	if len(b.nodes) > 1 {
		return g.Nodes[b.nodes[0]].Name + " … " + g.Nodes[b.nodes[len(b.nodes)-1]].Name
	}
	text := kindText(g, b.nodes[0])
	if bytes := sizeOf(g, b.nodes[0]); bytes > 0 {
		text += " " + words.Bytes(bytes)
	}
	return text
}

// sizeOf is how many bytes a node copies, sets, or reads and writes.
func sizeOf(g *dag.Graph, i int32) int64 {
	switch n := &g.Nodes[i]; {
	case n.Copy != nil:
		return n.Copy.Dst.Bytes()
	case n.Set != nil:
		return n.Set.Dst.Bytes()
	default:
		return n.Work.Bytes
	}
}

// The sizes of a box and its text. Text that does not fit is truncated. In a narrow box it is rotated or left out.
const (
	nameSize   = 12.5
	leastSize  = 8.0
	detailSize = 9.5
	narrow     = 30.0
	tooNarrow  = 10.0
	boxPadding = 4.0
	boxHeight  = 50.0
)

// draw writes a box with its text; title is shown on hover.
func (b *block) draw(k *svgWriter, g *dag.Graph, y float64, duration, title string) {
	class := b.engine.String()
	if b.mixed {
		class = "mixed"
	}
	k.WriteString(`<g class="node" data-row="`)
	k.number(float64(b.row))
	k.WriteString(`">`)
	k.title(title)
	edge := " box"
	if b.critical {
		edge = " box critical"
	}
	k.rect(b.x, y, b.w, boxHeight, min(4, b.w/4), class+edge)
	if b.engine != plan.Compute && !b.mixed && b.w > 3 {
		k.WriteString("<rect")
		k.attr("x", b.x+1.5)
		k.attr("y", y+boxHeight-8)
		k.attr("width", b.w-3)
		k.attr("height", 6.5)
		k.WriteString(` fill="url(#` + class + `)"/>`)
	}
	b.label(k, g, y, duration)
	k.WriteString("</g>\n")
}

func (b *block) label(k *svgWriter, g *dag.Graph, y float64, duration string) {
	name := b.name(g)
	if b.critical {
		name = criticalMark + " " + name
	}
	name = clean(name)
	if b.w < tooNarrow {
		return
	}
	if b.w < narrow {
		// Rotated, reading from bottom to top.
		size := min(leastSize+1, b.w-3)
		text := cut(name, (boxHeight-10)/size)
		if text == "" || size < 7 {
			return
		}
		x := b.x + b.w/2 + size*0.36
		k.WriteString(`<text transform="translate(`)
		k.point(x, y+boxHeight-9)
		k.WriteString(`) rotate(-90)"`)
		k.attr("font-size", size)
		k.WriteByte('>')
		k.escaped(text)
		k.WriteString("</text>")
		return
	}
	if duration == "" {
		y += 4
	}
	inner := b.w - 2*boxPadding
	middle := b.x + b.w/2
	fit := func(s string, most float64) (string, float64) {
		size := max(leastSize, min(most, inner/max(textWidth(s), 0.1)))
		return cut(s, inner/size), size
	}
	if text, size := fit(name, nameSize); text != "" {
		k.text(middle, y+15, size, "name", "middle", text)
	}
	if text, size := fit(clean(b.detail(g)), detailSize); text != "" {
		k.text(middle, y+27, size, "muted", "middle", text)
	}
	if duration != "" {
		if text, size := fit(duration, detailSize); text != "" && !strings.HasSuffix(text, "…") {
			k.text(middle, y+39, size, "muted", "middle", text)
		}
	}
}
