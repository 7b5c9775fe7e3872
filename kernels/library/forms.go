// Forms of a kernel: entries of its own for launches of some shapes. A driver compiles what is launched, so a program waits only for the code of the
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

// addForms makes the kernels of the row's forms. Then the kernel itself stands for all of them, and the last form is what it was.
func (k *libraryKernel) addForms() error {
	for i := range k.row.forms {
		form := &k.row.forms[i]
		if k.onTile && !form.tiles || form.f32 && computedIn(k.types.T) != dag.F32 {
			continue
		}
		r, f := *k.row, *k
		r.check, r.launch, r.steps = form.check, form.launch, form.steps
		f.row, f.tiles, f.forms, f.entry = &r, nil, nil, k.entryOf(form.name)
		if form.scratch != "" {
			var err error
			if f.parameters, err = parseSignature(r.signature + ", " + form.scratch); err != nil {
				return err
			}
			f.params = append(f.params[:len(f.params):len(f.params)],
				dag.KernelParam{Name: "scratch", DType: dag.U8, Buffer: true, Scratch: true, Mode: dag.Write, Size: 8})
		}
		k.forms = append(k.forms, shapedKernel{form.suits, &f})
	}
	if len(k.forms) > 0 {
		general := *k
		general.forms, general.tiles = nil, nil
		k.forms = append(k.forms, shapedKernel{func(scalars) bool { return true }, &general})
	}
	return nil
}

// Form implements [dag.ShapedKernel].
func (k *libraryKernel) Form(args []dag.Arg) dag.LaunchKernel { return k.form(args) }

func (k *libraryKernel) form(args []dag.Arg) *libraryKernel {
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

// withScratch adds an empty argument for scratch that only a form has.
func (k *libraryKernel) withScratch(args []dag.Arg) []dag.Arg {
	if len(args) < len(k.params) {
		args = append(args[:len(args):len(args)], dag.Arg{IsBuffer: true, Mode: dag.Write, DType: dag.U8, Range: dag.Range{Buffer: -1}})
	}
	return args
}

// inAllForms returns the kernels of all forms, and those for tiles.
func (k *libraryKernel) inAllForms() []*libraryKernel {
	all := []*libraryKernel{k}
	if len(k.forms) > 0 {
		all = all[:0]
		for _, f := range k.forms {
			all = append(all, f.kernel)
		}
	}
	if k.tiles != nil {
		all = append(all, k.tiles.inAllForms()...)
	}
	return all
}
