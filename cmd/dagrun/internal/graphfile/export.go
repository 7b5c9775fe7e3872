// Package graphfile makes .dagrun files of pipelines, reads them, proves their order, and runs them on a platform.
package graphfile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

// Export makes a file of a graph and its plan.
func Export(ctx context.Context, g *dag.Graph, p *planner.Plan, t Target) (_ *File, err error) {
	if err := exportable(g); err != nil {
		return nil, err
	}
	d := newDevice(t)
	program, err := runtime.New(ctx, g, p, d, runtime.Options{Mode: runtime.Built, Confined: t.Confined})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, program.Close()) }()
	f := &File{Name: g.Name, Modules: d.modules}
	if t.Exact {
		f.Architecture = t.Architecture
	}
	f.addBuffers(g, program, d)
	for i := range d.commands {
		if err := f.add(g, d, i); err != nil {
			return nil, fmt.Errorf("node %q: %w", d.commands[i].Label, err)
		}
	}
	f.dropUnused()
	return f, nil
}

// exportable refuses what a file cannot hold, with the node and its place.
func exportable(g *dag.Graph) error {
	for i := range g.Nodes {
		n := &g.Nodes[i]
		what := ""
		switch {
		case n.Kind == dag.HostFunction:
			what = "runs a function of the host"
		case n.Kind == dag.Call:
			what = "calls a library"
		case n.Kind == dag.Communicate:
			what = "communicates with other ranks"
		case n.Control != nil:
			what = "is a loop or a branch"
		case n.Kind == dag.Task:
			what = "is a task without work"
		case n.Device != 0:
			what = fmt.Sprintf("is on device %d", n.Device)
		case n.Launch != nil && slices.ContainsFunc(n.Launch.Args, func(a dag.Arg) bool { return a.Texture != nil }):
			what = "reads a texture"
		case n.Launch != nil && slices.ContainsFunc(n.Launch.Args, func(a dag.Arg) bool { return a.Start > 0 }):
			what = "has a pointer into its slice (at)"
		case n.Launch != nil && n.Launch.Block[0] == 0 && n.Launch.Grid[0] != 0:
			what = "leaves its block to the driver (give it a block)"
		}
		if what != "" {
			return refused(fmt.Sprintf("node %q", n.Name), n.Pos, what)
		}
	}
	for i := range g.Buffers {
		if b := &g.Buffers[i]; b.Symbol != "" {
			return refused(fmt.Sprintf("buffer %q", b.Name), b.Pos, "is the variable "+b.Symbol+" of a module")
		}
	}
	return nil
}

// Refused is the error of a pipeline that a file cannot hold.
type Refused struct {
	At   dag.Pos // in the pipeline's file; zero if it was not declared in one
	What string
}

func (e *Refused) Error() string { return e.What + ", which a .dagrun file cannot hold yet" }

func refused(who string, at dag.Pos, what string) error { return &Refused{at, who + " " + what} }

func (f *File) addBuffers(g *dag.Graph, program *runtime.Program, d *device) {
	given, written, read := make([]bool, len(g.Buffers)), make([]bool, len(g.Buffers)), make([]bool, len(g.Buffers))
	for _, u := range g.ReadFirst() {
		given[u.Buffer] = true
	}
	for i := range g.Nodes {
		for _, a := range g.Accesses(dag.NodeID(i)) {
			written[a.Buffer] = written[a.Buffer] || a.Mode&dag.Write != 0
			read[a.Buffer] = read[a.Buffer] || a.Mode&dag.Read != 0
		}
	}
	for i := range g.Buffers {
		b := &g.Buffers[i]
		address := program.Address(dag.BufferID(i))
		out := Buffer{Name: b.Name, DType: b.DType.String(), Shape: slices.Clone(b.Shape), Bytes: b.Bytes, Host: b.Place == dag.Host,
			Address: uint64(address), Given: given[i], Result: written[i] && !b.Scratch && (b.Place == dag.Host || b.Save != "" || b.Expect != nil || !read[i])}
		contents := d.filled[address]
		if out.Host {
			contents = d.HostBytes(address, b.Bytes)
		}
		if int64(len(contents)) == b.Bytes && slices.ContainsFunc(contents, func(c byte) bool { return c != 0 }) && (out.Host || given[i] || out.Result) {
			out.Contents = contents
		}
		f.Buffers = append(f.Buffers, out)
	}
}

// add adds the node of a command.
func (f *File) add(g *dag.Graph, d *device, i int) error {
	c := &d.commands[i]
	n := Node{Name: c.Label, Body: []byte{}}
	if d.ranked {
		n.Priority = int8(min(max(c.Priority, -1), 1))
	}
	var err error
	switch c.Kind {
	case cudart.LaunchKernel:
		err = f.launch(g, d, c, &n)
	case cudart.CopyMemory:
		f.copy(g, c, &n)
	case cudart.SetMemory:
		f.set(g, c, &n)
	case cudart.Empty:
		n.Kind = Empty
	default:
		err = unsupported(c.Call())
	}
	if err != nil {
		return err
	}
	if c.Node >= 0 {
		for _, a := range g.Accesses(dag.NodeID(c.Node)) {
			if a.Bytes() > 0 {
				n.Uses = append(n.Uses, useOf(a))
			}
		}
	}
	f.Nodes = append(f.Nodes, n)
	waits := slices.Sorted(slices.Values(d.deps[i]))
	for _, from := range slices.Compact(waits) {
		if int(from) >= i {
			return fmt.Errorf("it waits for node %d, which comes later", from)
		}
		f.Edges = append(f.Edges, [2]int32{from, int32(i)})
	}
	return nil
}

func useOf(a dag.Access) Use {
	u := Use{Buffer: int32(a.Buffer), At: a.Lo, Width: a.Hi - a.Lo, Rows: 1, Pitch: a.Hi - a.Lo}
	if a.Tile() {
		u.Rows, u.Width = a.Box()
		u.Pitch = int64(a.Pitch)
	}
	if a.Mode&dag.Read != 0 {
		u.Modes |= recording.Read
	}
	if a.Mode&dag.Write != 0 {
		u.Modes |= recording.Write
	}
	return u
}

func (n *Node) put(words ...uint64) {
	for _, w := range words {
		n.Body = binary.LittleEndian.AppendUint64(n.Body, w)
	}
}

// point notes that eight bytes of the body are the address where a range begins.
func (n *Node) point(at int, r dag.Range) {
	n.Pointers = append(n.Pointers, Pointer{uint32(at), int32(r.Buffer), r.Lo, r.Hi - r.Lo})
}

func (f *File) copy(g *dag.Graph, c *cudart.Command, n *Node) {
	to, from := g.Nodes[c.Node].Copy.Dst, g.Nodes[c.Node].Copy.Src
	if c.Bytes == 0 {
		n.Kind = Empty
		return
	}
	rows, width, toPitch, fromPitch := max(1, c.Rows), c.Bytes, c.Bytes, c.Bytes
	if c.Rows > 1 {
		width, toPitch, fromPitch = c.Bytes/c.Rows, c.DstPitch, c.SrcPitch
	}
	n.Kind = Copy
	n.put(uint64(c.Dst), uint64(c.Src), uint64(width), uint64(rows), 1, uint64(toPitch), uint64(fromPitch), 0, 0, memoryKind(c.DstDevice),
		memoryKind(c.SrcDevice), 0, 0)
	n.point(0, to)
	n.point(8, from)
}

// memoryKind is MEMORY_* of format.h.
func memoryKind(device int32) uint64 {
	if device < 0 {
		return 1
	}
	return 2
}

func (f *File) set(g *dag.Graph, c *cudart.Command, n *Node) {
	if c.Bytes == 0 {
		n.Kind = Empty
		return
	}
	rows, width, pitch := max(1, c.Rows), c.Bytes, c.Bytes
	if c.Rows > 1 {
		width, pitch = c.Bytes/c.Rows, c.DstPitch
	}
	n.Kind = Set
	n.put(uint64(c.Dst), uint64(width), uint64(rows), uint64(pitch), uint64(c.Pattern), uint64(c.Width))
	n.point(0, g.Nodes[c.Node].Set.Dst)
}

// launch lays the parameters out one after the other, each at a multiple of eight bytes.
func (f *File) launch(g *dag.Graph, d *device, c *cudart.Command, n *Node) error {
	k := c.Kernel.(*kernel)
	flags, cluster := uint64(0), uint64(0)
	if c.Cooperative {
		flags = 1
	}
	for axis, size := range c.Cluster {
		cluster |= uint64(size&0xffff) << (16 * axis)
	}
	fn := Function{Module: k.module, Entry: k.entry}
	var values []byte
	starts := make([]int, len(c.Args))
	for i, v := range cudart.OwnValues(c.Args) {
		starts[i] = len(values)
		size := int(v.Size)
		switch {
		case v.Struct != nil:
			size = len(v.Struct)
			values = append(values, v.Struct...)
		case v.Pointer:
			size = 8
			values = binary.LittleEndian.AppendUint64(values, uint64(v.Ptr))
		default:
			values = binary.LittleEndian.AppendUint64(values, v.Bits)
		}
		fn.Parameters = append(fn.Parameters, recording.Parameter{Offset: uint32(starts[i]), Bytes: uint32(size)})
		values = append(values, make([]byte, (len(values)+7)&^7-len(values))...)
	}
	n.Kind = Kernel
	for i, v := range c.Args {
		at := starts[i]
		if v.Within > 0 {
			at = starts[v.Within-1] + int(v.Offset)
			binary.LittleEndian.PutUint64(values[at:], uint64(v.Ptr))
		}
		if v.Pointer {
			n.point(8*kernelWords+at, f.rangeOf(g, c, i))
		}
	}
	n.put(f.function(fn), uint64(c.Grid[0]), uint64(c.Grid[1]), uint64(c.Grid[2]), uint64(c.Block[0]), uint64(c.Block[1]), uint64(c.Block[2]),
		uint64(c.Shared), flags, cluster)
	n.Body = append(n.Body, values...)
	return nil
}

// rangeOf is what an argument points to: that of the launch, or what a set of eight-byte elements fills.
func (f *File) rangeOf(g *dag.Graph, c *cudart.Command, i int) dag.Range {
	if of := &g.Nodes[c.Node]; of.Launch != nil {
		return of.Launch.Args[i].Range
	}
	return g.Nodes[c.Node].Set.Dst
}

// function returns the handle of a function, which is added where it is new.
func (f *File) function(fn Function) uint64 {
	at := slices.IndexFunc(f.Functions, func(other Function) bool {
		return other.Module == fn.Module && other.Entry == fn.Entry && slices.Equal(other.Parameters, fn.Parameters)
	})
	if at < 0 {
		f.Functions, at = append(f.Functions, fn), len(f.Functions)
	}
	return uint64(at + 1)
}

// dropUnused drops modules of which no kernel is launched.
func (f *File) dropUnused() {
	place := make([]int32, len(f.Modules))
	var kept [][]byte
	for k, code := range f.Modules {
		if slices.ContainsFunc(f.Functions, func(fn Function) bool { return fn.Module == int32(k) }) {
			place[k] = int32(len(kept))
			kept = append(kept, code)
		}
	}
	f.Modules = kept
	for k := range f.Functions {
		f.Functions[k].Module = place[f.Functions[k].Module]
	}
}
