// Columns of numbers in the page: packed into text, so that a browser reads a large page quickly.

package picture

import (
	"encoding/base64"
	"encoding/binary"
	"math"
)

// column is a list of integers, one for each node, edge or wait. Most are close to the one before, or equal to it.
type column[T ~int32 | ~int64] []T

// MarshalJSON writes a string, which unpack in page.js reads: in base64, how many numbers there are, and then the difference of each to
// the one before, as signed variable-length integers. The difference 0 is followed by how often it occurs in a row.
func (c column[T]) MarshalJSON() ([]byte, error) {
	raw := binary.AppendUvarint(nil, uint64(len(c)))
	before := T(0)
	for k := 0; k < len(c); {
		if c[k] != before {
			raw = binary.AppendVarint(raw, int64(c[k])-int64(before))
			before = c[k]
			k++
			continue
		}
		again := k
		for again < len(c) && c[again] == before {
			again++
		}
		raw = binary.AppendVarint(raw, 0)
		raw = binary.AppendUvarint(raw, uint64(again-k))
		k = again
	}
	text := make([]byte, 0, base64.StdEncoding.EncodedLen(len(raw))+2)
	text = append(text, '"')
	text = base64.StdEncoding.AppendEncode(text, raw)
	return append(text, '"'), nil
}

// times is a column of microseconds, kept in nanoseconds: measurements are not more precise.
type times []float64

func (t times) MarshalJSON() ([]byte, error) {
	ns := make(column[int64], len(t))
	for k, us := range t {
		ns[k] = int64(math.Round(us * 1e3))
	}
	return ns.MarshalJSON()
}
