// Initial contents: fills buffers before the first replay, and again with what they held then.

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

// fill fills the buffers of every instance with their initial contents. Host buffers without an init start as zeros, and so do device
// buffers that a replay reads before it writes them or that are results, because results must not depend on what the memory held before. The caller's own
// memory is not changed, but the contents of carried buffers in it are saved for Restore.
func (f *initialContents) fill(ctx context.Context) error {
	p := f.program
	for _, id := range p.graph.Carried() {
		if memory := p.options.Bind[p.graph.Buffers[id].Name]; memory != nil {
			if f.bound == nil {
				f.bound = map[dag.BufferID][]byte{}
			}
			f.bound[id] = slices.Clone(memory)
		}
	}
	if err := f.keepSymbols(ctx); err != nil {
		return err
	}
	return f.fillBuffers(ctx, f.startsFilled)
}

// startsFilled reports whether a buffer has contents before the first replay that the program gives it.
func (f *initialContents) startsFilled(id dag.BufferID, b *dag.Buffer) bool {
	p := f.program
	result := b.Place == dag.Host || b.Symbol == "" && (b.Save != "" || b.Expect != nil)
	return p.options.Bind[b.Name] == nil && (b.Init != nil || result || f.isCarried(id))
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
	for id, contents := range p.initial.bound {
		copy(p.options.Bind[p.graph.Buffers[id].Name], contents)
	}
	err := p.initial.fillBuffers(ctx, func(id dag.BufferID, b *dag.Buffer) bool {
		return written[id] && p.initial.startsFilled(id, b)
	})
	p.dirty = err != nil
	return err
}

func (f *initialContents) isCarried(id dag.BufferID) bool {
	for _, c := range f.program.graph.Carried() {
		if c == id {
			return true
		}
	}
	return false
}

func (f *initialContents) fillBuffers(ctx context.Context, wanted func(id dag.BufferID, b *dag.Buffer) bool) error {
	p := f.program
	for i := range p.graph.Buffers {
		b := &p.graph.Buffers[i]
		if !wanted(dag.BufferID(i), b) || b.Bytes == 0 {
			continue
		}
		p.report("initialise "+b.Name, i, len(p.graph.Buffers))
		if b.Place == dag.Host {
			for _, in := range p.instances {
				if err := f.generate(ctx, dag.BufferID(i), p.platform.HostBytes(in.memory.address[i], b.Bytes)); err != nil {
					return err
				}
			}
			continue
		}
		if err := f.fillDevice(ctx, dag.BufferID(i), b); err != nil {
			return err
		}
	}
	return nil
}

// generate fills memory with a buffer's initial contents, even if a result has been saved over their file since the program was created.
func (f *initialContents) generate(ctx context.Context, id dag.BufferID, memory []byte) error {
	p := f.program
	if kept, ok := f.kept[id]; ok {
		copy(memory, kept)
		return nil
	}
	return p.arrays.Generate(ctx, &p.graph.Buffers[id], memory)
}

// keep reads the initial contents of every buffer whose init file is about to be overwritten.
func (f *initialContents) keep(ctx context.Context, file string) error {
	p := f.program
	overwritten := files.PlaceOf(file)
	for i := range p.graph.Buffers {
		b := &p.graph.Buffers[i]
		if _, kept := f.kept[dag.BufferID(i)]; kept || b.Init == nil || b.Init.Kind != dag.InitFile ||
			!overwritten.Same(files.PlaceOf(arrays.InDir(p.graph.Dir, b.Init.File))) {
			continue
		}
		memory := make([]byte, b.Bytes)
		if err := p.arrays.Generate(ctx, b, memory); err != nil {
			return err
		}
		if f.kept == nil {
			f.kept = map[dag.BufferID][]byte{}
		}
		f.kept[dag.BufferID(i)] = memory
	}
	return nil
}

// fillDevice makes a device buffer's contents once and copies them to every instance.
func (f *initialContents) fillDevice(ctx context.Context, id dag.BufferID, b *dag.Buffer) (err error) {
	p := f.program
	staged, err := p.platform.AllocHost(b.Bytes, false)
	if err != nil {
		return fmt.Errorf("buffer %q: %s to stage its contents: %w", b.Name, words.Bytes(b.Bytes), err)
	}
	defer func() { err = errors.Join(err, p.platform.Free(staged)) }()
	if err := f.generate(ctx, id, p.platform.HostBytes(staged, b.Bytes)); err != nil {
		return err
	}
	for _, in := range p.instances {
		command := cudart.Command{Kind: cudart.CopyMemory, Label: b.Name, Node: -1, Dst: in.memory.address[id], DstDevice: b.Device, Src: staged,
			SrcDevice: -1, Bytes: b.Bytes}
		if err := p.do(ctx, b.Device, command); err != nil {
			return err
		}
	}
	return nil
}

// keepSymbols remembers what variables without an init hold before the first replay, where replays change them.
func (f *initialContents) keepSymbols(ctx context.Context) error {
	p := f.program
	for _, id := range p.graph.Carried() {
		b := &p.graph.Buffers[id]
		if b.Symbol == "" || b.Init != nil || b.Bytes == 0 {
			continue
		}
		memory := make([]byte, b.Bytes)
		if err := p.Read(ctx, id, memory); err != nil {
			return err
		}
		if f.kept == nil {
			f.kept = map[dag.BufferID][]byte{}
		}
		f.kept[id] = memory
	}
	return nil
}
