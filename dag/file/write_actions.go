// What each kind of node is written as: launches with their arguments, calls, host functions and communication.

package file

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
)

// mapping writes a map node's own part and returns where it runs by default.
func (y *yamlWriter) mapping(l *dag.Launch) int32 {
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

func (y *yamlWriter) launchDevice(l *dag.Launch) int32 {
	for i := range l.Args { // the first buffer that has to be where it is decides
		if a := &l.Args[i]; y.p.Devices != 0 && a.IsBuffer && !y.p.Buffers[a.Range.Buffer].Scratch && !y.p.Roams(a.Range.Buffer) {
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
func (y *yamlWriter) kernel(l *dag.Launch) int32 {
	if l.Name == "" || l.Kernel == nil {
		y.fail("its kernel has no name")
		return 0
	}
	y.add("kernel: ", yamlText(dollars(l.Name)), ", args: [")
	params := l.Kernel.Params()
	args := append([]dag.Arg(nil), l.Args...)
	if len(params) != len(args) {
		y.fail("its kernel takes %d arguments and has %d", len(params), len(args))
		return 0
	}
	separator := ""
	for k := range args {
		if params[k].Scratch {
			args[k].Range = dag.Range{Buffer: -1}
			continue
		}
		if params[k].LengthOf > 0 || params[k].Within > 0 {
			continue
		}
		y.add(separator, y.arg(args, params, k))
		separator = ", "
	}
	y.add("]")
	var err error
	if y.usual.LaunchInfo, err = l.Kernel.Describe(args); err != nil {
		y.fail("%v", err)
	}
	return y.launchDevice(l)
}

// arg is argument k as a file has it.
func (y *yamlWriter) arg(args []dag.Arg, params []dag.KernelParam, k int) string {
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
		if param.DType == dag.InvalidDType {
			return "{" + a.DType.String() + ": " + text + "}"
		}
		return text
	}
	if a.Start > 0 {
		return fmt.Sprintf("{%s: %s, at: %d}", a.Mode, y.reference(a.Range), a.Start/a.DType.Size())
	}
	// If the name could be read as a number or an expression, writing the mode shows that it is a buffer.
	if name := y.p.Buffers[a.Range.Buffer].Name; (a.Mode == param.Mode || a.Inferred) && expr.ValidName(name) && !expr.IsKeyword(name) {
		return y.reference(a.Range)
	}
	return "{" + a.Mode.String() + ": " + y.reference(a.Range) + "}"
}

// structure is a structure at an offset as a file has it. Of a structure whose members are not known, the bytes are numbers.
func (y *yamlWriter) structure(data string, s *dag.Structure, offset int32, pointer func(offset int32) string) string {
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
				inner = dag.VectorStructure(m.DType)
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

// communication writes a communication node's own part and returns where it runs by default.
func (y *yamlWriter) communication(c *dag.Communication) int32 {
	if c.Verb == dag.Exchange {
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
	if c.Reduction != dag.NoReduction {
		parts = append(parts, "op: "+c.Reduction.String())
	}
	if c.Verb == dag.Reduce || c.Verb == dag.Broadcast {
		parts = append(parts, fmt.Sprintf("root: %d", c.Root))
	}
	if !c.Among.All() {
		parts = append(parts, fmt.Sprintf("among: [%d, %d, %d]", c.Among.First, c.Among.Count, c.Among.Step))
	}
	y.add(c.Verb.String(), ": {", strings.Join(parts, ", "), "}")
	return y.p.Buffers[c.From.Buffer].Device
}

// call writes a call node's own part and returns where it runs by default.
func (y *yamlWriter) call(l *dag.Launch) int32 {
	if l.Name == "" || l.Kernel == nil || len(l.Kernel.Params()) != len(l.Args) {
		y.fail("its call has no name, or not the arguments that it takes")
		return 0
	}
	y.add("call: ", yamlText(dollars(l.Name)), ", args: {")
	separator := ""
	for k, param := range l.Kernel.Params() {
		a := &l.Args[k]
		if param.Hidden() {
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
func (y *yamlWriter) hostFunction(n *dag.Node, accesses []dag.Access) {
	y.add("host: ", yamlText(dollars(n.Function)))
	for k, a := range accesses {
		y.add([]string{", args: [", ", "}[min(k, 1)], "{", a.Mode.String(), ": ", y.reference(a.Range), "}")
	}
	if len(accesses) > 0 {
		y.add("]")
	}
}
