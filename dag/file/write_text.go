// What the lines of a written pipeline consist of: names, slices, numbers, contents and texts that read as what they are.

package file

import (
	"bufio"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
)

// yamlWriter writes one pipeline. It keeps the first thing that cannot be written.
type yamlWriter struct {
	*bufio.Writer
	p     *dag.Pipeline
	where string // the buffer or node being written
	usual defaults
	err   error
}

// defaults is what holds for a node that says nothing else: where it runs, its priority, and how its kernel is launched.
type defaults struct {
	device   int32
	priority dag.Priority
	dag.LaunchInfo
}

func (y *yamlWriter) add(parts ...string) {
	for _, s := range parts {
		y.WriteString(s)
	}
}

func (y *yamlWriter) fail(format string, args ...any) {
	if y.err == nil {
		y.err = fmt.Errorf("%s: %s", y.where, fmt.Sprintf(format, args...))
	}
}

// reference writes a buffer or a slice.
func (y *yamlWriter) reference(r dag.Range) string {
	b := &y.p.Buffers[r.Buffer]
	if b.Scratch {
		y.fail("%q is scratch and cannot be named in a file", b.Name)
	}
	if strings.HasSuffix(b.Name, ")") {
		y.fail("the name of buffer %q would read as a slice", b.Name)
	}
	bounds, ok := y.p.Bounds(r)
	switch {
	case !ok:
		y.fail("bytes %d to %d of %q do not fall on whole rows", r.Lo, r.Hi, b.Name)
		return ""
	case bounds == "":
		return yamlText(b.Name)
	}
	return y.slice(b, bounds)
}

// slice writes a slice of a buffer, given as it follows the name.
func (y *yamlWriter) slice(b *dag.Buffer, bounds string) string {
	text := dollars(b.Name) + bounds
	if s, err := expr.ParseSlice(text); err != nil {
		y.fail("a slice of %q cannot be written: %v", b.Name, err)
	} else if name, plain := s.Name.Plain(); !plain || name != b.Name {
		y.fail("a slice of %q would read as one of %q", b.Name, s.Name.Text)
	}
	return yamlText(text)
}

// float writes a number so that it reads as the same float64.
func (y *yamlWriter) float(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		y.fail("%v is not a finite number", v)
	}
	if n := int64(v); math.Abs(v) < 1e15 && float64(n) == v && (n != 0 || !math.Signbit(v)) {
		return strconv.FormatInt(n, 10)
	}
	return expr.FloatValue(v).String()
}

// scalar writes an element so that it reads as the same bits.
func (y *yamlWriter) scalar(t dag.DType, bits uint64) string {
	switch {
	case t == dag.Bool:
		return strconv.FormatBool(bits&0xff != 0)
	case t == dag.U64:
		if bits > math.MaxInt64 {
			y.fail("the number %d does not fit in 63 bits", bits)
		}
		return strconv.FormatUint(bits, 10)
	case t.Signed():
		unused := 64 - 8*t.Size()
		return strconv.FormatInt(int64(bits<<unused)>>unused, 10)
	case !t.Float():
		return strconv.FormatUint(bits, 10)
	}
	v := t.ToFloat(bits)
	if t == dag.F32 {
		// Write the shortest text that gives this f32, not its exact value: 0.1, not 0.10000000149011612.
		if short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', -1, 32), 64); err == nil && t.FromFloat(short) == bits {
			v = short
		}
	}
	return y.float(v)
}

func (y *yamlWriter) init(in *dag.Init) string {
	if in == nil {
		return ""
	}
	pair := func(kind string) string { return "{" + kind + ": [" + y.float(in.A) + ", " + y.float(in.B) + "]" }
	seeded := func(kind string) string {
		if in.Seed > math.MaxInt64 {
			y.fail("the seed %d does not fit in 63 bits", in.Seed)
		}
		return fmt.Sprintf("%s, seed: %d}", pair(kind), in.Seed)
	}
	switch in.Kind {
	case dag.InitValue:
		return y.values(in.Value, in.Values)
	case dag.InitRamp:
		return pair("ramp") + "}"
	case dag.InitUniform:
		return seeded("uniform")
	case dag.InitNormal:
		return seeded("normal")
	case dag.InitExpr:
		return "{expr: " + strconv.Quote(in.Expr.String()) + "}"
	case dag.InitFile:
		return "{file: " + yamlText(dollars(in.File)) + "}"
	}
	return "zeros"
}

// value writes a value so that it reads back as the same kind.
func (y *yamlWriter) value(v expr.Value) string {
	if v.Kind() == expr.Float {
		y.float(v.Float())
	}
	return v.String()
}

// values writes the components of an element where they are given, else the one value.
func (y *yamlWriter) values(v expr.Value, components []expr.Value) string {
	if components == nil {
		return y.value(v)
	}
	texts := make([]string, len(components))
	for k := range components {
		texts[k] = y.value(components[k])
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

func (y *yamlWriter) expect(b *dag.Buffer) string {
	e := b.Expect
	if e == nil {
		return ""
	}
	text := "{"
	switch e.Kind {
	case dag.ExpectFile:
		text += "file: " + yamlText(dollars(e.File))
	case dag.ExpectValue:
		text += "value: " + y.values(e.Value, e.Values)
	case dag.ExpectSum:
		text += "sum: " + y.value(e.Value)
	case dag.ExpectExpr:
		text += "expr: " + strconv.Quote(e.Expr.String())
	}
	if e.Norm != dag.NoNorm {
		text += ", norm: " + e.Norm.String()
	}
	if e.Differing > 0 {
		text += ", differing: " + strconv.FormatInt(e.Differing, 10)
	}
	// If one tolerance is given, the other is zero; if neither is given, the relative one has a default.
	if e.ATol == 0 && e.RTol == defaultTolerance(b.DType) {
		return text + "}"
	}
	if e.ATol == 0 || e.RTol != 0 {
		text += ", rtol: " + y.float(e.RTol)
	}
	if e.ATol != 0 {
		text += ", atol: " + y.float(e.ATol)
	}
	return text + "}"
}

// defaultTolerance is the relative tolerance where a file gives none: results of integer kernels are exact, those of floating
// point depend on the order of operations.
func defaultTolerance(t dag.DType) float64 {
	switch t.Component() {
	case dag.F16, dag.BF16:
		return 1e-2
	case dag.F32:
		return 1e-5
	case dag.F64:
		return 1e-9
	}
	return 0
}

// dollars writes a text where variables are replaced: a dollar is doubled.
func dollars(s string) string { return strings.ReplaceAll(s, "$", "$$") }

// yamlText writes a string as a scalar that stands anywhere, also inside braces and brackets: bare where it looks harmless.
func yamlText(s string) string {
	switch strings.ToLower(s) {
	case "", "null", "true", "false", "yes", "no", "on", "off":
		return strconv.Quote(s)
	}
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_'
		if letter || i > 0 && (r >= '0' && r <= '9' || strings.ContainsRune(".$/-()", r)) {
			continue
		}
		return strconv.Quote(s)
	}
	return s
}

// devicesText is how a file says over how many devices a pipeline may be spread.
func devicesText(devices int32) string {
	if devices == dag.AllDevices {
		return "all"
	}
	return strconv.Itoa(int(devices))
}
