// The builder: a pipeline made by Go calls. Collects errors; Graph returns them all. Parses no files.

package dag

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Builder declares a pipeline by Go calls. The zero Builder is not usable: call New. Buffers and nodes are named by the ids
// that their declarations return. A call that is wrong still returns an id, so that the calls after it can be checked too;
// what was wrong comes out of Graph. A Builder is for one goroutine.
type Builder struct {
	pipeline Pipeline
	library  Library
	errs     []error
	byName   map[string]BufferID // the first named buffers, once a Map has asked for one
	named    int
}

// DeclarationError is one thing wrong with a declaration made by Go calls.
type DeclarationError struct {
	What    string // "pipeline", "module", "buffer" or "node"
	Name    string // of the node or buffer
	Message string
	Hint    string // a way out, or ""
}

// Error is such as: node "saxpy": unknown kernel "saxpi"; did you mean "saxpy"?
func (e *DeclarationError) Error() string {
	text := fmt.Sprintf("%s %q: %s", e.What, e.Name, e.Message)
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

// New starts a pipeline.
func New(name string) *Builder {
	return &Builder{pipeline: Pipeline{Name: name, accessStart: []int32{0}}}
}

// Grow makes room for that many more declarations, which spares a large pipeline from being moved while it grows.
func (b *Builder) Grow(nodes, buffers, accesses int) {
	p := &b.pipeline
	p.Nodes = slices.Grow(p.Nodes, nodes)
	p.accessStart = slices.Grow(p.accessStart, nodes)
	p.Buffers = slices.Grow(p.Buffers, buffers)
	p.accesses = slices.Grow(p.accesses, accesses)
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

func (b *Builder) wrong(what, name, message, hint string) {
	b.errs = append(b.errs, &DeclarationError{what, name, message, hint})
}

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
	bytes, err := bufferBytes(buffer.DType, buffer.Shape)
	if err != nil {
		b.wrong("buffer", buffer.Name, err.Error(), "")
	}
	buffer.Bytes = bytes
	b.pipeline.Buffers = append(b.pipeline.Buffers, buffer)
	return BufferID(len(b.pipeline.Buffers) - 1)
}

// BufferAt returns the declared buffer for changes of what has no call of its own. The pointer holds until the next
// declaration; its size must not change.
func (b *Builder) BufferAt(buffer BufferID) *Buffer {
	if buffer < 0 || int(buffer) >= len(b.pipeline.Buffers) {
		b.wrong("pipeline", b.pipeline.Name, fmt.Sprintf("there is no buffer with id %d", buffer), "")
		return &Buffer{DType: U8}
	}
	return &b.pipeline.Buffers[buffer]
}

// OnDevice moves a device buffer to another device. It must come before the first use of the buffer.
func (b *Builder) OnDevice(buffer BufferID, device int32) { b.BufferAt(buffer).Device = device }

// Pageable makes a host buffer ordinary memory, copies of which are not asynchronous.
func (b *Builder) Pageable(buffer BufferID) { b.BufferAt(buffer).Pageable = true }

// Init sets the contents of a buffer before the first replay.
func (b *Builder) Init(buffer BufferID, init Init) { b.BufferAt(buffer).Init = &init }

// Save names the file, .npy or .bin, that the buffer is written to after a run.
func (b *Builder) Save(buffer BufferID, file string) { b.BufferAt(buffer).Save = file }

// Expect sets what the buffer must hold after a run.
func (b *Builder) Expect(buffer BufferID, expect Expect) { b.BufferAt(buffer).Expect = &expect }

// Whole is all of a buffer.
func (b *Builder) Whole(buffer BufferID) Range {
	return Range{buffer, 0, b.BufferAt(buffer).Bytes}
}

// Slice is elements lo (included) to hi (excluded) of a buffer, counted along its first dimension.
func (b *Builder) Slice(buffer BufferID, lo, hi int64) Range {
	r, err := sliceOf(buffer, b.BufferAt(buffer), lo, hi)
	if err != nil {
		b.wrong("buffer", b.BufferAt(buffer).Name, err.Error(), "")
	}
	return r
}

// Part is part i of k even parts of a buffer's first dimension; where it does not divide, the first parts are one longer.
func (b *Builder) Part(buffer BufferID, i, k int64) Range {
	r, err := partOf(buffer, b.BufferAt(buffer), i, k)
	if err != nil {
		b.wrong("buffer", b.BufferAt(buffer).Name, err.Error(), "")
	}
	return r
}

// In, Out and InOut are accesses of a whole buffer. For a slice see Range.In, Range.Out and Range.InOut.
func (b *Builder) In(buffer BufferID) Access    { return b.Whole(buffer).In() }
func (b *Builder) Out(buffer BufferID) Access   { return b.Whole(buffer).Out() }
func (b *Builder) InOut(buffer BufferID) Access { return b.Whole(buffer).InOut() }

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
	if err := b.pipeline.copyProblem(dst, src); err != nil {
		b.wrong("node", name, "memcpy: "+err.Error(), "")
		return b.Node(node)
	}
	node.Copy, node.Work, node.Device = &Copy{dst, src}, copyWork(src), b.pipeline.copyDevice(dst, src)
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
	bits, err := scalarBits(buffer.DType, v)
	if err != nil {
		b.wrong("node", name, "memset: the value "+err.Error(), "")
		return b.Node(node)
	}
	node.Set, node.Work, node.Device = &Set{dst, bits}, setWork(dst), buffer.Device
	return b.Node(node, dst.Out())
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
	return b.pipeline.add(node, accesses)
}

// At returns the declared node for changes of what has no call of its own. The pointer holds until the next declaration.
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
// where nothing else is wrong a *CycleError. The builder must not be used afterwards.
func (b *Builder) Graph() (*Graph, error) {
	b.check()
	if err := errors.Join(b.errs...); err != nil {
		return nil, err
	}
	return b.pipeline.Graph()
}

// check looks at what calls cannot see alone: names, and what was changed through At.
func (b *Builder) check() {
	p := &b.pipeline
	if len(p.Nodes) > MaxNodes {
		b.wrong("pipeline", p.Name, fmt.Sprintf("there are %d nodes; at most %d are allowed", len(p.Nodes), MaxNodes), "")
	}
	b.checkNames("buffer", len(p.Buffers), func(i int32) string { return p.Buffers[i].Name })
	b.checkNames("node", len(p.Nodes), func(i int32) string { return p.Nodes[i].Name })
	for i := range p.Buffers {
		if buffer := &p.Buffers[i]; buffer.Device < 0 || buffer.Device >= MaxDevices {
			b.wrong("buffer", buffer.Name, fmt.Sprintf("device %d; devices count from 0 to %d", buffer.Device, MaxDevices-1), "")
		} else if buffer.Place == Host && buffer.Device != 0 {
			b.wrong("buffer", buffer.Name, "a host buffer has no device", "")
		} else if buffer.Place == Device && buffer.Pageable {
			b.wrong("buffer", buffer.Name, "a device buffer cannot be pageable", "")
		}
	}
	saved := map[string]string{} // the buffer that a file gets
	for i := range p.Buffers {
		if buffer := &p.Buffers[i]; buffer.Save != "" {
			file := savedFile(p.Dir, buffer.Save)
			if first, taken := saved[file]; taken {
				b.wrong("buffer", buffer.Name, fmt.Sprintf("it is saved to the same file as %q", first), "give each buffer a file of its own")
			} else {
				saved[file] = buffer.Name
			}
		}
	}
	first := map[int32]*Node{} // of each stream
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if stream := n.Stream.Number(); stream >= 0 {
			if earlier := first[stream]; earlier == nil {
				first[stream] = n
			} else if earlier.Device != n.Device {
				b.wrong("node", n.Name, fmt.Sprintf("stream %d has %q on device %d and %q on device %d", stream, earlier.Name, earlier.Device, n.Name, n.Device), "a stream belongs to one device")
			} else if earlier.Priority != n.Priority {
				b.wrong("node", n.Name, fmt.Sprintf("stream %d has %q of %s priority and %q of %s priority", stream, earlier.Name, earlier.Priority, n.Name, n.Priority), "a stream has one priority")
			}
		}
		if n.Stream.plusOne < 0 {
			b.wrong("node", n.Name, fmt.Sprintf("the number of its stream must be from 0 to %d", math.MaxInt32-1), "leave Stream out to let the planner choose")
		}
		if n.Device < 0 || n.Device >= MaxDevices {
			b.wrong("node", n.Name, fmt.Sprintf("device %d; devices count from 0 to %d", n.Device, MaxDevices-1), "")
		}
		if n.Priority < Low || n.Priority > High {
			b.wrong("node", n.Name, fmt.Sprintf("priority %d; it is one of Low, Normal and High", int8(n.Priority)), "")
		}
		if n.HasCost && !(n.CostUS >= 0 && n.CostUS <= math.MaxFloat64) {
			b.wrong("node", n.Name, fmt.Sprintf("a cost of %v us", n.CostUS), "")
		}
		for _, from := range n.After {
			if from < 0 || int(from) >= len(p.Nodes) {
				b.wrong("node", n.Name, fmt.Sprintf("after: there is no node with id %d", from), "")
			}
		}
		for _, a := range p.Accesses(NodeID(i)) {
			if a.Mode < Read || a.Mode > ReadWrite {
				b.wrong("node", n.Name, "an access must be in, out or inout", "")
			}
			b.inside("node", n.Name, a.Range)
		}
	}
}

func (b *Builder) checkNames(what string, n int, name func(i int32) string) {
	index := newNameIndex(n)
	for i := range int32(n) {
		if err := checkName(name(i)); err != nil {
			b.wrong(what, name(i), err.Error(), "")
		} else if first := index.add(i, name); first != i {
			b.wrong(what, name(i), fmt.Sprintf("the name is taken (ids %d and %d)", first, i), "")
		}
	}
}
