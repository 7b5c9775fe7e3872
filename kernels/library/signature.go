// Signatures: a kernel's parameters as one line of text, such as "n i64, alpha S, x in T[n], y inout T[n]", parsed once when
// the library is built.

package library

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dagrun/dagrun/dag"
)

// parameter is one parameter of a row. Letters stand for the types that a version binds: T is the element type, S the type T is
// computed in, A the type of sums of T; X and Y are further element types.
type parameter struct {
	name     string
	typeName string
	mode     dag.Mode // 0: a scalar
	scratch  bool
	extent   *formula // number of elements; for scratch, of bytes
	min, max int64    // of an integer scalar
	bounded  bool     // the signature gives min and max
}

// sizeNames are the names by which an extent refers to the bytes of an element of T and of X. Their values follow those of the parameters.
var sizeNames = []string{"sizeof_T", "sizeof_X"}

func parseSignature(text string) ([]parameter, error) {
	var params []parameter
	var index = func(name string) int {
		for i := range params {
			if params[i].name == name {
				return i
			}
		}
		if i := slices.Index(sizeNames, name); i >= 0 {
			return len(params) + i
		}
		return -1
	}
	var extents []string
	for _, field := range splitTop(text) {
		words := strings.SplitN(strings.TrimSpace(field), " ", 3)
		p := parameter{name: words[0], min: -1 << 63, max: 1<<63 - 1}
		extent := ""
		switch {
		case len(words) >= 2 && strings.HasPrefix(words[1], "bytes["):
			p.scratch, p.mode, p.typeName = true, dag.Write, "u8"
			_, extent, _ = strings.Cut(strings.TrimSuffix(field, "]"), "bytes[")
		case len(words) == 3 && (words[1] == "in" || words[1] == "out" || words[1] == "inout"):
			p.mode = map[string]dag.Mode{"in": dag.Read, "out": dag.Write, "inout": dag.ReadWrite}[words[1]]
			open := strings.IndexByte(words[2], '[')
			if open < 0 || !strings.HasSuffix(words[2], "]") {
				return nil, fmt.Errorf("signature %q: %q has no extent", text, field)
			}
			p.typeName, extent = words[2][:open], words[2][open+1:len(words[2])-1]
		case len(words) >= 2:
			p.typeName = words[1]
			if len(words) == 3 {
				lo, hi, ok := strings.Cut(words[2], "..")
				if !ok {
					return nil, fmt.Errorf("signature %q: %q is not a range", text, words[2])
				}
				p.bounded = true
				var err error
				if p.min, err = strconv.ParseInt(lo, 10, 64); err != nil {
					return nil, err
				}
				if hi != "" {
					if p.max, err = strconv.ParseInt(hi, 10, 64); err != nil {
						return nil, err
					}
				}
			}
		case text == "":
			continue
		default:
			return nil, fmt.Errorf("signature %q: %q", text, field)
		}
		params, extents = append(params, p), append(extents, extent)
	}
	for i, extent := range extents {
		if extent == "" {
			continue
		}
		f, err := parseFormula(extent, index)
		if err != nil {
			return nil, err
		}
		params[i].extent = f
		f.root.markCounts(params)
	}
	return params, nil
}

// markCounts marks the scalars that count something, which must not be negative.
func (t *formulaTerm) markCounts(params []parameter) {
	if p := t.param; t.op == 'v' && p < len(params) && !params[p].bounded && params[p].min < 0 {
		params[p].min = 0
	}
	for _, a := range t.args {
		a.markCounts(params)
	}
}

// splitTop splits at commas outside brackets.
func splitTop(text string) []string {
	var fields []string
	depth, start := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		case ',':
			if depth == 0 {
				fields = append(fields, text[start:i])
				start = i + 1
			}
		}
	}
	return append(fields, text[start:])
}

// bind is the types that one version of a kernel binds the letters to. Elements of the letter in bits are only moved, so the code is the same for
// all types of a size.
type bind struct {
	T, X, Y dag.DType
	bits    byte
}

// computedIn is the type in which elements of a type are computed.
func computedIn(t dag.DType) dag.DType {
	if t == dag.F16 || t == dag.BF16 {
		return dag.F32
	}
	return t
}

func (b bind) resolve(typeName string) (dag.DType, error) {
	switch typeName {
	case "T":
		return b.T, nil
	case "X":
		return b.X, nil
	case "Y":
		return b.Y, nil
	case "S":
		return computedIn(b.T), nil
	case "A":
		if b.T == dag.I32 {
			return dag.I64, nil
		}
		return computedIn(b.T), nil
	}
	t, ok := dag.ParseDType(typeName)
	if !ok {
		return 0, fmt.Errorf("unknown type %q in a signature", typeName)
	}
	return t, nil
}

// suffix is the end of an entry's name: "_f32", or "_i32_f32" if X is bound too.
func (b bind) suffix() string {
	if b.T == dag.InvalidDType {
		return ""
	}
	switch b.bits {
	case 'T':
		b.T = asBits(b.T)
	case 'X':
		b.X = asBits(b.X)
	}
	s := "_" + b.T.String()
	if b.X != dag.InvalidDType {
		s = "_" + b.X.String() + s
	}
	return s
}

// asBits is the type by which the code that moves elements is called.
func asBits(t dag.DType) dag.DType {
	if t.Size() == 8 {
		return dag.U64
	}
	return dag.U32
}
