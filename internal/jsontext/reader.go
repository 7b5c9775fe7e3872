// A JSON reader that tracks positions: the caller pulls the values that it expects, so that nothing nests deeper than the expected
// form, and each error has a line, a column and a path. Knows nothing about plans.

// Package jsontext reads JSON with positions and writes its values.
package jsontext

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

// FileError is a mistake in the file of a plan, a machine or a profile, with its place.
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

// MaxNameBytes is the longest name allowed in a file.
const MaxNameBytes = 4096

// ReadLimited reads a whole file of at most the given number of bytes.
func ReadLimited(r io.Reader, what string, limit int64) ([]byte, error) {
	if r == nil {
		return nil, fmt.Errorf("%s: there is no reader to read from", what)
	}
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s: larger than %d bytes", what, limit)
	}
	return data, nil
}

// Reader reads one document. After an error every call does nothing and returns zeros.
type Reader struct {
	Data []byte
	Kind error // the sentinel that errors wrap
	At   int
	Path []Step
	Err  *FileError
	text []byte // of the last string, where it had escapes
}

// Step is a key, or an index where key is empty.
type Step struct {
	Key   string
	index int
}

func (r *Reader) FailAt(at int, kind error, format string, args ...any) {
	if r.Err != nil {
		return
	}
	at = min(at, len(r.Data))
	before := r.Data[:at]
	line := 1 + strings.Count(string(before), "\n")
	column := 1 + utf8.RuneCount(before[1+strings.LastIndexByte(string(before), '\n'):])
	r.Err = &FileError{line, column, r.where(), fmt.Sprintf(format, args...), kind}
}

func (r *Reader) fail(format string, args ...any) {
	r.FailAt(r.At, r.Kind, format, args...)
}

func (r *Reader) where() string {
	var b strings.Builder
	for _, s := range r.Path {
		switch {
		case s.Key == "":
			fmt.Fprintf(&b, "[%d]", s.index)
		case b.Len() > 0:
			b.WriteString("." + s.Key)
		default:
			b.WriteString(s.Key)
		}
	}
	return b.String()
}

// Peek skips white space and returns the next byte, 0 at the end.
func (r *Reader) Peek() byte {
	for r.Err == nil && r.At < len(r.Data) {
		switch c := r.Data[r.At]; c {
		case ' ', '\n', '\r', '\t':
			r.At++
		default:
			return c
		}
	}
	return 0
}

// found describes the value at the next byte, for messages.
func (r *Reader) found() string {
	switch c := r.Peek(); {
	case c == 0 && r.At >= len(r.Data):
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
		x, _ := utf8.DecodeRune(r.Data[r.At:])
		return strconv.QuoteRune(x)
	}
}

// take reads one punctuation mark.
func (r *Reader) take(c byte) bool {
	if r.Peek() != c || r.Err != nil {
		r.fail("expected '%c', found %s", c, r.found())
		return false
	}
	r.At++
	return true
}

// End checks that nothing follows the document.
func (r *Reader) End() {
	if r.Peek() != 0 || r.At < len(r.Data) {
		r.fail("there is more text after the end")
	}
}

// Object reads an object that has exactly the given keys, in any order, and calls value for each with the reader before it.
func (r *Reader) Object(keys []string, optional int, value func(key int)) {
	if c := r.Peek(); c != '{' {
		r.fail("expected an object, found %s", r.found())
		return
	}
	start := r.At
	r.At++
	var seen uint64
	for first := true; r.Err == nil; first = false {
		if r.Peek() == '}' && first {
			break
		}
		r.Peek()
		at := r.At
		name := r.Text()
		if r.Err != nil {
			return
		}
		key := slices.Index(keys, name)
		switch {
		case key < 0:
			r.FailAt(at, r.Kind, "unknown key %q; the keys are %s", Clip(name), strings.Join(keys, ", "))
			return
		case seen>>key&1 != 0:
			r.FailAt(at, r.Kind, "key %q is given twice", name)
			return
		}
		seen |= 1 << key
		if !r.take(':') {
			return
		}
		r.Path = append(r.Path, Step{Key: keys[key]})
		r.Peek()
		value(key)
		if r.Err != nil {
			return
		}
		r.Path = r.Path[:len(r.Path)-1]
		if r.Peek() != ',' {
			break
		}
		r.At++
	}
	if !r.take('}') {
		return
	}
	for k, key := range keys[:len(keys)-optional] {
		if seen>>k&1 == 0 {
			r.FailAt(start, r.Kind, "key %q is missing", key)
			return
		}
	}
}

// Entries reads an object with keys of any name, none twice, and calls value for each with the reader before it.
func (r *Reader) Entries(value func(name string)) {
	if c := r.Peek(); c != '{' {
		r.fail("expected an object, found %s", r.found())
		return
	}
	r.At++
	if r.Peek() == '}' {
		r.At++
		return
	}
	seen := map[string]bool{}
	for r.Err == nil {
		r.Peek()
		at := r.At
		name := r.Text()
		if r.Err == nil && seen[name] {
			r.FailAt(at, r.Kind, "key %q is given twice", Clip(name))
		}
		seen[name] = true
		if r.Err != nil || !r.take(':') {
			return
		}
		r.Path = append(r.Path, Step{Key: Clip(name)})
		r.Peek()
		value(name)
		if r.Err != nil {
			return
		}
		r.Path = r.Path[:len(r.Path)-1]
		if r.Peek() == ',' {
			r.At++
			continue
		}
		r.take('}')
		return
	}
}

// Version reads the version of a file format.
func (r *Reader) Version(known int64) {
	at := r.At
	if v := r.Int(math.MinInt64, math.MaxInt64); r.Err == nil && v != known {
		r.FailAt(at, r.Kind, "this is version %d; only version %d can be read", v, known)
	}
}

// Label reads a string that people gave or that names something.
func (r *Reader) Label() string {
	at := r.At
	text := r.Text()
	if len(text) > MaxNameBytes {
		r.FailAt(at, r.Kind, "longer than %d bytes", MaxNameBytes)
	}
	return text
}

// List reads a list and calls entry for each of its values with the reader before it.
func (r *Reader) List(entry func(index int)) {
	if c := r.Peek(); c != '[' {
		r.fail("expected a list, found %s", r.found())
		return
	}
	r.At++
	if r.Peek() == ']' {
		r.At++
		return
	}
	r.Path = append(r.Path, Step{})
	for index := 0; r.Err == nil; index++ {
		r.Path[len(r.Path)-1].index = index
		r.Peek()
		entry(index)
		if r.Err != nil {
			return
		}
		if r.Peek() == ']' {
			r.At++
			r.Path = r.Path[:len(r.Path)-1]
			return
		}
		if !r.take(',') {
			return
		}
	}
}

func (r *Reader) Text() string { return string(r.Bytes()) }

// Bytes reads a string. The bytes belong to the reader and are valid until the next call.
func (r *Reader) Bytes() []byte {
	if c := r.Peek(); c != '"' {
		r.fail("expected a string, found %s", r.found())
		return nil
	}
	start := r.At + 1
	for i := start; i < len(r.Data); i++ {
		switch c := r.Data[i]; {
		case c == '"':
			text := r.Data[start:i]
			if !utf8.Valid(text) {
				r.fail("the string is not valid UTF-8")
				return nil
			}
			r.At = i + 1
			return text
		case c == '\\':
			return r.escaped(start)
		case c < ' ':
			r.FailAt(i, r.Kind, "a control character must be escaped in a string")
			return nil
		}
	}
	r.fail("the string is not closed")
	return nil
}

// escaped reads a string that has escapes, from after its opening quote.
func (r *Reader) escaped(start int) []byte {
	r.text = r.text[:0]
	for i := start; i < len(r.Data); i++ {
		c := r.Data[i]
		switch {
		case c == '"':
			if !utf8.Valid(r.text) {
				r.fail("the string is not valid UTF-8")
				return nil
			}
			r.At = i + 1
			return r.text
		case c < ' ':
			r.FailAt(i, r.Kind, "a control character must be escaped in a string")
			return nil
		case c != '\\':
			r.text = append(r.text, c)
			continue
		}
		i++
		if i >= len(r.Data) {
			break
		}
		if k := strings.IndexByte(`"\/bfnrt`, r.Data[i]); k >= 0 {
			r.text = append(r.text, "\"\\/\b\f\n\r\t"[k])
			continue
		}
		x, ok := r.unicode(i)
		if !ok {
			r.FailAt(i-1, r.Kind, "bad escape in a string")
			return nil
		}
		i += 4
		if utf16.IsSurrogate(x) {
			low, ok := rune(0), false
			if i+2 < len(r.Data) && r.Data[i+1] == '\\' {
				low, ok = r.unicode(i + 2)
			}
			if x = utf16.DecodeRune(x, low); !ok || x == utf8.RuneError {
				r.FailAt(i-5, r.Kind, "half a surrogate pair in a string")
				return nil
			}
			i += 6
		}
		r.text = utf8.AppendRune(r.text, x)
	}
	r.fail("the string is not closed")
	return nil
}

// unicode reads uXXXX at i.
func (r *Reader) unicode(i int) (rune, bool) {
	if i+5 > len(r.Data) || r.Data[i] != 'u' {
		return 0, false
	}
	x, err := strconv.ParseUint(string(r.Data[i+1:i+5]), 16, 16)
	return rune(x), err == nil
}

// number reads the text of a number.
func (r *Reader) number() string {
	if c := r.Peek(); c != '-' && (c < '0' || c > '9') {
		r.fail("expected a number, found %s", r.found())
		return ""
	}
	start := r.At
	i := start
	digits := func() int {
		first := i
		for i < len(r.Data) && r.Data[i] >= '0' && r.Data[i] <= '9' {
			i++
		}
		return i - first
	}
	if r.Data[i] == '-' {
		i++
	}
	whole := i
	ok := digits() > 0 && (r.Data[whole] != '0' || i == whole+1)
	if ok && i < len(r.Data) && r.Data[i] == '.' {
		i++
		ok = digits() > 0
	}
	if ok && i < len(r.Data) && (r.Data[i] == 'e' || r.Data[i] == 'E') {
		if i++; i < len(r.Data) && (r.Data[i] == '+' || r.Data[i] == '-') {
			i++
		}
		ok = digits() > 0
	}
	if !ok {
		r.fail("malformed number")
		return ""
	}
	r.At = i
	return string(r.Data[start:i])
}

// Int reads an integer from lo to hi.
func (r *Reader) Int(lo, hi int64) int64 {
	r.Peek()
	at := r.At
	text := r.number()
	if r.Err != nil {
		return 0
	}
	v, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil && strings.ContainsAny(text, ".eE"):
		r.FailAt(at, r.Kind, "%s is not an integer", Clip(text))
	case err != nil || v < lo || v > hi:
		r.FailAt(at, r.Kind, "%s is out of range: it must be from %d to %d", Clip(text), lo, hi)
	}
	if r.Err != nil {
		return 0
	}
	return v
}

// Float reads a number from 0 to hi.
func (r *Reader) Float(hi float64) float64 {
	r.Peek()
	at := r.At
	text := r.number()
	if r.Err != nil {
		return 0
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v < 0 || v > hi {
		r.FailAt(at, r.Kind, "%s is out of range: it must be from 0 to %g", Clip(text), hi)
		return 0
	}
	return v
}

// Bool reads true or false.
func (r *Reader) Bool() bool {
	r.Peek()
	for _, word := range []string{"true", "false"} {
		if strings.HasPrefix(string(r.Data[r.At:min(len(r.Data), r.At+len(word))]), word) {
			r.At += len(word)
			return word == "true"
		}
	}
	r.fail("expected true or false, found %s", r.found())
	return false
}

// Skip skips a string or a number.
func (r *Reader) Skip() {
	if r.Peek() == '"' {
		r.Bytes()
		return
	}
	r.number()
}

// mostNested is how deep SkipAll follows lists and objects in each other.
const mostNested = 1000

// SkipAll skips a value of any kind.
func (r *Reader) SkipAll() { r.skipAll(0) }

func (r *Reader) skipAll(depth int) {
	if depth > mostNested {
		r.fail("nested deeper than %d levels", mostNested)
		return
	}
	switch r.Peek() {
	case '{':
		r.Entries(func(string) { r.skipAll(depth + 1) })
	case '[':
		r.List(func(int) { r.skipAll(depth + 1) })
	case 't', 'f':
		r.Bool()
	default:
		r.Skip()
	}
}

// Choice reads one of the given strings.
func (r *Reader) Choice(of ...string) int {
	r.Peek()
	at := r.At
	text := r.Text()
	k := slices.Index(of, text)
	if k < 0 {
		r.FailAt(at, r.Kind, "unknown %q; it must be one of %s", Clip(text), strings.Join(of, ", "))
		return 0
	}
	return k
}

// Clip shortens text from a file for a message.
func Clip(s string) string {
	const most = 80
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "…"
}
