// Evaluates slices: which elements of a buffer x(lo..hi), x(i of k halo 1) and a(i of k)(j of k) are.

package expr

import (
	"errors"
	"strings"
)

// Span is a half-open range of positions along a dimension.
type Span struct{ Lo, Hi int64 }

// Len returns how many positions a span has.
func (s Span) Len() int64 { return s.Hi - s.Lo }

// eachTerm visits the expressions of the slice in the order of the text, up to the first error.
func (s *Slice) eachTerm(visit func(*Term) error) error {
	axes := []*Axis{&s.Axis, s.Columns}
	for _, a := range axes {
		if a == nil {
			continue
		}
		for _, t := range []*Term{a.Lo, a.Hi, a.Halo} {
			if t == nil {
				continue
			}
			if err := visit(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// Extent evaluates the slice of a buffer of that shape, nil for a single element: the rows, which are the positions along the first
// dimension, and the columns, which are those along the second. Columns are all there are unless the slice has a second part; a
// buffer of one dimension has one. Errors carry the place of the bound. Name is for messages.
func (s *Slice) Extent(scope Scope, name string, shape []int64) (rows, columns Span, err error) {
	columns.Hi = 1
	if err := s.checkAlone(); err != nil {
		return rows, columns, err
	}
	if scope == nil {
		return rows, columns, errors.New("there is no scope to look names up in")
	}
	if len(shape) > 1 {
		columns.Hi = shape[1]
	}
	if len(shape) == 0 {
		if s.Kind != Whole {
			return rows, columns, errorAt(s.Offset, "", "%s is a single element, it has no slices", name)
		}
		return Span{0, 1}, columns, nil
	}
	if rows, err = s.along(&s.Axis, scope, name, shape[0]); err != nil || s.Columns == nil {
		return rows, columns, err
	}
	if len(shape) == 1 {
		return rows, columns, errorAt(s.Offset, "slice it once, or declare it with a shape of two dimensions", "%s has one dimension, so it has no columns", name)
	}
	columns, err = s.along(s.Columns, scope, name, shape[1])
	return rows, columns, err
}

// along evaluates one dimension of the slice.
func (s *Slice) along(a *Axis, scope Scope, name string, length int64) (Span, error) {
	lo, hi := int64(0), length
	if a.Kind == Whole {
		return Span{lo, hi}, nil
	}
	var err error
	if a.Lo != nil {
		if lo, err = evalInt(a.Lo, scope, "a slice"); err != nil {
			return Span{}, err
		}
	}
	if a.Hi != nil {
		if hi, err = evalInt(a.Hi, scope, "a slice"); err != nil {
			return Span{}, err
		}
	}
	if a.Kind == Part {
		return s.part(a, scope, name, length, lo, hi)
	}
	offset := func(t *Term) int {
		if t == nil {
			return s.Offset
		}
		return t.Offset
	}
	what, has := "slice %d..%d is outside %s, which has %d", "slice of %s starts at %d, before its first element"
	if a == s.Columns {
		what, has = "columns %d..%d are outside %s, which has %d", "columns of %s start at %d, before the first"
	}
	switch {
	case lo < 0:
		return Span{}, errorAt(offset(a.Lo), "", has, name, lo)
	case hi > length:
		return Span{}, errorAt(offset(a.Hi), "", what, lo, hi, name, length)
	case lo > length:
		return Span{}, errorAt(offset(a.Lo), "", what, lo, hi, name, length)
	case lo > hi:
		return Span{}, errorAt(offset(a.Lo), s.swapped(a, a.Lo != nil && a.Hi != nil), "slice %d..%d of %s is reversed", lo, hi, name)
	}
	return Span{lo, hi}, nil
}

// part evaluates part i of k, widened by its halo and clipped to the buffer.
func (s *Slice) part(a *Axis, scope Scope, name string, length, part, parts int64) (Span, error) {
	if parts < 1 {
		return Span{}, errorAt(a.Hi.Offset, s.swapped(a, part > 0 || a.Hi.Op != Literal), "%s cannot be cut into %d parts", name, parts)
	}
	if part < 0 || part >= parts {
		return Span{}, errorAt(a.Lo.Offset, s.swapped(a, part > parts), "part %d of %d: parts are numbered 0 to %d", part, parts, parts-1)
	}
	halo := int64(0)
	if a.Halo != nil {
		var err error
		if halo, err = evalInt(a.Halo, scope, "a halo"); err != nil {
			return Span{}, err
		}
		if halo < 0 {
			return Span{}, errorAt(a.Halo.Offset, "", "a halo of %d; it must not be negative", halo)
		}
	}
	return PartOf(length, part, parts, halo), nil
}

// PartOf is part i of k even parts of a dimension, 0 <= i < k, the first ones one longer where it does not divide, with up to halo more
// positions on each side as far as there are any.
func PartOf(length, i, k, halo int64) Span {
	if k < 1 {
		return Span{}
	}
	size, longer := length/k, length%k
	lo := i*size + min(i, longer)
	hi := lo + size
	if i < longer {
		hi++
	}
	halo = min(max(halo, 0), length)
	return Span{max(lo-halo, 0), min(hi+halo, length)}
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
