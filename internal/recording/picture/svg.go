// Writing the picture as SVG.

package picture

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
)

const (
	left     = 190.0 // for the names of rows
	top      = 58.0
	rowPitch = 46.0
	boxRoom  = 26.0
	least    = 16.0 // width of a box
)

// WriteSVG writes the picture.
func (x *Picture) WriteSVG(w io.Writer) error {
	k := bufio.NewWriter(w)
	starts, ends, width := x.columns()
	height := top + rowPitch*float64(len(x.rows)) + 34
	fmt.Fprintf(k, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" font-family="ui-sans-serif, system-ui, sans-serif">`, width, height, width, height)
	k.WriteString(`<style>
.paper{fill:#fff}.line{stroke:#d0d7de}.text{fill:#1f2328}.soft{fill:#59636e}.box{fill:#ddf4ff;stroke:#0969da}.many{fill:#b6e3ff;stroke:#0969da}.sync{fill:#fff8c5;stroke:#9a6700}.event{fill:#f6f8fa;stroke:#818b98}.racy{fill:#ffebe9;stroke:#cf222e;stroke-width:2}.wait{stroke:#1a7f37;fill:none}.idle{stroke:#afb8c1;fill:none}.grey{fill:#f6f8fa;stroke:#d0d7de}.race{stroke:#cf222e;stroke-width:2;stroke-dasharray:5 3;fill:none}
@media (prefers-color-scheme: dark){.paper{fill:#0d1117}.line{stroke:#3d444d}.text{fill:#f0f6fc}.soft{fill:#9198a1}.box{fill:#0c2d6b;stroke:#4493f8}.many{fill:#1f4fa0;stroke:#4493f8}.sync{fill:#3b2300;stroke:#d29922}.event{fill:#151b23;stroke:#656c76}.racy{fill:#490202;stroke:#f85149}.race{stroke:#f85149}.wait{stroke:#3fb950}.idle{stroke:#484f58}.grey{fill:#151b23;stroke:#3d444d}}
</style>`)
	for _, class := range []string{"wait", "idle"} {
		fmt.Fprintf(k, `<defs><marker id="tip-%[1]s" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto"><path d="M1 1L7 4L1 7" class="tip %[1]s"/></marker></defs>`, class)
	}
	fmt.Fprintf(k, `<rect class="paper" width="%.0f" height="%.0f"/>`, width, height)
	text(k, 16, 24, 15, "text", x.title)
	text(k, 16, 43, 12, "soft", x.verdict+"; left to right as submitted; numbers count calls that are drawn as one; grey waits are needed by no conflict")
	for row, name := range x.rows {
		y := top + rowPitch*float64(row)
		fmt.Fprintf(k, `<line class="line" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, left-8, width-12, y+boxRoom/2, y+boxRoom/2)
		text(k, 16, y+boxRoom/2+4, 12, "text", shortened(name, 27))
	}
	for n := range x.boxes {
		x.drawBox(k, &x.boxes[n], starts[n], ends[n])
	}
	for _, a := range x.arrows {
		class := "wait"
		if a.needless {
			class = "idle"
		}
		x.drawArrow(k, a, ends[a.from], starts[a.to], class, ` marker-end="url(#tip-`+class+`)"`, "", width)
	}
	for _, a := range x.races {
		x.drawArrow(k, a, (starts[a.from]+ends[a.from])/2, (starts[a.to]+ends[a.to])/2, "race", "", a.text, width)
	}
	k.WriteString("</svg>\n")
	return k.Flush()
}

// columns places boxes from left to right: each begins behind the box before it in its row, and behind all that were submitted before its first call.
func (x *Picture) columns() (starts, ends []float64, width float64) {
	order := make([]int, len(x.boxes))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int { return x.boxes[a].first - x.boxes[b].first })
	starts, ends = make([]float64, len(x.boxes)), make([]float64, len(x.boxes))
	wide := least
	if n := len(x.boxes); n > 0 {
		wide = max(least, min(96, (1500-left)/float64(n)))
	}
	free := make([]float64, len(x.rows))
	for k := range free {
		free[k] = left
	}
	head := left
	for _, n := range order {
		b := &x.boxes[n]
		starts[n] = max(free[b.row], head)
		ends[n] = starts[n] + wide - 4
		free[b.row] = ends[n] + 4
		head = max(head, starts[n]+wide/3)
		if b.host { // everything after it was submitted after it
			for k := range free {
				free[k] = max(free[k], ends[n]+4)
			}
		}
		width = max(width, ends[n])
	}
	return starts, ends, max(width+24, 900)
}

func (x *Picture) drawBox(k *bufio.Writer, b *box, start, end float64) {
	class, label := "box", b.name
	switch {
	case b.racy:
		class = "racy"
	case b.needless:
		class = "grey"
	case b.host:
		class = "sync"
	case b.count > 1:
		class = "many"
	case b.name == "record" || b.name == "wait":
		class = "event"
	}
	if b.count > 1 {
		label = fmt.Sprintf("%d × %s …", b.count, b.name)
	}
	y := top + rowPitch*float64(b.row)
	fmt.Fprintf(k, `<g><rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.0f" rx="3"/>`, class, start, y, end-start, boxRoom)
	places := slices.DeleteFunc(slices.Compact(slices.Clone(b.places)), func(s string) bool { return s == "" })
	title(k, label+" on "+x.rows[b.row]+"\n"+strings.Join(places, "\n"))
	k.WriteString("</g>")
	if room := int((end - start) / 7.2); room >= 4 {
		text(k, start+4, y+17, 11, "text", shortened(label, room))
	}
}

func (x *Picture) drawArrow(k *bufio.Writer, a arrow, from, to float64, class, end, what string, width float64) {
	y1 := top + rowPitch*float64(x.boxes[a.from].row) + boxRoom/2
	y2 := top + rowPitch*float64(x.boxes[a.to].row) + boxRoom/2
	if y1 < y2 {
		y1, y2 = y1+boxRoom/2, y2-boxRoom/2
	} else if y1 > y2 {
		y1, y2 = y1-boxRoom/2, y2+boxRoom/2
	}
	fmt.Fprintf(k, `<g><path class="%s" d="M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f"%s/>`, class, from, y1, from, (y1+y2)/2, to, (y1+y2)/2, to, y2, end)
	words := fmt.Sprintf("%s waits for %s", x.rows[x.boxes[a.to].row], x.rows[x.boxes[a.from].row])
	if what != "" {
		words = "race: " + what
	}
	if a.needless {
		words += ", and no conflict needs it"
	}
	if a.count > 1 {
		words += fmt.Sprintf(" (%d)", a.count)
	}
	title(k, words)
	k.WriteString("</g>")
	if what != "" && a.to > a.from {
		x := (from+to)/2 + 4
		text(k, min(x, width-6.5*float64(len(what))), (y1+y2)/2+4, 11, "soft", what)
	}
}

var escapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;")

func text(k *bufio.Writer, x, y, size float64, class, s string) {
	fmt.Fprintf(k, `<text x="%.1f" y="%.1f" font-size="%.0f" class="%s">%s</text>`, x, y, size, class, escapes.Replace(clean(s)))
}

func title(k *bufio.Writer, s string) { fmt.Fprintf(k, "<title>%s</title>", escapes.Replace(clean(s))) }

// clean leaves out what XML does not allow: a recording is a file that may hold anything.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' || r == 0xfffe || r == 0xffff || r == 0xfffd {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
}

func shortened(s string, room int) string {
	r := []rune(s)
	if len(r) <= room {
		return s
	}
	return string(r[:room-1]) + "…"
}
