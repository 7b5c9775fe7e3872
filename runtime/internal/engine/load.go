// Loads every kernel of a graph on its device. Each module is loaded once per device. Of the library, only the kernels that are launched are
// loaded.

package engine

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/kernels/conditions"
	"github.com/dagrun/dagrun/kernels/launch"
	"github.com/dagrun/dagrun/kernels/library"
)

// expressed is a kernel that compiled code has under another name.
type expressed interface{ Expression() string }

// load loads the code of the program and its bodies, and makes them use it. With waiting, kernels wait for the launches before them, where their
// code has such a form.
func (p *Program) load(ctx context.Context, waiting bool) error {
	l := &loader{program: p, waiting: waiting, plain: map[loadedAt]bool{}, joinables: map[int32][]*launch.Module{}, library: map[int32]map[string]bool{},
		wanted: map[*launch.Module][]string{}, modules: map[loadedAt]cudart.Module{}, shared: map[*launch.Module]bool{}}
	l.wantSymbols()
	family := p.family()
	for _, q := range family {
		l.needs(q.graph)
	}
	l.needDecider(family)
	l.join()
	if first := p.loaded; first == nil {
		p.loaded = l
	} else {
		for at, loaded := range first.modules {
			switch {
			case l.shared[at.module]: // variables of modules are memory, of which there is only one
				l.modules[at], l.plain[at] = loaded, true
			case waiting && waits(loaded):
				l.modules[at] = loaded
			}
		}
	}
	for l.flight = 0; l.flight < p.options.Inflight; l.flight++ {
		symbols := map[dag.BufferID]cudart.Ptr{}
		for _, q := range family {
			q.code = append(q.code, &loadedCode{kernels: make([]cudart.Kernel, q.graph.Len()), symbols: symbols, waits: make([]bool, q.graph.Len())})
			for i := range q.graph.Nodes {
				if err := l.node(ctx, q, dag.NodeID(i)); err != nil {
					return fmt.Errorf("node %q: %w", q.graph.Nodes[i].Name, err)
				}
			}
		}
		if err := l.findSymbols(ctx); err != nil {
			return err
		}
		if len(l.shared) == 0 { // all replays in flight share the code
			break
		}
	}
	if d := p.deciders; d != nil {
		err := d.load(func(device int32) (cudart.Kernel, error) { return l.kernel(ctx, d.module, device, conditions.Entry) })
		if err != nil {
			return err
		}
	}
	for _, q := range family {
		q.overlap = waiting
		if waiting {
			q.codes[1] = q.code
		} else {
			q.codes[0] = q.code
		}
	}
	return nil
}

// needs notes what the nodes of a graph launch.
func (l *loader) needs(g *dag.Graph) {
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Launch != nil {
			if code, own := n.Launch.Kernel.(Coded); !own {
				l.need(n.Device, n.Launch.Kernel.Entry())
			} else if m := code.Module(); m.Body != "" {
				l.joinable(n.Device, m)
			} else if k, ok := n.Launch.Kernel.(expressed); ok && k.Expression() != "" && !slices.Contains(l.wanted[code.Module()], k.Expression()) {
				l.wanted[code.Module()] = append(l.wanted[code.Module()], k.Expression())
			}
		}
		if needsWideSet(g, n) {
			l.need(n.Device, wideFill)
		}
	}
}

func (l *loader) need(device int32, entry string) {
	if l.library[device] == nil {
		l.library[device] = map[string]bool{}
	}
	l.library[device][entry] = true
}

func (l *loader) node(ctx context.Context, p *Program, id dag.NodeID) error {
	n := &p.graph.Nodes[id]
	if needsWideSet(p.graph, n) && p.setKernel[n.Device] == nil {
		k, err := l.kernel(ctx, nil, n.Device, wideFill)
		if err != nil {
			return err
		}
		p.setKernel[n.Device] = k
	}
	if n.Launch == nil {
		return nil
	}
	var own *launch.Module
	if code, ok := n.Launch.Kernel.(Coded); ok {
		own = code.Module()
	}
	k, err := l.kernel(ctx, own, n.Device, n.Launch.Kernel.Entry())
	if err != nil {
		return err
	}
	if n.Launch.Shared > 48<<10 {
		if err := k.SetMaxShared(n.Launch.Shared); err != nil {
			return fmt.Errorf("%d bytes of dynamic shared memory: %w", n.Launch.Shared, err)
		}
	}
	p.code[l.flight].kernels[id] = k
	p.code[l.flight].waits[id] = l.waiting && launched(n) && !l.plain[l.at(own, n.Device)]
	return nil
}

// kernel finds an entry.
func (l *loader) kernel(ctx context.Context, m *launch.Module, device int32, entry string) (cudart.Kernel, error) {
	loaded, err := l.module(ctx, m, device)
	if err != nil {
		return nil, err
	}
	return loaded.Kernel(entry)
}

// module loads a module on a device, if that has not been done.
func (l *loader) module(ctx context.Context, m *launch.Module, device int32) (cudart.Module, error) {
	p := l.program
	at := l.at(m, device)
	loaded, ok := l.modules[at]
	if !ok {
		if m = at.module; m == nil {
			var entries []string
			for name := range l.library[device] {
				entries = append(entries, name)
			}
			sort.Strings(entries)
			m = library.Module(entries...)
		}
		if names := l.wanted[m]; len(names) > 0 {
			named := *m
			named.Build.Names = names
			m = &named
		}
		p.report("load "+m.Name, len(l.modules), 0)
		start := time.Now()
		var err error
		if loaded, err = l.load(ctx, at, m); err != nil {
			return nil, err
		}
		attrs := []any{"module", m.Name, "device", device, "in", time.Since(start).Round(10 * time.Microsecond)}
		if source, ok := loaded.(interface{ Origin() string }); ok && source.Origin() != "" {
			attrs = append(attrs, "code", source.Origin())
		}
		p.log.Info("loaded", attrs...)
		l.modules[at] = loaded
		p.modules = append(p.modules, loaded)
		if at.flight == 0 {
			p.warnings = append(p.warnings, loaded.Warnings()...)
		}
	}
	return loaded, nil
}

func (l *loader) at(m *launch.Module, device int32) loadedAt {
	if joined := l.program.joined[device]; joined != nil && m != nil && m.Body != "" {
		m = joined
	}
	at := loadedAt{module: m, device: device}
	if l.shared[m] {
		at.flight = l.flight
	}
	return at
}

// load loads a module, in the form whose kernels wait if that is wanted and possible.
func (l *loader) load(ctx context.Context, at loadedAt, m *launch.Module) (cudart.Module, error) {
	p := l.program
	if l.waiting {
		form, ok := waiting(m)
		if ok {
			loaded, err := p.platform.Load(ctx, at.device, form)
			if err == nil || ctx.Err() != nil {
				return loaded, err
			}
			p.log.Info("launches do not overlap", "module", m.Name, "because", err.Error())
		}
		l.plain[at] = true
	}
	return p.platform.Load(ctx, at.device, m)
}

// wideFill is the library's fill for eight-byte elements, given as the bits of an f64. The driver sets elements of at most 4 bytes.
const wideFill = "dagrun_fill_f64"

// needsWideSet reports whether a node sets eight-byte elements whose bytes have no shorter period.
func needsWideSet(g *dag.Graph, n *dag.Node) bool {
	if n.Kind != dag.Memset {
		return false
	}
	_, width := Pattern(g.Buffers[n.Set.Dst.Buffer].DType.Component().Size(), n.Set.Bits)
	return width > 4
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
		if text := symbolName(m, name); m.Kind == launch.Source && !slices.Contains(l.wanted[m], text) {
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

// loadForm loads the plain code, or that whose kernels wait for the launches before them, besides the code in use.
func (p *Program) loadForm(ctx context.Context, waiting bool) error {
	if waiting && p.codes[1] != nil || !waiting && p.codes[0] != nil {
		return nil
	}
	code, overlap := p.code, p.overlap
	p.code = nil
	err := p.load(ctx, waiting)
	p.code, p.overlap = code, overlap
	return err
}
