// Users' modules: the kernel files that a pipeline names, found beside it and read.

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/editor"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
)

// moduleOpener reads modules whose paths are relative to dir.
func (a *app) moduleOpener(ctx context.Context, dir string) func(dag.Module) (dag.Library, error) {
	return func(m dag.Module) (dag.Library, error) {
		read := func(path string) ([]byte, error) {
			a.NoteInput(fmt.Sprintf("a file of module %q", m.Name), path)
			return editor.ReadModule(ctx, a.folder, path)
		}
		open := kernels.ModuleOpener(dir, read, a.compilers)
		opened, err := open(m)
		if err != nil {
			// The parser says which module it was.
			return nil, errors.New(strings.TrimPrefix(err.Error(), `module "`+m.Name+`": `))
		}
		if user := opened.(*kernels.UserModule); user.Module().Kind == kernels.Cubin || user.Module().Kind == kernels.Fatbin {
			globals := user.WritableGlobals()
			if len(globals) == 0 {
				return opened, nil
			}
			a.Warn("module %q has variables that every launch may write (%s); launches that use them depend on each other, whatever their buffers", m.Name, strings.Join(globals, ", "))
		}
		return opened, nil
	}
}
