// Tests of the colours of streams.

package plan

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestColoursDiffer(t *testing.T) {
	seen := map[string]int{}
	for k := range 64 {
		for _, s := range []shade{light, dark} {
			c := colour(k, s)
			require.Regexp(t, `^#[0-9a-f]{6}$`, c)
			require.NotContains(t, seen, c)
			seen[c] = k
		}
	}
}
