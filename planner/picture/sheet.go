// Sheets: several pictures in one SVG, one below the other, with one legend. Schedules share one scale.

package picture

import (
	"errors"
	"io"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/planner/plan"
)

// DefaultLimit is how many boxes a picture has before neighbours share a box.
const DefaultLimit = 240

// By default a picture fits a screen. If the caller asks for a number of boxes, the picture may become wider.
var screen = scale{boxes: DefaultLimit, inRow: 24, plot: 1640, columns: 12}

func asked(boxes int) scale { return scale{boxes: boxes, inRow: boxes, plot: 4800, columns: boxes} }

// NewSheet starts an empty sheet.
func NewSheet(o SheetOptions) *Sheet { return &Sheet{options: o} }

// scale returns the size limits of the pictures.
func (s *Sheet) scale() scale {
	if s.options.Limit <= 0 {
		return screen
	}
	return asked(s.options.Limit)
}

// AddSchedule adds a schedule: streams as rows, waits as arrows. WriteSVG returns the error if it cannot be drawn.
func (s *Sheet) AddSchedule(schedule *Schedule) {
	if s == nil {
		return
	}
	if err := schedule.drawable(io.Discard); err != nil {
		s.fail(err)
		return
	}
	s.panels = append(s.panels, newStreamRows(schedule, s.options.Axis, s.scale()))
	s.see(schedule.graph)
	s.schedules = true
	s.waits = s.waits || len(schedule.waits) > 0
}

// AddGraph adds a graph as it was declared: nodes by level, every dependency an arrow. WriteSVG returns the error if it
// cannot be drawn.
func (s *Sheet) AddGraph(g *dag.Graph) {
	if s == nil {
		return
	}
	if err := g.Check(); err != nil {
		s.fail(err)
		return
	}
	s.panels = append(s.panels, newLayers(g, s.scale()))
	s.see(g)
	s.graphs = true
}

// fail keeps the first error for WriteSVG.
func (s *Sheet) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

func (s *Sheet) see(g *dag.Graph) {
	for i := range g.Nodes {
		s.engines[plan.EngineOf(g, dag.NodeID(i))] = true
	}
}

// WriteSVG writes the sheet as one self-contained SVG.
func (s *Sheet) WriteSVG(w io.Writer) error {
	switch {
	case s == nil:
		return errors.New("there is no sheet to draw; make it with NewSheet")
	case s.err != nil:
		return s.err
	case w == nil:
		return words.ErrNoWriter
	}
	end, plot := 0.0, 0.0
	for _, p := range s.panels {
		if l, ok := p.(*streamRows); ok {
			end, plot = max(end, l.end), max(plot, l.plot)
		}
	}
	width, height := leastPlot, 0.0
	for _, p := range s.panels {
		if l, ok := p.(*streamRows); ok {
			l.end, l.plot = end, plot
			l.place()
		}
		width = max(width, p.width())
		height += p.height()
	}
	entries := s.entries()
	rows := wrapLegend(entries, width)
	height += float64(rows)*legendRow + legendMargin
	k := newSVGWriter(w)
	k.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" role="img"`)
	k.attr("width", width)
	k.attr("height", height)
	k.WriteString(` viewBox="0 0 `)
	k.point(width, height)
	k.WriteString("\">\n")
	k.title(s.title())
	k.WriteString("\n" + style)
	k.rect(0, 0, width, height, 0, "page")
	k.WriteByte('\n')
	y := 0.0
	for _, p := range s.panels {
		k.WriteString(`<g class="panel" transform="translate(0 `)
		k.number(y)
		k.WriteString(")\">\n")
		p.draw(k)
		k.WriteString("</g>\n")
		y += p.height()
	}
	for i := range entries {
		entries[i].draw(k, y)
	}
	k.WriteString("</svg>\n")
	return k.Flush()
}

func (s *Sheet) title() string {
	text := ""
	for n, p := range s.panels {
		if n > 0 {
			text += "; "
		}
		switch p := p.(type) {
		case *streamRows:
			text += p.s.title() + ", " + p.s.summary()
		case *layers:
			text += p.title()
		}
	}
	return text
}
