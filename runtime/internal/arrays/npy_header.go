// The header of a .npy file: a dictionary written as a literal of Python, with the keys descr, fortran_order and shape.

package arrays

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

const npyMagic = "\x93NUMPY"

// readNpyHeader reads up to the first byte of data.
func readNpyHeader(r io.Reader) (descr string, shape []int64, err error) {
	var start [8]byte
	if _, err := io.ReadFull(r, start[:]); err != nil || string(start[:6]) != npyMagic {
		return "", nil, errors.New("not a .npy file")
	}
	var length uint32
	switch start[6] {
	case 1:
		var n uint16
		err = binary.Read(r, binary.LittleEndian, &n)
		length = uint32(n)
	case 2, 3:
		err = binary.Read(r, binary.LittleEndian, &length)
	default:
		return "", nil, fmt.Errorf("version %d of the .npy format is unknown", start[6])
	}
	if err != nil || length > 1<<20 {
		return "", nil, errors.New("the .npy header is damaged")
	}
	header := make([]byte, length)
	if _, err := io.ReadFull(r, header); err != nil {
		return "", nil, errors.New("the .npy header is incomplete")
	}
	return parseNpyHeader(string(header))
}

// parseNpyHeader takes the element type and the shape from the text of a header.
func parseNpyHeader(text string) (descr string, shape []int64, err error) {
	p := pythonLiteral{text: text}
	value, err := p.value(0)
	if err == nil {
		if p.skipSpace(); p.at < len(p.text) {
			err = p.unexpected()
		}
	}
	if err != nil {
		return "", nil, fmt.Errorf("the .npy header is damaged: %w", err)
	}
	fields, ok := value.(pythonDict)
	if !ok {
		return "", nil, errors.New("the .npy header is damaged: it is not a dictionary")
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if key != "descr" && key != "fortran_order" && key != "shape" {
			return "", nil, fmt.Errorf("the .npy header has the unknown key %q", shorten(key))
		}
	}
	descr, ok = fields["descr"].(string)
	if !ok {
		return "", nil, errors.New("the .npy header has no plain element type (structured arrays are not supported)")
	}
	switch order := fields["fortran_order"]; order {
	case false:
	case true:
		return "", nil, errors.New("the array is in Fortran order; save it with numpy.ascontiguousarray")
	default:
		return "", nil, errors.New("the .npy header does not say whether the array is in Fortran order")
	}
	dims, ok := fields["shape"].(pythonTuple)
	if !ok {
		return "", nil, errors.New("the .npy header has no shape")
	}
	for k, d := range dims {
		n, ok := d.(int64)
		if !ok || n < 0 {
			return "", nil, fmt.Errorf("the .npy header has a bad shape: dimension %d is not a size", k)
		}
		shape = append(shape, n)
	}
	if len(shape) > maxNpyDims {
		return "", nil, fmt.Errorf("the .npy header is damaged: an array has at most %d dimensions, but the shape has %d", maxNpyDims, len(shape))
	}
	return shorten(descr), shape, nil
}

// maxNpyDims is how many dimensions NumPy's arrays may have.
const maxNpyDims = 64

// shorten keeps a text that no header needs from filling a message.
func shorten(text string) string {
	const most, shown = 40, 20
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s... (%d characters)", text[:shown], len(text))
}

// pythonLiteral parses the literals that a header may have: strings, integers, True, False, None, tuples, lists and dictionaries.
type pythonLiteral struct {
	text string
	at   int
}

type (
	pythonDict  map[string]any
	pythonTuple []any
	pythonList  []any
)

// maxNpyDepth limits the recursion: a header needs three levels, and a few more for a structured array.
const maxNpyDepth = 32

func (p *pythonLiteral) skipSpace() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n\f", p.text[p.at]) >= 0 {
		p.at++
	}
}

// take skips space, and then the given text if it comes next.
func (p *pythonLiteral) take(text string) bool {
	p.skipSpace()
	if !strings.HasPrefix(p.text[p.at:], text) {
		return false
	}
	p.at += len(text)
	return true
}

func (p *pythonLiteral) unexpected() error {
	if p.at >= len(p.text) {
		return errors.New("it ends in the middle of a value")
	}
	return fmt.Errorf("unexpected %q at byte %d", p.text[p.at], p.at)
}

func (p *pythonLiteral) value(depth int) (any, error) {
	p.skipSpace()
	if depth > maxNpyDepth {
		return nil, errors.New("it is nested too deeply")
	}
	if p.at >= len(p.text) {
		return nil, p.unexpected()
	}
	switch c := p.text[p.at]; {
	case c == '{':
		return p.dict(depth)
	case c == '(':
		p.at++
		items, comma, err := p.items(")", depth)
		if err != nil {
			return nil, err
		}
		if len(items) == 1 && !comma {
			return items[0], nil // parentheses around a single value do not make a tuple
		}
		return pythonTuple(items), nil
	case c == '[':
		p.at++
		items, _, err := p.items("]", depth)
		return pythonList(items), err
	case c == '\'' || c == '"':
		return p.quoted(c)
	case c >= '0' && c <= '9' || c == '-':
		return p.integer()
	}
	switch {
	case p.take("True"):
		return true, nil
	case p.take("False"):
		return false, nil
	case p.take("None"):
		return nil, nil
	}
	return nil, p.unexpected()
}

// items reads values up to the closing bracket, and tells whether a comma followed the last.
func (p *pythonLiteral) items(end string, depth int) (items []any, comma bool, err error) {
	for !p.take(end) {
		if len(items) > 0 && !comma {
			return nil, false, p.unexpected()
		}
		item, err := p.value(depth + 1)
		if err != nil {
			return nil, false, err
		}
		items = append(items, item)
		comma = p.take(",")
	}
	return items, comma, nil
}

func (p *pythonLiteral) dict(depth int) (any, error) {
	p.at++
	fields := pythonDict{}
	for comma := true; !p.take("}"); comma = p.take(",") {
		if !comma {
			return nil, p.unexpected()
		}
		key, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		name, ok := key.(string)
		if !ok {
			return nil, errors.New("a key is not a string")
		}
		if _, twice := fields[name]; twice {
			return nil, fmt.Errorf("the key %q appears twice", shorten(name))
		}
		if !p.take(":") {
			return nil, p.unexpected()
		}
		if fields[name], err = p.value(depth + 1); err != nil {
			return nil, err
		}
	}
	return fields, nil
}

// quoted reads a string. It knows only the escapes of quotes and backslashes: a header needs no others.
func (p *pythonLiteral) quoted(quote byte) (string, error) {
	var b strings.Builder
	for p.at++; p.at < len(p.text); p.at++ {
		c := p.text[p.at]
		switch {
		case c == quote:
			p.at++
			return b.String(), nil
		case c == '\n':
			return "", p.unexpected()
		case c == '\\':
			p.at++
			if p.at >= len(p.text) || strings.IndexByte(`'"\`, p.text[p.at]) < 0 {
				return "", p.unexpected()
			}
			c = p.text[p.at]
		}
		b.WriteByte(c)
	}
	return "", errors.New("a string has no end")
}

// integer reads a decimal integer. Python 2 wrote an L after long ones.
func (p *pythonLiteral) integer() (int64, error) {
	start := p.at
	for p.at++; p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9'; p.at++ {
	}
	n, err := strconv.ParseInt(p.text[start:p.at], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is not a 64-bit integer", shorten(p.text[start:p.at]))
	}
	if p.at < len(p.text) && p.text[p.at] == 'L' {
		p.at++
	}
	return n, nil
}
