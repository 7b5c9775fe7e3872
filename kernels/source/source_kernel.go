// One kernel as a file has it, before anybody asks for it with arguments.

package source

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/dag"
)

// sourceKernel is a kernel as its source declares it, or as compiled code has it.
type sourceKernel struct {
	name     string       // with its namespaces: "ns::scan"
	symbol   string       // its name in compiled code, where that is known
	compiled *mangledName // what the symbol says; nil: it was read from CUDA C
	file     string
	line     int32
	template []templateParam // nil: it is no template
	raw      [][]token       // its parameters in CUDA C
	defined  bool            // in CUDA C: it has a body
	params   []dag.KernelParam
	err      error // why it cannot be launched

	pointers     map[place]dag.CodeUse // of PTX: how what may be pointers in its parameters is used
	floatAtomics string                // the place where its code adds floats atomically, if any
	registers    int                   // of a thread, where a cubin says it
	symbols      []dag.SymbolUse       // of PTX: variables that it uses
}

// place is where in the parameters of a kernel something lies.
type place struct {
	param  int
	offset int64
}

// sameParameters reports whether two kernels of one name are one kernel, declared and defined.
func sameParameters(a, b *sourceKernel) bool {
	if len(a.raw) != len(b.raw) || len(a.template) != len(b.template) {
		return false
	}
	for i := range a.raw {
		if a.typeOf(i) != b.typeOf(i) {
			return false
		}
	}
	return true
}

// typeOf is the type of parameter i, the same for all ways to write it. A template's parameters are numbered.
func (k *sourceKernel) typeOf(i int) string {
	d := k.raw[i]
	if k.template != nil {
		d = slices.Clone(d)
		for j := range d {
			for n, param := range k.template {
				if d[j].text == param.name {
					d[j].text = fmt.Sprintf("$%d", n)
				}
			}
		}
	}
	p := takeApart(d, nil)
	text := canonical(textOf(p.words)) + strings.Repeat("*", p.stars)
	if p.constant && p.stars > 0 {
		text = "const " + text
	}
	return text
}

// signature is the kernel as its author would declare it, without names of parameters: "ns::scan(int, const float*)".
func (k *sourceKernel) signature() string {
	var types []string
	for i := range k.raw {
		p := takeApart(k.raw[i], nil)
		text := textOf(p.words) + strings.Repeat("*", p.stars)
		if p.constant && p.stars > 0 {
			text = "const " + text
		}
		types = append(types, text)
	}
	return k.name + k.templateText() + "(" + strings.Join(types, ", ") + ")"
}

// templateText lists a template's parameters: "<int K, typename T>".
func (k *sourceKernel) templateText() string {
	if k.template == nil {
		return ""
	}
	var all []string
	for _, p := range k.template {
		text := p.kind
		if p.pack {
			text += "..."
		}
		if p.name != "" {
			text += " " + p.name
		}
		if p.standard != nil {
			text += " = " + textOf(p.standard)
		}
		all = append(all, text)
	}
	return "<" + strings.Join(all, ", ") + ">"
}

// compiledKernel reads what a kernel's symbol says.
func compiledKernel(k sourceKernel) sourceKernel {
	k.symbol = k.name
	if d, ok := demangle(k.symbol); ok {
		k.name, k.compiled = d.name, &d
	} else {
		k.compiled = &mangledName{name: k.name}
	}
	return k
}
