// Users' modules: the kernel files that a pipeline names, found beside it and read.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/files"
	"github.com/dagrun/dagrun/kernels"
)

// mostModuleBytes is the largest size of a file of kernels; even files of large libraries are smaller.
const mostModuleBytes = 1 << 30

// moduleOpener reads modules whose paths are relative to dir.
func (a *app) moduleOpener(ctx context.Context, dir string) func(dag.Module) (dag.Library, error) {
	return func(m dag.Module) (dag.Library, error) {
		read := func(path string) ([]byte, error) { return a.readLimited(ctx, m.Name, path) }
		open := kernels.ModuleOpener(ctx, dir, read, a.compilers)
		opened, err := open(m)
		if err != nil {
			// The parser says which module it was.
			return nil, errors.New(strings.TrimPrefix(err.Error(), `module "`+m.Name+`": `))
		}
		if globals := opened.(*kernels.UserModule).WritableGlobals(); len(globals) > 0 {
			a.warn("module %q has variables that every launch may write (%s); launches that use them depend on each other, whatever their buffers", m.Name, strings.Join(globals, ", "))
		}
		return opened, nil
	}
}

// readLimited reads a file of a module.
func (a *app) readLimited(ctx context.Context, module, name string) ([]byte, error) {
	a.noteInput(fmt.Sprintf("a file of module %q", module), name)
	file, err := files.Open(ctx, name)
	if err != nil {
		return nil, files.CannotRead(name, err)
	}
	defer file.Close()
	code, err := io.ReadAll(io.LimitReader(file, mostModuleBytes+1))
	switch {
	case err != nil:
		return nil, files.CannotRead(name, err)
	case len(code) > mostModuleBytes:
		return nil, errors.New(name + " is larger than 1 GiB")
	}
	return code, nil
}
