// Writing a pipeline as a file, with all numbers and repetitions written out. Read back, it gives the same pipeline.

package dag

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/dagrun/dagrun/dag/expr"
)

// WriteYAML writes the pipeline as a file of the present version, one line for each buffer and node, that [Parse] reads as the
// same pipeline: expressions have become numbers and foreach is written out. Scratch buffers are left out; they come back with
// their kernels. The error says what no file can hold: tasks, ranges that do not fall on whole rows, numbers that are not
// finite.
func (p *Pipeline) WriteYAML(w io.Writer) error {
	if p == nil || w == nil {
		return errors.New("a pipeline and a writer are needed to write a file")
	}
	var c checker
	if c.pipeline(p); len(c.errs) > 0 {
		return fmt.Errorf("pipeline %q cannot be written as a file: %w", p.Name, errors.Join(c.errs...))
	}
	y := &yamlWriter{Writer: bufio.NewWriterSize(w, 1<<16), p: p}
	y.head()
	y.buffers()
	if len(p.Nodes) == 0 {
		y.add("nodes: []\n")
	}
	for i := range p.Nodes {
		if i == 0 {
			y.add("nodes:\n")
		}
		y.node(&p.Nodes[i], p.Accesses(NodeID(i)))
	}
	if y.err != nil {
		return fmt.Errorf("pipeline %q cannot be written as a file: %w", p.Name, y.err)
	}
	return y.Flush()
}

// yamlWriter writes one pipeline. It keeps the first thing that cannot be written.
type yamlWriter struct {
	*bufio.Writer
	p     *Pipeline
	where string // the buffer or node being written
	err   error
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

func (y *yamlWriter) head() {
	y.add("version: ", strconv.Itoa(FormatVersion), "\n")
	if y.p.Name != "" {
		y.add("name: ", yamlText(y.p.Name), "\n")
	}
	if y.p.Sync != SyncAuto {
		y.add("sync: ", y.p.Sync.String(), "\n")
	}
	if y.p.Devices != 0 {
		y.add("devices: ", devicesText(y.p.Devices), "\n")
	}
	for i, param := range y.p.Params {
		if i == 0 {
			y.add("params:\n")
		}
		y.add("  ", yamlText(param.Name), ": ", param.Value.String(), "\n")
	}
	for i, m := range y.p.Modules {
		if i == 0 {
			y.add("modules:\n")
		}
		y.add("  ", yamlText(m.Name), ": {source: ", yamlText(dollars(m.Path)), y.build(&m), "}\n")
	}
}

// build writes how a module is compiled.
func (y *yamlWriter) build(m *Module) string {
	var b strings.Builder
	list := func(key string, texts []string) {
		if len(texts) == 0 {
			return
		}
		b.WriteString(", " + key + ": [")
		for i, text := range texts {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(yamlText(dollars(text)))
		}
		b.WriteString("]")
	}
	list("include", m.Include)
	if len(m.Define) > 0 {
		b.WriteString(", define: {")
		for i, d := range m.Define {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(yamlText(d.Name) + ": " + yamlText(dollars(d.Value)))
		}
		b.WriteString("}")
	}
	list("options", m.Options)
	if m.Compiler != "" {
		b.WriteString(", compiler: " + m.Compiler)
	}
	return b.String()
}

func (y *yamlWriter) buffers() {
	first := true
	for k := range y.p.Buffers {
		b := &y.p.Buffers[k]
		if b.Scratch {
			continue
		}
		if first {
			y.add("buffers:\n")
			first = false
		}
		y.where = fmt.Sprintf("buffer %q", b.Name)
		y.add("  ", yamlText(dollars(b.Name)), ": {place: ", b.Place.String(), ", dtype: ", b.DType.String(), ", shape: [")
		for i, n := range b.Shape {
			if i > 0 {
				y.add(", ")
			}
			y.add(strconv.FormatInt(n, 10))
		}
		y.add("]")
		if b.Device != 0 || b.Fixed {
			y.add(", device: ", strconv.Itoa(int(b.Device)))
		}
		if b.Pageable {
			y.add(", pinned: false")
		}
		if b.Symbol != "" {
			y.add(", symbol: ", yamlText(dollars(b.Symbol)))
		}
		if b.Init != nil {
			y.add(", init: ", y.init(b.Init))
		}
		if b.Save != "" {
			y.add(", save: ", yamlText(dollars(b.Save)))
		}
		if b.Expect != nil {
			y.add(", expect: ", y.expect(b))
		}
		y.add("}\n")
	}
}

func (y *yamlWriter) init(in *Init) string {
	pair := func(kind string) string { return "{" + kind + ": [" + y.float(in.A) + ", " + y.float(in.B) + "]" }
	seeded := func(kind string) string {
		if in.Seed > math.MaxInt64 {
			y.fail("the seed %d does not fit in 63 bits", in.Seed)
		}
		return fmt.Sprintf("%s, seed: %d}", pair(kind), in.Seed)
	}
	switch in.Kind {
	case InitValue:
		return y.values(in.Value, in.Values)
	case InitRamp:
		return pair("ramp") + "}"
	case InitUniform:
		return seeded("uniform")
	case InitNormal:
		return seeded("normal")
	case InitExpr:
		return "{expr: " + strconv.Quote(in.Expr.String()) + "}"
	case InitFile:
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

func (y *yamlWriter) expect(b *Buffer) string {
	e := b.Expect
	text := "{"
	switch e.Kind {
	case ExpectFile:
		text += "file: " + yamlText(dollars(e.File))
	case ExpectValue:
		text += "value: " + y.values(e.Value, e.Values)
	case ExpectSum:
		text += "sum: " + y.value(e.Value)
	case ExpectExpr:
		text += "expr: " + strconv.Quote(e.Expr.String())
	}
	if e.Norm != NoNorm {
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

func (y *yamlWriter) node(n *Node, accesses []Access) {
	y.where = fmt.Sprintf("node %q", n.Name)
	y.add("  - {name: ", yamlText(dollars(n.Name)), ", ")
	device, priority := int32(0), Normal // where the node runs, and its priority, unless it says otherwise
	switch {
	case n.Copy != nil:
		y.add("memcpy: {from: ", y.reference(n.Copy.Src), ", to: ", y.reference(n.Copy.Dst), "}")
		device = y.p.copyDevice(n.Copy.Dst, n.Copy.Src)
	case n.Set != nil:
		b := &y.p.Buffers[n.Set.Dst.Buffer]
		y.add("memset: {to: ", y.reference(n.Set.Dst), ", value: ", y.scalar(b.DType.Component(), n.Set.Bits), "}")
		device = b.Device
	case n.Communication != nil:
		device, priority = y.communication(n.Communication), High
	case n.Launch != nil && n.Launch.Map != nil:
		device = y.mapping(n.Launch)
	case n.Kind == Call && n.Launch != nil:
		device = y.call(n.Launch)
	case n.Launch != nil:
		device = y.kernel(n.Launch)
	case n.Kind == HostFunction:
		y.hostFunction(n, accesses)
	default:
		y.fail("a %s cannot be written in a file", n.Kind)
	}
	for i, from := range n.After {
		if i == 0 {
			y.add(", after: [")
		} else {
			y.add(", ")
		}
		y.add(yamlText(dollars(y.p.Nodes[from].Name)))
	}
	if len(n.After) > 0 {
		y.add("]")
	}
	if stream := n.Stream.Number(); stream >= 0 {
		y.add(", stream: ", strconv.Itoa(int(stream)))
	}
	if n.Priority != priority {
		y.add(", priority: ", n.Priority.String())
	}
	if n.HasCost {
		y.add(", cost: {us: ", y.float(n.CostUS), "}")
	}
	if n.Device != device || n.Fixed {
		y.add(", device: ", strconv.Itoa(int(n.Device)))
	}
	if n.Peer {
		y.add(", peer: true")
	}
	y.add("}\n")
}

// mapping writes a map node's own part and returns where it runs by default.
func (y *yamlWriter) mapping(l *Launch) int32 {
	m := l.Map
	text := m.Text
	// In Expr, lengths and params have been replaced by their values. If that differs from what the text says, write Expr.
	if _, e, err := expr.ParseMap(text); err != nil || e.String() != m.Expr.String() {
		text = m.Out + " = " + m.Expr.String()
	}
	y.add("map: ", strconv.Quote(text), ", with: {", yamlText(m.Out), ": ", y.reference(l.Args[1].Range))
	for i, name := range m.Inputs {
		if name != m.Out {
			y.add(", ", yamlText(name), ": ", y.reference(l.Args[2+i].Range))
		}
	}
	for i, name := range m.Scalars {
		a := l.Args[2+len(m.Inputs)+i]
		y.add(", ", yamlText(name), ": ", y.scalar(a.DType, a.Bits))
	}
	y.add("}")
	return y.launchDevice(l)
}

func (y *yamlWriter) launchDevice(l *Launch) int32 {
	for i := range l.Args { // the first buffer that has to be where it is decides
		if a := &l.Args[i]; y.p.Devices != 0 && a.IsBuffer && !y.p.Buffers[a.Range.Buffer].Scratch && !y.p.roams(a.Range.Buffer) {
			return y.p.Buffers[a.Range.Buffer].Device
		}
	}
	for i := range l.Args {
		if a := &l.Args[i]; a.IsBuffer && !y.p.Buffers[a.Range.Buffer].Scratch {
			return y.p.Buffers[a.Range.Buffer].Device
		}
	}
	return 0
}

// kernel writes a kernel node's own part and returns where it runs by default.
func (y *yamlWriter) kernel(l *Launch) int32 {
	if l.Name == "" || l.Kernel == nil {
		y.fail("its kernel has no name")
		return 0
	}
	y.add("kernel: ", yamlText(dollars(l.Name)), ", args: [")
	params := l.Kernel.Params()
	args := append([]Arg(nil), l.Args...)
	if len(params) != len(args) {
		y.fail("its kernel takes %d arguments and has %d", len(params), len(args))
		return 0
	}
	separator := ""
	for k := range args {
		if params[k].Scratch {
			args[k].Range = Range{Buffer: -1}
			continue
		}
		if params[k].LengthOf > 0 || params[k].Within > 0 {
			continue
		}
		y.add(separator, y.arg(args, params, k))
		separator = ", "
	}
	y.add("]")
	hint, err := l.Kernel.Describe(args)
	if err != nil {
		y.fail("%v", err)
	}
	grid, block := wholeSize(hint.Grid), wholeSize(hint.Block)
	if !hint.HasHint || l.Grid != grid {
		y.add(", grid: ", sizeText(l.Grid))
	}
	if l.Block != block && l.Block[0] != 0 {
		y.add(", block: ", sizeText(l.Block))
	}
	if l.Shared != hint.Shared {
		y.add(", shared: ", strconv.FormatUint(uint64(l.Shared), 10))
	}
	if l.Cooperative {
		y.add(", cooperative: true")
	}
	if l.Cluster != [3]uint32{} {
		y.add(", cluster: ", sizeText(l.Cluster))
	}
	return y.launchDevice(l)
}

// arg is argument k as a file has it.
func (y *yamlWriter) arg(args []Arg, params []KernelParam, k int) string {
	a, param := &args[k], &params[k]
	if a.Struct != "" {
		pointer := func(offset int32) string {
			for j := range args {
				if params[j].Within == int32(k)+1 && params[j].Offset == offset {
					return y.arg(args, params, j)
				}
			}
			return "null"
		}
		return "{struct: " + y.structure(a.Struct, param.Struct, 0, pointer) + "}"
	}
	if a.Texture != nil {
		return "{texture: " + y.reference(a.Range) + ", " + a.Texture.String() + "}"
	}
	if !a.IsBuffer && param.Buffer {
		return "null"
	}
	if !a.IsBuffer {
		text := y.scalar(a.DType, a.Bits)
		if param.DType == InvalidDType {
			return "{" + a.DType.String() + ": " + text + "}"
		}
		return text
	}
	// If the name could be read as a number or an expression, writing the mode shows that it is a buffer.
	if name := y.p.Buffers[a.Range.Buffer].Name; (a.Mode == param.Mode || a.Inferred) && expr.ValidName(name) && !expr.IsKeyword(name) {
		return y.reference(a.Range)
	}
	return "{" + a.Mode.String() + ": " + y.reference(a.Range) + "}"
}

// structure is a structure at an offset as a file has it. Of a structure whose members are not known, the bytes are numbers.
func (y *yamlWriter) structure(data string, s *Structure, offset int32, pointer func(offset int32) string) string {
	if s == nil {
		var parts []string
		for _, b := range []byte(data) {
			parts = append(parts, fmt.Sprintf("{u8: %d}", b))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	var parts []string
	for k := range s.Members {
		m := &s.Members[k]
		element := func(at int32) string {
			if m.Mode != 0 {
				return pointer(at)
			}
			inner := m.Struct
			if inner == nil {
				inner = VectorStructure(m.DType)
			}
			if inner != nil {
				return y.structure(data, inner, at, pointer)
			}
			bits := uint64(0)
			for b := range m.DType.Size() {
				bits |= uint64(data[int64(at)+b]) << (8 * b)
			}
			return y.scalar(m.DType, bits)
		}
		if m.Count == 0 {
			parts = append(parts, element(offset+m.Offset))
			continue
		}
		var list []string
		for i := range m.Count {
			list = append(list, element(offset+m.Offset+i*m.Size()))
		}
		parts = append(parts, "["+strings.Join(list, ", ")+"]")
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// reference writes a buffer or a slice.
func (y *yamlWriter) reference(r Range) string {
	b := &y.p.Buffers[r.Buffer]
	if b.Scratch {
		y.fail("%q is scratch and cannot be named in a file", b.Name)
	}
	if strings.HasSuffix(b.Name, ")") {
		y.fail("the name of buffer %q would read as a slice", b.Name)
	}
	if r.Lo == 0 && r.Hi == b.Bytes && r.Pitch == 0 {
		return yamlText(b.Name)
	}
	row := rowBytes(b)
	if rows, columns, ok := tileSpans(b, r); ok {
		return y.slice(b, fmt.Sprintf("(%d..%d)(%d..%d)", rows.Lo, rows.Hi, columns.Lo, columns.Hi))
	}
	if row == 0 || r.Lo%row != 0 || r.Hi%row != 0 {
		y.fail("bytes %d to %d of %q do not fall on whole rows", r.Lo, r.Hi, b.Name)
		return ""
	}
	return y.slice(b, fmt.Sprintf("(%d..%d)", r.Lo/row, r.Hi/row))
}

// slice writes a slice of a buffer, given as it follows the name.
func (y *yamlWriter) slice(b *Buffer, bounds string) string {
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
func (y *yamlWriter) scalar(t DType, bits uint64) string {
	switch {
	case t == Bool:
		return strconv.FormatBool(bits&0xff != 0)
	case t == U64:
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
	if t == F32 {
		// Write the shortest text that gives this f32, not its exact value: 0.1, not 0.10000000149011612.
		if short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', -1, 32), 64); err == nil && t.FromFloat(short) == bits {
			v = short
		}
	}
	return y.float(v)
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

// communication writes a communication node's own part and returns where it runs by default.
func (y *yamlWriter) communication(c *Communication) int32 {
	if c.Verb == Exchange {
		items := make([]string, len(c.Transfers))
		for i, t := range c.Transfers {
			word := "send"
			if t.Receive {
				word = "recv"
			}
			items[i] = fmt.Sprintf("%s: %s, rank: %d", word, y.reference(t.Range), t.Rank)
		}
		if c.Single && len(items) == 1 {
			y.add(items[0])
		} else {
			y.add("exchange: [{", strings.Join(items, "}, {"), "}]")
		}
		return y.p.Buffers[c.Transfers[0].Range.Buffer].Device
	}
	if len(c.More) > 0 {
		y.fail("it is a bucket of all-reduces, which files cannot declare")
		return 0
	}
	parts := []string{"from: " + y.reference(c.From), "to: " + y.reference(c.To)}
	if c.From == c.To && collectiveKeys[c.Verb].find("inout") >= 0 {
		parts = []string{"inout: " + y.reference(c.From)}
	}
	if c.Reduction != NoReduction {
		parts = append(parts, "op: "+c.Reduction.String())
	}
	if c.Verb == Reduce || c.Verb == Broadcast {
		parts = append(parts, fmt.Sprintf("root: %d", c.Root))
	}
	if !c.Among.All() {
		parts = append(parts, fmt.Sprintf("among: [%d, %d, %d]", c.Among.First, c.Among.Count, c.Among.Step))
	}
	y.add(c.Verb.String(), ": {", strings.Join(parts, ", "), "}")
	return y.p.Buffers[c.From.Buffer].Device
}

// call writes a call node's own part and returns where it runs by default.
func (y *yamlWriter) call(l *Launch) int32 {
	if l.Name == "" || l.Kernel == nil || len(l.Kernel.Params()) != len(l.Args) {
		y.fail("its call has no name, or not the arguments that it takes")
		return 0
	}
	y.add("call: ", yamlText(dollars(l.Name)), ", args: {")
	separator := ""
	for k, param := range l.Kernel.Params() {
		a := &l.Args[k]
		if param.hidden() {
			continue
		}
		text := ""
		switch {
		case a.IsBuffer:
			text = y.reference(a.Range)
		case param.Words != nil && a.Bits < uint64(len(param.Words)):
			text = yamlText(param.Words[a.Bits])
		default:
			text = y.scalar(a.DType, a.Bits)
		}
		y.add(separator, yamlText(param.Name), ": ", text)
		separator = ", "
	}
	y.add("}")
	return y.launchDevice(l)
}

// hostFunction writes a host function node's own part.
func (y *yamlWriter) hostFunction(n *Node, accesses []Access) {
	y.add("host: ", yamlText(dollars(n.Function)))
	for k, a := range accesses {
		y.add([]string{", args: [", ", "}[min(k, 1)], "{", a.Mode.String(), ": ", y.reference(a.Range), "}")
	}
	if len(accesses) > 0 {
		y.add("]")
	}
}
