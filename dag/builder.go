// The builder: a pipeline made by Go calls. Collects errors; Graph returns them all.

package dag

import (
	"errors"
)

// Builder declares a pipeline by Go calls. The zero Builder is not usable: call New.
type Builder struct {
	pipeline Pipeline
	library  Library
	errs     []error
}

// New starts a pipeline.
func New(name string) *Builder {
	return &Builder{pipeline: Pipeline{Name: name, accessStart: []int32{0}}}
}

// Host declares a pinned host buffer and returns its id.
func (b *Builder) Host(name string, t DType, shape ...int64) int32 {
	return b.Buffer(Buffer{Name: name, Place: Host, DType: t, Shape: shape})
}

// Device declares a buffer in the memory of device 0 and returns its id.
func (b *Builder) Device(name string, t DType, shape ...int64) int32 {
	return b.Buffer(Buffer{Name: name, Place: Device, DType: t, Shape: shape})
}

// Buffer declares a buffer; its Bytes follow from DType and Shape.
func (b *Builder) Buffer(buffer Buffer) int32 {
	buffer.Bytes = buffer.DType.Size()
	for _, n := range buffer.Shape {
		buffer.Bytes *= n
	}
	b.pipeline.Buffers = append(b.pipeline.Buffers, buffer)
	return int32(len(b.pipeline.Buffers) - 1)
}

// In, Out and InOut are accesses of a whole buffer.
func (b *Builder) In(buffer int32) Access    { return Access{b.whole(buffer), Read} }
func (b *Builder) Out(buffer int32) Access   { return Access{b.whole(buffer), Write} }
func (b *Builder) InOut(buffer int32) Access { return Access{b.whole(buffer), ReadWrite} }

func (b *Builder) whole(buffer int32) Range {
	return Range{buffer, 0, b.pipeline.Buffers[buffer].Bytes}
}

// Task declares an opaque node: it can be planned, not run.
func (b *Builder) Task(name string, accesses ...Access) int32 {
	return b.Node(Node{Name: name, Kind: Task, Stream: -1}, accesses...)
}

// Copy declares a copy of one range to another of the same size.
func (b *Builder) Copy(name string, dst, src Range) int32 {
	work := Work{Bytes: src.Hi - src.Lo}
	return b.Node(Node{Name: name, Kind: Memcpy, Stream: -1, Copy: &Copy{dst, src}, Work: work}, Access{src, Read}, Access{dst, Write})
}

// Node declares any node with its accesses and returns its id.
func (b *Builder) Node(node Node, accesses ...Access) int32 {
	b.pipeline.Nodes = append(b.pipeline.Nodes, node)
	b.pipeline.accesses = append(b.pipeline.accesses, accesses...)
	b.pipeline.accessStart = append(b.pipeline.accessStart, int32(len(b.pipeline.accesses)))
	return int32(len(b.pipeline.Nodes) - 1)
}

// At returns the declared node for changes, such as its Stream, Priority, cost or After. The pointer holds until the next declaration.
func (b *Builder) At(node int32) *Node { return &b.pipeline.Nodes[node] }

// Graph checks the declaration and derives its dependencies. The builder must not be used afterwards.
func (b *Builder) Graph() (*Graph, error) {
	if err := errors.Join(b.errs...); err != nil {
		return nil, err
	}
	return newGraph(&b.pipeline)
}
