// Symbols: variables of a user's module that launches share, as buffers. Their addresses are those that the module gets when it is
// loaded, so they are never part of the arena.

package dag

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dagrun/dagrun/internal/words"
)

// Symbol is a variable of a module: __constant__ or __device__ in CUDA C, .const or .global in PTX.
type Symbol struct {
	Name        string // as C++ has it: "filters::taps"
	DType       DType  // of its elements; InvalidDType: not known
	Bytes       int64  // 0: not known until it is compiled
	Constant    bool   // kernels cannot write it
	Initialised bool   // the code gives it its first contents; otherwise it begins as zeros
	Place       string // "scan.cu:3"; "" for compiled code
}

// ErrUnknownSymbol is what Symbols.Symbol returns (wrapped) for a name that the module does not have.
var ErrUnknownSymbol = errors.New("unknown variable")

// Symbols is implemented by modules that have variables.
type Symbols interface {
	// Symbol finds a variable by its name, with or without namespaces.
	Symbol(name string) (Symbol, error)
	// Symbols lists the variables in their order.
	Symbols() []Symbol
}

// SymbolUse is a variable that a kernel uses, and how.
type SymbolUse struct {
	Symbol   Symbol
	Mode     Mode
	Evidence Evidence
}

// SymbolUser is implemented by kernels that use variables of their module.
type SymbolUser interface{ SymbolUses() []SymbolUse }

// InArena reports whether the planner chooses where the buffer lies: not for host memory, and not for variables of modules.
func (b *Buffer) InArena() bool { return b.Place == Device && b.Symbol == "" }

// BindSymbol makes a buffer stand for the variable that its Symbol names, as MODULE.VARIABLE. It returns what is wrong and what to do about it, or "".
func (d *Draft) BindSymbol(b *Buffer) (message, hint string) {
	p := &d.Pipeline
	module, name, _ := strings.Cut(b.Symbol, ".")
	if module == "" || name == "" {
		return fmt.Sprintf("%q is no variable of a module", words.Shorten(b.Symbol)), "write symbol: MODULE.VARIABLE"
	}
	var table Symbols
	var modules []string
	known := false
	for i := range p.Modules {
		m := &p.Modules[i]
		modules = append(modules, m.Name)
		if m.Name == module {
			table, _ = m.Library.(Symbols)
			known = true
		}
	}
	switch {
	case !known:
		if near := words.DidYouMean(module, modules); near != "" {
			return fmt.Sprintf("unknown module %q", words.Shorten(module)), near
		}
		return fmt.Sprintf("unknown module %q", words.Shorten(module)), "declare it under modules:"
	case table == nil:
		return fmt.Sprintf("module %q has no variables", module), ""
	case b.Place != Device:
		return fmt.Sprintf("a variable of a module is in device memory, not in %s memory", b.Place), "write place: device"
	}
	symbol, err := table.Symbol(name)
	if errors.Is(err, ErrUnknownSymbol) {
		var names []string
		for _, s := range table.Symbols() {
			names = append(names, s.Name)
		}
		switch near := words.Suggest(name, names); {
		case near != "":
			hint = fmt.Sprintf("did you mean %q?", module+"."+near)
		case len(names) == 0:
			hint = "it has none"
		default:
			hint = "it has " + strings.Join(names[:min(len(names), 8)], ", ")
		}
		return fmt.Sprintf("module %q has no variable %q", module, words.Shorten(name)), hint
	}
	if err != nil {
		return err.Error(), ""
	}
	b.Symbol, b.Initialised = module+"."+symbol.Name, symbol.Initialised
	if problem := symbol.Problem(b); problem != "" {
		return problem, ""
	}
	for i := range p.Buffers {
		if other := &p.Buffers[i]; other.Symbol == b.Symbol && other.Device == b.Device && !other.Scratch {
			return fmt.Sprintf("%s is the buffer %q already%s", symbol.String(), other.Name, other.Pos.OnLine()), ""
		}
	}
	return "", ""
}

// String names a symbol and its place.
func (s *Symbol) String() string {
	if s == nil {
		return "no symbol"
	}
	if s.Place == "" {
		return s.Name
	}
	return s.Name + " (" + s.Place + ")"
}

// Problem says in what a buffer differs from the symbol that it stands for, or "".
func (s *Symbol) Problem(b *Buffer) string {
	switch {
	case s == nil || b == nil:
		return ""
	case s.DType != InvalidDType && !sameComponents(b.DType, s.DType) && !b.Scratch:
		return fmt.Sprintf("buffer %q has elements of type %s, %s has %s", words.Shorten(b.Name), b.DType, s, s.DType)
	case s.Bytes > 0 && b.Bytes != s.Bytes:
		return fmt.Sprintf("buffer %q has %s, %s has %d", words.Shorten(b.Name), words.Count(b.Bytes, "byte", "bytes"), s, s.Bytes)
	}
	return ""
}

// SymbolBuffer is the buffer that stands for a variable on a device, or -1.
func (p *Pipeline) SymbolBuffer(symbol string, device int32) BufferID {
	if p == nil {
		return -1
	}
	for i := range p.Buffers {
		if b := &p.Buffers[i]; b.Symbol == symbol && b.Device == device {
			return BufferID(i)
		}
	}
	return -1
}

// symbols are the variables that the kernel uses: what it touches although no argument says so. A variable that kernels write and
// nobody has declared becomes a hidden buffer, so that launches which share it are ordered.
func (r *resolution) symbols(accesses []Access) []Access {
	user, ok := r.kernel.(SymbolUser)
	if !ok || r.spec.Module < 0 || r.spec.Map != nil {
		return accesses
	}
	p := r.pipeline
	for _, use := range user.SymbolUses() {
		name := p.Modules[r.spec.Module].Name + "." + use.Symbol.Name
		id := p.SymbolBuffer(name, r.device)
		if id < 0 && use.Mode&Write == 0 {
			continue
		}
		if id < 0 {
			id = BufferID(len(p.Buffers))
			p.Buffers = append(p.Buffers, Buffer{Name: hiddenName(p, name, r.device), Place: Device, DType: U8, Scratch: true, Device: r.device, Symbol: name,
				Initialised: true, Shape: []int64{use.Symbol.Bytes}, Bytes: use.Symbol.Bytes, Pos: r.node.Pos})
		}
		accesses = append(accesses, Access{Range{Buffer: id, Lo: 0, Hi: p.Buffers[id].Bytes}, use.Mode})
	}
	return accesses
}

// hiddenName is the name of the hidden buffer of a variable.
func hiddenName(p *Pipeline, symbol string, device int32) string {
	if device > 0 {
		return fmt.Sprintf("%s$symbol%d", symbol, device)
	}
	return symbol + "$symbol"
}

// symbolsKnown refuses a kernel that writes a variable whose size nothing tells: no buffer can stand for it.
func (r *resolution) symbolsKnown() {
	user, ok := r.kernel.(SymbolUser)
	if !ok || r.spec.Module < 0 || r.spec.Map != nil {
		return
	}
	module := r.pipeline.Modules[r.spec.Module].Name
	for _, use := range user.SymbolUses() {
		if use.Symbol.Bytes > 0 || use.Mode&Write == 0 || r.pipeline.SymbolBuffer(module+"."+use.Symbol.Name, r.device) >= 0 {
			continue
		}
		name := use.Symbol.Name[strings.LastIndex(use.Symbol.Name, ":")+1:]
		r.problem(PartKernel, fmt.Sprintf("%s uses the variable %s, which launches share and whose size is not known", r.what, use.Symbol.String()),
			fmt.Sprintf("declare it under buffers: %s: {place: device, symbol: %s.%s, dtype: ..., shape: [...]}", name, module, use.Symbol.Name))
	}
}
