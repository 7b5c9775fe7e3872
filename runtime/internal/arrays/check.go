// The outcome of checking a buffer, and how it writes elements.

package arrays

import (
	"strconv"
	"strings"

	"github.com/dagrun/dagrun/dag/expr"
)

// Check is the result of comparing one buffer.
type Check struct {
	Buffer   string  `json:"buffer"`
	OK       bool    `json:"ok"`
	Elements int64   `json:"elements"`        // numbers compared: an element of a vector or complex type has several
	Wrong    int64   `json:"wrong"`           // elements outside the tolerance
	First    string  `json:"first,omitempty"` // the first of them, for people
	Worst    float64 `json:"worst_error"`     // the largest finite |got-want|
	Against  string  `json:"against"`         // what it was compared with
	RTol     float64 `json:"rtol"`
	ATol     float64 `json:"atol"`
	Allowed  int64   `json:"differing_allowed,omitempty"` // so many elements may be outside the tolerance
	Norm     string  `json:"norm,omitempty"`              // l1, l2 or max if the difference is judged as a whole; Wrong is then 0 or 1
	Distance float64 `json:"distance,omitempty"`          // Norm: of the difference
	WantNorm float64 `json:"want_norm,omitempty"`         // Norm: of what is expected

	complex bool // elements are the parts of complex numbers
}

func formatFloat(v float64) string { return strconv.FormatFloat(v, 'g', 9, 64) }

// formatDifferent writes two numbers that differ, with all their digits if fewer would make them look the same.
func formatDifferent(a, b float64) (string, string) {
	if x, y := formatFloat(a), formatFloat(b); x != y {
		return x, y
	}
	return strconv.FormatFloat(a, 'g', -1, 64), strconv.FormatFloat(b, 'g', -1, 64)
}

// formatValue writes a declared number, integers with all their digits.
func formatValue(v expr.Value) string {
	if n, ok := v.Int(); ok && v.Kind() != expr.Float {
		return strconv.FormatInt(n, 10)
	}
	return formatFloat(v.Float())
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
