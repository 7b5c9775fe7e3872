// Reading: a file comes from anywhere, so everything that is used as an index, an offset or a size is checked before, and an error names the byte.
// cudart/header/dagrun.h checks the same.

package graphfile

import (
	"fmt"
	"slices"

	"github.com/dagrun/dagrun/internal/recording"
)

// Read reads a file. Its code and contents stay in the file's memory until Close.
func Read(name string) (*File, error) {
	p, meta, err := recording.OpenPlanned(name)
	if err != nil {
		return nil, err
	}
	f := &File{Name: meta.Graph, Architecture: meta.Architecture, process: p}
	if err := f.take(); err != nil {
		p.Close()
		return nil, err
	}
	return f, nil
}

func (f *File) take() error {
	for _, take := range []func() error{f.takeBuffers, f.takeFunctions, f.takeGraph, f.takePointers, f.takeUses} {
		if err := take(); err != nil {
			return err
		}
	}
	return nil
}

func (f *File) takeBuffers() error {
	p := f.process
	names := map[string]bool{}
	for k := range p.Planned.Buffers {
		b := &p.Planned.Buffers[k]
		const host = recording.BufferHost
		switch {
		case b.Bytes > 1<<62 || b.Address > 1<<62 || b.Address+b.Bytes > 1<<62:
			return p.Wrong(b.Offset, "a buffer of %d bytes at 0x%x", b.Bytes, b.Address)
		case b.Name == "" || names[b.Name]:
			return p.Wrong(b.Offset, "a second buffer, or one without a name: %q", b.Name)
		case len(b.Shape) > 16:
			return p.Wrong(b.Offset, "a buffer of %d dimensions", len(b.Shape))
		}
		names[b.Name] = true
		shape := make([]int64, len(b.Shape))
		for i, n := range b.Shape {
			if n > 1<<62 {
				return p.Wrong(b.Offset, "dimension %d of a buffer is %d", i, n)
			}
			shape[i] = int64(n)
		}
		f.Buffers = append(f.Buffers, Buffer{Name: b.Name, DType: b.DType, Shape: shape, Bytes: int64(b.Bytes), Address: b.Address,
			Host: b.Flags&host != 0, Given: b.Flags&recording.BufferGiven != 0, Result: b.Flags&recording.BufferResult != 0})
	}
	for k := range p.Contents {
		c := &p.Contents[k]
		data, err := c.Load()
		if err != nil {
			return err
		}
		switch {
		case c.Buffer >= uint64(len(f.Buffers)):
			return p.Wrong(c.Offset, "contents of buffer %d of %d", c.Buffer, len(f.Buffers))
		case c.Bytes != uint64(f.Buffers[c.Buffer].Bytes) || uint64(len(data)) != c.Bytes || c.Address != f.Buffers[c.Buffer].Address ||
			f.Buffers[c.Buffer].Contents != nil:
			return p.Wrong(c.Offset, "contents of %d bytes at 0x%x are not those of buffer %q", c.Bytes, c.Address, f.Buffers[c.Buffer].Name)
		}
		f.Buffers[c.Buffer].Contents = data
	}
	return nil
}

func (f *File) takeFunctions() error {
	p := f.process
	for k := range p.Modules {
		m := &p.Modules[k]
		code, err := m.Load()
		if err != nil {
			return err
		}
		if m.Handle != uint64(k+1) {
			return p.Wrong(m.Offset, "module %d has the handle %d", k+1, m.Handle)
		}
		if problem := codeProblem(code); problem != "" {
			return p.Wrong(m.Offset, "%s", problem)
		}
		f.Modules = append(f.Modules, code)
	}
	for k := range len(p.Functions) {
		list := p.Functions[uint64(k+1)]
		if len(list) != 1 {
			return f.graphWrong("%d functions have the handle %d", len(list), k+1)
		}
		fn := &list[0]
		if fn.Module == 0 || fn.Module > uint64(len(f.Modules)) || fn.Name == "" {
			return p.Wrong(fn.Offset, "function %q of module %d of %d", fn.Name, fn.Module, len(f.Modules))
		}
		f.Functions = append(f.Functions, Function{int32(fn.Module - 1), fn.Name, fn.Parameters})
	}
	return nil
}

// codeProblem says what keeps code from being given to a driver, which takes text up to a zero.
func codeProblem(code []byte) string {
	const elf, fatbin = "\x7fELF", "\x50\xed\x55\xba"
	switch {
	case len(code) < 8:
		return fmt.Sprintf("a module of %d bytes", len(code))
	case string(code[:4]) == elf, string(code[:4]) == fatbin, code[len(code)-1] == 0:
		return ""
	}
	return "a module that is no machine code, and no text that ends with a zero"
}

// graphWrong is the error of something that has no record of its own.
func (f *File) graphWrong(format string, arguments ...any) error {
	at := int64(0)
	if len(f.process.Graphs) > 0 {
		at = f.process.Graphs[0].Offset
	}
	return f.process.Wrong(at, format, arguments...)
}

func (f *File) takeGraph() error {
	p := f.process
	if len(p.Graphs) != 1 || len(p.Planned.Nodes) != len(p.Graphs[0].Nodes) {
		return f.graphWrong("%d graphs and the names of %d nodes, instead of one graph and those of all its nodes", len(p.Graphs), len(p.Planned.Nodes))
	}
	g := &p.Graphs[0]
	for k := range g.Nodes {
		named := &p.Planned.Nodes[k]
		if named.Node != uint64(k) || named.Priority < -1 || named.Priority > 1 {
			return p.Wrong(named.Offset, "node %d is said to be number %d, of priority %d", k, named.Node, named.Priority)
		}
		n := Node{Name: named.Name, Priority: int8(named.Priority), Kind: Kind(g.Nodes[k].Type), Body: g.Nodes[k].Body}
		if problem := f.bodyProblem(&n); problem != "" {
			return p.Wrong(g.Offset, "node %d, %q: %s", k, n.Name, problem)
		}
		f.Nodes = append(f.Nodes, n)
	}
	for k, e := range g.Edges {
		if e.From >= e.To || e.Programmatic || e.Ports != 0 {
			return p.Wrong(g.Offset, "edge %d leads from node %d to node %d, and must lead further down", k, e.From, e.To)
		}
		f.Edges = append(f.Edges, [2]int32{int32(e.From), int32(e.To)})
	}
	return nil
}

// bodyProblem says what is wrong with what describes a node, apart from its addresses; "" if nothing is.
func (f *File) bodyProblem(n *Node) string {
	words, known := map[Kind]int{Kernel: kernelWords, Copy: copyWords, Set: setWords, Empty: 0}[n.Kind]
	if !known {
		return fmt.Sprintf("a node of type %d; a file has kernels (0), copies (1), sets (2) and empty nodes (5)", n.Kind)
	}
	if len(n.Body) < 8*words {
		return fmt.Sprintf("%d bytes describe it, and at least %d belong there", len(n.Body), 8*words)
	}
	switch n.Kind {
	case Kernel:
		return f.kernelProblem(n)
	case Copy:
		if n.word(4) != 1 || rowsProblem(n.word(2), n.word(3), n.word(5)) || rowsProblem(n.word(2), n.word(3), n.word(6)) {
			return fmt.Sprintf("a copy of %d slices, %d rows and %d bytes", n.word(4), n.word(3), n.word(2))
		}
	case Set:
		if width := n.word(5); width != 1 && width != 2 && width != 4 || n.word(1)%width != 0 || rowsProblem(n.word(1), n.word(2), n.word(3)) {
			return fmt.Sprintf("a set of %d rows and %d bytes, in elements of %d", n.word(2), n.word(1), n.word(5))
		}
	}
	return ""
}

// rowsProblem reports whether there are no such rows.
func rowsProblem(width, rows, pitch uint64) bool {
	return width == 0 || rows == 0 || width >= 1<<40 || rows >= 1<<31 || rows > 1 && (pitch < width || pitch >= 1<<31)
}

func (f *File) kernelProblem(n *Node) string {
	function := n.word(0)
	if function == 0 || function > uint64(len(f.Functions)) {
		return fmt.Sprintf("function %d of %d", function, len(f.Functions))
	}
	for k := 1; k <= 7; k++ {
		if value := n.word(k); value >= 1<<32 || k < 7 && value == 0 {
			return fmt.Sprintf("word %d of the launch, a size, is %d", k, value)
		}
	}
	const known = 1 // LAUNCH_COOPERATIVE
	if n.word(8)&^known != 0 || n.word(9)>>48 != 0 {
		return fmt.Sprintf("a launch with flags %d and the cluster 0x%x", n.word(8), n.word(9))
	}
	room := uint64(len(n.Body) - 8*kernelWords)
	for k, p := range f.Functions[function-1].Parameters {
		if uint64(p.Offset)+uint64(p.Bytes) > room {
			return fmt.Sprintf("parameter %d lies at %d to %d of %d bytes", k, p.Offset, uint64(p.Offset)+uint64(p.Bytes), room)
		}
	}
	return ""
}

func (f *File) takePointers() error {
	p := f.process
	for k := range p.Planned.Pointers {
		r := &p.Planned.Pointers[k]
		if r.Node >= uint64(len(f.Nodes)) || r.Buffer >= uint64(len(f.Buffers)) {
			return p.Wrong(r.Offset, "a pointer of node %d to buffer %d, of %d and %d", r.Node, r.Buffer, len(f.Nodes), len(f.Buffers))
		}
		n, b := &f.Nodes[r.Node], &f.Buffers[r.Buffer]
		if r.Bytes > uint64(b.Bytes) || r.At > uint64(b.Bytes)-r.Bytes {
			return p.Wrong(r.Offset, "node %q reaches bytes %d to %d of buffer %q, which has %d", n.Name, r.At, r.At+r.Bytes, b.Name, b.Bytes)
		}
		least := uint64(0)
		if n.Kind == Kernel {
			least = 8 * kernelWords
		}
		if r.Byte < least || r.Byte+8 < 8 || r.Byte+8 > uint64(len(n.Body)) || n.addressAt(r.Byte) != b.Address+r.At {
			return p.Wrong(r.Offset, "byte %d of what describes node %q is not the address of byte %d of buffer %q", r.Byte, n.Name, r.At, b.Name)
		}
		if b.Host && n.Kind == Kernel {
			return p.Wrong(r.Offset, "kernel %q is given buffer %q of the host", n.Name, b.Name)
		}
		n.Pointers = append(n.Pointers, Pointer{uint32(r.Byte), int32(r.Buffer), int64(r.At), int64(r.Bytes)})
	}
	for k := range f.Nodes {
		if problem := f.pointersProblem(&f.Nodes[k]); problem != "" {
			return f.graphWrong("node %d, %q: %s", k, f.Nodes[k].Name, problem)
		}
	}
	return nil
}

func (n *Node) addressAt(at uint64) uint64 {
	shifted := Node{Body: n.Body[at:]}
	return shifted.word(0)
}

// pointersProblem says which address of a copy or a set has no pointer, or is not that of enough bytes.
func (f *File) pointersProblem(n *Node) string {
	var reach []int64
	rows := func(width, rows, pitch int) int64 {
		return int64(n.word(width)) + int64(n.word(rows)-1)*int64(n.word(pitch))
	}
	switch n.Kind {
	case Copy:
		reach = []int64{rows(2, 3, 5), rows(2, 3, 6)}
	case Set:
		reach = []int64{rows(1, 2, 3)}
	case Empty:
		if len(n.Pointers) > 0 {
			return "an empty node with an address"
		}
	}
	if n.Kind != Kernel && len(n.Pointers) != len(reach) {
		return fmt.Sprintf("%d pointers, where %d belong", len(n.Pointers), len(reach))
	}
	for k, bytes := range reach {
		at := slices.IndexFunc(n.Pointers, func(p Pointer) bool { return p.Byte == uint32(8*k) })
		if at < 0 {
			return fmt.Sprintf("word %d is an address, and no pointer says of what", k)
		}
		if p := n.Pointers[at]; p.Bytes < bytes {
			return fmt.Sprintf("%d bytes from byte %d of buffer %q on, and its pointer reaches %d", bytes, p.At, f.Buffers[p.Buffer].Name, p.Bytes)
		}
	}
	return ""
}

func (f *File) takeUses() error {
	p := f.process
	for k := range p.Planned.Uses {
		r := &p.Planned.Uses[k]
		if r.Node >= uint64(len(f.Nodes)) || r.Buffer >= uint64(len(f.Buffers)) {
			return p.Wrong(r.Offset, "node %d uses buffer %d, of %d and %d", r.Node, r.Buffer, len(f.Nodes), len(f.Buffers))
		}
		n, b := &f.Nodes[r.Node], &f.Buffers[r.Buffer]
		u := Use{int32(r.Buffer), int64(r.At), int64(r.Width), int64(r.Rows), int64(r.Pitch), uint32(r.Modes)}
		if r.At > uint64(b.Bytes) || rowsProblem(r.Width, r.Rows, r.Pitch) || r.Modes == 0 || r.Modes > recording.Read|recording.Write || u.end() > b.Bytes {
			return p.Wrong(r.Offset, "node %q uses %d rows of %d bytes of buffer %q, from byte %d on, in modes %d", n.Name, r.Rows, r.Width, b.Name, r.At, r.Modes)
		}
		n.Uses = append(n.Uses, u)
	}
	return nil
}
