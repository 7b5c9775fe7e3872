// What compiled code shows of kernels in CUDA C: which arguments they read and write.

package source

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/ptx"
	"github.com/dagrun/dagrun/kernels/launch"
)

// Confirm implements [dag.Confirmer]. PTX shows what kernels do as soon as it is opened, and cubins never.
func (m *Module) Confirm(ctx context.Context, kernels []dag.LaunchKernel) (note string, err error) {
	if m.compilers == nil || m.module.Kind != launch.Source {
		return "", nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if note, _, err = m.confirm(ctx, kernels); err != nil {
		return note, err
	}
	for _, k := range kernels {
		if own := k.(*userKernel); own.err != nil {
			return note, fmt.Errorf("%s: %w", m.module.Name, own.err)
		}
	}
	return note, nil
}

// confirm compiles kernels and takes over what their code shows. shown has those that were found, by their entries.
func (m *Module) confirm(ctx context.Context, kernels []dag.LaunchKernel) (note string, shown map[string]shape, err error) {
	source := *m.module
	var wanted []*userKernel
	for _, k := range kernels {
		own, ok := k.(*userKernel)
		if !ok || own.owner != m {
			return "", nil, fmt.Errorf("%T is no kernel of %s", k, m.module.Name)
		}
		wanted = append(wanted, own)
		if e := own.Expression(); e != "" {
			source.Build.Names = append(source.Build.Names, e)
		}
	}
	for _, name := range m.asked {
		source.Build.Names = append(source.Build.Names, "&"+name)
	}
	compiled, err := m.compilers.Compile(ctx, &source, launch.Target{})
	switch {
	case errors.Is(err, launch.ErrNoCompiler):
		return err.Error(), nil, nil
	case err != nil:
		return "", nil, err
	}
	text, err := ptx.Parse(string(compiled.Code))
	if err != nil {
		return fmt.Sprintf("the PTX that %s made of %s cannot be read: %v", compiled.Compiler, m.module.Name, err), nil, nil
	}
	entries, _ := entriesOf(text)
	shown = map[string]shape{}
	confirmed := map[ptx.FunctionID]*userKernel{}
	for _, k := range wanted {
		symbol := k.entry
		if s := compiled.Symbols[k.entry]; s != "" {
			symbol = s
		}
		for i := range entries {
			if e := &entries[i]; e.name == symbol && len(e.params) == len(k.own()) {
				if err := k.confirmStructures(text, symbol); err != nil {
					return "", nil, fmt.Errorf("%s: %w", m.module.Name, err)
				}
				k.confirm(e)
				k.read(text, symbol)
				shown[k.entry] = shape{symbol, sharedBytes(text, symbol)}
				confirmed[k.id] = k
			}
		}
	}
	if err := m.complete(entries); err != nil {
		return "", nil, err
	}
	return "", shown, m.confirmSymbols(text, compiled, confirmed)
}

// complete refuses a list that lacks a kernel which the compiler has found.
func (m *Module) complete(entries []sourceKernel) error {
	last := func(name string) string { return name[strings.LastIndexByte(name, ':')+1:] }
	listed := map[string]bool{}
	for i := range m.found {
		listed[last(m.found[i].name)] = true
	}
	for _, e := range entries {
		if e := compiledKernel(e); !listed[last(e.compiled.name)] {
			return fmt.Errorf("%s: compiled code has the kernel %s, which is missing among the kernels that were read; please report this file", m.module.Name,
				e.compiled.signature())
		}
	}
	return nil
}

// confirm takes over what the code of the kernel shows.
func (k *userKernel) confirm(e *sourceKernel) {
	for i := range k.params {
		if p := &k.params[i]; p.Within > 0 {
			p.Code = e.pointers[place{int(p.Within) - 1, int64(p.Offset)}]
			continue
		}
		if k.params[i].Buffer || k.params[i].Texture {
			k.params[i].Code = e.params[i].Code
		}
	}
	k.floatAtomics = e.floatAtomics
	if e.err != nil {
		k.err = fmt.Errorf("kernel %q %w", k.name, e.err)
	}
}

// confirmStructures compares layouts with the parameters of compiled code.
func (k *userKernel) confirmStructures(text *ptx.Module, symbol string) error {
	id, ok := text.Function(symbol)
	if !ok || len(text.Functions[id].Params) != len(k.own()) {
		return nil
	}
	for i, p := range text.Functions[id].Params {
		s := k.params[i].Struct
		if s == nil {
			continue
		}
		if v := &text.Variables[p.Variable]; v.Size != int64(s.Size) || v.Align != int(s.Align) {
			return fmt.Errorf("kernel %q: parameter %s of type %s has %d bytes aligned to %d in compiled code, but %d aligned to %d as it is declared",
				k.name, k.params[i].Name, s.Name, v.Size, v.Align, s.Size, s.Align)
		}
	}
	return nil
}

// shape is what a launch of a kernel takes of a multiprocessor.
type shape struct {
	symbol string
	shared int64
}

// sharedBytes is the static shared memory of an entry: its own variables, and those of the module that its code or what it calls names.
func sharedBytes(m *ptx.Module, entry string) int64 {
	for _, id := range m.Entries() {
		if m.Functions[id].Name != entry {
			continue
		}
		total := int64(0)
		named := &reachable{m: m, functions: map[ptx.FunctionID]bool{}, variables: map[ptx.VariableID]bool{}}
		named.function(id)
		for i := range m.Variables {
			v := &m.Variables[i]
			if v.Space == ptx.Shared && (v.Owner == id || named.variables[ptx.VariableID(i)]) {
				if align := int64(v.Align); align > 1 {
					total = (total + align - 1) / align * align
				}
				total += v.Size
			}
		}
		return total
	}
	return -1
}

// reachable are the functions and variables that code names, and what these name in turn.
type reachable struct {
	m         *ptx.Module
	functions map[ptx.FunctionID]bool
	variables map[ptx.VariableID]bool
}

func (r *reachable) function(id ptx.FunctionID) {
	id = r.m.Resolve(id)
	if id == ptx.NoFunction || r.functions[id] {
		return
	}
	r.functions[id] = true
	f := &r.m.Functions[id]
	for i := range f.Code {
		r.operands(f, f.Code[i].Operands)
	}
}

func (r *reachable) operands(f *ptx.Function, all []ptx.Operand) {
	for _, o := range all {
		if o.Kind == ptx.FunctionKind {
			r.function(ptx.FunctionID(o.Index))
		}
		r.variable(o.Variable())
		r.operands(f, f.Elements(o))
	}
}

func (r *reachable) variable(id ptx.VariableID) {
	if id == ptx.NoVariable || r.variables[id] {
		return
	}
	r.variables[id] = true
	for _, place := range r.m.Variables[id].Relocate {
		r.variable(place.Variable)
		if place.Variable == ptx.NoVariable {
			r.function(place.Function)
		}
	}
}
