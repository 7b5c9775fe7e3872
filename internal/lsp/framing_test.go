// Framing: what is read of good, bad and hostile input.

package lsp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// readAll reads messages and framing errors up to the end, each as a line of text.
func readAll(t testing.TB, r *Reader) []string {
	t.Helper()
	var seen []string
	for {
		body, err := r.Read()
		var framing *FramingError
		switch {
		case errors.As(err, &framing):
			seen = append(seen, "wrong: "+framing.Problem)
		case err != nil:
			return append(seen, err.Error())
		default:
			seen = append(seen, string(body))
		}
	}
}

func TestRead(t *testing.T) {
	for _, c := range []struct {
		name, input string
		want        []string
	}{
		{"nothing", "", []string{"EOF"}},
		{"two messages", "Content-Length: 2\r\n\r\n{}Content-Length: 4\r\n\r\nnull", []string{"{}", "null", "EOF"}},
		{"other headers, any case, bare line feeds", "content-length:2\nContent-Type: application/vscode-jsonrpc; charset=utf-8\n\n{}", []string{"{}", "EOF"}},
		{"length in bytes", "Content-Length: 4\r\n\r\n\"é\"", []string{"\"é\"", "EOF"}},
		{"empty message", "Content-Length: 0\r\n\r\nContent-Length: 2\r\n\r\n{}", []string{"", "{}", "EOF"}},
		{"empty lines between", "\r\n\r\nContent-Length: 2\r\n\r\n{}\r\n", []string{"{}", "EOF"}},
		{"no length", "Content-Type: x\r\n\r\nContent-Length: 2\r\n\r\n{}", []string{"wrong: a message has no Content-Length", "{}", "EOF"}},
		{"no number", "Content-Length: two\r\n\r\n{}\nContent-Length: 2\r\n\r\n{}", []string{`wrong: Content-Length is "two", not a number of bytes`, "{}", "EOF"}},
		{"negative", "Content-Length: -2\r\n\r\nContent-Length: 2\r\n\r\n{}", []string{`wrong: Content-Length is "-2", not a number of bytes`, "{}", "EOF"}},
		{"with a sign", "Content-Length: +2\r\n\r\nContent-Length: 2\r\n\r\n{}", []string{`wrong: Content-Length is "+2", not a number of bytes`, "{}", "EOF"}},
		{"beyond 64 bits", "Content-Length: 99999999999999999999\r\n\r\nContent-Length: 2\r\n\r\n{}", []string{`wrong: Content-Length is "99999999999999999999", not a number of bytes`, "{}", "EOF"}},
		{"JSON without headers", "{\"id\": 1}\n{\"id\": 2}\nContent-Length: 2\r\n\r\n{}", []string{`wrong: expected a header, got "{\"id\": 1}"`, "{}", "EOF"}},
		{"length too small", "Content-Length: 1\r\n\r\n{}Content-Length: 2\r\n\r\n[]Content-Length: 2\r\n\r\n{}",
			[]string{"{", `wrong: expected a header, got "}Content-Length: 2"`, "[]", "{}", "EOF"}},
		{"length too large", "Content-Length: 90\r\n\r\n{}", []string{"unexpected EOF"}},
		{"over the limit", "Content-Length: 101\r\n\r\n" + strings.Repeat("x", 101) + "Content-Length: 2\r\n\r\n{}", []string{"wrong: a message of 101 bytes is over the limit of 100", "{}", "EOF"}},
		{"over the limit and cut", "Content-Length: 101\r\n\r\nxx", []string{"unexpected EOF"}},
		{"ends in a header", "Content-Len", []string{`wrong: expected a header, got "Content-Len"`, "EOF"}},
		{"ends behind a header", "Content-Length: 2\r\n", []string{"unexpected EOF"}},
		{"bytes that are not UTF-8", "\xa3\xa3\xa3Content-Length: 2\r\n\r\n{}", []string{`wrong: expected a header, got "\xa3\xa3\xa3Content-Length: 2"`, "{}", "EOF"}},
		{"a long line", strings.Repeat("x", 1<<20) + "Content-Length: 2\r\n\r\n{}", []string{`wrong: expected a header, got "` + strings.Repeat("x", 40) + `"`, "{}", "EOF"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := NewReader(strings.NewReader(c.input))
			r.most = 100
			require.Equal(t, c.want, readAll(t, r))
		})
	}
}

// A length that is a lie takes no more memory than there are bytes.
func TestReadBelievesNoLength(t *testing.T) {
	r := NewReader(strings.NewReader(fmt.Sprintf("Content-Length: %d\r\n\r\nxx", MaxMessage)))
	allocated := testing.AllocsPerRun(1, func() { _, _ = r.Read() })
	require.Less(t, allocated, 100.0)
	body, err := NewReader(strings.NewReader(fmt.Sprintf("Content-Length: %d\r\n\r\n%s", 5<<20, strings.Repeat("y", 5<<20)))).Read()
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("y", 5<<20), string(body))
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("Content-Length: 2\r\n\r\n{}"), []byte("[1]"))
	f.Add([]byte("Content-Length: 1\r\n\r\n{}Content-Length: 2\r\n\r\n{}"), []byte("{}"))
	f.Add([]byte("\r\nX: y\nContent-Length: -1\r\n\r\n"), []byte(""))
	f.Add(bytes.Repeat([]byte("a"), 5000), []byte("null"))
	f.Fuzz(func(t *testing.T, garbage, message []byte) {
		r := NewReader(bytes.NewReader(garbage))
		r.most = 1 << 16
		for calls := 0; ; calls++ {
			body, err := r.Read()
			require.LessOrEqual(t, len(body), len(garbage))
			var framing *FramingError
			if err == io.EOF || err == io.ErrUnexpectedEOF {
				break
			}
			require.True(t, err == nil || errors.As(err, &framing), "%v", err)
			require.LessOrEqual(t, calls, len(garbage), "each call takes some of the input")
		}
		// What is written is read.
		var out bytes.Buffer
		w := NewWriter(&out)
		require.NoError(t, w.Write(message))
		require.NoError(t, w.Write(garbage))
		r = NewReader(&out)
		for _, want := range [][]byte{message, garbage} {
			body, err := r.Read()
			require.NoError(t, err)
			require.True(t, bytes.Equal(want, body))
		}
	})
}
