// Text in pictures: times, what a node does, and the width of text.

package picture

import (
	"strings"
	"unicode"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/planner/plan"
)

// criticalMark precedes the names of nodes on the critical path, so that they can be recognised without colour.
const criticalMark = "★"

// kindText says in a word or two what a node is: h2d, set, scale, map.
func kindText(g *dag.Graph, i int32) string {
	n := &g.Nodes[i]
	switch {
	case n.Copy != nil:
		return plan.EngineOf(g, dag.NodeID(i)).String()
	case n.Set != nil:
		return "set"
	case n.Launch != nil && n.Launch.Map != nil:
		return "map"
	case n.Launch != nil:
		return n.Launch.Name
	case n.Function != "":
		return "host " + n.Function
	}
	return n.Kind.String()
}

// family replaces each number in a name with a star. Nodes made from the same line of a foreach have the same family.
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

// round returns the numbers in a name, each after a dot. The nodes of one repetition of a foreach have the same round.
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

// clean makes text safe to show: terminal control characters and characters that XML forbids become U+FFFD.
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
	case r == '\t', words.Steers(r), r == 0xfffe, r == 0xffff:
		return true
	}
	return r&0xfffe == 0xfffe && r > 0xffff
}

// advance is the width of a character in ems, in the widest of the common sans-serif fonts.
func advance(r rune) float64 {
	switch {
	case strings.ContainsRune("ijl'|.,:; I", r):
		return 0.34
	case strings.ContainsRune("ftr()[]-/\\!\"", r):
		return 0.47
	case strings.ContainsRune("<>=+~^#&", r):
		return 0.84
	case strings.ContainsRune("mw%", r):
		return 0.98
	case strings.ContainsRune("MW@", r):
		return 1.02
	case r >= 'A' && r <= 'Z':
		return 0.79
	case r < 0x250:
		return 0.64
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case words.RuneWidth(r) == 2:
		return 1.4
	case r < 0x2000:
		return 0.8
	}
	return 1
}

// boldWidth is how much wider bold text is than normal text.
const boldWidth = 1.13

// textWidth is the width of a text in ems. It is an upper estimate.
func textWidth(s string) float64 {
	sum := 0.0
	for _, r := range s {
		sum += advance(r)
	}
	return sum
}

// cut truncates text to a width in ems, with an ellipsis at the end. If not even one letter fits, the result is empty.
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
