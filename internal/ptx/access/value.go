// Values: what a register may hold, as a sum of bases and a number.

package access

import "slices"

// factors is the set of factors that a base may have in a sum.
type factors uint8

const (
	zero  factors = 1 << iota
	plus          // 1
	minus         // -1
	other         // anything else, or unknown
)

// origins tells where a number without a base comes from.
type origins uint8

const (
	fromInteger origins = 1 << iota
	fromMemory
	fromCall
	fromUnknown
)

// term is one base of a sum.
type term struct {
	base    int32
	factors factors
}

// value is a sum of bases and a number. The zero value is that of a register that nothing has been written to.
type value struct {
	terms  []term  // by base; shared between values, never written to
	number origins // where the number comes from if the sum may have no base; 0 if it always has one
	null   bool    // the sum may be the constant 0
	known  bool    // the number in addition to the bases is offset
	set    bool    // anything was written to it
	offset int64
}

func number(from origins) value { return value{number: from, set: true} }

func constant(v int64) value {
	if v == 0 {
		return value{null: true, known: true, set: true}
	}
	return value{number: fromInteger, known: true, set: true, offset: v}
}

func address(base int32, offset int64) value {
	return value{terms: []term{{base, plus}}, known: true, set: true, offset: offset}
}

// merge combines the terms of two values. A base that one of them lacks has factor 0 there.
func merge(a, b []term, combine func(x, y factors) factors) []term {
	if len(a) == 0 && len(b) == 0 {
		return nil
	}
	out := make([]term, 0, len(a)+len(b))
	for len(a) > 0 || len(b) > 0 {
		var t term
		x, y := zero, zero
		if len(b) == 0 || len(a) > 0 && a[0].base <= b[0].base {
			t.base, x = a[0].base, a[0].factors
		} else {
			t.base = b[0].base
		}
		if len(b) > 0 && b[0].base == t.base {
			y, b = b[0].factors, b[1:]
		}
		if len(a) > 0 && a[0].base == t.base {
			a = a[1:]
		}
		if t.factors = combine(x, y); t.factors != zero {
			out = append(out, t)
		}
	}
	return out
}

// join returns a value that may be either of the two.
func join(a, b value) value {
	switch {
	case !a.set:
		return b
	case !b.set:
		return a
	case a.same(b):
		return a
	}
	v := value{number: a.number | b.number, null: a.null || b.null, set: true}
	if a.known && b.known && a.offset == b.offset {
		v.known, v.offset = true, a.offset
	}
	if slices.Equal(a.terms, b.terms) {
		v.terms = a.terms
	} else {
		v.terms = merge(a.terms, b.terms, func(x, y factors) factors { return x | y })
	}
	return v
}

func (a value) same(b value) bool {
	return a.set == b.set && a.number == b.number && a.null == b.null && a.known == b.known && a.offset == b.offset && slices.Equal(a.terms, b.terms)
}

// plain returns the origins of a value as a number. The constant 0 becomes a number as soon as something is computed with it.
func (a value) plain() origins {
	if a.null {
		return a.number | fromInteger
	}
	return a.number
}

func add(a, b value) value {
	if !a.set || !b.set {
		return value{}
	}
	v := value{set: true, known: a.known && b.known}
	if v.known {
		v.offset = a.offset + b.offset
	}
	if x, y := a.plain(), b.plain(); x != 0 && y != 0 {
		v.number = x | y
		if v.known && v.offset == 0 && len(a.terms) == 0 && len(b.terms) == 0 {
			return constant(0)
		}
	}
	cancelled := false
	switch {
	case len(b.terms) == 0:
		v.terms = a.terms
	case len(a.terms) == 0:
		v.terms = b.terms
	default:
		v.terms = merge(a.terms, b.terms, func(x, y factors) factors {
			if x&plus != 0 && y&minus != 0 || x&minus != 0 && y&plus != 0 || x&other != 0 && y&^zero != 0 || y&other != 0 && x&^zero != 0 {
				cancelled = true
			}
			return sum(x, y)
		})
	}
	if cancelled && !slices.ContainsFunc(v.terms, func(t term) bool { return t.factors&zero == 0 && t.factors&other == 0 }) {
		v.number |= fromInteger
	}
	return v
}

// sum adds every factor of one set to every factor of the other.
func sum(x, y factors) (s factors) {
	if x&zero != 0 {
		s |= y
	}
	if y&zero != 0 {
		s |= x
	}
	if x&plus != 0 && y&minus != 0 || x&minus != 0 && y&plus != 0 {
		s |= zero
	}
	if x&plus != 0 && y&plus != 0 || x&minus != 0 && y&minus != 0 || x&other != 0 && y != zero || y&other != 0 && x != zero {
		s |= other
	}
	return s
}

func negate(a value) value {
	v := a
	v.offset = -a.offset
	v.null = false
	if a.null {
		v.number |= fromInteger
	}
	v.terms = nil
	for _, t := range a.terms {
		f := t.factors & (zero | other)
		if t.factors&plus != 0 {
			f |= minus
		}
		if t.factors&minus != 0 {
			f |= plus
		}
		v.terms = append(v.terms, term{t.base, f})
	}
	return v
}

func multiply(a, b value) value {
	switch {
	case !a.set || !b.set:
		return value{}
	case b.isConstant() && b.offset == 1:
		return a
	case a.isConstant() && a.offset == 1:
		return b
	case b.isConstant() && b.offset == -1:
		return negate(a)
	case a.isConstant() && a.offset == -1:
		return negate(b)
	}
	v := derive(a, b)
	if a.isConstant() && b.isConstant() {
		return constant(a.offset * b.offset)
	}
	return v
}

func (a value) isConstant() bool { return a.set && a.known && len(a.terms) == 0 }

// derive returns the result of arithmetic after which no address is complete: it may contain parts of all bases.
func derive(values ...value) value {
	v := value{set: true}
	for _, a := range values {
		if !a.set {
			return value{}
		}
		v.number |= a.plain()
		v.terms = merge(v.terms, a.terms, func(x, y factors) factors {
			if f := (x | y) & (plus | minus | other); f == 0 {
				return zero
			}
			return other | (x|y)&zero
		})
	}
	if v.number == 0 {
		v.number = fromInteger
	}
	return v
}
