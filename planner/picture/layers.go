// Layers: a graph as it was declared, with its nodes in columns by the number of nodes that must come before them.

package picture

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/planner/plan"
)

const (
	columnGap  = 96.0
	rowGap     = 20.0
	leastNode  = 78.0
	mostNode   = 168.0
	layerLimit = 3 // a column of boxes takes more room than a row, so only 1/layerLimit of the limit is drawn
)

// layers is a graph's layout.
type layers struct {
	g       *dag.Graph
	blocks  []block   // row is the column
	tops    []float64 // by block
	columns int
	most    int // blocks in the fullest column
	box     float64
	links   []link
}

// link is an arrow between two blocks.
type link struct {
	from, to int32
	edge     int32 // the first dependency it stands for
	count    int
}

func newLayers(g *dag.Graph, most scale) *layers {
	l := &layers{g: g, box: leastNode}
	level := make([]int32, g.Vertices())
	for _, i := range g.Sequence() {
		for _, q := range g.Preds(i) {
			step := int32(1)
			if g.IsJoin(q) {
				step = 0 // a join does not count as a level
			}
			level[i] = max(level[i], level[q]+step)
		}
		if !g.IsJoin(i) {
			l.columns = max(l.columns, int(level[i])+1)
		}
	}
	levels := l.columns
	l.columns = min(levels, most.columns)
	columns := make([][]int32, l.columns)
	for i, n := range level[:g.Len()] {
		c := int(n) * l.columns / levels
		columns[c] = append(columns[c], int32(i))
	}
	l.blocks = gather(g, columns, max(1, most.boxes/layerLimit))
	of := make([]int32, g.Len())
	for k := range l.blocks {
		b := &l.blocks[k]
		b.look(g, nil)
		for _, i := range b.nodes {
			of[i] = int32(k)
		}
		l.box = max(l.box, min(mostNode, textWidth(b.name(g))*nameSize+2*boxPadding+2))
	}
	l.connect(of)
	l.order()
	for k := range l.blocks {
		l.blocks[k].x, l.blocks[k].w = 24+float64(l.blocks[k].row)*(l.box+columnGap), l.box
	}
	return l
}

func (l *layers) connect(of []int32) {
	type pair struct{ from, to int32 }
	at := map[pair]int{}
	add := func(p pair, e int) {
		if l.blocks[p.from].row >= l.blocks[p.to].row { // within one box, or within one column that holds several levels
			return
		}
		k, ok := at[p]
		if !ok {
			k = len(l.links)
			at[p] = k
			l.links = append(l.links, link{p.from, p.to, int32(e), 0})
		}
		l.links[k].count++
	}
	before := l.blocksBefore(of)
	for e, edge := range l.g.Edges() {
		switch {
		case l.g.IsJoin(edge.To):
		case l.g.IsJoin(edge.From):
			for _, from := range before[int(edge.From)-l.g.Len()] {
				add(pair{from, of[edge.To]}, e)
			}
		default:
			add(pair{of[edge.From], of[edge.To]}, e)
		}
	}
}

// blocksBefore returns the blocks with nodes that lead to each join. A join has no box: arrows are drawn from the blocks before it to those
// after it.
func (l *layers) blocksBefore(of []int32) [][]int32 {
	before := make([][]int32, len(l.g.Joins()))
	for _, i := range l.g.Sequence() {
		if !l.g.IsJoin(i) {
			continue
		}
		var blocks []int32
		for _, q := range l.g.Preds(i) {
			if l.g.IsJoin(q) {
				blocks = append(blocks, before[int(q)-l.g.Len()]...)
			} else {
				blocks = append(blocks, of[q])
			}
		}
		slices.Sort(blocks)
		before[int(i)-l.g.Len()] = slices.Compact(blocks)
	}
	return before
}

// order puts each block near the middle of the blocks that it depends on, so that few arrows cross.
func (l *layers) order() {
	columns := make([][]int32, l.columns)
	for k := range l.blocks {
		columns[l.blocks[k].row] = append(columns[l.blocks[k].row], int32(k))
	}
	place := make([]float64, len(l.blocks))
	sum, count := make([]float64, len(l.blocks)), make([]float64, len(l.blocks))
	incoming := make([][]int32, len(l.blocks))
	for _, k := range l.links {
		incoming[k.to] = append(incoming[k.to], k.from)
	}
	for _, column := range columns {
		l.most = max(l.most, len(column))
		for n, k := range column {
			for _, from := range incoming[k] {
				sum[k] += place[from]
				count[k]++
			}
			place[k] = float64(n)
			if count[k] > 0 {
				place[k] = sum[k] / count[k]
			}
		}
		slices.SortStableFunc(column, func(a, b int32) int { return cmp.Or(cmp.Compare(place[a], place[b]), cmp.Compare(a, b)) })
		for n, k := range column {
			place[k] = (float64(n) + 0.5) / float64(len(column)) * 1000
		}
	}
	// A column with few blocks is centred on the fullest column.
	l.tops = make([]float64, len(l.blocks))
	for _, column := range columns {
		for n, k := range column {
			l.tops[k] = math.Round(headHeight + (float64(n)+float64(l.most-len(column))/2)*(boxHeight+rowGap))
		}
	}
}

func (l *layers) title() string {
	return l.g.Name + ": as declared, " + words.Count(l.g.Len(), "node", "nodes") + ", " + l.g.DependenciesText()
}

func (l *layers) width() float64 {
	return max(leastPlot, 48+float64(l.columns)*(l.box+columnGap)-columnGap)
}

func (l *layers) height() float64 {
	return headHeight + float64(max(1, l.most))*(boxHeight+rowGap) + 10
}

func (l *layers) draw(k *svgWriter) {
	k.text(16, 26, 17, "strong", "", cut(l.title(), (l.width()-32)/(17*boldWidth)))
	class := "edges"
	if len(l.links) > manyArrows {
		class = "edges many"
	}
	k.WriteString(`<g class="` + class + `">` + "\n")
	for n := range l.links {
		l.arrow(k, &l.links[n])
	}
	k.WriteString("</g>\n")
	for n := range l.blocks {
		b := &l.blocks[n]
		b.draw(k, l.g, l.tops[n], "", l.blockTitle(b))
	}
	if len(l.links) > manyArrows {
		return
	}
	var taken []spot
	for n := range l.links {
		l.reason(k, &l.links[n], &taken)
	}
}

func (l *layers) arrow(k *svgWriter, a *link) {
	from, to := &l.blocks[a.from], &l.blocks[a.to]
	x1, y1 := from.x+from.w, l.tops[a.from]+boxHeight/2
	x2, y2 := to.x, l.tops[a.to]+boxHeight/2
	edge := &l.g.Edges()[a.edge]
	title := fmt.Sprintf("%s -> %s: %s", l.g.NameOf(edge.From), l.g.NameOf(edge.To), l.g.EdgeText(*edge))
	if a.count > 1 {
		title = fmt.Sprintf("%d dependencies, the first: %s", a.count, title)
	}
	k.WriteString(`<g class="arrow">`)
	k.title(title)
	class := "edge"
	if edge.Buffer < 0 {
		class = "edge after"
	}
	k.path(class, x1, y1)
	bend := max(30, (x2-x1)/2)
	k.curve(x1+bend, y1, x2-bend, y2, x2, y2)
	k.WriteString(`" marker-end="url(#edgetip)`)
	k.end()
	k.WriteString("</g>\n")
}

// reason writes the reason for a dependency in the gap before the later node, if there is room.
func (l *layers) reason(k *svgWriter, a *link, taken *[]spot) {
	from, to := &l.blocks[a.from], &l.blocks[a.to]
	const size = 9.5
	text := cut(l.g.EdgeText(l.g.Edges()[a.edge]), (columnGap-14)/size)
	w := textWidth(text) * size
	if text == "" || to.row != from.row+1 {
		return // a long arrow passes behind boxes, and its label would cover them
	}
	x, y := to.x-columnGap/2, (l.tops[a.from]+l.tops[a.to])/2+boxHeight/2-4
	at := spot{x - w/2, y - size, x + w/2, y + 3}
	for n := range *taken {
		if at.meets(&(*taken)[n]) {
			return
		}
	}
	*taken = append(*taken, at)
	k.text(x, y, size, "halo muted why", "middle", text)
}

func (l *layers) blockTitle(b *block) string {
	text := ""
	for at, i := range b.nodes {
		if at == maxListed {
			return text + fmt.Sprintf("\nand %d more", len(b.nodes)-at)
		}
		if at > 0 {
			text += "\n"
		}
		text += l.g.Nodes[i].Name + ": " + plan.Action(l.g, dag.NodeID(i))
	}
	return text
}
