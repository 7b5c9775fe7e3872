// Opening a file of kernels: which kernels and variables it has.

// Package source reads users' files of kernels: CUDA C, PTX, cubins and fat binaries. It finds out which parameters each kernel has. What a
// launch accesses is declared by the user or shown by PTX.
package source

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/dagrun/dagrun/internal/ptx"
	"github.com/dagrun/dagrun/kernels/launch"
)

// Options are what [Open] may need beyond the file itself.
type Options struct {
	// References holds Go versions of the module's kernels by name, for the CPU device.
	References map[string]launch.Reference
	// ReadFile reads a file that a source includes. Its path is relative to what the source's own path is relative to. If it is nil,
	// includes are ignored, and the types and macros in them are unknown.
	ReadFile func(path string) ([]byte, error)
	// Folder is that of the pipeline: messages quote no file outside of it, and what is included from outside must be a header. "": there is no
	// such limit.
	Folder string
	// Compilers make code of CUDA C when kernels are confirmed; nil: they are not.
	Compilers *Compilers
	// Build says how CUDA C is compiled. Its Names are ignored: the kernels that are launched decide.
	Build launch.Build
}

// Open lists the kernels of a file. Its kind is recognised by the contents and by the path's ending. Nothing is compiled or loaded.
func Open(name, path string, code []byte, options Options) (*Module, error) {
	build := options.Build
	build.Names = nil
	m := &Module{module: &launch.Module{Name: path, Path: path, Folder: options.Folder, Code: code, References: options.References, Build: build},
		known: map[string]*userKernel{}}
	m.path = path
	m.compilers = options.Compilers
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
		if m.found, m.globals, err = parseFatbin(code); err != nil {
			err = withoutQuotes(options.Folder, path, err)
		}
	case launch.PTX:
		if err := readable(code, mostPTX); err != nil {
			return fmt.Errorf("%s %w", path, err)
		}
		text, err := ptx.Parse(string(code))
		if err != nil {
			return fmt.Errorf("%s:%w", path, withoutQuotes(options.Folder, path, err))
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

// readSource finds the kernels of CUDA C.
func (m *Module) readSource(path string, code []byte, options *Options) error {
	if err := readable(code, mostSource); err != nil {
		return fmt.Errorf("%s %w", path, err)
	}
	if err := checkBuild(&m.module.Build); err != nil {
		return err
	}
	p := preprocess(path, string(code), m.module.Build.Define, newSearch(m.module.Build.Include, nil, options.Folder, options.ReadFile))
	if p.err != nil {
		return p.err
	}
	m.module.Headers = p.headers()
	source := parseCUDA(p)
	if source.err != nil {
		return source.err
	}
	m.found, m.globals, m.types, m.structs, m.symbols, m.units = source.kernels, source.globals, source.types, source.structs, source.symbols, source.units
	m.launches = source.launches
	if len(m.found) == 0 {
		return fmt.Errorf("%s has no kernel: a __global__ function is needed", path)
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
