// Running: the code of a file is loaded on a platform, its memory taken and filled, and its graph built, in the words of platforms.

package graphfile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/kernels/launch"
)

// Program is a file on a platform, ready to be replayed.
type Program struct {
	file     *File
	platform cudart.Platform
	stream   cudart.Stream
	modules  []cudart.Module
	kernels  []cudart.Kernel
	address  []cudart.Ptr // by buffer
	owned    []cudart.Ptr
	graph    cudart.Graph
}

// Load prepares a file to be replayed on device 0.
func Load(ctx context.Context, f *File, platform cudart.Platform) (*Program, error) {
	p := &Program{file: f, platform: platform}
	err := p.prepare(ctx)
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *Program) prepare(ctx context.Context) (err error) {
	if p.stream, err = p.platform.NewStream(0, dag.Normal); err != nil {
		return err
	}
	if err := p.load(ctx); err != nil {
		return err
	}
	if err := p.takeMemory(ctx); err != nil {
		return err
	}
	commands, deps := make([]cudart.Command, len(p.file.Nodes)), make([][]int32, len(p.file.Nodes))
	ranked := false
	for k := range p.file.Nodes {
		commands[k] = p.command(int32(k))
		ranked = ranked || p.file.Nodes[k].Priority != 0
	}
	for _, e := range p.file.Edges {
		deps[e[1]] = append(deps[e[1]], e[0])
	}
	if p.graph, err = p.platform.BuildGraph(commands, deps, cudart.GraphOptions{Origin: p.stream, Priorities: ranked}); err != nil {
		return err
	}
	return p.graph.Upload(p.stream)
}

func (p *Program) load(ctx context.Context) error {
	for k, code := range p.file.Modules {
		m := &launch.Module{Name: fmt.Sprintf("%d of %s", k, p.file.Name), Kind: launch.Fatbin, Code: code}
		switch string(code[:4]) {
		case "\x7fELF":
			m.Kind = launch.Cubin
		case "\x50\xed\x55\xba":
		default:
			m.Kind, m.Code = launch.PTX, code[:len(code)-1]
		}
		loaded, err := p.platform.Load(ctx, 0, m)
		if err != nil {
			return err
		}
		p.modules = append(p.modules, loaded)
	}
	for _, fn := range p.file.Functions {
		k, err := p.modules[fn.Module].Kernel(fn.Entry)
		if err != nil {
			return err
		}
		p.kernels = append(p.kernels, k)
	}
	for k := range p.file.Nodes {
		if n := &p.file.Nodes[k]; n.Kind == Kernel && n.word(7) > 48<<10 {
			if err := p.kernels[n.word(0)-1].SetMaxShared(uint32(n.word(7))); err != nil {
				return fmt.Errorf("node %q: %w", n.Name, err)
			}
		}
	}
	return nil
}

// span is the first and the last address of device memory.
func (f *File) span() (low, high uint64) {
	low = 1 << 63
	for k := range f.Buffers {
		if b := &f.Buffers[k]; !b.Host {
			low, high = min(low, b.Address), max(high, b.Address+uint64(b.Bytes))
		}
	}
	const alignment = 256
	low &^= alignment - 1
	return min(low, high), high
}

func (p *Program) takeMemory(ctx context.Context) error {
	low, high := p.file.span()
	base := cudart.Ptr(0)
	if bytes := int64(high - low); bytes > 0 {
		var err error
		if base, err = p.take(p.platform.Alloc(0, bytes)); err != nil {
			return fmt.Errorf("device memory of %q: %w", p.file.Name, err)
		}
		if err := p.do(ctx, cudart.Command{Kind: cudart.SetMemory, Label: "memory", Node: -1, Dst: base, Bytes: bytes, Width: 1}); err != nil {
			return err
		}
	}
	p.address = make([]cudart.Ptr, len(p.file.Buffers))
	for k := range p.file.Buffers {
		b := &p.file.Buffers[k]
		if !b.Host {
			p.address[k] = base + cudart.Ptr(b.Address-low)
			if b.Contents == nil {
				continue
			}
		}
		staged, err := p.platform.AllocHost(max(1, b.Bytes), false)
		if err != nil {
			return fmt.Errorf("buffer %q: %w", b.Name, err)
		}
		p.owned = append(p.owned, staged)
		memory := p.platform.HostBytes(staged, b.Bytes)
		clear(memory[copy(memory, b.Contents):])
		if b.Host {
			p.address[k] = staged
			continue
		}
		if err := p.do(ctx, cudart.Command{Kind: cudart.CopyMemory, Label: b.Name, Node: -1, Dst: p.address[k], Src: staged, SrcDevice: -1,
			Bytes: b.Bytes}); err != nil {
			return err
		}
		p.owned = p.owned[:len(p.owned)-1]
		if err := p.platform.Free(staged); err != nil {
			return err
		}
	}
	return nil
}

func (p *Program) take(at cudart.Ptr, err error) (cudart.Ptr, error) {
	if err == nil {
		p.owned = append(p.owned, at)
	}
	return at, err
}

// do runs a command and waits for it.
func (p *Program) do(ctx context.Context, c cudart.Command) error {
	c.Stream = p.stream
	l, err := p.platform.Encode([]cudart.Command{c}, cudart.ListOptions{Origin: p.stream})
	if err != nil {
		return err
	}
	err = l.Submit()
	if err == nil {
		err = p.stream.Synchronize(ctx)
	}
	return errors.Join(err, l.Close())
}

// command is what a node does, with the addresses that buffers have here.
func (p *Program) command(k int32) cudart.Command {
	n := &p.file.Nodes[k]
	c := cudart.Command{Kind: cudart.Empty, Stream: p.stream, Label: n.Name, Node: k, Priority: dag.Priority(n.Priority)}
	at := func(byte uint32) (cudart.Ptr, int32) {
		for _, q := range n.Pointers {
			if q.Byte == byte {
				return p.address[q.Buffer] + cudart.Ptr(q.At), p.deviceOf(q.Buffer)
			}
		}
		return 0, 0
	}
	switch n.Kind {
	case Kernel:
		c.Kind, c.Kernel = cudart.LaunchKernel, p.kernels[n.word(0)-1]
		c.Grid, c.Block, c.Shared, c.Cooperative = n.shape(1), n.shape(4), uint32(n.word(7)), n.word(8) != 0
		for axis := range c.Cluster {
			c.Cluster[axis] = uint32(n.word(9) >> (16 * axis) & 0xffff)
		}
		c.Args = p.values(n)
	case Copy:
		c.Kind = cudart.CopyMemory
		c.Dst, c.DstDevice = at(0)
		c.Src, c.SrcDevice = at(8)
		c.Bytes = int64(n.word(2) * n.word(3))
		if c.Rows = int64(n.word(3)); c.Rows > 1 {
			c.DstPitch, c.SrcPitch = int64(n.word(5)), int64(n.word(6))
		}
	case Set:
		c.Kind, c.Pattern, c.Width = cudart.SetMemory, uint32(n.word(4)), uint8(n.word(5))
		c.Dst, c.DstDevice = at(0)
		c.Bytes = int64(n.word(1) * n.word(2))
		if c.Rows = int64(n.word(2)); c.Rows > 1 {
			c.DstPitch = int64(n.word(3))
		}
	}
	for _, u := range n.Uses {
		b := &p.file.Buffers[u.Buffer]
		c.Accesses = append(c.Accesses, cudart.Access{Ptr: p.address[u.Buffer] + cudart.Ptr(u.At), Bytes: u.Width * u.Rows, Rows: u.Rows, Pitch: u.Pitch,
			Write: u.Modes&recording.Write != 0, Name: b.Name, Offset: u.At})
	}
	return c
}

func (p *Program) deviceOf(buffer int32) int32 {
	if p.file.Buffers[buffer].Host {
		return -1
	}
	return 0
}

// values are the arguments of a kernel. Addresses within structures come last.
func (p *Program) values(n *Node) []cudart.Value {
	parameters := p.file.Functions[n.word(0)-1].Parameters
	var own, members []cudart.Value
	for k, parameter := range parameters {
		bytes := n.Body[8*kernelWords+parameter.Offset:][:parameter.Bytes]
		v := cudart.Value{Struct: bytes}
		switch parameter.Bytes {
		case 1, 2, 4, 8:
			var padded [8]byte
			copy(padded[:], bytes)
			v = cudart.Value{Size: uint8(parameter.Bytes), Bits: binary.LittleEndian.Uint64(padded[:])}
		}
		for _, q := range n.Pointers {
			offset := int64(q.Byte) - 8*kernelWords - int64(parameter.Offset)
			if offset < 0 || offset+8 > int64(parameter.Bytes) {
				continue
			}
			pointer := cudart.Value{Pointer: true, Ptr: p.address[q.Buffer] + cudart.Ptr(q.At), Bytes: q.Bytes, Size: 8}
			if parameter.Bytes == 8 {
				v = pointer
				continue
			}
			pointer.Within, pointer.Offset = int32(k+1), int32(offset)
			members = append(members, pointer)
		}
		own = append(own, v)
	}
	return append(own, members...)
}

// Replay runs the graph n times and waits.
func (p *Program) Replay(ctx context.Context, n int) error {
	for range n {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := p.graph.Launch(p.stream); err != nil {
			return err
		}
	}
	return p.stream.Synchronize(ctx)
}

// Host is the memory of a buffer of the host; nil if it is not one.
func (p *Program) Host(buffer int) []byte {
	if b := &p.file.Buffers[buffer]; b.Host {
		return p.platform.HostBytes(p.address[buffer], b.Bytes)
	}
	return nil
}

// Close frees everything. No replay may be running.
func (p *Program) Close() error {
	var errs []error
	if p.graph != nil {
		errs = append(errs, p.graph.Close())
	}
	for _, at := range p.owned {
		errs = append(errs, p.platform.Free(at))
	}
	for _, m := range p.modules {
		errs = append(errs, m.Close())
	}
	if p.stream != nil {
		errs = append(errs, p.stream.Close())
	}
	return errors.Join(errs...)
}
