// Tests of the numbers that the names of nodes have.

package placement

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNumbersInNames(t *testing.T) {
	for name, want := range map[string][2]int64{
		"": {-1, -1}, "a": {-1, -1}, "7": {-1, 7}, "a0": {-1, 0}, "a0b9": {0, 9}, "x10_20": {10, 20}, "1,2,3": {2, 3}, "12a": {-1, 12}, "a/0:b": {-1, 0}, "99999999999999999999 1": {1 << 40, 1},
	} {
		first, second := numbersIn(name)
		require.Equal(t, want, [2]int64{first, second}, name)
	}
}
