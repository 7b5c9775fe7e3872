// Expectations: whether a buffer holds what its declaration says. Compares; changes nothing.

package runtime

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/dagrun/dagrun/dag"
)

// Check is the result of comparing one buffer.
type Check struct {
	Buffer   string  `json:"buffer"`
	OK       bool    `json:"ok"`
	Elements int64   `json:"elements"`
	Wrong    int64   `json:"wrong"`           // elements out of tolerance
	First    string  `json:"first,omitempty"` // the first of them, for people
	Worst    float64 `json:"worst_error"`     // the largest finite |got-want|
	Against  string  `json:"against"`         // what it was compared with
	RTol     float64 `json:"rtol"`
	ATol     float64 `json:"atol"`
}

// checkExpect compares a buffer's contents with its expectation.
func checkExpect(ctx context.Context, dir string, b *dag.Buffer, memory []byte) (Check, error) {
	e := b.Expect
	c := Check{Buffer: b.Name, Elements: count(b.Shape), RTol: e.RTol, ATol: e.ATol}
	switch e.Kind {
	case dag.ExpectSum:
		return checkSum(b, memory), nil
	case dag.ExpectFile:
		want := make([]byte, b.Bytes)
		if err := readArray(inDir(dir, e.File), b.DType, b.Shape, want); err != nil {
			return Check{}, fmt.Errorf("buffer %q: expect: %w", b.Name, err)
		}
		c.Against = e.File
		return c, c.compare(ctx, b, memory, elementsOf(b, want))
	case dag.ExpectExpr:
		value, err := e.Expr.Compile("i")
		if err != nil {
			return Check{}, fmt.Errorf("buffer %q: expect: %w", b.Name, err)
		}
		c.Against = "expr " + e.Expr.Text
		return c, c.compare(ctx, b, memory, func(i int64) (float64, error) {
			v, err := value.Float(i)
			if err != nil {
				err = fmt.Errorf("buffer %q: expect: element %d: %w", b.Name, i, err)
			}
			return v, err
		})
	}
	c.Against = "value " + formatFloat(e.Value)
	return c, c.compare(ctx, b, memory, func(int64) (float64, error) { return e.Value, nil })
}

// elementsOf reads a buffer's elements from memory.
func elementsOf(b *dag.Buffer, memory []byte) func(i int64) (float64, error) {
	return func(i int64) (float64, error) { return b.DType.ToFloat(b.DType.Load(memory, i)), nil }
}

// compare checks every element against want, which several goroutines call, and adds to the check what it finds. Equal
// infinities are equal, and so are NaNs.
func (c *Check) compare(ctx context.Context, b *dag.Buffer, memory []byte, want func(i int64) (float64, error)) error {
	parts := make([]Check, (c.Elements+elementsAtOnce-1)/elementsAtOnce)
	failed := make([]error, len(parts))
	err := inParallel(ctx, c.Elements, func(lo, hi int64) error {
		k := lo / elementsAtOnce
		parts[k].RTol, parts[k].ATol = c.RTol, c.ATol
		failed[k] = parts[k].compareRange(b, memory, lo, hi, want)
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
	c.OK = c.Wrong == 0
	return err
}

func (c *Check) compareRange(b *dag.Buffer, memory []byte, lo, hi int64, expected func(i int64) (float64, error)) error {
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
			if diff <= c.ATol+c.RTol*math.Abs(want) {
				continue
			}
		}
		if c.Wrong == 0 {
			c.First = fmt.Sprintf("element %s is %s, want %s", indexText(i, b.Shape), formatFloat(got), formatFloat(want))
		}
		c.Wrong++
	}
	return nil
}

// checkSum adds in float64 with compensation, so that the order of elements does not matter to the tolerance.
func checkSum(b *dag.Buffer, memory []byte) Check {
	e := b.Expect
	var sum, lost float64
	n := count(b.Shape)
	for i := range n {
		v := b.DType.ToFloat(b.DType.Load(memory, i))
		t := sum + v
		if math.Abs(sum) >= math.Abs(v) {
			lost += (sum - t) + v
		} else {
			lost += (v - t) + sum
		}
		sum = t
	}
	sum += lost
	diff := math.Abs(sum - e.Value)
	c := Check{Buffer: b.Name, Elements: n, Against: "sum " + formatFloat(e.Value), RTol: e.RTol, ATol: e.ATol, Worst: diff}
	c.OK = diff <= e.ATol+e.RTol*math.Abs(e.Value)
	if !c.OK {
		c.Wrong = 1
		c.First = fmt.Sprintf("the sum is %s, want %s", formatFloat(sum), formatFloat(e.Value))
	}
	return c
}

// indexText prints a flat index as the indices of a shape: [3, 17].
func indexText(i int64, shape []int64) string {
	parts := make([]string, len(shape))
	for k := len(shape) - 1; k >= 0; k-- {
		parts[k] = strconv.FormatInt(i%shape[k], 10)
		i /= shape[k]
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func formatFloat(v float64) string { return strconv.FormatFloat(v, 'g', 9, 64) }

// inDir resolves a name of the pipeline file against the file's directory.
func inDir(dir, name string) string {
	if filepath.IsAbs(name) || dir == "" {
		return name
	}
	return filepath.Join(dir, name)
}
