// Tests of sizes, counts, widths and the escaping of text that would control a terminal.

package words

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 bytes", 1: "1 byte", 1023: "1023 bytes", 1024: "1 KiB", 1536: "1.5 KiB", 120_000: "117.19 KiB", 8 << 20: "8 MiB",
		1<<20 - 1: "1 MiB", 10 << 20: "10 MiB", 100 << 30: "100 GiB", 3 << 40: "3 TiB", 1 << 50: "1 PiB", 1<<63 - 1: "8 EiB",
	} {
		require.Equal(t, want, Bytes(n))
	}
}

func TestWidth(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "plain": 5, "blür": 4, "e\u0301": 1, "漢字": 4, "ｆｕｌｌ": 8, "한글": 4, "\u1112\u1161\u11ab": 2, "👍": 2, "a\u200db": 2, "★": 1,
	} {
		require.Equal(t, want, Width(text), "%q", text)
	}
	require.Equal(t, "漢", Cut("漢字", 3))
	require.Equal(t, "e\u0301", Cut("e\u0301x", 1))
	require.Equal(t, "all", Cut("all", 9))
	require.Equal(t, "字  ", Pad("字", 4))
	require.Equal(t, "字", Pad("字", 1))
}

func TestSafe(t *testing.T) {
	for text, want := range map[string]string{
		"blür 漢字 👍\tx\n": "blür 漢字 👍\tx\n",
		"\x1b[31mred":    `\x1b[31mred`,
		"a\rb\x00\x7f":   `a\rb\x00\u007f`,
		"\u009b31m":      `\u009b31m`,
		"\x9b31m":        `\x9b31m`,
		"exe.\u202efdp":  `exe.\u202efdp`,
		"\u2066x\u2069":  `\u2066x\u2069`,
		"\U000e0041":     `\udb40\udc41`,
		"\ufffd":         "\ufffd",
	} {
		require.Equal(t, want, Safe(text))
	}
	require.Equal(t, `two\nlines\t.`, Line("two\nlines\t."))
}

// Safe does not change the meaning of a JSON document.
func TestSafeKeepsJSON(t *testing.T) {
	name := "\x1b[2J\u202e\u009b\u007f\U000e0041\u2028"
	text, err := json.Marshal(name)
	require.NoError(t, err)
	var back string
	require.NoError(t, json.Unmarshal([]byte(Safe(string(text))), &back))
	require.Equal(t, name, back)
}

// The output does not depend on how a text is split into writes.
func TestWriterInPieces(t *testing.T) {
	text := "ab\x1b[1m漢字\u202e👍\xff\xe6\xbc end\xf0\x9f"
	for size := 1; size <= len(text); size++ {
		var b bytes.Buffer
		w := NewWriter(&b)
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			_, err := w.Write([]byte(rest[:n]))
			require.NoError(t, err)
			rest = rest[n:]
		}
		require.NoError(t, w.Flush())
		require.Equal(t, Safe(text), b.String(), "in pieces of %d", size)
	}
	require.False(t, strings.ContainsRune(Safe(text), '\x1b'))
}

func TestWriteTrusted(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b)
	_, err := w.Write([]byte("\x1b\xe6"))
	require.NoError(t, err)
	require.NoError(t, w.WriteTrusted("\x1b[1mbold\x1b[0m"))
	require.Equal(t, "\\x1b\\xe6\x1b[1mbold\x1b[0m", b.String())
}

func TestList(t *testing.T) {
	for want, list := range map[string][]string{"": nil, "a": {"a"}, "a or b": {"a", "b"}, "a, b or c": {"a", "b", "c"}} {
		require.Equal(t, want, List(list, "or"))
	}
}
