// A test of the patterns that sets of bytes write.

package engine

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPatternsShrinkToTheirPeriod(t *testing.T) {
	for _, c := range []struct {
		size       int64
		bits, want uint64
		width      int64
	}{
		{8, 0, 0, 1}, {8, 0x0101010101010101, 1, 1}, {8, 0x3ff0000000000000, 0x3ff0000000000000, 8}, {8, 0x1234567812345678, 0x12345678, 4},
		{4, 0x3f800000, 0x3f800000, 4}, {4, 0x12341234, 0x1234, 2}, {2, 0x3c00, 0x3c00, 2}, {1, 7, 7, 1},
	} {
		bits, width := Pattern(c.size, c.bits)
		require.Equal(t, c.want, bits, "%#x", c.bits)
		require.Equal(t, c.width, width, "%#x", c.bits)
	}
}
