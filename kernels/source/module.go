// Package source reads users' files of kernels: CUDA C, PTX, cubins and fat binaries. It finds out which parameters each kernel has. What a
// launch accesses is declared by the user or shown by PTX.
package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/kernels/internal/launch"
	"github.com/dagrun/dagrun/kernels/ptx"
)

// Options are what [Open] may need beyond the file itself.
type Options struct {
	// References holds Go versions of the module's kernels by name, for the CPU device.
	References map[string]launch.Reference
	// ReadFile reads a file that a source includes. Its path is relative to what the source's own path is relative to. If it is nil,
	// includes are ignored, and the types and macros in them are unknown.
	ReadFile func(path string) ([]byte, error)
	// Compilers make code of CUDA C when kernels are confirmed; nil: they are not.
	Compilers *Compilers
	// Context ends compilations; nil: nothing does.
	Context context.Context
	// Build says how CUDA C is compiled. Its Names are ignored: the kernels that are launched decide.
	Build launch.Build
}

// mostSource is how large a file of CUDA C or PTX may be. People write kilobytes, and templates make megabytes of PTX.
const (
	mostSource = 8 << 20
	mostPTX    = 256 << 20
)

// Module is a user's file of kernels. It implements [dag.Library].
type Module struct {
	module  *launch.Module
	found   []sourceKernel
	types   map[string][]token
	globals []string
	symbols []dag.Symbol
	units   units

	text      *ptx.Module // of PTX
	compilers *Compilers
	ctx       context.Context

	mu    sync.Mutex
	known map[string]*kernel // by the names that were asked for
	asked []string           // variables that are buffers
	sizes map[string]int64   // of variables, by compiled code
}

// Open lists the kernels of a file. Its kind is recognised by the contents and by the path's ending. Nothing is compiled or loaded.
func Open(name, path string, code []byte, options Options) (*Module, error) {
	build := options.Build
	build.Names = nil
	m := &Module{module: &launch.Module{Name: path, Path: path, Code: code, References: options.References, Build: build}, known: map[string]*kernel{}}
	m.compilers, m.ctx = options.Compilers, options.Context
	if m.ctx == nil {
		m.ctx = context.Background()
	}
	if path == "" {
		m.module.Name = name
	}
	if err := m.read(path, code, &options); err != nil {
		return nil, fmt.Errorf("module %q: %w", name, err)
	}
	for entry := range options.References {
		if k, err := m.Kernel(entry, nil); err != nil || k.Entry() != entry {
			return nil, fmt.Errorf("module %q: there is a Go version of %q, but no such kernel in %s", name, entry, path)
		}
	}
	return m, nil
}

// read finds the kernels.
func (m *Module) read(path string, code []byte, options *Options) (err error) {
	m.module.Kind = kindOf(path, code)
	if m.module.Kind != launch.Source && (len(m.module.Build.Define) > 0 || len(m.module.Build.Include) > 0 || len(m.module.Build.Options) > 0) {
		return fmt.Errorf("%s is compiled already; include, define and options are for CUDA C", path)
	}
	switch m.module.Kind {
	case launch.Cubin:
		m.found, m.globals, err = parseCubin(code)
	case launch.Fatbin:
		m.found, m.globals, err = parseFatbin(code)
	case launch.PTX:
		if err := readable(code, mostPTX); err != nil {
			return fmt.Errorf("%s %w", path, err)
		}
		text, err := ptx.Parse(string(code))
		if err != nil {
			return fmt.Errorf("%s:%w", path, err)
		}
		m.text = text
		m.found, m.globals = entriesOf(text)
		m.symbols = symbolsOfPTX(text)
	default:
		return m.readSource(path, code, options)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if len(m.found) == 0 {
		return fmt.Errorf("%s has no kernel: an entry is needed", path)
	}
	for i := range m.found {
		m.found[i] = compiledKernel(m.found[i])
	}
	return nil
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

// readSource finds the kernels of CUDA C.
func (m *Module) readSource(path string, code []byte, options *Options) error {
	if err := readable(code, mostSource); err != nil {
		return fmt.Errorf("%s %w", path, err)
	}
	if err := checkBuild(&m.module.Build); err != nil {
		return err
	}
	p := preprocess(path, string(code), m.module.Build.Define, search{m.module.Build.Include, options.ReadFile})
	if p.err != nil {
		return p.err
	}
	source := parseCUDA(p)
	m.found, m.globals, m.types, m.symbols, m.units = source.kernels, source.globals, source.types, source.symbols, source.units
	if len(m.found) == 0 {
		return fmt.Errorf("%s has no kernel: a __global__ function is needed", path)
	}
	return nil
}

// readable refuses what is not text, before anything spends time on it.
func readable(code []byte, most int) error {
	if len(code) > most {
		return fmt.Errorf("has %s, and files of kernels have at most %s", words.Bytes(int64(len(code))), words.Bytes(int64(most)))
	}
	if at := bytes.IndexByte(code, 0); at >= 0 {
		return fmt.Errorf("is not text: line %d has a zero byte", bytes.Count(code[:at], []byte{'\n'})+1)
	}
	return nil
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

// Names lists the kernels, sorted. Templates are listed without arguments.
func (m *Module) Names() []string {
	var names []string
	for i := range m.found {
		if k := &m.found[i]; k.compiled != nil {
			names = append(names, k.compiled.full())
		} else {
			names = append(names, k.name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Kernel finds a kernel by name. The element types are ignored. The name may have namespaces, and a template's arguments as in
// scan<256, float>; it may be a symbol of compiled code too.
func (m *Module) Kernel(name string, _ []dag.DType) (dag.LaunchKernel, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, err := m.find(name)
	if err != nil {
		return nil, err
	}
	return k, nil
}

// ParameterNames implements [dag.ParameterNames]. PTX and cubins have no names to go by.
func (m *Module) ParameterNames(name string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, err := m.find(name)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range k.params {
		if p.Name != "" {
			names = append(names, p.Name)
		}
	}
	return names, nil
}

// Map implements [dag.Library]: a user's module makes no kernels from expressions.
func (m *Module) Map(*dag.MapSpec) (dag.LaunchKernel, error) {
	return nil, errors.New("a user's module makes no kernels from expressions")
}

// kernel is a kernel of a user's module.
type kernel struct {
	owner        *Module
	declared     *sourceKernel
	name         string // as it was asked for
	entry        string
	params       []dag.KernelParam
	floatAtomics string
	uses         []dag.SymbolUse // variables that its text names; nil: not looked up

	code *ptx.Module // what its accesses are known from; nil: they are not
	id   ptx.FunctionID
	left map[string]leaving // by launch
}

// Entry is the kernel's symbol. CUDA C that is not extern "C" gets its symbols only when it is compiled: there it is a C++
// expression, which compiled code has a symbol for.
func (k *kernel) Entry() string { return k.entry }

// Expression is how C++ names the kernel where it has no symbol before it is compiled, otherwise "".
func (k *kernel) Expression() string {
	if k.declared.symbol != "" {
		return ""
	}
	return k.entry
}

// Params returns the parameters as the source declares them: const T* is read, T* is read and written unless the user declares less. For cubins
// only the sizes are known, and for PTX what the code shows.
func (k *kernel) Params() []dag.KernelParam { return k.params }

// FloatAtomics implements [dag.FloatAtomics]. It is known only for PTX.
func (k *kernel) FloatAtomics() string { return k.floatAtomics }

// Module is the code that the kernel is in.
func (k *kernel) Module() *launch.Module { return k.owner.module }

// Describe assumes that each buffer's whole slice is accessed. The user must give grid and block.
func (k *kernel) Describe(args []dag.Arg) (dag.LaunchInfo, error) {
	if len(args) != len(k.params) {
		return dag.LaunchInfo{}, fmt.Errorf("takes %d arguments, got %d", len(k.params), len(args))
	}
	info := dag.LaunchInfo{Extents: make([]int64, len(args))}
	for i, a := range args {
		if a.IsBuffer {
			info.Extents[i] = -1
			info.Work.Bytes += a.Range.Bytes()
			if a.Mode == dag.ReadWrite {
				info.Work.Bytes += a.Range.Bytes()
			}
		}
	}
	return info, nil
}
