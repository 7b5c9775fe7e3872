// Writing a pipeline as a file, with all numbers and repetitions written out. Read back, it gives the same pipeline.

package file

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/dagrun/dagrun/dag"
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
		y.add("  ", yamlText(dollars(b.Name)), ": {")
		writeRows(y, bufferRows[:], b, "", false)
		y.add("}\n")
	}
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
	writeRows(y, nodeRows[:], n, ", ", n.Kind == dag.Kernel && n.Launch != nil)
	y.add("}\n")
}
