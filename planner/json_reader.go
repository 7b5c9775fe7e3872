// A JSON reader that knows where it is: values are pulled by someone who knows what must come, so nothing nests deeper than
// the form, and each error has a line, a column and a path. Knows nothing of plans.

package planner

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// FileError is what is wrong in the file of a plan, a machine or a profile, and where.
type FileError struct {
	Line, Column int    // from 1; columns count characters
	Path         string // such as "streams[1].ops[3].node"; empty at the top
	Problem      string
	Err          error // ErrPlanShape, ErrOtherGraph, ErrBadMachine or ErrBadProfile
}

func (e *FileError) Error() string {
	where := fmt.Sprintf("%d:%d: ", e.Line, e.Column)
	if e.Path != "" {
		where += e.Path + ": "
	}
	return where + e.Problem
}

func (e *FileError) Unwrap() error { return e.Err }

// maxNameBytes is how long a name in a file may be.
const maxNameBytes = 4096

// readLimited reads a whole file, up to so many bytes.
func readLimited(r io.Reader, what string, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s: larger than %d bytes", what, limit)
	}
	return data, nil
}

// jsonReader reads one document. After an error every call does nothing and returns zeros.
type jsonReader struct {
	data []byte
	kind error // what errors wrap
	at   int
	path []pathStep
	err  *FileError
	text []byte // of the last string, where it had escapes
}

// pathStep is a key, or an index where key is empty.
type pathStep struct {
	key   string
	index int
}

func (r *jsonReader) failAt(at int, kind error, format string, args ...any) {
	if r.err != nil {
		return
	}
	at = min(at, len(r.data))
	before := r.data[:at]
	line := 1 + strings.Count(string(before), "\n")
	column := 1 + utf8.RuneCount(before[1+strings.LastIndexByte(string(before), '\n'):])
	r.err = &FileError{line, column, r.where(), fmt.Sprintf(format, args...), kind}
}

func (r *jsonReader) fail(format string, args ...any) {
	r.failAt(r.at, r.kind, format, args...)
}

func (r *jsonReader) where() string {
	var b strings.Builder
	for _, s := range r.path {
		switch {
		case s.key == "":
			fmt.Fprintf(&b, "[%d]", s.index)
		case b.Len() > 0:
			b.WriteString("." + s.key)
		default:
			b.WriteString(s.key)
		}
	}
	return b.String()
}

// peek skips white space and returns the next byte, 0 at the end.
func (r *jsonReader) peek() byte {
	for r.err == nil && r.at < len(r.data) {
		switch c := r.data[r.at]; c {
		case ' ', '\n', '\r', '\t':
			r.at++
		default:
			return c
		}
	}
	return 0
}

// found says what stands at the next byte, for messages.
func (r *jsonReader) found() string {
	switch c := r.peek(); {
	case c == 0 && r.at >= len(r.data):
		return "the end of the file"
	case c == '"':
		return "a string"
	case c == '{':
		return "an object"
	case c == '[':
		return "a list"
	case c == '-' || c >= '0' && c <= '9':
		return "a number"
	default:
		x, _ := utf8.DecodeRune(r.data[r.at:])
		return strconv.QuoteRune(x)
	}
}

// take reads one punctuation mark.
func (r *jsonReader) take(c byte) bool {
	if r.peek() != c || r.err != nil {
		r.fail("expected '%c', found %s", c, r.found())
		return false
	}
	r.at++
	return true
}

// end is called after the document.
func (r *jsonReader) end() {
	if r.peek() != 0 || r.at < len(r.data) {
		r.fail("the file goes on after its end")
	}
}

// object reads an object that has exactly the given keys, in any order, and calls value for each with the reader before it.
func (r *jsonReader) object(keys []string, optional int, value func(key int)) {
	if c := r.peek(); c != '{' {
		r.fail("expected an object, found %s", r.found())
		return
	}
	start := r.at
	r.at++
	var seen uint64
	for first := true; r.err == nil; first = false {
		if r.peek() == '}' && first {
			break
		}
		r.peek()
		at := r.at
		name := r.string()
		if r.err != nil {
			return
		}
		key := slices.Index(keys, name)
		switch {
		case key < 0:
			r.failAt(at, r.kind, "unknown key %q; the keys are %s", clip(name), strings.Join(keys, ", "))
			return
		case seen>>key&1 != 0:
			r.failAt(at, r.kind, "key %q is there twice", name)
			return
		}
		seen |= 1 << key
		if !r.take(':') {
			return
		}
		r.path = append(r.path, pathStep{key: keys[key]})
		r.peek()
		value(key)
		if r.err != nil {
			return
		}
		r.path = r.path[:len(r.path)-1]
		if r.peek() != ',' {
			break
		}
		r.at++
	}
	if !r.take('}') {
		return
	}
	for k, key := range keys[:len(keys)-optional] {
		if seen>>k&1 == 0 {
			r.failAt(start, r.kind, "key %q is missing", key)
			return
		}
	}
}

// entries reads an object with keys of any name, none twice, and calls value for each with the reader before it.
func (r *jsonReader) entries(value func(name string)) {
	if c := r.peek(); c != '{' {
		r.fail("expected an object, found %s", r.found())
		return
	}
	r.at++
	if r.peek() == '}' {
		r.at++
		return
	}
	seen := map[string]bool{}
	for r.err == nil {
		r.peek()
		at := r.at
		name := r.string()
		if r.err == nil && seen[name] {
			r.failAt(at, r.kind, "key %q is there twice", clip(name))
		}
		seen[name] = true
		if r.err != nil || !r.take(':') {
			return
		}
		r.path = append(r.path, pathStep{key: clip(name)})
		r.peek()
		value(name)
		if r.err != nil {
			return
		}
		r.path = r.path[:len(r.path)-1]
		if r.peek() == ',' {
			r.at++
			continue
		}
		r.take('}')
		return
	}
}

// version reads the version of a form.
func (r *jsonReader) version(known int64) {
	at := r.at
	if v := r.int(math.MinInt64, math.MaxInt64); r.err == nil && v != known {
		r.failAt(at, r.kind, "this is version %d; only version %d can be read", v, known)
	}
}

// label reads a string that people gave or that names something.
func (r *jsonReader) label() string {
	at := r.at
	text := r.string()
	if len(text) > maxNameBytes {
		r.failAt(at, r.kind, "longer than %d bytes", maxNameBytes)
	}
	return text
}

// list reads a list and calls entry for each of its values with the reader before it.
func (r *jsonReader) list(entry func(index int)) {
	if c := r.peek(); c != '[' {
		r.fail("expected a list, found %s", r.found())
		return
	}
	r.at++
	if r.peek() == ']' {
		r.at++
		return
	}
	r.path = append(r.path, pathStep{})
	for index := 0; r.err == nil; index++ {
		r.path[len(r.path)-1].index = index
		r.peek()
		entry(index)
		if r.err != nil {
			return
		}
		if r.peek() == ']' {
			r.at++
			r.path = r.path[:len(r.path)-1]
			return
		}
		if !r.take(',') {
			return
		}
	}
}

func (r *jsonReader) string() string { return string(r.bytes()) }

// bytes reads a string. The bytes are the reader's and hold until the next call.
func (r *jsonReader) bytes() []byte {
	if c := r.peek(); c != '"' {
		r.fail("expected a string, found %s", r.found())
		return nil
	}
	start := r.at + 1
	for i := start; i < len(r.data); i++ {
		switch c := r.data[i]; {
		case c == '"':
			text := r.data[start:i]
			if !utf8.Valid(text) {
				r.fail("the string is not valid UTF-8")
				return nil
			}
			r.at = i + 1
			return text
		case c == '\\':
			return r.escaped(start)
		case c < ' ':
			r.failAt(i, r.kind, "a control character must be escaped in a string")
			return nil
		}
	}
	r.fail("the string has no end")
	return nil
}

// escaped reads a string that has escapes, from after its opening quote.
func (r *jsonReader) escaped(start int) []byte {
	r.text = r.text[:0]
	for i := start; i < len(r.data); i++ {
		c := r.data[i]
		switch {
		case c == '"':
			if !utf8.Valid(r.text) {
				r.fail("the string is not valid UTF-8")
				return nil
			}
			r.at = i + 1
			return r.text
		case c < ' ':
			r.failAt(i, r.kind, "a control character must be escaped in a string")
			return nil
		case c != '\\':
			r.text = append(r.text, c)
			continue
		}
		i++
		if i >= len(r.data) {
			break
		}
		if k := strings.IndexByte(`"\/bfnrt`, r.data[i]); k >= 0 {
			r.text = append(r.text, "\"\\/\b\f\n\r\t"[k])
			continue
		}
		x, ok := r.unicode(i)
		if !ok {
			r.failAt(i-1, r.kind, "bad escape in a string")
			return nil
		}
		i += 4
		if utf16.IsSurrogate(x) {
			low, ok := rune(0), false
			if i+2 < len(r.data) && r.data[i+1] == '\\' {
				low, ok = r.unicode(i + 2)
			}
			if x = utf16.DecodeRune(x, low); !ok || x == utf8.RuneError {
				r.failAt(i-5, r.kind, "half a surrogate pair in a string")
				return nil
			}
			i += 6
		}
		r.text = utf8.AppendRune(r.text, x)
	}
	r.fail("the string has no end")
	return nil
}

// unicode reads uXXXX at i.
func (r *jsonReader) unicode(i int) (rune, bool) {
	if i+5 > len(r.data) || r.data[i] != 'u' {
		return 0, false
	}
	x, err := strconv.ParseUint(string(r.data[i+1:i+5]), 16, 16)
	return rune(x), err == nil
}

// number reads the text of a number.
func (r *jsonReader) number() string {
	if c := r.peek(); c != '-' && (c < '0' || c > '9') {
		r.fail("expected a number, found %s", r.found())
		return ""
	}
	start := r.at
	i := start
	digits := func() int {
		first := i
		for i < len(r.data) && r.data[i] >= '0' && r.data[i] <= '9' {
			i++
		}
		return i - first
	}
	if r.data[i] == '-' {
		i++
	}
	whole := i
	ok := digits() > 0 && (r.data[whole] != '0' || i == whole+1)
	if ok && i < len(r.data) && r.data[i] == '.' {
		i++
		ok = digits() > 0
	}
	if ok && i < len(r.data) && (r.data[i] == 'e' || r.data[i] == 'E') {
		if i++; i < len(r.data) && (r.data[i] == '+' || r.data[i] == '-') {
			i++
		}
		ok = digits() > 0
	}
	if !ok {
		r.fail("malformed number")
		return ""
	}
	r.at = i
	return string(r.data[start:i])
}

// int reads an integer from lo to hi.
func (r *jsonReader) int(lo, hi int64) int64 {
	r.peek()
	at := r.at
	text := r.number()
	if r.err != nil {
		return 0
	}
	v, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil && strings.ContainsAny(text, ".eE"):
		r.failAt(at, r.kind, "%s is not an integer", clip(text))
	case err != nil || v < lo || v > hi:
		r.failAt(at, r.kind, "%s is out of range: it must be from %d to %d", clip(text), lo, hi)
	}
	if r.err != nil {
		return 0
	}
	return v
}

// float reads a number from 0 to hi.
func (r *jsonReader) float(hi float64) float64 {
	r.peek()
	at := r.at
	text := r.number()
	if r.err != nil {
		return 0
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v < 0 || v > hi {
		r.failAt(at, r.kind, "%s is out of range: it must be from 0 to %g", clip(text), hi)
		return 0
	}
	return v
}

// bool reads true or false.
func (r *jsonReader) bool() bool {
	r.peek()
	for _, word := range []string{"true", "false"} {
		if strings.HasPrefix(string(r.data[r.at:min(len(r.data), r.at+len(word))]), word) {
			r.at += len(word)
			return word == "true"
		}
	}
	r.fail("expected true or false, found %s", r.found())
	return false
}

// skip reads a string or a number that is not wanted.
func (r *jsonReader) skip() {
	if r.peek() == '"' {
		r.bytes()
		return
	}
	r.number()
}

// choice reads one of the given strings.
func (r *jsonReader) choice(of ...string) int {
	r.peek()
	at := r.at
	text := r.string()
	k := slices.Index(of, text)
	if k < 0 {
		r.failAt(at, r.kind, "unknown %q; it must be one of %s", clip(text), strings.Join(of, ", "))
		return 0
	}
	return k
}

// clip shortens what others wrote for a message.
func clip(s string) string {
	const most = 80
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "…"
}
