// Words and figures in pictures: times, sizes, what a node does, how wide a text is. Knows no format.

package picture

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
)

// criticalMark stands before the names of nodes on the critical path, so that colour alone does not say it.
const criticalMark = "★"

// timeText is a time for people: 3.2 us, 47.1 us, 1.25 ms.
func timeText(us float64) string {
	switch {
	case us >= 1e6:
		return strconv.FormatFloat(us/1e6, 'g', 4, 64) + " s"
	case us >= 1e4:
		return strconv.FormatFloat(us/1e3, 'g', 4, 64) + " ms"
	}
	return strconv.FormatFloat(us, 'g', 4, 64) + " us"
}

// byteText is a size for people.
func byteText(n int64) string {
	if n < 1024 {
		return plural(int(n), "byte", "bytes")
	}
	v, k := float64(n)/1024, 0
	for v >= 1023.95 && k < 5 {
		v /= 1024
		k++
	}
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0") + " " + [...]string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}[k]
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// kindText is what a node is in a word or two: h2d, set, kernel scale, map.
func kindText(g *dag.Graph, i int32) string {
	n := &g.Nodes[i]
	switch {
	case n.Copy != nil:
		return planner.EngineOf(g, i).String()
	case n.Set != nil:
		return "set"
	case n.Launch != nil && n.Launch.Map != nil:
		return "map"
	case n.Launch != nil:
		return n.Launch.Name
	}
	return n.Kind.String()
}

// actionText is what a node does.
func actionText(g *dag.Graph, i int32) string {
	n := &g.Nodes[i]
	switch {
	case n.Copy != nil:
		return fmt.Sprintf("%v %s -> %s", planner.EngineOf(g, i), g.RangeText(n.Copy.Src), g.RangeText(n.Copy.Dst))
	case n.Set != nil:
		return "set " + g.RangeText(n.Set.Dst)
	case n.Launch != nil && n.Launch.Map != nil:
		return "map " + n.Launch.Map.Text
	case n.Launch != nil:
		return "kernel " + n.Launch.Name
	}
	return n.Kind.String()
}

// family is a name with its numbers replaced by stars: what the repetitions of a foreach have in common.
func family(name string) string {
	if !strings.ContainsAny(name, "0123456789") {
		return name
	}
	var b strings.Builder
	digit := false
	for _, r := range name {
		if r >= '0' && r <= '9' {
			if !digit {
				b.WriteByte('*')
			}
			digit = true
			continue
		}
		digit = false
		b.WriteRune(r)
	}
	return b.String()
}

// round is what numbers are in a name, with a dot before each: what the nodes of one repetition of a foreach have in common.
func round(name string) string {
	var b strings.Builder
	digit := false
	for _, r := range name {
		if r >= '0' && r <= '9' {
			if !digit {
				b.WriteByte('.')
			}
			b.WriteRune(r)
			digit = true
			continue
		}
		digit = false
	}
	return b.String()
}

// clean is a text that cannot leave its place: control characters, what XML refuses, and the characters that turn the
// direction of all text after them become U+FFFD.
func clean(s string) string {
	for _, r := range s {
		if unsafeRune(r) {
			return strings.Map(func(r rune) rune {
				if unsafeRune(r) {
					return unicode.ReplacementChar
				}
				return r
			}, s)
		}
	}
	return s
}

func unsafeRune(r rune) bool {
	switch {
	case r == '\n':
		return false
	case r < ' ', r >= 0x7f && r < 0xa0, r == 0xfffe, r == 0xffff, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x2028, r == 0x2029:
		return true
	}
	return r&0xfffe == 0xfffe && r > 0xffff
}

// advance is how wide a character is in ems, in the widest of the usual sans-serif fonts.
func advance(r rune) float64 {
	switch {
	case strings.ContainsRune("ijl'|!.,:; I", r):
		return 0.33
	case strings.ContainsRune("ftr()[]{}-/\\\"`", r):
		return 0.43
	case strings.ContainsRune("mw%", r):
		return 0.97
	case strings.ContainsRune("MW@", r):
		return 1.02
	case r >= 'A' && r <= 'Z':
		return 0.76
	case r < 0x250:
		return 0.64
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case wide(r):
		return 1.4
	case r < 0x2000:
		return 0.8
	}
	return 1
}

// wide reports whether a character takes two columns in a terminal: East Asian scripts and emoji.
func wide(r rune) bool {
	switch {
	case r < 0x1100:
		return false
	case r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf && r != 0x303f, r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff, r >= 0xfe30 && r <= 0xfe6b,
		r >= 0xff01 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6, r >= 0x1f300 && r <= 0x1faff, r >= 0x20000 && r <= 0x3fffd:
		return true
	}
	return false
}

// textWidth is how wide a text is in ems, rather too much than too little.
func textWidth(s string) float64 {
	sum := 0.0
	for _, r := range s {
		sum += advance(r)
	}
	return sum
}

// cut shortens a text to a width in ems; what does not fit ends in an ellipsis, and where not even one letter fits the
// result is empty.
func cut(s string, width float64) string {
	s = clean(s)
	if textWidth(s) <= width {
		return s
	}
	const ellipsis = 1.0
	sum := 0.0
	for at, r := range s {
		sum += advance(r)
		if sum+ellipsis > width {
			if at == 0 {
				return ""
			}
			return strings.TrimRight(s[:at], " …") + "…"
		}
	}
	return s
}
