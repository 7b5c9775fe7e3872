// Variables of modules as buffers: where they lie once their modules are loaded, and what they hold at first.

package runtime

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/kernels"
)

// loadedCode is what one replay in flight has of the modules. Where no buffer is a variable of a module, all replays share it.
type loadedCode struct {
	kernels []cudart.Kernel // by node; nil if it launches none
	symbols map[dag.BufferID]cudart.Ptr
}

// codeOf returns the code of a replay in flight.
func (p *Program) codeOf(in *instance) *loadedCode { return p.code[min(in.flight, len(p.code)-1)] }

// symbolModule returns the module and the name of the variable that a buffer stands for; nil if it stands for none.
func (p *Program) symbolModule(b *dag.Buffer) (*kernels.Module, string) {
	module, name, _ := strings.Cut(b.Symbol, ".")
	for i := range p.graph.Modules {
		m := &p.graph.Modules[i]
		if code, ok := m.Library.(coded); ok && b.Symbol != "" && m.Name == module {
			return code.Module(), name
		}
	}
	return nil, ""
}

// symbolName is how loaded code is asked for a variable: compiled code may have it under another name.
func symbolName(m *kernels.Module, name string) string {
	if m.Kind == kernels.Source {
		return "&" + name
	}
	return name
}

// wantSymbols notes the variables that are buffers, so that compilers keep them and tell their names.
func (l *loader) wantSymbols() {
	p := l.program
	for i := range p.graph.Buffers {
		m, name := p.symbolModule(&p.graph.Buffers[i])
		if m == nil {
			continue
		}
		l.shared[m] = true
		if text := symbolName(m, name); m.Kind == kernels.Source && !slices.Contains(l.wanted[m], text) {
			l.wanted[m] = append(l.wanted[m], text)
		}
	}
}

// findSymbols gives every buffer that is a variable its address.
func (l *loader) findSymbols(ctx context.Context) error {
	p := l.program
	for i := range p.graph.Buffers {
		b := &p.graph.Buffers[i]
		m, name := p.symbolModule(b)
		if b.Symbol == "" {
			continue
		}
		if m == nil {
			return fmt.Errorf("buffer %q: module of the variable %s has no code", b.Name, b.Symbol)
		}
		loaded, err := l.module(ctx, m, b.Device)
		if err != nil {
			return fmt.Errorf("buffer %q: %w", b.Name, err)
		}
		address, size, err := loaded.Global(symbolName(m, name))
		if err != nil {
			return fmt.Errorf("buffer %q: %w", b.Name, err)
		}
		if size != b.Bytes {
			return fmt.Errorf("buffer %q has %s, but the variable %s has %d", b.Name, words.Count(b.Bytes, "byte", "bytes"), b.Symbol, size)
		}
		p.code[l.flight].symbols[dag.BufferID(i)] = address
	}
	return nil
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
