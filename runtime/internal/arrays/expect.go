// Expectations: compares a buffer's contents with what its declaration expects.

package arrays

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"strings"

	"github.com/dagrun/dagrun/dag"
)

// CheckExpect compares a buffer's contents with its expectation. An expected file is read into scratch, which must have its size.
func (a Files) CheckExpect(ctx context.Context, b *dag.Buffer, memory, scratch []byte) (Check, error) {
	e := b.Expect
	declared := b
	b = asNumbers(b)
	c := Check{Buffer: b.Name, Elements: count(b.Shape), RTol: e.RTol, ATol: e.ATol, complex: declared.DType.Complex()}
	JudgeBy(&c, e)
	switch e.Kind {
	case dag.ExpectSum:
		return checkSum(b, memory), nil
	case dag.ExpectFile:
		want := scratch[:b.Bytes]
		if err := a.read(ctx, e.File, declared.DType, declared.Shape, want); err != nil {
			return Check{}, fmt.Errorf("buffer %q: expect: %w", b.Name, err)
		}
		c.Against = e.File
		err := CompareWith(ctx, &c, b, memory, want)
		if !c.OK && a.outside(InDir(a.Dir, e.File)) {
			c.withhold()
		}
		return c, err
	case dag.ExpectExpr:
		value, err := e.Expr.Compile("i")
		if err != nil {
			return Check{}, fmt.Errorf("buffer %q: expect: %w", b.Name, err)
		}
		c.Against = "expr " + e.Expr.Text
		at := func(i int64, err error) error {
			if err != nil {
				err = fmt.Errorf("buffer %q: expect: element %d: %w", b.Name, i, err)
			}
			return err
		}
		if b.DType.Float() {
			return c, c.compareFloats(ctx, b, memory, func(i int64) (float64, error) {
				v, err := value.Float(i)
				return v, at(i, err)
			})
		}
		return c, c.compareIntegers(ctx, b, memory, func(i int64) (wantedInteger, error) {
			v, err := value.Value(i)
			return wantedValue(v), at(i, err)
		})
	}
	c.Against = "value " + formatComponents(e.Value, e.Values)
	values := components(declared.DType, e.Value, e.Values)
	n := int64(len(values))
	if b.DType.Float() {
		want := make([]float64, n)
		for k := range values {
			want[k] = values[k].Float()
		}
		return c, c.compareFloats(ctx, b, memory, func(i int64) (float64, error) { return want[i%n], nil })
	}
	want := make([]wantedInteger, n)
	for k := range values {
		want[k] = wantedValue(values[k])
	}
	return c, c.compareIntegers(ctx, b, memory, func(i int64) (wantedInteger, error) { return want[i%n], nil })
}

// withhold leaves out of a check that failed what tells the contents of the expected file, differences included.
func (c *Check) withhold() {
	if c.First, _, _ = strings.Cut(c.First, ", want "); c.Norm != "" {
		c.First = fmt.Sprintf("the %s norm of the difference is too large", c.Norm)
	} else {
		c.First += ", and the file has another value"
	}
	c.Worst, c.Distance, c.WantNorm = math.NaN(), 0, 0
}

// JudgeBy takes from an expectation how differences are judged, apart from the tolerances.
func JudgeBy(c *Check, e *dag.Expect) {
	if c.Allowed = e.Differing; e.Norm != dag.NoNorm {
		c.Norm = e.Norm.String()
	}
}

// CompareWith checks every element against one of the same type in other memory.
func CompareWith(ctx context.Context, c *Check, b *dag.Buffer, memory, want []byte) error {
	t := b.DType
	if t.Float() {
		return c.compareFloats(ctx, b, memory, func(i int64) (float64, error) { return t.ToFloat(t.Load(want, i)), nil })
	}
	return c.compareIntegers(ctx, b, memory, func(i int64) (wantedInteger, error) {
		return wantedInteger{isInteger: true, integer: integerElement(t, t.Load(want, i))}, nil
	})
}

// compareFloats checks every element of a floating-point type against want, which several goroutines call. Infinities of one sign are equal,
// and so are NaNs.
func (c *Check) compareFloats(ctx context.Context, b *dag.Buffer, memory []byte, want func(i int64) (float64, error)) error {
	if c.Norm != "" {
		return c.compareNorm(ctx, floatElement(b, memory, want))
	}
	scale := want
	if c.complex {
		scale = magnitudes(want)
	}
	return c.compare(ctx, func(part *Check, lo, hi int64) error { return part.compareFloatRange(b, memory, lo, hi, want, scale) })
}

// compareIntegers checks every element of an integer type against want, which several goroutines call. Nothing is rounded.
func (c *Check) compareIntegers(ctx context.Context, b *dag.Buffer, memory []byte, want func(i int64) (wantedInteger, error)) error {
	if c.Norm != "" {
		return c.compareNorm(ctx, integerElementOf(b, memory, want))
	}
	return c.compare(ctx, func(part *Check, lo, hi int64) error { return part.compareIntegerRange(b, memory, lo, hi, want) })
}

// compare checks ranges of elements on several goroutines and adds up what they find, the first wrong element first.
func (c *Check) compare(ctx context.Context, compareRange func(part *Check, lo, hi int64) error) error {
	parts := make([]Check, (c.Elements+elementsAtOnce-1)/elementsAtOnce)
	failed := make([]error, len(parts))
	err := inParallel(ctx, c.Elements, func(lo, hi int64) error {
		k := lo / elementsAtOnce
		parts[k].RTol, parts[k].ATol = c.RTol, c.ATol
		failed[k] = compareRange(&parts[k], lo, hi)
		return nil
	})
	for k := range parts {
		if c.Wrong == 0 {
			c.First = parts[k].First
		}
		c.Wrong += parts[k].Wrong
		c.Worst = max(c.Worst, parts[k].Worst)
		if err == nil {
			err = failed[k]
		}
	}
	c.OK = c.Wrong <= c.Allowed
	return err
}

func (c *Check) compareIntegerRange(b *dag.Buffer, memory []byte, lo, hi int64, expected func(i int64) (wantedInteger, error)) error {
	for i := lo; i < hi; i++ {
		element := b.DType.Load(memory, i)
		got := integerElement(b.DType, element)
		want, err := expected(i)
		if err != nil {
			return err
		}
		if want.isInteger {
			if got == want.integer {
				continue
			}
			exact, float := got.distance(want.integer)
			c.Worst = max(c.Worst, float)
			if within(exact, float, c.ATol+c.RTol*float64(want.integer.magnitude)) {
				continue
			}
		} else if distance, ok := want.distance(got); ok {
			c.Worst = max(c.Worst, distance)
			if distance <= c.ATol+c.RTol*math.Abs(want.other.Float()) {
				continue
			}
		}
		if c.Wrong == 0 {
			text := want.integer.big().String()
			if !want.isInteger {
				text = formatValue(want.other)
			}
			c.First = fmt.Sprintf("element %s is %s, want %s", indexText(i, b.Shape), got.big(), text)
		}
		c.Wrong++
	}
	return nil
}

func (c *Check) compareFloatRange(b *dag.Buffer, memory []byte, lo, hi int64, expected, scale func(i int64) (float64, error)) error {
	for i := lo; i < hi; i++ {
		got := b.DType.ToFloat(b.DType.Load(memory, i))
		want, err := expected(i)
		if err != nil {
			return err
		}
		if got == want || got != got && want != want {
			continue
		}
		diff := math.Abs(got - want)
		if diff <= math.MaxFloat64 {
			c.Worst = max(c.Worst, diff)
			size, err := scale(i)
			if err != nil {
				return err
			}
			if diff <= c.ATol+c.RTol*math.Abs(size) {
				continue
			}
		}
		if c.Wrong == 0 {
			is, should := formatDifferent(got, want)
			c.First = fmt.Sprintf("element %s is %s, want %s", indexText(i, b.Shape), is, should)
		}
		c.Wrong++
	}
	return nil
}

// checkSum compares the sum of a buffer's elements. Integers are added exactly.
func checkSum(b *dag.Buffer, memory []byte) Check {
	e := b.Expect
	c := Check{Buffer: b.Name, Elements: count(b.Shape), Against: "sum " + formatValue(e.Value), RTol: e.RTol, ATol: e.ATol}
	want := e.Value.Float()
	var is, should string
	if exact := ratio(e.Value); !b.DType.Float() && exact != nil {
		var sum integerSum
		for i := range c.Elements {
			sum.add(integerElement(b.DType, b.DType.Load(memory, i)))
		}
		total := sum.big()
		difference := new(big.Rat).SetInt(total)
		difference.Abs(difference.Sub(difference, exact))
		c.Worst, _ = difference.Float64()
		c.OK = difference.Sign() == 0 || c.Worst <= e.ATol+e.RTol*math.Abs(want)
		is, should = total.String(), formatValue(e.Value)
	} else {
		sum := sumFloats(b, memory)
		if c.OK = sum == want || math.IsNaN(sum) && math.IsNaN(want); !c.OK { // the difference of equal infinities is NaN
			c.Worst = math.Abs(sum - want)
			c.OK = c.Worst <= e.ATol+e.RTol*math.Abs(want)
		}
		is, should = formatDifferent(sum, want)
	}
	if !c.OK {
		c.Wrong = 1
		c.First = fmt.Sprintf("the sum is %s, want %s", is, should)
	}
	return c
}

// sumFloats adds in float64 with compensation, so that the order of elements does not matter to the tolerance.
func sumFloats(b *dag.Buffer, memory []byte) float64 {
	var sum, lost float64
	for i := range count(b.Shape) {
		v := b.DType.ToFloat(b.DType.Load(memory, i))
		t := sum + v
		if math.Abs(sum) >= math.Abs(v) {
			lost += (sum - t) + v
		} else {
			lost += (v - t) + sum
		}
		sum = t
	}
	if math.IsInf(sum, 0) || math.IsNaN(sum) {
		return sum // the compensation is NaN
	}
	return sum + lost
}
