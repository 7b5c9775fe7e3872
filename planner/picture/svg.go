// Writing SVG, element by element. All text and attributes are escaped.

package picture

import (
	"bufio"
	"io"
	"math"
	"strconv"
	"strings"
)

// panel is one picture of a sheet.
type panel interface {
	width() float64
	height() float64
	draw(k *svgWriter)
}

// svgWriter writes SVG. Flush returns the first error.
type svgWriter struct {
	*bufio.Writer
	scratch []byte
}

func newSVGWriter(w io.Writer) *svgWriter { return &svgWriter{Writer: bufio.NewWriterSize(w, 1<<16)} }

// number writes a length, rounded to a tenth.
func (k *svgWriter) number(v float64) {
	k.scratch = strconv.AppendFloat(k.scratch[:0], math.Round(v*10)/10, 'f', -1, 64)
	k.Write(k.scratch)
}

// attr writes a numeric attribute.
func (k *svgWriter) attr(name string, v float64) {
	k.WriteByte(' ')
	k.WriteString(name)
	k.WriteString(`="`)
	k.number(v)
	k.WriteByte('"')
}

var escapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;")

// escaped writes text for an element or a quoted attribute.
func (k *svgWriter) escaped(s string) { escapes.WriteString(k, clean(s)) }

// title writes a title element, which browsers show on hover and screen readers read out.
func (k *svgWriter) title(s string) {
	k.WriteString("<title>")
	k.escaped(s)
	k.WriteString("</title>")
}

// text writes one line; class is its CSS class.
func (k *svgWriter) text(x, y, size float64, class, anchor, s string) {
	k.WriteString("<text")
	k.attr("x", x)
	k.attr("y", y)
	k.attr("font-size", size)
	k.WriteString(` class="`)
	k.WriteString(class)
	k.WriteByte('"')
	if anchor != "" {
		k.WriteString(` text-anchor="`)
		k.WriteString(anchor)
		k.WriteByte('"')
	}
	k.WriteByte('>')
	k.escaped(s)
	k.WriteString("</text>")
}

func (k *svgWriter) rect(x, y, w, h, radius float64, class string) {
	k.WriteString("<rect")
	k.attr("x", x)
	k.attr("y", y)
	k.attr("width", w)
	k.attr("height", h)
	if radius > 0 {
		k.attr("rx", radius)
	}
	k.WriteString(` class="`)
	k.WriteString(class)
	k.WriteString(`"/>`)
}

func (k *svgWriter) line(x1, y1, x2, y2 float64, class string) {
	k.WriteString("<line")
	k.attr("x1", x1)
	k.attr("y1", y1)
	k.attr("x2", x2)
	k.attr("y2", y2)
	k.WriteString(` class="`)
	k.WriteString(class)
	k.WriteString(`"/>`)
}

// path starts a path at one point; curve goes on from there, end closes the element.
func (k *svgWriter) path(class string, x, y float64) {
	k.WriteString(`<path class="`)
	k.WriteString(class)
	k.WriteString(`" d="M`)
	k.point(x, y)
}

func (k *svgWriter) point(x, y float64) {
	k.number(x)
	k.WriteByte(' ')
	k.number(y)
}

func (k *svgWriter) curve(x1, y1, x2, y2, x, y float64) {
	k.WriteByte('C')
	k.point(x1, y1)
	k.WriteByte(' ')
	k.point(x2, y2)
	k.WriteByte(' ')
	k.point(x, y)
}

func (k *svgWriter) to(x, y float64) {
	k.WriteByte('L')
	k.point(x, y)
}

func (k *svgWriter) end() { k.WriteString(`"/>`) }

// style is the style sheet of every picture. It uses plain classes and no variables, so that programs with little CSS support show the
// light colours. The dark ones follow the reader's setting.
const style = `<style>
text{font-family:Helvetica,Arial,"Liberation Sans","DejaVu Sans",sans-serif;fill:#1b1f24;unicode-bidi:isolate}
.page{fill:#fff}.row{fill:#f3f5f7}.muted{fill:#4b545d}.strong{font-weight:bold}.halo{paint-order:stroke;stroke:#fff;stroke-width:3px;stroke-linejoin:round}
.tick{stroke:#c4ccd4;stroke-width:1}.band{stroke:#5b6570;stroke-width:1.5}.box{stroke:#5b6570;stroke-width:1}.critical{stroke:#b3261e;stroke-width:3}
.compute{fill:#ffe3bd}.h2d{fill:#d3e5ff}.d2h{fill:#d2efd2}.peer{fill:#e8d9ff}.d2d{fill:#e2e6eb}.host{fill:#f9d7e3}.mixed{fill:#e9ecef}
.hatch{stroke:#1b1f24;stroke-opacity:.16;stroke-width:1.5;fill:none}
.wait{stroke:#4538b8;stroke-width:1.6;fill:none}.edge{stroke:#68727d;stroke-width:1.2;fill:none}.after{stroke-dasharray:5 3}
.tip{fill:#4538b8}.edgetip{fill:#68727d}.fork{stroke:#68727d;stroke-width:1.4;stroke-dasharray:2 3;fill:none}
.many .wait{stroke-opacity:.6;stroke-width:1.1}.crowd .wait{stroke-opacity:.3}.many .edge{stroke-opacity:.5;stroke-width:.9}
g:hover>.wait,g:hover>.edge{stroke-width:3.5;stroke-opacity:1}
@media(prefers-color-scheme:dark){
text{fill:#eef1f4}.page{fill:#0d1117}.row{fill:#171c23}.muted{fill:#b4bec8}.halo{stroke:#0d1117}
.tick{stroke:#39424c}.band{stroke:#8d98a4}.box{stroke:#8d98a4}.critical{stroke:#ff8a80}
.compute{fill:#553a0d}.h2d{fill:#15385f}.d2h{fill:#194727}.peer{fill:#3d2a63}.d2d{fill:#30363d}.host{fill:#57253a}.mixed{fill:#262c33}
.hatch{stroke:#fff}.wait{stroke:#a9a1ff}.edge{stroke:#98a3ae}.tip{fill:#a9a1ff}.edgetip{fill:#98a3ae}.fork{stroke:#98a3ae}
}
</style>
<defs>
<pattern id="h2d" width="8" height="8" patternUnits="userSpaceOnUse"><path class="hatch" d="M-2 2L2 -2M0 8L8 0M6 10L10 6"/></pattern>
<pattern id="d2h" width="8" height="8" patternUnits="userSpaceOnUse"><path class="hatch" d="M-2 6L2 10M0 0L8 8M6 -2L10 2"/></pattern>
<pattern id="peer" width="8" height="8" patternUnits="userSpaceOnUse"><path class="hatch" d="M0 4H8"/></pattern>
<pattern id="d2d" width="8" height="8" patternUnits="userSpaceOnUse"><path class="hatch" d="M4 0V8"/></pattern>
<pattern id="host" width="8" height="8" patternUnits="userSpaceOnUse"><path class="hatch" d="M0 4H8M4 0V8"/></pattern>
<marker id="tip" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path class="tip" d="M0 0L8 4L0 8Z"/></marker>
<marker id="edgetip" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse" orient="auto"><path class="edgetip" d="M0 0L8 4L0 8Z"/></marker>
</defs>
`
