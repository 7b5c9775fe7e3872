// Checks of expressions made by hand, so that the rest of the package can rely on their form, and walks over them.

package expr

import (
	"errors"
	"fmt"
	"slices"
)

// Check returns what is wrong with an expression that was made by hand, or nil. Expressions of Parse, ParseMap and Bind are right.
func (e *Expr) Check() error {
	switch {
	case e == nil:
		return errors.New("there is no expression")
	case e.parsed:
		return nil
	}
	left := MaxText // a tree that contains itself, or shares its parts without end, would never be walked to its end
	return checkTerm(e.Root, &left, false)
}

func checkTerm(t *Term, left *int, measured bool) error {
	if *left--; *left < 0 {
		return fmt.Errorf("the expression has more than %d terms", MaxText)
	}
	if t == nil {
		return errors.New("a term of the expression is nil")
	}
	least, most := 2, 2
	switch {
	case int(t.Op) >= len(operators):
		return fmt.Errorf("a term of the expression has the unknown operator %d", t.Op)
	case t.Op == Buffer && !measured:
		return errors.New("the expression uses a buffer outside of len, rows, cols and ld")
	case t.Op == Buffer:
		return t.Slice.check(left)
	case t.Op == Literal || t.Op == Variable:
		least, most = 0, 0
	case t.Op == Neg || t.Op == Not:
		least, most = 1, 1
	case t.Op == Call:
		k := slices.IndexFunc(functions, func(f function) bool { return f.name == t.Name })
		if k < 0 {
			return fmt.Errorf("the expression calls the unknown function %q", shorten(t.Name))
		}
		least, most, measured = functions[k].least, functions[k].most, measures(t.Name)
		if measured && len(t.Args) == 1 && t.Args[0] != nil && t.Args[0].Op != Buffer {
			return fmt.Errorf("the argument of %s in the expression is not a buffer", t.Name)
		}
	}
	if n := len(t.Args); n < least || n > most {
		return fmt.Errorf("a term of the expression has %d operands; it takes %d", n, least)
	}
	for _, a := range t.Args {
		if err := checkTerm(a, left, measured && t.Op == Call); err != nil {
			return err
		}
	}
	return nil
}

func (s *Slice) check(left *int) error {
	if s == nil || s.Name == nil {
		return errors.New("a slice names no buffer")
	}
	if s.Columns != nil && (s.Kind == Whole || s.Columns.Kind == Whole) {
		return fmt.Errorf("a slice of %q has columns, but one of its dimensions is not sliced", shorten(s.Name.Text))
	}
	for _, a := range []*Axis{&s.Axis, s.Columns} {
		switch {
		case a == nil:
		case a.Kind > Part:
			return fmt.Errorf("a slice of %q is of unknown kind %d", shorten(s.Name.Text), a.Kind)
		case a.Kind == Part && (a.Lo == nil || a.Hi == nil):
			return fmt.Errorf("a part of %q lacks its number or how many there are", shorten(s.Name.Text))
		case a.Kind != Part && a.Halo != nil:
			return fmt.Errorf("a slice of %q has a halo, but is not a part", shorten(s.Name.Text))
		}
	}
	return s.eachTerm(func(t *Term) error { return checkTerm(t, left, false) })
}

// checkAlone is check for a slice outside of an expression.
func (s *Slice) checkAlone() error {
	left := MaxText
	return s.check(&left)
}

// Walk calls visit for every term of the expression, operands after their operator. It visits nothing of an expression in which
// Check finds a fault.
func (e *Expr) Walk(visit func(*Term)) {
	if visit != nil && e.Check() == nil {
		walk(e.Root, visit)
	}
}

// Variables returns the names of the free variables in order of first appearance.
func (e *Expr) Variables() []string {
	var names []string
	e.Walk(func(t *Term) {
		if t.Op != Variable {
			return
		}
		for _, n := range names {
			if n == t.Name {
				return
			}
		}
		names = append(names, t.Name)
	})
	return names
}

func walk(t *Term, visit func(*Term)) {
	visit(t)
	for _, a := range t.Args {
		walk(a, visit)
	}
	if t.Slice != nil {
		t.Slice.walk(visit)
	}
}

func (s *Slice) walk(visit func(*Term)) {
	for _, p := range s.Name.parts {
		if p.term != nil {
			walk(p.term, visit)
		}
	}
	s.eachTerm(func(t *Term) error {
		walk(t, visit)
		return nil
	})
}
