// ZLUDA's tests as its Rust source lists them: names, inputs and expected outputs.

package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/dagrun/dagrun/dag"
)

// expected is one test.
type expected struct {
	name    string
	warps   bool // 64 threads that read no input
	narrow  bool // a version with 32-bit addresses lies in 32/
	in, out values
}

// values are the elements of an array.
type values struct {
	dtype dag.DType
	bytes []byte
}

var (
	comment   = regexp.MustCompile(`(?m)//.*$`)
	testMacro = regexp.MustCompile(`(?m)^test_ptx(_with_32|_warp)?!\(`)
)

// testsOf finds all tests that have expected outputs.
func testsOf(rust string) ([]expected, error) {
	rust = comment.ReplaceAllString(rust, "")
	var list []expected
	for _, m := range testMacro.FindAllStringSubmatchIndex(rust, -1) {
		kind := ""
		if m[2] >= 0 {
			kind = rust[m[2]:m[3]]
		}
		args, ok := arguments(rust[m[1]:])
		if !ok {
			return nil, fmt.Errorf("a test has no end: %.60s", rust[m[0]:])
		}
		e := expected{name: args[0], warps: kind == "_warp", narrow: kind == "_with_32"}
		if len(args) == 1 {
			continue
		}
		var err error
		if !e.warps {
			if e.in, err = valuesOf(args[1]); err != nil {
				return nil, fmt.Errorf("%s: %w", e.name, err)
			}
		}
		if e.out, err = valuesOf(args[len(args)-1]); err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
		list = append(list, e)
	}
	return list, nil
}

// arguments splits what is between parentheses or brackets, whose opening one has been read.
func arguments(text string) ([]string, bool) {
	var list []string
	depth, start := 0, 0
	add := func(end int) {
		if part := strings.TrimSpace(text[start:end]); part != "" {
			list = append(list, part)
		}
		start = end + 1
	}
	for i, c := range text {
		switch c {
		case '(', '[':
			depth++
		case ')', ']':
			if depth--; depth < 0 {
				add(i)
				return list, true
			}
		case ',':
			if depth == 0 {
				add(i)
			}
		}
	}
	return nil, false
}

var (
	suffix   = regexp.MustCompile(`^(-?(?:0x[0-9a-fA-F_]+?|0b[01_]+?|[0-9][0-9_]*(?:\.[0-9_]+)?))_?([iuf](?:8|16|32|64))?$`)
	typeName = regexp.MustCompile(`\b([iuf](?:16|32|64|8))\b|[0-9a-fA-F_]([iu](?:8|16|32|64)|f(?:32|64))\b`)
	types    = map[string]dag.DType{"i8": dag.I8, "i16": dag.I16, "i32": dag.I32, "i64": dag.I64, "u8": dag.U8, "u16": dag.U16, "u32": dag.U32, "u64": dag.U64,
		"f16": dag.F16, "f32": dag.F32, "f64": dag.F64}
)

// valuesOf reads an array. Its elements have the type that one of them says.
func valuesOf(text string) (values, error) {
	list, ok := arguments(strings.TrimPrefix(text, "["))
	if !ok {
		return values{}, fmt.Errorf("%q is no array", text)
	}
	v := values{dtype: dag.InvalidDType}
	for _, e := range list {
		if t := typeOf(e); t != dag.InvalidDType {
			v.dtype = t
			break
		}
	}
	if v.dtype == dag.InvalidDType {
		if v.dtype = dag.I32; strings.Contains(text, ".") {
			v.dtype = dag.F64
		}
	}
	v.bytes = make([]byte, int64(len(list))*v.dtype.Size())
	for i, e := range list {
		bits, err := bitsOf(e, v.dtype)
		if err != nil {
			return v, err
		}
		v.dtype.Store(v.bytes, int64(i), bits)
	}
	return v, nil
}

// typeOf is the type that an element says it has.
func typeOf(e string) dag.DType {
	if strings.HasSuffix(e, ".to_bits()") {
		return dag.U16
	}
	if m := suffix.FindStringSubmatch(e); m != nil {
		return types[m[2]]
	}
	if strings.HasPrefix(e, "half::f16") {
		return dag.F16
	}
	if m := typeName.FindStringSubmatch(e); m != nil {
		return types[m[1]+m[2]]
	}
	return dag.InvalidDType
}

var constants = map[string]float64{"NAN": math.NaN(), "INFINITY": math.Inf(1), "NEG_INFINITY": math.Inf(-1)}

// bitsOf is an element as memory holds it.
func bitsOf(e string, t dag.DType) (uint64, error) {
	if whole, ok := strings.CutSuffix(e, ".to_bits()"); ok {
		return bitsOf(whole, dag.F16)
	}
	if m := suffix.FindStringSubmatch(e); m != nil {
		digits := strings.ReplaceAll(m[1], "_", "")
		if t.Float() && !strings.HasPrefix(digits, "0x") && !strings.HasPrefix(digits, "0b") {
			v, err := strconv.ParseFloat(digits, 64)
			return t.FromFloat(v), err
		}
		if rest, negative := strings.CutPrefix(digits, "-"); negative {
			v, err := strconv.ParseUint(rest, 0, 64)
			return -v, err
		}
		return strconv.ParseUint(digits, 0, 64)
	}
	for _, from := range []string{"from_bits(", "from_f32(", "from_f64("} {
		if _, arg, ok := strings.Cut(e, from); ok {
			arg = strings.TrimSuffix(arg, ")")
			if from == "from_bits(" {
				return bitsOf(arg, dag.U64)
			}
			if v, err := strconv.ParseFloat(arg, 64); err == nil {
				return t.FromFloat(v), nil
			}
			return bitsOf(arg, t)
		}
	}
	switch name := e[strings.LastIndexByte(e, ':')+1:]; name {
	case "max_value()", "MAX":
		return 1<<(8*t.Size()-1)<<1 - 1 - uint64(asNumber(t.Signed()))<<(8*t.Size()-1), nil
	case "MIN":
		return uint64(asNumber(t.Signed())) << (8*t.Size() - 1), nil
	case "PI":
		return t.FromFloat(math.Pi), nil
	case "PI / 2f32":
		return uint64(math.Float32bits(float32(math.Pi) / 2)), nil
	default:
		if v, ok := constants[name]; ok {
			return t.FromFloat(v), nil
		}
	}
	return 0, fmt.Errorf("the value %q is not understood", e)
}

func asNumber(b bool) int {
	if b {
		return 1
	}
	return 0
}

// equal compares as Rust does: 0 and -0 are the same number.
func (v *values) equal(got []byte) bool {
	for i := range int64(len(v.bytes)) / v.dtype.Size() {
		a, b := v.dtype.Load(got, i), v.dtype.Load(v.bytes, i)
		if a != b && !(v.dtype.Float() && v.dtype.ToFloat(a) == v.dtype.ToFloat(b)) {
			return false
		}
	}
	return true
}

func (v *values) text(of []byte) string {
	var list []string
	for i := range int64(len(of)) / v.dtype.Size() {
		if i == 8 {
			list = append(list, "...")
			break
		}
		list = append(list, v.dtype.Text(v.dtype.Load(of, i)))
	}
	return "[" + strings.Join(list, ", ") + "]"
}

// words makes memory that is aligned for everything.
func words(bytes []byte) []uint64 {
	list := make([]uint64, len(bytes)/8+3)
	for i, b := range bytes {
		list[i/8] |= uint64(b) << (8 * (i % 8))
	}
	return list
}

func bytesOf(list []uint64, n int) []byte {
	var out []byte
	for _, w := range list {
		out = binary.LittleEndian.AppendUint64(out, w)
	}
	return out[:n]
}
