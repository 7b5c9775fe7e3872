// Spans: which elements the slices x(i of k halo 1) and a(i of k)(j of k) divide a dimension into.

package expr

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
