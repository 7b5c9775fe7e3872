// Vectors and complex numbers as the numbers that they consist of: contents are made and compared number by number.

package arrays

import (
	"math"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/internal/words"
)

// asNumbers returns a buffer as the numbers that its elements consist of: those of vectors and complex numbers are along a last dimension.
func asNumbers(b *dag.Buffer) *dag.Buffer {
	n := b.DType.Components()
	if n == 1 {
		return b
	}
	numbers := *b
	numbers.DType, numbers.Shape = b.DType.Component(), append(slices.Clone(b.Shape), int64(n))
	return &numbers
}

// components returns the number that each component of an element has: those given, or the one value. One value of a complex number is
// its real part.
func components(t dag.DType, value expr.Value, given []expr.Value) []expr.Value {
	if given != nil {
		return given
	}
	all := slices.Repeat([]expr.Value{value}, t.Components())
	if t.Complex() {
		all[1] = expr.Int(0)
	}
	return all
}

// mostShown is how many numbers of a list a message shows.
const mostShown = 8

// formatComponents writes the value of an element, or the numbers of all if there are few.
func formatComponents(value expr.Value, given []expr.Value) string {
	if given == nil {
		return formatValue(value)
	}
	if len(given) > mostShown {
		return words.Count(len(given), "listed number", "listed numbers")
	}
	texts := make([]string, len(given))
	for k := range given {
		texts[k] = formatValue(given[k])
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// magnitudes turns what the parts of complex numbers should be into how large the numbers are: the relative tolerance of a part is that of
// its number, as elsewhere, because a part that should be 0 is seldom exactly that.
func magnitudes(want func(i int64) (float64, error)) func(i int64) (float64, error) {
	return func(i int64) (float64, error) {
		part, err := want(i)
		if err != nil {
			return 0, err
		}
		other, err := want(i ^ 1)
		if err != nil {
			return 0, err
		}
		return math.Hypot(part, other), nil
	}
}
