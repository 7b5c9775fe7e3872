// Package source reads users' files of kernels: CUDA C, PTX, cubins and fat binaries. It finds out what each kernel takes. What a
// launch touches, the user declares, or PTX shows.
package source

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/internal/launch"
)

// Options are what [Open] may need beyond the file itself.
type Options struct {
	// References are Go versions of its kernels by name; the CPU device runs these.
	References map[string]launch.Reference
	// ReadFile reads a file that a source includes with quotes, by its name as written. If it is nil, includes are ignored, and the
	// types and macros in them are unknown.
	ReadFile func(name string) ([]byte, error)
}

// Module is a user's file of kernels. It implements [dag.Library].
type Module struct {
	module  *launch.Module
	kernels []*kernel
	refused map[string]error // kernels of the file that cannot be launched, and why
	globals []string
}

// Open lists the kernels of a file. Its kind is recognised by the contents and by the path's ending. Nothing is compiled or loaded.
func Open(name, path string, code []byte, options Options) (*Module, error) {
	m := &Module{module: &launch.Module{Name: path, Path: path, Code: code, References: options.References}, refused: map[string]error{}}
	if path == "" {
		m.module.Name = name
	}
	var found []sourceKernel
	var err error
	switch kindOf(path, code) {
	case launch.Cubin:
		m.module.Kind = launch.Cubin
		found, m.globals, err = parseCubin(code)
	case launch.Fatbin:
		m.module.Kind = launch.Fatbin
		found, m.globals, err = parseFatbin(code)
	case launch.PTX:
		m.module.Kind = launch.PTX
		if found, m.globals, err = parsePTX(string(code)); err != nil {
			return nil, fmt.Errorf("module %q: %s:%w", name, path, err)
		}
	default:
		m.module.Kind = launch.Source
		source := parseCUDA(string(code), options.ReadFile)
		found, m.globals = source.kernels, source.globals
	}
	if err != nil {
		return nil, fmt.Errorf("module %q: %s: %w", name, path, err)
	}
	for _, k := range found {
		if k.err != nil {
			m.refused[k.name] = k.err
			continue
		}
		m.kernels = append(m.kernels, &kernel{owner: m, name: k.name, params: k.params, floatAtomics: k.floatAtomics})
	}
	if len(found) == 0 {
		what := `an extern "C" __global__ function`
		if m.module.Kind != launch.Source {
			what = "an entry"
		}
		return nil, fmt.Errorf("module %q: %s has no kernel: %s is needed", name, path, what)
	}
	for entry := range options.References {
		if !slices.ContainsFunc(m.kernels, func(k *kernel) bool { return k.name == entry }) {
			return nil, fmt.Errorf("module %q: there is a Go version of %q, but no such kernel in %s", name, entry, path)
		}
	}
	return m, nil
}

func kindOf(path string, code []byte) launch.Kind {
	switch {
	case bytes.HasPrefix(code, []byte("\x7fELF")):
		return launch.Cubin
	case bytes.HasPrefix(code, []byte{0x50, 0xed, 0x55, 0xba}):
		return launch.Fatbin
	}
	switch strings.ToLower(filepath.Ext(path)) {
	case ".ptx":
		return launch.PTX
	case ".cubin":
		return launch.Cubin
	case ".fatbin":
		return launch.Fatbin
	}
	return launch.Source
}

// Module is the code itself.
func (m *Module) Module() *launch.Module { return m.module }

// WritableGlobals lists the variables that kernels may write. All launches share them, so launches that use them depend on each
// other even if their buffers are disjoint.
func (m *Module) WritableGlobals() []string { return m.globals }

// Names lists the kernels that can be launched, sorted.
func (m *Module) Names() []string {
	var names []string
	for _, k := range m.kernels {
		names = append(names, k.name)
	}
	slices.Sort(names)
	return names
}

// Kernel finds a kernel by name; the element types are not looked at.
func (m *Module) Kernel(name string, _ []dag.DType) (dag.LaunchKernel, error) {
	for _, k := range m.kernels {
		if k.name == name {
			return k, nil
		}
	}
	if err := m.refused[name]; err != nil {
		return nil, fmt.Errorf("%s: %w", m.module.Path, err)
	}
	return nil, fmt.Errorf("%w %q", dag.ErrUnknownKernel, name)
}

// Map implements [dag.Library]: a user's module makes no kernels of expressions.
func (m *Module) Map(*dag.MapSpec) (dag.LaunchKernel, error) {
	return nil, errors.New("a user's module makes no kernels of expressions")
}

// kernel is a kernel of a user's module.
type kernel struct {
	owner        *Module
	name         string
	params       []dag.KernelParam
	floatAtomics string
}

// Entry is the kernel's name.
func (k *kernel) Entry() string { return k.name }

// Params are as the source declares them: const T* is read, T* is read and written unless the user declares less. For cubins
// only the sizes are known, and for PTX what the code shows.
func (k *kernel) Params() []dag.KernelParam { return k.params }

// FloatAtomics implements [dag.FloatAtomics]. Only PTX shows it.
func (k *kernel) FloatAtomics() string { return k.floatAtomics }

// Module is the code that the kernel is in.
func (k *kernel) Module() *launch.Module { return k.owner.module }

// Describe assumes that each buffer's whole slice is touched. Grid and block are the user's to give.
func (k *kernel) Describe(args []dag.Arg) (dag.LaunchInfo, error) {
	if len(args) != len(k.params) {
		return dag.LaunchInfo{}, fmt.Errorf("takes %d arguments, got %d", len(k.params), len(args))
	}
	info := dag.LaunchInfo{Extents: make([]int64, len(args))}
	for i, a := range args {
		if a.IsBuffer {
			info.Extents[i] = -1
			info.Work.Bytes += a.Range.Hi - a.Range.Lo
			if a.Mode == dag.ReadWrite {
				info.Work.Bytes += a.Range.Hi - a.Range.Lo
			}
		}
	}
	return info, nil
}
