// Package kernels provides everything that can be launched: the library that comes with dagrun, kernels made from elementwise expressions,
// and users' own modules. It only combines the packages below it, and imports no device.
package kernels

import (
	"cmp"
	"path/filepath"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/calls"
	"github.com/dagrun/dagrun/kernels/launch"
	"github.com/dagrun/dagrun/kernels/library"
	"github.com/dagrun/dagrun/kernels/maps"
	"github.com/dagrun/dagrun/kernels/source"
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

// OpenOptions are what [OpenModule] may need beyond the file itself.
type OpenOptions = source.Options

// Compilers are those that may be installed; each is looked for when it is first needed.
type Compilers = source.Compilers

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
		build := launch.Build{Compiler: m.Compiler, Options: m.Options}
		for _, folder := range m.Include {
			build.Include = append(build.Include, at(folder))
		}
		for _, d := range m.Define {
			build.Define = append(build.Define, launch.Definition(d))
		}
		opened, err := OpenModule(m.Name, at(m.Path), code, OpenOptions{ReadFile: read, Folder: cmp.Or(dir, "."), Build: build, Compilers: compilers})
		if err != nil {
			return nil, err
		}
		return opened, nil
	}
}

// OpenModule lists the kernels of a file of CUDA C or PTX, a cubin or a fat binary. Its kind is recognised by the contents and by the
// path's ending. Nothing is compiled or loaded.
func OpenModule(name, path string, code []byte, options OpenOptions) (*source.Module, error) {
	return source.Open(name, path, code, options)
}
