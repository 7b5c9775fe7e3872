// Tests of sizes.

package flags

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{"4GiB": 4 << 30, "1.5 MiB": 3 << 19, "512MB": 512e6, "1e6": 1e6, "77": 77, "8B": 8} {
		got, err := ParseSize(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "lots", "-1", "0", "1e99", "4 GIB", "NaN", "inf"} {
		_, err := ParseSize(text)
		require.EqualError(t, err, "want a size such as 4GiB, 512MiB or 1000000", text)
	}
}
