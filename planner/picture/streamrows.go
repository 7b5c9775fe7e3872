// Stream rows: a schedule drawn with one row per stream, and with time or levels from left to right.

package picture

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/planner/plan"
)

// SheetOptions says how a sheet is drawn. The zero value draws time from left to right.
type SheetOptions struct {
	Axis  Axis
	Limit int // how many boxes a picture has before neighbours share a box; 0: as many as a screen has room for, at most DefaultLimit
}

// scale limits the size of a picture.
type scale struct {
	boxes   int     // limit of boxes before neighbours share a box
	inRow   int     // the same for one stream
	plot    float64 // maximum width of the axis of a schedule
	columns int     // limit of columns of a declared graph, before neighbouring levels share one
}

// Axis is what runs from left to right.
type Axis uint8

const (
	Time  Axis = iota // predicted microseconds
	Level             // position in the longest chain of ordered launches
)

// Sizes and positions in a picture of stream rows.
const (
	rowLabel   = 132.0
	rowHeight  = boxHeight + 8
	streamGap  = 34.0
	headHeight = 62.0
	axisHeight = 30.0
	rightEdge  = 44.0
	bandHead   = 26.0 // the title of a device, above its streams
	levelWidth = 112.0
	levelGap   = 26.0
	leastPlot  = 1120.0
	wishedBox  = 84.0  // the width that most boxes should have
	roomPerBox = 130.0 // maximum width per box of the fullest row
	leastBox   = 1.6
)

// streamRows is the layout of one schedule.
type streamRows struct {
	s      *Schedule
	axis   Axis
	plot   float64 // width of the part that the axis spans
	most   float64 // maximum of plot
	end    float64 // value at the right end of the axis: microseconds or levels
	blocks []block
	of     []int32 // by node: its block
	from   []float64
	until  []float64 // by node: where it starts and ends on x
	bands  []bandRows
	tops   []float64 // by stream: where its boxes begin on y
	bottom float64   // of the last row
}

// bandRows is the rows of a device.
type bandRows struct {
	title       string // "" where all streams are of the first device
	top, bottom float64
	streams     []int32
}

func newStreamRows(s *Schedule, axis Axis, most scale) *streamRows {
	l := &streamRows{s: s, axis: axis, end: s.timeline.MakespanUS, most: most.plot}
	l.stack()
	rows := make([][]int32, len(s.plan.Streams))
	for k := range s.plan.Streams {
		for _, op := range s.plan.Streams[k].Ops {
			if op.Kind == plan.Launch {
				rows[k] = append(rows[k], int32(op.Node))
			}
		}
	}
	l.blocks = gather(s.graph, rows, min(most.boxes, most.inRow*max(1, len(rows))))
	l.of = make([]int32, s.graph.Len())
	for k := range l.blocks {
		b := &l.blocks[k]
		b.look(s.graph, s.critical)
		for _, i := range b.nodes {
			l.of[i] = int32(k)
		}
	}
	if axis == Level {
		l.end = float64(s.deepest + 1)
		l.plot = max(leastPlot, l.end*levelWidth)
		if len(l.blocks) < s.graph.Len() {
			l.plot = min(l.plot, l.most)
		}
	} else {
		l.plot = l.wishedPlot()
	}
	return l
}

// wishedPlot is the width at which three out of four boxes are wide enough for their text, within limits.
func (l *streamRows) wishedPlot() float64 {
	widths := make([]float64, len(l.blocks))
	inRow := make([]int, len(l.s.plan.Streams))
	for k := range l.blocks {
		inRow[l.blocks[k].row]++
		from, until := l.extent(&l.blocks[k])
		widths[k] = until - from
	}
	slices.Sort(widths)
	if len(widths) == 0 || l.end <= 0 {
		return leastPlot
	}
	most := min(l.most, roomPerBox*float64(slices.Max(inRow)))
	if quarter := widths[len(widths)/4]; quarter > 0 {
		most = min(most, wishedBox/quarter*l.end)
	}
	return max(leastPlot, most)
}

// extent is where a block begins and ends, in units of the axis.
func (l *streamRows) extent(b *block) (from, until float64) {
	first, last := b.nodes[0], b.nodes[len(b.nodes)-1]
	if l.axis == Level {
		return float64(l.s.level[first]), float64(l.s.level[last] + 1)
	}
	return l.s.timeline.Nodes[first].Start, l.s.timeline.Nodes[last].End
}

// place sets every x. Callers may change plot and end before calling it, so that two schedules share a scale.
func (l *streamRows) place() {
	scale := 0.0
	if l.end > 0 {
		scale = l.plot / l.end
	}
	l.from, l.until = make([]float64, l.s.graph.Len()), make([]float64, l.s.graph.Len())
	gap := 0.0
	if l.axis == Level {
		gap = min(levelGap, scale/4)
	}
	row, free := -1, 0.0
	for k := range l.blocks {
		b := &l.blocks[k]
		if b.row != row {
			row, free = b.row, rowLabel
		}
		from, until := l.extent(b)
		b.x = max(free, rowLabel+from*scale)
		b.w = max(leastBox, rowLabel+until*scale-gap-b.x)
		free = b.x + b.w
		length := max(until-from, 1e-9)
		for at, i := range b.nodes {
			if len(b.nodes) == 1 {
				l.from[i], l.until[i] = b.x, b.x+b.w
				continue
			}
			start, end := float64(at)/float64(len(b.nodes)), float64(at+1)/float64(len(b.nodes))
			if l.axis == Time {
				span := &l.s.timeline.Nodes[i]
				start, end = (span.Start-from)/length, (span.End-from)/length
			}
			l.from[i], l.until[i] = b.x+start*b.w, b.x+end*b.w
		}
	}
}

func (l *streamRows) width() float64 { return rowLabel + l.plot + rightEdge }

func (l *streamRows) height() float64 { return l.bottom }

func (l *streamRows) boxTop(stream int) float64 { return l.tops[stream] }

// stack places the rows, those of a device together.
func (l *streamRows) stack() {
	y := headHeight + axisHeight
	l.tops = make([]float64, len(l.s.plan.Streams))
	for _, band := range l.s.plan.Bands() {
		b := bandRows{top: y, streams: band.Streams}
		if l.s.plan.Banded() {
			b.title = band.Title()
			y += bandHead
		}
		for _, k := range band.Streams {
			l.tops[k] = y + 4
			y += rowHeight + streamGap
		}
		b.bottom = y
		l.bands = append(l.bands, b)
	}
	if len(l.tops) == 0 {
		y += rowHeight + streamGap
	}
	l.bottom = y
}

func (l *streamRows) draw(k *svgWriter) {
	s := l.s
	k.text(16, 26, 17, "strong", "", cut(s.title(), (l.width()-32)/(17*boldWidth)))
	subtitle := s.summary()
	size := max(leastSize, min(12, (l.width()-32)/textWidth(subtitle)))
	k.text(16, 46, size, "muted", "", cut(subtitle, (l.width()-32)/size))
	l.drawAxis(k)
	for n := range l.bands {
		l.drawBand(k, &l.bands[n])
	}
	l.drawForkJoin(k)
	l.drawWaits(k) // behind the boxes, so that no arrow covers a name
	for at := range l.blocks {
		b := &l.blocks[at]
		b.draw(k, s.graph, l.boxTop(b.row), l.duration(b), l.blockTitle(b))
	}
}

// drawBand draws what is behind the boxes of a device: its title and a row for each of its streams.
func (l *streamRows) drawBand(k *svgWriter, b *bandRows) {
	if b.title != "" {
		k.line(8, b.top+2, l.width()-8, b.top+2, "band")
		k.text(16, b.top+18, 13, "strong", "", b.title)
	}
	for _, row := range b.streams {
		y := l.boxTop(int(row)) - 4
		k.rect(rowLabel-6, y, l.plot+12, rowHeight, 5, "row")
		k.WriteString("<g>")
		k.title(l.s.streamText(int(row)))
		k.text(16, y+rowHeight/2-1, 12.5, "strong", "", streamName(int(row)))
		if priority := l.s.plan.Streams[row].Priority; priority != dag.Normal {
			k.text(16, y+rowHeight/2+13, 10, "muted", "", priority.String())
		}
		k.WriteString("</g>\n")
	}
}

func (l *streamRows) duration(b *block) string {
	sum := 0.0
	for _, i := range b.nodes {
		sum += l.s.timeline.Nodes[i].End - l.s.timeline.Nodes[i].Start
	}
	return words.Time(sum)
}

// maxListed is the maximum number of nodes named in the title of a block.
const maxListed = 12

func (l *streamRows) blockTitle(b *block) string {
	if len(b.nodes) == 1 {
		return l.s.nodeTitle(b.nodes[0])
	}
	from, until := l.s.timeline.Nodes[b.nodes[0]].Start, l.s.timeline.Nodes[b.nodes[len(b.nodes)-1]].End
	text := fmt.Sprintf("%s\n%d nodes, from %s to %s:", b.name(l.s.graph), len(b.nodes), words.Time(from), words.Time(until))
	for at, i := range b.nodes {
		if at == maxListed {
			return text + fmt.Sprintf("\nand %d more", len(b.nodes)-at)
		}
		text += "\n" + l.s.graph.Nodes[i].Name
		if l.s.critical[i] {
			text += " " + criticalMark
		}
	}
	return text
}

// drawAxis writes the ticks, at round numbers, about one every 120 pixels.
func (l *streamRows) drawAxis(k *svgWriter) {
	top, bottom := headHeight+axisHeight-8, l.height()-streamGap+2
	if l.end <= 0 {
		return
	}
	step := roundStep(l.end / max(2, l.plot/120))
	if l.axis == Level {
		step = max(1, step)
	}
	last := math.Inf(-1)
	for n := 0; ; n++ {
		v := float64(n) * step
		if v > l.end*(1+1e-9) {
			break
		}
		x := rowLabel + v*l.plot/l.end
		k.line(x, top, x, bottom, "tick")
		text := words.Time(v)
		if l.axis == Level {
			text = fmt.Sprintf("level %d", n*int(step))
		}
		if x-last > 60 {
			k.text(x, top-5, 10, "muted", "middle", text)
			last = x
		}
	}
}

// roundStep rounds up to 1, 2 or 5 times a power of ten.
func roundStep(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, f := range []float64{1, 2, 5} {
		if f*power >= v {
			return f * power
		}
	}
	return 10 * power
}

// drawForkJoin marks where the first stream, the origin of a replay, starts the other streams, and where it waits for them.
func (l *streamRows) drawForkJoin(k *svgWriter) {
	one := func(streams []int32, x float64, name, title string, toOrigin bool) {
		if len(streams) == 0 {
			return
		}
		k.WriteString(`<g class="` + name + `s">`)
		k.title(title)
		origin := l.boxTop(0) + boxHeight/2
		first, last := origin, origin
		for _, s := range streams {
			first, last = min(first, l.boxTop(int(s))+boxHeight/2), max(last, l.boxTop(int(s))+boxHeight/2)
		}
		k.line(x, first, x, last, "fork")
		anchor, side := "end", -6.0
		if toOrigin {
			anchor, side = "start", 6
		}
		k.text(x+side, l.boxTop(0)+rowHeight+12, 10, "muted", anchor, name)
		for _, s := range streams {
			y := l.boxTop(int(s)) + boxHeight/2
			inner := x + 9
			if toOrigin {
				inner = x - 9
			}
			k.line(x, y, inner, y, "fork")
			k.WriteString(`<circle class="edgetip" r="3"`)
			k.attr("cx", x)
			k.attr("cy", y)
			k.WriteString("/>")
		}
		k.WriteString("</g>\n")
	}
	fork, join := l.s.plan.Fork(), l.s.plan.Join()
	one(fork, rowLabel-12, "fork", "fork: stream 0 starts "+streamList(fork), false)
	one(join, rowLabel+l.plot+14, "join", "join: at the end, stream 0 waits for "+streamList(join), true)
}

func streamList(streams []int32) string {
	parts := make([]string, len(streams))
	for k, s := range streams {
		parts[k] = fmt.Sprint(s)
	}
	if len(parts) == 1 {
		return "stream " + parts[0]
	}
	return "streams " + strings.Join(parts, ", ")
}

// Pictures with many arrows.
const (
	manyArrows = 40  // from this many on, arrows are thin and have no labels
	crowd      = 300 // from this many on, they are faint as well
)

// spot is the place of a label. No two labels may overlap.
type spot struct{ x0, y0, x1, y1 float64 }

func (a *spot) meets(b *spot) bool { return a.x0 < b.x1 && b.x0 < a.x1 && a.y0 < b.y1 && b.y0 < a.y1 }

// drawWaits draws an arrow from each record to each of its waits, but at most one between two boxes that stand for several nodes.
func (l *streamRows) drawWaits(k *svgWriter) {
	type pair struct{ from, to int32 }
	grouped := len(l.blocks) < l.s.graph.Len()
	count := map[pair]int{}
	for n := range l.s.waits {
		if w := &l.s.waits[n]; w.to >= 0 {
			count[pair{l.of[w.from], l.of[w.to]}]++
		}
	}
	class := "waits"
	if len(count) > manyArrows {
		class = "waits many"
	}
	if len(count) > crowd {
		class = "waits many crowd"
	}
	k.WriteString(`<g class="` + class + `">` + "\n")
	var taken []spot
	for n := range l.s.waits {
		w := &l.s.waits[n]
		if w.to < 0 {
			continue
		}
		p := pair{l.of[w.from], l.of[w.to]}
		same := count[p]
		if same == 0 {
			continue // one arrow stands for all waits between these boxes
		}
		title := l.s.waitText(w)
		if grouped && same > 1 {
			count[p] = 0
			title = fmt.Sprintf("%d waits, the first: %s", same, title)
		}
		x1, x2 := l.until[w.from], l.from[w.to]
		down := l.boxTop(int(w.toStream)) > l.boxTop(int(w.fromStream))
		y1, y2 := l.boxTop(int(w.fromStream)), l.boxTop(int(w.toStream))
		side := -1.0
		if down {
			y1 += boxHeight
			side = 1
		} else {
			y2 += boxHeight
		}
		x1 -= min(3, (l.until[w.from]-l.from[w.from])/2)
		x2 += min(5, (l.until[w.to]-l.from[w.to])/2)
		bend := max(18, math.Abs(y2-y1)/2) * side
		k.WriteString(`<g class="arrow">`)
		k.title(title)
		k.path("wait", x1, y1)
		k.curve(x1, y1+bend, x2, y2-bend, x2, y2)
		k.WriteString(`" marker-end="url(#tip)`)
		k.end()
		k.WriteString(`<circle class="tip" r="2.6"`)
		k.attr("cx", x1)
		k.attr("cy", y1)
		k.WriteString("/>")
		if len(count) <= manyArrows {
			l.waitLabel(k, l.s.reason(w), x2, y2-side*14, &taken)
		}
		k.WriteString("</g>\n")
	}
	k.WriteString("</g>\n")
}

// waitLabel writes the reason for a wait beside its arrow, if there is room.
func (l *streamRows) waitLabel(k *svgWriter, text string, x, y float64, taken *[]spot) {
	const size, most = 9.5, 190.0
	text = cut(text, most/size)
	w := textWidth(text) * size
	left := x + 7
	if left+w > l.width() {
		left = x - 7 - w
	}
	at := spot{left, y - size + 3, left + w, y + 5}
	for k := range *taken {
		if at.meets(&(*taken)[k]) {
			return
		}
	}
	*taken = append(*taken, at)
	k.text(left, y+3, size, "halo muted why", "", text)
}
