// Users' modules: the kernel files that a pipeline names, found beside it and read.

package session

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/editor"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/kernels/launch"
	"github.com/dagrun/dagrun/kernels/source"
)

// ModuleOpener reads modules whose paths are relative to dir.
func (u *Session) ModuleOpener(ctx context.Context, dir string) func(dag.Module) (dag.Library, error) {
	return func(m dag.Module) (dag.Library, error) {
		read := func(path string) ([]byte, error) {
			u.NoteInput(fmt.Sprintf("a file of module %q", m.Name), path)
			return editor.ReadModule(ctx, u.folder, path)
		}
		open := kernels.ModuleOpener(dir, read, u.Compilers)
		opened, err := open(m)
		if err != nil {
			// The parser says which module it was.
			return nil, errors.New(strings.TrimPrefix(err.Error(), `module "`+m.Name+`": `))
		}
		if user := opened.(*source.Module); user.Module().Kind == launch.Cubin || user.Module().Kind == launch.Fatbin {
			globals := user.WritableGlobals()
			if len(globals) == 0 {
				return opened, nil
			}
			u.Warn("module %q has variables that every launch may write (%s); launches that use them depend on each other, whatever their buffers", m.Name,
				strings.Join(globals, ", "))
		}
		return opened, nil
	}
}
