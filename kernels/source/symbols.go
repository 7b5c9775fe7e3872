// Variables that launches share, as pipelines ask for them: __constant__ and __device__ variables of CUDA C, .const and .global ones of
// PTX, and which kernels use them.

package source

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/ptx"
	"github.com/dagrun/dagrun/internal/ptx/access"
	"github.com/dagrun/dagrun/kernels/launch"
)

// Symbols implements [dag.Symbols].
func (m *Module) Symbols() []dag.Symbol {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := slices.Clone(m.symbols)
	for i := range list {
		if size, ok := m.sizes[list[i].Name]; ok {
			list[i].Bytes = size
		}
	}
	return list
}

// Symbol implements [dag.Symbols]. Of cubins and fat binaries the variables are not known: any name may be one, and loading tells.
func (m *Module) Symbol(name string) (dag.Symbol, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []*dag.Symbol
	for _, exact := range []bool{true, false} {
		for i := range m.symbols {
			if s := &m.symbols[i]; s.Name == name || variableName(s.Name) == name || !exact && named(variableName(s.Name), name) {
				found = append(found, s)
			}
		}
		if len(found) > 0 {
			break
		}
	}
	switch {
	case len(found) > 1:
		var names []string
		for _, s := range found {
			names = append(names, s.Name)
		}
		return dag.Symbol{}, fmt.Errorf("%s: the variable %q is ambiguous: it may be %s", m.module.Path, name, strings.Join(names, " or "))
	case len(found) == 0 && (m.module.Kind == launch.Cubin || m.module.Kind == launch.Fatbin):
		m.ask(name)
		return dag.Symbol{Name: name, Initialised: true}, nil
	case len(found) == 0:
		return dag.Symbol{}, fmt.Errorf("%s: %w %q", m.module.Path, dag.ErrUnknownSymbol, name)
	}
	s := *found[0]
	if size, ok := m.sizes[s.Name]; ok {
		s.Bytes = size
	}
	m.ask(s.Name)
	return s, nil
}

// ask notes that a variable is used as a buffer.
func (m *Module) ask(name string) {
	if !slices.Contains(m.asked, name) {
		m.asked = append(m.asked, name)
	}
}

// SymbolUses implements [dag.SymbolUser].
func (k *userKernel) SymbolUses() []dag.SymbolUse {
	m := k.owner
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.module.Kind == launch.PTX:
		return k.declared.symbols
	case m.module.Kind != launch.Source: // no text tells which it uses
		var uses []dag.SymbolUse
		for _, name := range m.asked {
			uses = append(uses, dag.SymbolUse{Symbol: dag.Symbol{Name: name, Initialised: true}, Mode: dag.ReadWrite})
		}
		return uses
	case len(m.symbols) == 0:
		return nil
	}
	if k.uses == nil {
		k.uses = m.usesOf(k)
	}
	uses := slices.Clone(k.uses)
	for i := range uses {
		if size, ok := m.sizes[uses[i].Symbol.Name]; ok {
			uses[i].Symbol.Bytes = size
		}
	}
	return uses
}

// usesOf finds the variables that the text of a kernel leads to.
func (m *Module) usesOf(k *userKernel) []dag.SymbolUse {
	reached := map[string]bool{}
	m.units.reach(alwaysUsed, reached)
	m.units.reach(k.declared.name[strings.LastIndexByte(k.declared.name, ':')+1:], reached)
	for _, t := range tokensOf(k.entry) { // a template's arguments may be functions and types
		if t.word() {
			m.units.reach(t.text, reached)
		}
	}
	uses := []dag.SymbolUse{}
	for _, s := range m.symbols {
		if !reached[s.Name[strings.LastIndexByte(s.Name, ':')+1:]] {
			continue
		}
		use := dag.SymbolUse{Symbol: s, Mode: dag.ReadWrite}
		if s.Constant {
			use.Mode, use.Evidence = dag.Read, dag.Proved
		}
		uses = append(uses, use)
	}
	return uses
}

// confirmSymbols takes over the sizes of variables from compiled code, and refuses kernels whose code writes variables that their text
// does not show. The module is locked.
func (m *Module) confirmSymbols(text *ptx.Module, compiled *launch.Compiled, confirmed map[ptx.FunctionID]*userKernel) error {
	name := func(v *ptx.Variable) string {
		for _, s := range m.symbols {
			if compiled.Symbols["&"+s.Name] == v.Name || variableName(v.Name) == s.Name {
				return s.Name
			}
		}
		return ""
	}
	for _, id := range text.Globals {
		v := &text.Variables[id]
		if known := name(v); known != "" && sharedVariable(v) {
			if m.sizes == nil {
				m.sizes = map[string]int64{}
			}
			m.sizes[known] = v.Size
		}
	}
	if len(text.Globals) == 0 {
		return nil
	}
	for at, report := range access.AnalyseAll(text) {
		k := confirmed[text.Entries()[at]]
		if k == nil {
			continue
		}
		for _, s := range report.Symbols {
			v := &text.Variables[s.Variable]
			if !s.Writes || !sharedVariable(v) {
				continue
			}
			known := name(v)
			if known == "" {
				return fmt.Errorf("kernel %q writes the variable %s (%s), which is declared in a function: launches share it; declare it outside of functions",
					k.name, plainVariable(v.Name), s.WrittenAt)
			}
			if !slices.ContainsFunc(m.usesOf(k), func(u dag.SymbolUse) bool { return u.Symbol.Name == known }) {
				return fmt.Errorf("kernel %q writes the variable %s (%s), which its text does not name", k.name, known, s.WrittenAt)
			}
		}
	}
	return nil
}

// plainVariable is the name of a static variable of a function, _ZZ<function>E<length><name>, or the name as it is.
func plainVariable(symbol string) string {
	if !strings.HasPrefix(symbol, "_ZZ") {
		return variableName(symbol)
	}
	if end := strings.LastIndexByte(symbol, 'E'); end > 0 {
		if name := strings.TrimLeft(symbol[end+1:], "0123456789"); name != "" {
			return name
		}
	}
	return symbol
}
