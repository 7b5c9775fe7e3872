// Framing of the base protocol: each message has a header with its length. Knows nothing of JSON.

// Package lsp speaks the language server protocol: JSON-RPC 2.0 messages with a Content-Length header, the life of a session, and
// documents that an editor changes piece by piece. What a language means is the business of a [Session].
package lsp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
)

// MaxMessage is how large a message may be. Text can take up to six times its size in JSON, and pipeline files are much smaller than this.
const MaxMessage = 256 << 20

const (
	longestHeader = 4096 // bytes of one header line that are looked at
	lengthHeader  = "content-length:"
)

// FramingError is a message that could not be read. Reading can go on with the message after it.
type FramingError struct{ Problem string }

func (e *FramingError) Error() string { return e.Problem }

// Reader reads messages.
type Reader struct {
	in      *bufio.Reader
	most    int64
	pending int64 // the length of a message whose header has been read; -1: none
}

// NewReader returns a Reader of messages of at most MaxMessage bytes.
func NewReader(in io.Reader) *Reader {
	return &Reader{in: bufio.NewReader(in), most: MaxMessage, pending: -1}
}

// Read returns the next message. A *FramingError stands for what could not be read; the next call finds the message after it. At the
// end of the input the error is io.EOF, or io.ErrUnexpectedEOF within a message.
func (r *Reader) Read() ([]byte, error) {
	if r.pending < 0 {
		if err := r.header(); err != nil {
			return nil, err
		}
	}
	length := r.pending
	r.pending = -1
	if length > r.most {
		if _, err := io.CopyN(io.Discard, r.in, length); err != nil {
			return nil, unexpected(err)
		}
		return nil, &FramingError{fmt.Sprintf("a message of %d bytes is over the limit of %d", length, r.most)}
	}
	return r.body(length)
}

// body reads a message of a known length. A length is believed only as far as there are bytes: memory grows with what arrives.
func (r *Reader) body(length int64) ([]byte, error) {
	const step = 1 << 20
	body := make([]byte, 0, min(length, step))
	for int64(len(body)) < length {
		from := len(body)
		want := int(min(length-int64(from), max(step, int64(from))))
		body = append(body, make([]byte, want)...)
		if _, err := io.ReadFull(r.in, body[from:]); err != nil {
			return nil, unexpected(err)
		}
	}
	return body, nil
}

// header reads the lines in front of a message and sets pending. Lines that belong to no header are skipped up to the next line with a
// length, and reported once.
func (r *Reader) header() error {
	var wrong *FramingError
	fail := func(format string, args ...any) {
		if wrong == nil {
			wrong = &FramingError{fmt.Sprintf(format, args...)}
		}
	}
	length, begun := int64(-1), false
	for {
		line, err := r.line()
		switch {
		case err == io.EOF && wrong != nil:
			return wrong // the next call meets the end again
		case err == io.EOF && begun:
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		case line == "" && length >= 0:
			r.pending = length
			if wrong != nil {
				return wrong
			}
			return nil
		case line == "" && begun:
			fail("a message has no Content-Length")
			continue
		case line == "":
			continue
		}
		begun = true
		if at := strings.LastIndex(lower(line), lengthHeader); at >= 0 {
			if at > 0 { // behind what a wrong length left over
				fail("expected a header, got %.40q", line)
			}
			value := strings.TrimSpace(line[at+len(lengthHeader):])
			if length, err = parseLength(value); err != nil {
				fail("Content-Length is %.40q, not a number of bytes", value)
			}
			continue
		}
		if name, _, ok := strings.Cut(line, ":"); !ok || !isToken(name) {
			fail("expected a header, got %.40q", line)
			length = -1
		}
	}
}

// lower makes ASCII letters small and keeps every byte in its place; strings.ToLower replaces bytes that are not UTF-8 by longer ones.
func lower(line string) string {
	small := []byte(line)
	for k, c := range small {
		if 'A' <= c && c <= 'Z' {
			small[k] = c + 'a' - 'A'
		}
	}
	return string(small)
}

func parseLength(value string) (int64, error) {
	n, err := strconv.ParseUint(value, 10, 63)
	if err != nil || value[0] == '+' {
		return -1, errors.New("not a length")
	}
	return int64(n), nil
}

// isToken reports whether a header may have this name.
func isToken(name string) bool {
	for _, c := range []byte(name) {
		if c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return name != ""
}

// line reads a line without its end. Of a very long one it returns the end, where the next header may be.
func (r *Reader) line() (string, error) {
	var line []byte
	for {
		part, err := r.in.ReadSlice('\n')
		line = append(line, part...)
		if extra := len(line) - longestHeader; extra > 0 {
			line = append(line[:0], line[extra:]...)
		}
		switch {
		case err == nil:
			return strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r"), nil
		case errors.Is(err, bufio.ErrBufferFull):
		case err == io.EOF && len(line) > 0:
			return string(line), nil // the next call returns io.EOF
		default:
			return "", err
		}
	}
}

// unexpected marks an end of the input within a message.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Writer writes messages. It can be used by several goroutines.
type Writer struct {
	mu  sync.Mutex
	out io.Writer
}

// NewWriter returns a Writer.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// Write writes one message with its header.
func (w *Writer) Write(body []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	framed := append(fmt.Appendf(nil, "Content-Length: %d\r\n\r\n", len(body)), body...)
	_, err := w.out.Write(framed)
	return err
}
