// Package kernels provides everything that can be launched: the library that comes with dagrun, kernels made from elementwise expressions,
// and users' own modules. It only combines the packages below it, and imports no device.
package kernels

import (
	"cmp"
	"io/fs"
	"path/filepath"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/calls"
	"github.com/dagrun/dagrun/kernels/internal/numbers"
	"github.com/dagrun/dagrun/kernels/launch"
	"github.com/dagrun/dagrun/kernels/library"
	"github.com/dagrun/dagrun/kernels/maps"
	"github.com/dagrun/dagrun/kernels/source"
)

// What a device loads and runs.
type (
	// Module is code that a device can load, with Go versions of its kernels for the CPU device.
	Module = launch.Module
	// Machine is code that GPUs run as it is.
	Machine = launch.Machine
	// MachineKernel is the machine code of one kernel.
	MachineKernel = launch.MachineKernel
	// Kind is the form of a module's code.
	Kind = launch.Kind
	// Reference is a kernel in plain Go. It has no state: Run may be called for disjoint spans at once, in any order.
	Reference = launch.Reference
	// Call is one launch as a reference sees it.
	Call = launch.Call
	// Arg is a buffer's memory or a scalar's bits.
	Arg = launch.Arg
)

// The forms of code.
const (
	PTX    = launch.PTX
	Cubin  = launch.Cubin
	Fatbin = launch.Fatbin
	Source = launch.Source // CUDA C, compiled for the device when it is loaded
	Calls  = launch.Calls  // functions of a vendor's library
)

// builtin is what can be launched without a user's module: kernels by name, and expressions.
type builtin struct {
	library.Catalog
	*maps.Maker
}

// Calls are the functions of vendors' libraries that pipelines may call.
func (builtin) Calls() dag.Calls { return calls.Catalog{} }

// Library returns the kernels that come with dagrun. Any number of goroutines may share the value. It caches the kernels that it
// makes from expressions, so that equal map nodes share one module.
func Library() dag.Library { return builtin{Maker: &maps.Maker{}} }

// Join makes one module of several that have a Body, each of which is there once: of expressions that call no functions or are for few elements, and of
// what decides about loops and branches.
func Join(modules []*Module) *Module { return maps.Join(modules) }

// LibraryModule returns the library's code: PTX with these entries (all of them, if none is named) and the Go references of every kernel.
// Names that the library does not have are ignored: looking them up in the loaded module fails.
func LibraryModule(entries ...string) *Module { return library.Module(entries...) }

// Sources are the library's CUDA C files, for those who compile them with their own compiler.
func Sources() fs.FS { return library.Sources() }

// Documentation of the library, as `dagrun kernels` prints it.
type (
	// Doc describes one kernel of the library.
	Doc = library.Doc
	// ParamDoc describes one parameter that the user gives an argument for.
	ParamDoc = library.ParamDoc
	// Variant is the kernel for one choice of element types.
	Variant = library.Variant
)

// Docs describes all kernels, by family.
func Docs() []Doc { return library.Docs() }

// Documentation of library calls.
type (
	// CallDoc describes one call.
	CallDoc = calls.Doc
	// CallParamDoc describes one argument of a call.
	CallParamDoc = calls.ParamDoc
)

// CallDocs describes all library calls.
func CallDocs() []CallDoc { return calls.Docs() }

// Users' modules.
type (
	// UserModule is a user's file of kernels. It implements [dag.Library].
	UserModule = source.Module
	// OpenOptions are what [OpenModule] may need beyond the file itself.
	OpenOptions = source.Options
	// KernelInfo is what is known of one kernel of a user's file.
	KernelInfo = source.Info
	// LaunchedInFile is a launch of a kernel by the file's own host code.
	LaunchedInFile = source.Launched
	// Build says how CUDA C is compiled.
	Build = launch.Build
	// Definition is a macro that is defined before the first line.
	Definition = launch.Definition
)

// Compiling CUDA C.
type (
	// Compilers are those that may be installed; each is looked for when it is first needed.
	Compilers = source.Compilers
	// Target says what code is wanted for.
	Target = launch.Target
	// Compiled is a source's code.
	Compiled = launch.Compiled
	// CompileError is the error for a source that does not compile.
	CompileError = launch.CompileError
)

// ErrNoCompiler is the error where nothing that compiles CUDA C is installed.
var ErrNoCompiler = launch.ErrNoCompiler

// ModuleOpener is the OpenModule of file.Options: it opens modules whose paths are relative to dir.
// Where compilers are given, what kernels of CUDA C do is compared with what is declared; the context of file.ParseContext ends compilations.
func ModuleOpener(dir string, read func(path string) ([]byte, error), compilers *Compilers) func(dag.Module) (dag.Library, error) {
	at := func(path string) string {
		if filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(dir, path)
	}
	return func(m dag.Module) (dag.Library, error) {
		if err := source.CheckSize(at(m.Path)); err != nil {
			return nil, err
		}
		code, err := read(at(m.Path))
		if err != nil {
			return nil, err
		}
		build := Build{Compiler: m.Compiler, Options: m.Options}
		for _, folder := range m.Include {
			build.Include = append(build.Include, at(folder))
		}
		for _, d := range m.Define {
			build.Define = append(build.Define, Definition(d))
		}
		opened, err := OpenModule(m.Name, at(m.Path), code, OpenOptions{ReadFile: read, Folder: cmp.Or(dir, "."), Build: build, Compilers: compilers})
		if err != nil {
			return nil, err
		}
		return opened, nil
	}
}

// MostBytes is how large a file of kernels, or a header that one includes, may be. The ending of its path tells what it is.
func MostBytes(path string) int64 { return source.MostBytes(path) }

// OpenModule lists the kernels of a file of CUDA C or PTX, a cubin or a fat binary. Its kind is recognised by the contents and by the
// path's ending. Nothing is compiled or loaded.
func OpenModule(name, path string, code []byte, options OpenOptions) (*UserModule, error) {
	return source.Open(name, path, code, options)
}

// Uniform returns number i of a seed, in [0, 1), with all 53 bits of a float64.
func Uniform(seed, i uint64) float64 { return numbers.Uniform(seed, i) }

// Normal returns number i of a seed, with mean 0 and standard deviation 1.
func Normal(seed, i uint64) float64 { return numbers.Normal(seed, i) }
