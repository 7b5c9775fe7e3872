// Forms of a kernel: entries of its own for launches of some shapes. A driver compiles what is launched, so a program waits only for code of the
// shapes that it has.

package library

import "github.com/dagrun/dagrun/dag"

// entryOf returns the name of the entry of a form, or of the kernel itself for "".
func (k *libraryKernel) entryOf(form string) string {
	entry := "dagrun_" + k.row.name
	if k.onTile {
		entry += "_ld"
	}
	if form != "" {
		entry += "_" + form
	}
	return entry + k.types.suffix()
}

// inForms makes the kernels of the row's forms.
func (k *libraryKernel) inForms() []shapedKernel {
	if computedIn(k.types.T) != dag.F32 {
		return nil
	}
	var all []shapedKernel
	for _, form := range k.row.forms {
		if k.onTile && !form.tiles {
			continue
		}
		r, f := *k.row, *k
		r.forms, r.check, r.launch, r.steps = nil, form.check, form.launch, form.steps
		f.row, f.tiles, f.entry = &r, nil, k.entryOf(form.name)
		all = append(all, shapedKernel{form.suits, &f})
	}
	return all
}

// Form implements [dag.ShapedKernel].
func (k *libraryKernel) Form(args []dag.Arg) dag.LaunchKernel {
	if len(k.forms) == 0 || len(args) != len(k.params) {
		return k
	}
	v := k.scalarsOf(args)
	for _, f := range k.forms {
		if f.suits(v) {
			return f.kernel
		}
	}
	return k
}

// inAllForms returns the kernel with its forms, and those for tiles.
func (k *libraryKernel) inAllForms() []*libraryKernel {
	all := []*libraryKernel{k}
	for _, f := range k.forms {
		all = append(all, f.kernel)
	}
	if k.tiles != nil {
		all = append(all, k.tiles.inAllForms()...)
	}
	return all
}
