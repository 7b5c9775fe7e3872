// Contents: fills buffers before the first replay, restores them, and reads them. Writes no files.

package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/files"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/runtime/internal/arrays"
)

// chunkBytes is how much is staged at once between host and device; large enough to hide the latency of a copy.
const chunkBytes = 64 << 20

// initialise fills the buffers of every instance with their initial contents. Host buffers without an init start as zeros, and so do device
// buffers that a replay reads before it writes them or that are results, because results must not depend on what the memory held before. The caller's own
// memory is not changed, but the contents of carried buffers in it are saved for Restore.
func (p *Program) initialise(ctx context.Context) error {
	for _, id := range p.graph.Carried() {
		if memory := p.options.Bind[p.graph.Buffers[id].Name]; memory != nil {
			if p.boundContents == nil {
				p.boundContents = map[dag.BufferID][]byte{}
			}
			p.boundContents[id] = slices.Clone(memory)
		}
	}
	if err := p.keepSymbols(ctx); err != nil {
		return err
	}
	return p.fillBuffers(ctx, p.startsFilled)
}

// startsFilled reports whether a buffer has contents before the first replay that the program gives it.
func (p *Program) startsFilled(id dag.BufferID, b *dag.Buffer) bool {
	result := b.Place == dag.Host || b.Symbol == "" && (b.Save != "" || b.Expect != nil)
	return p.options.Bind[b.Name] == nil && (b.Init != nil || result || p.isCarried(id))
}

// Restore restores the contents of every buffer that has initial contents and that a replay changes, results without an init included, which start
// as zeros.
func (p *Program) Restore(ctx context.Context) error {
	if err := p.usable(ctx); err != nil {
		return err
	}
	if !p.dirty {
		return nil
	}
	if err := p.Synchronize(ctx); err != nil {
		return err
	}
	written := make([]bool, len(p.graph.Buffers))
	for i := range p.graph.Nodes {
		for _, a := range p.graph.Accesses(dag.NodeID(i)) {
			written[a.Buffer] = written[a.Buffer] || a.Mode&dag.Write != 0
		}
	}
	for id, contents := range p.boundContents {
		copy(p.options.Bind[p.graph.Buffers[id].Name], contents)
	}
	err := p.fillBuffers(ctx, func(id dag.BufferID, b *dag.Buffer) bool {
		return written[id] && p.startsFilled(id, b)
	})
	p.dirty = err != nil
	return err
}

func (p *Program) isCarried(id dag.BufferID) bool {
	for _, c := range p.graph.Carried() {
		if c == id {
			return true
		}
	}
	return false
}

func (p *Program) fillBuffers(ctx context.Context, wanted func(id dag.BufferID, b *dag.Buffer) bool) error {
	for i := range p.graph.Buffers {
		b := &p.graph.Buffers[i]
		if !wanted(dag.BufferID(i), b) || b.Bytes == 0 {
			continue
		}
		p.report("initialise "+b.Name, i, len(p.graph.Buffers))
		if b.Place == dag.Host {
			for _, in := range p.instances {
				if err := p.generate(ctx, dag.BufferID(i), p.platform.HostBytes(in.memory.address[i], b.Bytes)); err != nil {
					return err
				}
			}
			continue
		}
		if err := p.fillDevice(ctx, dag.BufferID(i), b); err != nil {
			return err
		}
	}
	return nil
}

// generate fills memory with a buffer's initial contents, even if a result has been saved over their file since the program was created.
func (p *Program) generate(ctx context.Context, id dag.BufferID, memory []byte) error {
	if kept, ok := p.initialKept[id]; ok {
		copy(memory, kept)
		return nil
	}
	return p.arrays.Generate(ctx, &p.graph.Buffers[id], memory)
}

// keepInitial reads the initial contents of every buffer whose init file is about to be overwritten.
func (p *Program) keepInitial(ctx context.Context, file string) error {
	overwritten := files.PlaceOf(file)
	for i := range p.graph.Buffers {
		b := &p.graph.Buffers[i]
		if _, kept := p.initialKept[dag.BufferID(i)]; kept || b.Init == nil || b.Init.Kind != dag.InitFile || !overwritten.Same(files.PlaceOf(arrays.InDir(p.graph.Dir, b.Init.File))) {
			continue
		}
		memory := make([]byte, b.Bytes)
		if err := p.arrays.Generate(ctx, b, memory); err != nil {
			return err
		}
		if p.initialKept == nil {
			p.initialKept = map[dag.BufferID][]byte{}
		}
		p.initialKept[dag.BufferID(i)] = memory
	}
	return nil
}

// fillDevice makes a device buffer's contents once and copies them to every instance.
func (p *Program) fillDevice(ctx context.Context, id dag.BufferID, b *dag.Buffer) (err error) {
	staged, err := p.platform.AllocHost(b.Bytes, false)
	if err != nil {
		return fmt.Errorf("buffer %q: %s to stage its contents: %w", b.Name, words.Bytes(b.Bytes), err)
	}
	defer func() { err = errors.Join(err, p.platform.Free(staged)) }()
	if err := p.generate(ctx, id, p.platform.HostBytes(staged, b.Bytes)); err != nil {
		return err
	}
	for _, in := range p.instances {
		command := cudart.Command{Kind: cudart.CopyMemory, Label: b.Name, Node: -1, Dst: in.memory.address[id], DstDevice: b.Device, Src: staged, SrcDevice: -1, Bytes: b.Bytes}
		if err := p.do(ctx, b.Device, command); err != nil {
			return err
		}
	}
	return nil
}

// do runs one command on a stream of its own and waits for it.
func (p *Program) do(ctx context.Context, device int32, command cudart.Command) (err error) {
	stream, err := p.platform.NewStream(device, dag.Normal)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stream.Close()) }()
	command.Stream = stream
	list, err := p.platform.Encode([]cudart.Command{command}, cudart.ListOptions{Origin: stream})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, list.Close()) }()
	if err := list.Submit(); err != nil {
		return err
	}
	return stream.Synchronize(ctx)
}

// Read copies a buffer's contents of the last replay into memory, which must have its size.
func (p *Program) Read(ctx context.Context, buffer dag.BufferID, memory []byte) (err error) {
	if err := p.usable(ctx); err != nil {
		return err
	}
	if !p.isBuffer(int32(buffer)) {
		return fmt.Errorf("the pipeline has no buffer %d", buffer)
	}
	b := &p.graph.Buffers[buffer]
	if int64(len(memory)) != b.Bytes {
		return fmt.Errorf("buffer %q has %d bytes, but the memory to read it into has %d", b.Name, b.Bytes, len(memory))
	}
	if err := p.Synchronize(ctx); err != nil || b.Bytes == 0 {
		return err
	}
	address := p.last().memory.address[buffer]
	if b.Place == dag.Host {
		copy(memory, p.platform.HostBytes(address, b.Bytes))
		return nil
	}
	staged, err := p.platform.AllocHost(min(b.Bytes, chunkBytes), false)
	if err != nil {
		return fmt.Errorf("buffer %q: memory to stage its contents: %w", b.Name, err)
	}
	defer func() { err = errors.Join(err, p.platform.Free(staged)) }()
	for lo := int64(0); lo < b.Bytes; lo += chunkBytes {
		n := min(chunkBytes, b.Bytes-lo)
		command := cudart.Command{Kind: cudart.CopyMemory, Label: b.Name, Node: -1, Dst: staged, DstDevice: -1, Src: address + cudart.Ptr(lo), SrcDevice: b.Device, Bytes: n}
		if err := p.do(ctx, b.Device, command); err != nil {
			return err
		}
		copy(memory[lo:], p.platform.HostBytes(staged, n))
	}
	return nil
}

// Host returns the memory of a host buffer that the next replay will use (with several replays in flight, each has its own), or nil if the buffer is
// not a host buffer.
func (p *Program) Host(buffer dag.BufferID) []byte {
	if !p.isBuffer(int32(buffer)) || p.closed {
		return nil
	}
	b := &p.graph.Buffers[buffer]
	if b.Place != dag.Host {
		return nil
	}
	return p.platform.HostBytes(p.instances[p.next].memory.address[buffer], b.Bytes)
}

// Address returns the address of a buffer, on its device or on the host, that the next replay will use.
func (p *Program) Address(buffer dag.BufferID) cudart.Ptr {
	if !p.isBuffer(int32(buffer)) || p.closed {
		return 0
	}
	return p.instances[p.next].memory.address[buffer]
}

// keepSymbols remembers what variables without an init hold before the first replay, where replays change them.
func (p *Program) keepSymbols(ctx context.Context) error {
	for _, id := range p.graph.Carried() {
		b := &p.graph.Buffers[id]
		if b.Symbol == "" || b.Init != nil || b.Bytes == 0 {
			continue
		}
		memory := make([]byte, b.Bytes)
		if err := p.Read(ctx, id, memory); err != nil {
			return err
		}
		if p.initialKept == nil {
			p.initialKept = map[dag.BufferID][]byte{}
		}
		p.initialKept[id] = memory
	}
	return nil
}

// contents calls do with a buffer's contents after the last replay: host memory itself, device memory as a copy.
func (p *Program) contents(ctx context.Context, id int32, do func(memory []byte) error) error {
	b := &p.graph.Buffers[id]
	if b.Place == dag.Host {
		if err := p.Synchronize(ctx); err != nil {
			return err
		}
		return do(p.platform.HostBytes(p.last().memory.address[id], b.Bytes))
	}
	return p.borrow(b, func(memory []byte) error {
		if err := p.Read(ctx, dag.BufferID(id), memory); err != nil {
			return err
		}
		return do(memory)
	})
}

// borrow allocates host memory of a buffer's size for the duration of do. It comes from the platform, not from Go's heap, because Go ends
// the process if its heap cannot grow.
func (p *Program) borrow(b *dag.Buffer, do func(memory []byte) error) (err error) {
	address, err := p.platform.AllocHost(max(1, b.Bytes), true)
	if err != nil {
		return fmt.Errorf("buffer %q: %s for its result: %w", b.Name, words.Bytes(b.Bytes), err)
	}
	defer func() { err = errors.Join(err, p.platform.Free(address)) }()
	return do(p.platform.HostBytes(address, b.Bytes))
}
