// Prints an expression in its canonical form: single spaces around operators, and no unnecessary parentheses.

package expr

import "strings"

// String prints the tree. Read again, the text gives an expression with the same value. It is empty where Check finds a fault.
func (e *Expr) String() string {
	if e.Check() != nil {
		return ""
	}
	var b strings.Builder
	e.Root.print(&b, 0)
	return b.String()
}

func (t *Term) binding() int {
	if t.Op == Literal {
		// A folded literal prints as a division or with a sign.
		switch {
		case t.Value.kind == Rational && t.Value.den != 0:
			return bindProduct
		case t.Value.num < 0 || t.Value.f < 0:
			return bindSign
		}
	}
	return operators[t.Op].bind
}

func (t *Term) print(b *strings.Builder, least int) {
	bind := t.binding()
	if bind < least {
		b.WriteByte('(')
		defer b.WriteByte(')')
	}
	switch t.Op {
	case Literal:
		b.WriteString(t.Value.String())
	case Variable:
		b.WriteString(t.Name)
	case Call:
		b.WriteString(t.Name)
		b.WriteByte('(')
		for i, a := range t.Args {
			if i > 0 {
				b.WriteString(", ")
			}
			a.print(b, 0)
		}
		b.WriteByte(')')
	case Buffer:
		t.Slice.print(b)
	case Neg, Not:
		b.WriteString(operators[t.Op].text)
		if t.Op == Neg && t.Args[0].Op != Neg {
			bind++ // -(3), which is not the literal -3
		}
		t.Args[0].print(b, bind)
	default:
		left, right := bind, bind+1
		if bind == bindCompare {
			left++
		}
		t.Args[0].print(b, left)
		b.WriteString(operators[t.Op].text)
		t.Args[1].print(b, right)
	}
}

// String prints the slice.
func (s *Slice) String() string {
	if s.checkAlone() != nil {
		return ""
	}
	var b strings.Builder
	s.print(&b)
	return b.String()
}

func (s *Slice) print(b *strings.Builder) {
	b.WriteString(s.Name.Text)
	s.Axis.print(b)
	if s.Columns != nil {
		s.Columns.print(b)
	}
}

func (a *Axis) print(b *strings.Builder) {
	if a.Kind == Whole {
		return
	}
	b.WriteByte('(')
	if a.Lo != nil {
		a.Lo.print(b, 0)
	}
	if a.Kind == Part {
		b.WriteString(" of ")
	} else {
		b.WriteString("..")
	}
	if a.Hi != nil {
		a.Hi.print(b, 0)
	}
	if a.Halo != nil {
		b.WriteString(" halo ")
		a.Halo.print(b, 0)
	}
	b.WriteByte(')')
}

// swapped is the hint to swap the bounds, if they are likely to be the wrong way round.
func (s *Slice) swapped(a *Axis, likely bool) string {
	if !likely {
		return ""
	}
	other, turned := *s, *a
	turned.Lo, turned.Hi = a.Hi, a.Lo
	if a == s.Columns {
		other.Columns = &turned
	} else {
		other.Axis = turned
	}
	var b strings.Builder
	b.WriteString("write ")
	other.print(&b)
	return b.String()
}
