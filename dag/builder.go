// The builder: a pipeline declared by Go calls. It collects errors, and Graph returns all of them.

package dag

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Builder declares a pipeline by Go calls; New makes one. Declarations return ids, by which later calls refer to buffers and nodes. A
// call with wrong arguments returns an id too, so that the calls after it can be checked; Graph returns all errors. A Builder must not
// be used by several goroutines at once.
type Builder struct {
	pipeline Draft
	library  Library
	checker                      // of what is wrong so far
	byName   map[string]BufferID // the first named buffers, once a Map has asked for one
	named    int
	depth    int // of the bodies that are being declared
}

// New starts a pipeline.
func New(name string) *Builder {
	return &Builder{pipeline: Draft{Pipeline{Name: name}}}
}

// Grow allocates memory for that many more declarations, at most MaxNodes of each, so that a large pipeline is not copied while it
// grows.
func (b *Builder) Grow(nodes, buffers, accesses int) {
	p := &b.pipeline
	if nodes < 0 || buffers < 0 || accesses < 0 {
		b.wrong("pipeline", p.Name, fmt.Sprintf("Grow by %d nodes, %d buffers and %d accesses: a number is negative", nodes, buffers, accesses), "")
		return
	}
	p.Nodes = slices.Grow(p.Nodes, min(nodes, MaxNodes))
	p.accessStart = slices.Grow(p.accessStart, min(nodes, MaxNodes))
	p.Buffers = slices.Grow(p.Buffers, min(buffers, MaxNodes))
	p.accesses = slices.Grow(p.accesses, min(accesses, MaxNodes))
}

// Use sets the library that kernels are found in. It must come before the first Kernel or Map.
func (b *Builder) Use(library Library) { b.library = library }

// Module declares a file of kernels of one's own. Its kernels are then called NAME.KERNEL.
func (b *Builder) Module(name, path string, library Library) {
	switch {
	case name == "" || strings.Contains(name, "."):
		b.wrong("module", name, "the name must not be empty or have a dot", "")
	case library == nil:
		b.wrong("module", name, "there is no library", "")
	case slices.ContainsFunc(b.pipeline.Modules, func(m Module) bool { return m.Name == name }):
		b.wrong("module", name, "the name is taken", "")
	default:
		b.pipeline.Modules = append(b.pipeline.Modules, Module{Name: name, Path: path, Library: library})
	}
}

// Sync says which dependencies become waits.
func (b *Builder) Sync(sync Sync) { b.pipeline.Sync = sync }

// Host declares a pinned host buffer and returns its id.
func (b *Builder) Host(name string, t DType, shape ...int64) BufferID {
	return b.Buffer(Buffer{Name: name, Place: Host, DType: t, Shape: shape})
}

// Device declares a buffer in the memory of device 0 and returns its id. For another device see OnDevice.
func (b *Builder) Device(name string, t DType, shape ...int64) BufferID {
	return b.Buffer(Buffer{Name: name, Place: Device, DType: t, Shape: shape})
}

// Buffer declares a buffer; its Bytes follow from DType and Shape.
func (b *Builder) Buffer(buffer Buffer) BufferID {
	err := buffer.SetBytes()
	if err != nil {
		b.wrong("buffer", buffer.Name, err.Error(), "")
	}
	if buffer.Symbol != "" && err == nil {
		if message, hint := b.pipeline.BindSymbol(&buffer); message != "" {
			b.wrong("buffer", buffer.Name, message, hint)
		}
	}
	b.pipeline.Buffers = append(b.pipeline.Buffers, buffer)
	return BufferID(len(b.pipeline.Buffers) - 1)
}

// BufferAt returns a declared buffer, to set fields that no method sets. The pointer is valid until the next declaration. The
// buffer's size must not change.
func (b *Builder) BufferAt(buffer BufferID) *Buffer {
	if buffer < 0 || int(buffer) >= len(b.pipeline.Buffers) {
		b.wrong("pipeline", b.pipeline.Name, fmt.Sprintf("there is no buffer with id %d", buffer), "")
		return &Buffer{DType: U8}
	}
	return &b.pipeline.Buffers[buffer]
}

// OnDevice moves a device buffer to another device. It must come before the first use of the buffer.
func (b *Builder) OnDevice(buffer BufferID, device int32) {
	at := b.BufferAt(buffer)
	at.Device, at.Fixed = device, true
}

// Pageable makes a host buffer ordinary memory, copies of which are not asynchronous.
func (b *Builder) Pageable(buffer BufferID) { b.BufferAt(buffer).Pageable = true }

// Init sets the contents of a buffer before the first replay.
func (b *Builder) Init(buffer BufferID, init Init) { b.BufferAt(buffer).Init = &init }

// Save names the file, .npy or .bin, that the buffer is written to after a run.
func (b *Builder) Save(buffer BufferID, file string) { b.BufferAt(buffer).Save = file }

// Expect sets what the buffer must hold after a run.
func (b *Builder) Expect(buffer BufferID, expect Expect) { b.BufferAt(buffer).Expect = &expect }

// Task declares an opaque node: it can be planned, not run.
func (b *Builder) Task(name string, accesses ...Access) NodeID {
	return b.Node(Node{Name: name, Kind: Task}, accesses...)
}

// Copy declares a copy of one range to another of the same size.
func (b *Builder) Copy(name string, dst, src Range) NodeID {
	node := Node{Name: name, Kind: Memcpy}
	if !b.inside("node", name, dst) || !b.inside("node", name, src) {
		return b.Node(node)
	}
	if err := b.pipeline.Copy(&node, dst, src); err != nil {
		b.wrong("node", name, "memcpy: "+err.Error(), "")
		return b.Node(node)
	}
	return b.Node(node, src.In(), dst.Out())
}

// Memset declares a node that sets every element of a range to a value: any integer or float, or a bool.
func (b *Builder) Memset(name string, dst Range, value any) NodeID {
	node := Node{Name: name, Kind: Memset}
	if !b.inside("node", name, dst) {
		return b.Node(node)
	}
	buffer := &b.pipeline.Buffers[dst.Buffer]
	if buffer.Place == Host {
		b.wrong("node", name, fmt.Sprintf("memset cannot fill %q, which is in host memory", buffer.Name), "fill it with Init, or copy to it")
		return b.Node(node)
	}
	v, ok := numberOf(value)
	if !ok {
		b.wrong("node", name, fmt.Sprintf("memset: a %T is not a number", value), "")
		return b.Node(node)
	}
	bits, err := buffer.DType.FillBits(v)
	if err != nil {
		b.wrong("node", name, "memset: the value "+err.Error(), "")
		return b.Node(node)
	}
	if err := b.pipeline.Memset(&node, dst, bits); err != nil {
		b.wrong("node", name, "memset: "+err.Error(), "copy a tile of a buffer that has the value")
		return b.Node(node)
	}
	return b.Node(node, dst.Out())
}

// Ranks says that the pipeline is the one of a rank, of so many that run together.
func (b *Builder) Ranks(rank, ranks int) {
	if err := CheckRank(rank, 0, ranks); err != nil {
		b.wrong("pipeline", b.pipeline.Name, err.Error(), "")
		return
	}
	b.pipeline.Rank, b.pipeline.Ranks = int32(rank), int32(ranks)
}

// Communicate declares what this rank does together with others; call Ranks first. The type of the elements follows from the buffers.
func (b *Builder) Communicate(name string, c Communication) NodeID {
	node := Node{Name: name, Kind: Communicate}
	if b.depth == 0 { // in a body it has the priority of the node around it
		node.Priority = High
	}
	first := c.From
	if c.Verb == Exchange && len(c.Transfers) > 0 {
		first = c.Transfers[0].Range
	}
	if !b.inside("node", name, first) {
		return b.Node(node)
	}
	accesses, hint, err := b.pipeline.Communicate(&node, &c)
	if err != nil {
		b.wrong("node", name, err.Error(), hint)
		return b.Node(node)
	}
	return b.Node(node, accesses...)
}

// HostFunction declares a node that runs a function of the program on a thread of the host. The function is passed to the runtime under
// its name (runtime.Options.Functions), so that a graph stays data. It may access what the node declares, in host buffers only.
func (b *Builder) HostFunction(name, function string, accesses ...Access) NodeID {
	node := Node{Name: name, Kind: HostFunction, Function: function}
	if function == "" {
		b.wrong("node", name, "the host function has no name", "name it as in runtime.Options.Functions")
		node.Kind = Task
	}
	node.Work = HostWork(accesses)
	return b.Node(node, accesses...)
}

// inside reports whether a range lies in its buffer, and notes it where not.
func (b *Builder) inside(what, name string, r Range) bool {
	err := b.pipeline.rangeProblem(r)
	if err != nil {
		b.wrong(what, name, err.Error(), "")
	}
	return err == nil
}

// Node declares any node with its accesses and returns its id.
func (b *Builder) Node(node Node, accesses ...Access) NodeID {
	return b.pipeline.Add(node, accesses...)
}

// At returns a declared node, to set fields that no method sets. The pointer is valid until the next declaration.
func (b *Builder) At(node NodeID) *Node {
	if node < 0 || int(node) >= len(b.pipeline.Nodes) {
		b.wrong("pipeline", b.pipeline.Name, fmt.Sprintf("there is no node with id %d", node), "")
		return &Node{}
	}
	return &b.pipeline.Nodes[node]
}

// After makes a node wait for others, whatever they touch. They may be declared later, as long as nothing goes in a circle.
func (b *Builder) After(node NodeID, others ...NodeID) {
	n := b.At(node)
	n.After = append(n.After, others...)
}

// Stream binds a node to a stream.
func (b *Builder) Stream(node NodeID, stream int32) { b.At(node).Stream = OnStream(stream) }

// Priority sets a node's priority. Nodes of different priority never share a stream.
func (b *Builder) Priority(node NodeID, priority Priority) { b.At(node).Priority = priority }

// Cost declares how long a node takes, in microseconds, for planning.
func (b *Builder) Cost(node NodeID, us float64) {
	n := b.At(node)
	n.CostUS, n.HasCost = us, true
}

// Graph checks the declaration and derives its dependencies. The error joins everything that is wrong: *DeclarationError, and
// where nothing else is wrong a *CycleError. The builder is of no use afterwards: another call of Graph returns an error.
func (b *Builder) Graph() (*Graph, error) {
	p, c := b.pipeline, b.checker
	*b = Builder{pipeline: Draft{Pipeline{Name: p.Name}}, library: b.library}
	b.wrong("pipeline", p.Name, "Graph was called before", "declare each pipeline with a builder of its own")
	c.pipeline(&p.Pipeline)
	if err := errors.Join(c.errs...); err != nil {
		return nil, err
	}
	p.OrderCommunication()
	return p.Derive(nil)
}

// Devices says over how many devices the pipeline may be spread, or AllDevices. It comes before the first kernel.
func (b *Builder) Devices(devices int) {
	if devices < AllDevices || devices > MostDevices {
		b.wrong("pipeline", b.pipeline.Name, fmt.Sprintf("it can be spread over 1 to %d devices, not %d", MostDevices, devices), "")
		return
	}
	b.pipeline.Devices = int32(devices)
}

// Empty returns a builder for another version of the graph: with its name, parameters, modules and settings, and no buffers or nodes yet.
func (g *Graph) Empty() *Builder {
	b := New("")
	if g == nil || g.Pipeline == nil {
		b.wrong("pipeline", "", "there is no graph to make another version of", "")
		return b
	}
	p := *g.Pipeline
	p.Buffers, p.Nodes, p.accesses, p.accessStart, p.Devices = nil, nil, nil, nil, 0
	b.pipeline.Pipeline = p
	return b
}
