// Tests of disjoint sets against the plain way: relabelling every member of one set.

package sets

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSetsAreThoseOfRelabelling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "n")
		s, label := New(n), make([]int32, n)
		for i := range label {
			label[i] = int32(i)
		}
		number := rapid.Int32Range(0, int32(n)-1)
		for range rapid.IntRange(0, 30).Draw(t, "joins") {
			a, b := number.Draw(t, "a"), number.Draw(t, "b")
			s.Join(a, b)
			low, high := min(label[a], label[b]), max(label[a], label[b])
			for i := range label {
				if label[i] == high {
					label[i] = low
				}
			}
			for i := range label {
				require.Equal(t, label[i], s.Least(int32(i)), "number %d", i)
			}
		}
	})
}
