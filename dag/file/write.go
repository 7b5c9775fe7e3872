// Writing a pipeline as a file, with all numbers and repetitions written out. Read back, it gives the same pipeline.

package file

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
)

// Write writes a pipeline as a file of the present version, one line for each buffer and node, that [Parse] reads as the
// same pipeline: expressions have become numbers and foreach is written out. Scratch buffers are left out; they come back with
// their kernels. The error says what no file can hold: tasks, ranges that do not fall on whole rows, numbers that are not
// finite.
func Write(w io.Writer, p *dag.Pipeline) error {
	if p == nil || w == nil {
		return errors.New("a pipeline and a writer are needed to write a file")
	}
	if err := p.Problem(); err != nil {
		return fmt.Errorf("pipeline %q cannot be written as a file: %w", p.Name, err)
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
		y.node(&p.Nodes[i], p.Accesses(dag.NodeID(i)))
	}
	if y.err != nil {
		return fmt.Errorf("pipeline %q cannot be written as a file: %w", p.Name, y.err)
	}
	return y.Flush()
}

func (y *yamlWriter) head() {
	y.add("version: ", strconv.Itoa(Version), "\n")
	if y.p.Name != "" {
		y.add("name: ", yamlText(y.p.Name), "\n")
	}
	if y.p.Sync != dag.SyncAuto {
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
func (y *yamlWriter) build(m *dag.Module) string {
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

func (y *yamlWriter) init(in *dag.Init) string {
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

func (y *yamlWriter) node(n *dag.Node, accesses []dag.Access) {
	y.where = fmt.Sprintf("node %q", n.Name)
	y.add("  - {name: ", yamlText(dollars(n.Name)), ", ")
	y.usual = defaults{priority: dag.Normal}
	switch {
	case n.Copy != nil:
		y.add("memcpy: {from: ", y.reference(n.Copy.Src), ", to: ", y.reference(n.Copy.Dst), "}")
		y.usual.device = y.p.CopyDevice(n.Copy.Dst, n.Copy.Src)
	case n.Set != nil:
		b := &y.p.Buffers[n.Set.Dst.Buffer]
		y.add("memset: {to: ", y.reference(n.Set.Dst), ", value: ", y.scalar(b.DType.Component(), n.Set.Bits), "}")
		y.usual.device = b.Device
	case n.Communication != nil:
		y.usual.device, y.usual.priority = y.communication(n.Communication), dag.High
	case n.Launch != nil && n.Launch.Map != nil:
		y.usual.device = y.mapping(n.Launch)
	case n.Kind == dag.Call && n.Launch != nil:
		y.usual.device = y.call(n.Launch)
	case n.Launch != nil:
		y.usual.device = y.kernel(n.Launch)
	case n.Kind == dag.HostFunction:
		y.hostFunction(n, accesses)
	default:
		y.fail("a %s cannot be written in a file", n.Kind)
	}
	for k := range nodeRows {
		row := &nodeRows[k]
		if row.write == nil || row.launch != nil && (n.Kind != dag.Kernel || n.Launch == nil) {
			continue
		}
		if text := row.write(y, n); text != "" {
			y.add(", ", row.name, ": ", text)
		}
	}
	y.add("}\n")
}
