// The Gantt chart in text: one line per stream, device by device, time from left to right. Fits a given width.

package picture

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/planner/plan"
)

// GanttOptions control how a text chart is drawn.
type GanttOptions struct {
	Width int  // columns, at least 40
	ASCII bool // use only ASCII characters
	Rows  int  // the most streams to draw; 0 means 32
}

// strokes are the characters of a chart. Every node begins with an edge, so that neighbours can be told apart.
type strokes struct {
	edge, fill, critical, several, idle, ellipsis, arrow string
}

var (
	blocksStrokes = strokes{"▌", "░", "█", "▚", "·", "…", "─"}
	asciiStrokes  = strokes{"|", "-", "#", "%", ".", "~", "-"}
)

// WriteGantt writes the predicted timeline of the schedule, with the streams of a device together. The width of a node is its duration, to the
// nearest column. Its name is shown if there is room.
func (s *Schedule) WriteGantt(w io.Writer, o GanttOptions) error {
	if err := s.drawable(w); err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	k := &blocksStrokes
	if o.ASCII {
		k = &asciiStrokes
	}
	rows := o.Rows
	if rows <= 0 {
		rows = 32
	}
	bands := fewest(s.plan.Bands(), rows)
	margin, drawn := 0, 0
	for _, band := range bands {
		if s.plan.Banded() {
			margin = max(margin, len(band.Title()))
		}
		for _, r := range band.Streams {
			margin = max(margin, len(streamName(int(r))))
			drawn++
		}
	}
	columns := max(40, o.Width) - margin - 2
	if s.timeline.MakespanUS <= 0 || columns < 8 {
		return out.Flush()
	}
	seen := map[string]bool{}
	for _, band := range bands {
		if s.plan.Banded() {
			fmt.Fprintln(out, band.Title())
		}
		for _, r := range band.Streams {
			row := s.ganttRow(int(r), columns, k, o.ASCII)
			for _, c := range row {
				seen[c] = true
			}
			fmt.Fprintf(out, "%-*s  %s\n", margin, streamName(int(r)), strings.TrimRight(strings.Join(row, ""), " "))
		}
	}
	if more := len(s.plan.Streams) - drawn; more > 0 {
		fmt.Fprintf(out, "%*s  and %s\n", margin, "", words.Count(more, "more stream", "more streams"))
	}
	s.ganttAxis(out, margin, columns, k)
	legend := fmt.Sprintf("%s start of a node", k.edge)
	if seen[k.critical] {
		legend += fmt.Sprintf("   %s on the critical path", k.critical)
	}
	if seen[k.several] {
		legend += fmt.Sprintf("   %s several nodes", k.several)
	}
	fmt.Fprintf(out, "%*s  %s\n", margin, "", legend)
	return out.Flush()
}

// fewest takes at most so many streams, the first of every device before the second of any.
func fewest(bands []plan.Band, most int) []plan.Band {
	taken := make([]int, len(bands))
	for depth, more := 0, true; more && most > 0; depth++ {
		more = false
		for k := range bands {
			if depth < len(bands[k].Streams) && most > 0 {
				taken[k]++
				most--
				more = true
			}
		}
	}
	for k := range bands {
		bands[k].Streams = bands[k].Streams[:taken[k]]
	}
	return slices.DeleteFunc(bands, func(b plan.Band) bool { return len(b.Streams) == 0 })
}

// ganttRow has a text for each column of a stream.
func (s *Schedule) ganttRow(stream, columns int, k *strokes, ascii bool) []string {
	row := make([]string, columns)
	for c := range row {
		row[c] = k.idle
	}
	scale := float64(columns) / s.timeline.MakespanUS
	free := 0
	for _, op := range s.plan.Streams[stream].Ops {
		if op.Kind != plan.Launch {
			continue
		}
		span := &s.timeline.Nodes[op.Node]
		from, to := int(math.Round(span.Start*scale)), int(math.Round(span.End*scale))
		if to <= free {
			if at := max(0, min(from, columns-1)); at < free && free > 0 {
				row[free-1] = k.several
				continue
			}
		}
		from = min(max(from, free), columns-1)
		to = min(max(to, from+1), columns)
		fill := k.fill
		if s.critical[op.Node] {
			fill = k.critical
		}
		row[from] = k.edge
		for c := from + 1; c < to; c++ {
			row[c] = fill
		}
		if to-from == 1 && s.critical[op.Node] {
			row[from] = fill
		}
		s.ganttName(row[from:to], op.Node, k, ascii)
		free = to
	}
	return row
}

// ganttName writes a name into a node's columns, leaving its edge and one column of fill visible.
func (s *Schedule) ganttName(cells []string, node dag.NodeID, k *strokes, ascii bool) {
	name := strings.Map(func(r rune) rune {
		if ascii && (r < ' ' || r > '~') {
			return '?'
		}
		return r
	}, clean(s.graph.Nodes[node].Name))
	room := len(cells) - 2
	if width := words.Width(name); width > room {
		if room < 4 {
			return
		}
		name = words.Cut(name, room-1) + k.ellipsis
	}
	at := 0
	for _, letter := range name {
		width := words.RuneWidth(letter)
		if width == 0 { // a mark on the letter before
			cells[at] += string(letter)
			continue
		}
		at++
		cells[at] = string(letter)
		if width == 2 {
			at++
			cells[at] = "" // the letter before covers it
		}
	}
}

func (s *Schedule) ganttAxis(out *bufio.Writer, margin, columns int, k *strokes) {
	step := roundStep(s.timeline.MakespanUS / max(1, float64(columns)/16))
	row := []rune(strings.Repeat(" ", columns))
	free := 0
	for n := 0; ; n++ {
		v := float64(n) * step
		at := int(math.Round(v / s.timeline.MakespanUS * float64(columns)))
		text := words.Time(v)
		if v > s.timeline.MakespanUS || at+len(text) > columns {
			break
		}
		if at < free {
			continue
		}
		copy(row[at:], []rune(text))
		free = at + len(text) + 1
	}
	fmt.Fprintf(out, "%*s  %s\n", margin, "", strings.TrimRight(string(row), " "))
}
