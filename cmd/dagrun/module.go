// Users' modules: the files of kernels that a pipeline names, found beside it and read.

package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
)

// mostModuleBytes is how large a file of kernels may be; those of large libraries stay below.
const mostModuleBytes = 1 << 30

// moduleOpener reads modules whose paths are relative to dir.
func (a *app) moduleOpener(dir string) func(name, path string) (dag.Library, error) {
	return func(name, path string) (dag.Library, error) {
		file := path
		if !filepath.IsAbs(file) {
			file = filepath.Join(dir, file)
		}
		code, err := readLimited(file)
		if err != nil {
			return nil, err
		}
		m, err := kernels.OpenModule(name, file, code, kernels.OpenOptions{ReadFile: func(include string) ([]byte, error) {
			return readLimited(filepath.Join(filepath.Dir(file), include))
		}})
		if err != nil {
			// The parser says which module it was.
			return nil, errors.New(strings.TrimPrefix(err.Error(), `module "`+name+`": `))
		}
		if globals := m.WritableGlobals(); len(globals) > 0 {
			a.warn("module %q has variables that every launch may write (%s): launches that use them are not independent, whatever their buffers", name, strings.Join(globals, ", "))
		}
		return m, nil
	}
}

func readLimited(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err == nil && info.Size() > mostModuleBytes {
		return nil, errors.New(name + " is larger than 1 GiB")
	}
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			return nil, errors.New("cannot read " + name + ": " + path.Err.Error())
		}
		return nil, err
	}
	return os.ReadFile(name)
}
