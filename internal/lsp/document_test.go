// Documents: positions in UTF-16 and edits, compared with a plain model.

package lsp

import (
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestPositions(t *testing.T) {
	text := NewText([]byte("ab\r\né𝛼x\rlast\n"))
	require.Equal(t, 4, text.Lines())
	for _, c := range []struct {
		at   int
		want Position
	}{{0, Position{0, 0}}, {2, Position{0, 2}}, {4, Position{1, 0}}, {6, Position{1, 1}}, {10, Position{1, 3}}, {11, Position{1, 4}}, {12, Position{2, 0}}, {17, Position{3, 0}}} {
		require.Equal(t, c.want, text.Position(c.at), c.at)
		require.Equal(t, c.at, text.Offset(c.want), c.at)
	}
	require.Equal(t, 2, text.Offset(Position{0, 99}), "behind the end of a line")
	require.Equal(t, 17, text.Offset(Position{99, 0}), "behind the end of the text")
	require.Equal(t, 6, text.Offset(Position{1, 2}), "within a character")
	require.Equal(t, 0, text.Offset(Position{-1, -1}))
	require.Equal(t, Range{Position{0, 0}, Position{3, 0}}, text.All())
	require.Equal(t, Position{0, 0}, NewText(nil).Position(7))
}

// Edits of a text do what the same edits do to its UTF-16 code units.
func TestApplyIsAnEditOfUTF16(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "é", "𝛼", "\n", "\r\n", "\uffff", "bc"}), 0, 30)
		model := strings.Join(pieces.Draw(t, "text"), "")
		text := NewText([]byte(model))
		for range rapid.IntRange(1, 4).Draw(t, "edits") {
			units := utf16.Encode([]rune(model))
			// Places between characters, where an editor's cursor can be.
			var places []int
			var positions []Position
			var at Position
			for k := 0; k <= len(units); k++ {
				inside := k > 0 && k < len(units) && (utf16.IsSurrogate(rune(units[k-1])) && units[k] >= 0xdc00 && units[k] < 0xe000 || units[k-1] == '\r' && units[k] == '\n')
				if !inside {
					places, positions = append(places, k), append(positions, at)
				}
				if k < len(units) {
					if at.Character++; units[k] == '\n' {
						at = Position{at.Line + 1, 0}
					}
				}
			}
			from := rapid.IntRange(0, len(places)-1).Draw(t, "from")
			to := rapid.IntRange(from, len(places)-1).Draw(t, "to")
			insert := strings.Join(pieces.Draw(t, "insert"), "")
			edited, err := text.Apply([]Change{{Range: &Range{positions[from], positions[to]}, Text: insert}})
			require.NoError(t, err)
			model = string(utf16.Decode(units[:places[from]])) + insert + string(utf16.Decode(units[places[to]:]))
			require.Equal(t, model, string(edited.Source))
			text = edited
		}
	})
}

func TestApplyRefusesARangeThatEndsBeforeItBegins(t *testing.T) {
	_, err := NewText([]byte("a\nb\n")).Apply([]Change{{Range: &Range{Position{1, 0}, Position{0, 0}}}})
	require.EqualError(t, err, "a change ends on line 0 before it begins on line 1")
}
