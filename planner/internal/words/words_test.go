// Columns of text.

package words

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTextWidth(t *testing.T) {
	for text, want := range map[string]int{"": 0, "abc": 3, "é": 1, "e\u0301": 1, "日本": 4, "한글": 4, "ｆ": 2, "🚀": 2, "✅": 2, "→": 1, "Ω": 1, "\u200b": 0} {
		require.Equal(t, want, Width(text), "%q", text)
	}
}
