// The legend of a sheet: what its colours and patterns mean. It lists only those that the sheet uses.

package picture

import (
	"slices"

	"github.com/dagrun/dagrun/planner/plan"
)

// Sheet collects pictures.
type Sheet struct {
	options   SheetOptions
	panels    []panel
	engines   [plan.HostCopy + 1]bool
	schedules bool
	waits     bool
	graphs    bool
	err       error // of the first picture that could not be added
}

const (
	legendRow    = 26.0
	legendMargin = 14.0
)

// entry is one line of the legend: a sample of a colour or pattern, and what it means.
type entry struct {
	sample sample
	class  string
	text   string
	x, row float64
}

// sample is the kind of sample that an entry shows.
type sample uint8

const (
	boxSample sample = iota
	hatchSample
	waitSample
	edgeSample
)

const (
	sampleWidth = 24.0
	legendSize  = 11.0
)

func (e *entry) width() float64 { return sampleWidth + 6 + textWidth(e.text)*legendSize + 16 }

func (s *Sheet) entries() []entry {
	meanings := [...]string{"kernel, map or set", "copy to device", "copy to host", "copy between devices", "copy on a device", "copy on the host"}
	var entries []entry
	for e, seen := range s.engines {
		if !seen {
			continue
		}
		kind := hatchSample
		if plan.Engine(e) == plan.Compute {
			kind = boxSample
		}
		entries = append(entries, entry{sample: kind, class: plan.Engine(e).String(), text: meanings[e]})
	}
	if s.mixed() {
		entries = append(entries, entry{sample: boxSample, class: "mixed", text: "nodes of several kinds"})
	}
	if s.schedules {
		entries = append(entries, entry{sample: boxSample, class: "row critical", text: criticalMark + " critical path"})
	}
	if s.waits {
		entries = append(entries, entry{sample: waitSample, text: "from record to wait"})
	}
	if s.graphs {
		entries = append(entries, entry{sample: edgeSample, text: "dependency"})
	}
	return entries
}

// mixed reports whether any box stands for nodes of several engines.
func (s *Sheet) mixed() bool {
	is := func(b block) bool { return b.mixed }
	for _, p := range s.panels {
		switch p := p.(type) {
		case *streamRows:
			if slices.ContainsFunc(p.blocks, is) {
				return true
			}
		case *layers:
			if slices.ContainsFunc(p.blocks, is) {
				return true
			}
		}
	}
	return false
}

// wrapLegend sets the position of every entry and returns the number of rows.
func wrapLegend(entries []entry, width float64) int {
	x, row := 16.0, 0.0
	for i := range entries {
		e := &entries[i]
		if x > 16 && x+e.width() > width {
			x, row = 16, row+1
		}
		e.x, e.row = x, row
		x += e.width()
	}
	return int(row) + 1
}

func (e *entry) draw(k *svgWriter, y float64) {
	y += e.row * legendRow
	k.WriteString(`<g class="legend">`)
	switch e.sample {
	case boxSample, hatchSample:
		k.rect(e.x, y+4, sampleWidth, 15, 3, e.class+" box")
		if e.sample == hatchSample {
			k.WriteString("<rect")
			k.attr("x", e.x+1)
			k.attr("y", y+11)
			k.attr("width", sampleWidth-2)
			k.WriteString(` height="7" fill="url(#` + e.class + `)"/>`)
		}
	case waitSample, edgeSample:
		class, tip := "wait", "tip"
		if e.sample == edgeSample {
			class, tip = "edge", "edgetip"
		}
		k.path(class, e.x, y+12)
		k.to(e.x+sampleWidth, y+12)
		k.WriteString(`" marker-end="url(#` + tip + `)`)
		k.end()
		if e.sample == waitSample {
			k.WriteString(`<circle class="tip" r="2.6"`)
			k.attr("cx", e.x+2)
			k.attr("cy", y+12)
			k.WriteString("/>")
		}
	}
	k.text(e.x+sampleWidth+6, y+16, legendSize, "muted", "", e.text)
	k.WriteString("</g>\n")
}
