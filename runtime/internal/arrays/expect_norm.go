// Expectations by norm: how large the difference is as a whole, compared with the expected contents as a whole.

package arrays

import (
	"context"
	"fmt"
	"math"

	"github.com/dagrun/dagrun/dag"
)

// normParts are the norms of a range of elements, and the element that differs most.
type normParts struct {
	difference, want vectorNorm
	worst            float64
	first            string // the element that differs most, for people
}

// vectorNorm adds up a norm. The l2 norm is kept as largest*sqrt(sum), so that squares neither overflow nor vanish.
type vectorNorm struct {
	norm         dag.Norm
	largest, sum float64
}

func (v *vectorNorm) add(x float64) {
	if x = math.Abs(x); x == 0 {
		return
	}
	v.merge(vectorNorm{v.norm, x, 1})
}

func (v *vectorNorm) merge(o vectorNorm) {
	switch {
	case v.norm == dag.NormL1:
		v.sum += o.largest * o.sum
		v.largest = 1
	case o.largest == 0:
	case math.IsInf(v.largest, 0) || math.IsInf(o.largest, 0):
		v.largest, v.sum = math.Inf(1), 1
	case v.norm == dag.NormMax:
		v.largest, v.sum = max(v.largest, o.largest), 1
	case o.largest > v.largest:
		ratio := v.largest / o.largest
		v.largest, v.sum = o.largest, v.sum*ratio*ratio+o.sum
	default:
		ratio := o.largest / v.largest
		v.sum += o.sum * ratio * ratio
	}
}

func (v *vectorNorm) value() float64 {
	if v.norm == dag.NormL2 {
		return v.largest * math.Sqrt(v.sum)
	}
	return v.largest * v.sum
}

// compareNorm compares by c.Norm. element returns what is there, what is expected, the difference, and both as text; equal infinities and
// two NaNs do not differ and are left out of the norms, and what is not finite on one side only fails.
func (c *Check) compareNorm(ctx context.Context, element func(i int64) (comparedElement, error)) error {
	norm, err := dag.ParseNorm(c.Norm)
	if err != nil {
		return err
	}
	whole := normParts{difference: vectorNorm{norm: norm}, want: vectorNorm{norm: norm}}
	parts := make([]normParts, (c.Elements+elementsAtOnce-1)/elementsAtOnce)
	failed := make([]error, len(parts))
	err = inParallel(ctx, c.Elements, func(lo, hi int64) error {
		part := &parts[lo/elementsAtOnce]
		*part = whole
		for i := lo; i < hi; i++ {
			e, err := element(i)
			if err != nil {
				failed[lo/elementsAtOnce] = err
				return nil
			}
			part.take(&e)
		}
		return nil
	})
	for k := range parts {
		if err == nil {
			err = failed[k]
		}
		whole.difference.merge(parts[k].difference)
		whole.want.merge(parts[k].want)
		if parts[k].worst > whole.worst {
			whole.worst, whole.first = parts[k].worst, parts[k].first
		}
	}
	c.Distance, c.WantNorm = whole.difference.value(), whole.want.value()
	if whole.worst <= math.MaxFloat64 {
		c.Worst = whole.worst
	}
	if c.OK = c.Distance <= c.ATol+c.RTol*c.WantNorm; !c.OK {
		c.Wrong, c.First = 1, fmt.Sprintf("the %s norm of the difference is %s, want at most %s; %s",
			c.Norm, formatFloat(c.Distance), formatFloat(c.ATol+c.RTol*c.WantNorm), whole.first)
	}
	return err
}

// comparedElement is one element and what is expected of it.
type comparedElement struct {
	difference float64 // infinite if only one side is finite
	want       float64
	text       func() string // says how they differ
}

func (p *normParts) take(e *comparedElement) {
	if !math.IsInf(e.want, 0) && e.want == e.want {
		p.want.add(e.want)
	}
	p.difference.add(e.difference)
	if d := math.Abs(e.difference); d > p.worst {
		p.worst, p.first = d, e.text()
	}
}

func floatElement(b *dag.Buffer, memory []byte, want func(i int64) (float64, error)) func(i int64) (comparedElement, error) {
	return func(i int64) (comparedElement, error) {
		got := b.DType.ToFloat(b.DType.Load(memory, i))
		wanted, err := want(i)
		e := comparedElement{want: wanted}
		if err != nil || got == wanted || got != got && wanted != wanted {
			return e, err
		}
		if e.difference = math.Abs(got - wanted); e.difference != e.difference {
			e.difference = math.Inf(1)
		}
		e.text = func() string {
			is, should := formatDifferent(got, wanted)
			return mostDifferent(i, b.Shape, is, should)
		}
		return e, nil
	}
}

func integerElementOf(b *dag.Buffer, memory []byte, want func(i int64) (wantedInteger, error)) func(i int64) (comparedElement, error) {
	return func(i int64) (comparedElement, error) {
		got := integerElement(b.DType, b.DType.Load(memory, i))
		wanted, err := want(i)
		if err != nil {
			return comparedElement{}, err
		}
		if wanted.isInteger {
			e := comparedElement{want: float64(wanted.integer.magnitude)}
			_, e.difference = got.distance(wanted.integer)
			e.text = func() string { return mostDifferent(i, b.Shape, got.big().String(), wanted.integer.big().String()) }
			return e, nil
		}
		e := comparedElement{want: wanted.other.Float(), difference: math.Inf(1)}
		if distance, finite := wanted.distance(got); finite {
			e.difference = distance
		}
		e.text = func() string { return mostDifferent(i, b.Shape, got.big().String(), formatValue(wanted.other)) }
		return e, nil
	}
}

func mostDifferent(i int64, shape []int64, is, should string) string {
	return fmt.Sprintf("element %s differs most: it is %s, want %s", indexText(i, shape), is, should)
}
