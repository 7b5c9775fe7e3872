// Contents: reads what buffers hold, and lends memory for it. Writes no files.

package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
)

// chunkBytes is how much is staged at once between host and device; large enough to hide the latency of a copy.
const chunkBytes = 64 << 20

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
		command := cudart.Command{Kind: cudart.CopyMemory, Label: b.Name, Node: -1, Dst: staged, DstDevice: -1, Src: address + cudart.Ptr(lo),
			SrcDevice: b.Device, Bytes: n}
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
