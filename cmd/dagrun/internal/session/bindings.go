// --load and --save: files that the command line gives to host buffers.

package session

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/internal/files"
	"github.com/dagrun/dagrun/runtime"
)

// FileBindings reads the values of --load or --save.
func FileBindings(flag string, values []string) ([]file.Binding, error) {
	var bindings []file.Binding
	for _, value := range values {
		buffer, name, ok := strings.Cut(value, "=")
		if buffer = strings.TrimSpace(buffer); !ok || buffer == "" || name == "" {
			return nil, fmt.Errorf("--%s %s: want buffer=file, such as x=input.npy", flag, value)
		}
		bindings = append(bindings, file.Binding{Buffer: buffer, File: name})
	}
	return bindings, nil
}

// checkLoaded compares the files of --load with their buffers before anything is planned or run. A pipe is read only once, by the run.
func (u *Session) checkLoaded(ctx context.Context, g *dag.Graph) error {
	for i := range g.Buffers {
		b := &g.Buffers[i]
		if !bound(u.Flags.Load, b.Name) {
			continue
		}
		file := inFolder(g.Dir, b.Init.File)
		if u.folder != nil {
			opened, err := u.folder.Open(ctx, file)
			if err != nil {
				return fmt.Errorf("--load %s: %w", b.Name, files.CannotRead(file, err))
			}
			opened.Close()
		}
		if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
			continue
		}
		if err := runtime.CheckArrayFile(ctx, file, b.DType, b.Shape); err != nil {
			return fmt.Errorf("--load %s: %w", b.Name, err)
		}
	}
	return nil
}
