// Modules of the documents that are checked: opened once, and again only when one of their files has changed.

package editor

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/files"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/kernels/source"
)

// mostModules is how many modules are kept open.
const mostModules = 64

// modules keeps opened modules.
type modules struct {
	mu     sync.Mutex
	opened map[string]*module
}

// module is what a declaration led to, and the files that were read for it.
type module struct {
	library dag.Library
	read    map[string]stamp
}

// stamp tells one version of a file from another; the zero stamp stands for no file.
type stamp struct {
	size    int64
	changed time.Time
}

func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}
	}
	return stamp{info.Size(), info.ModTime()}
}

func (m *module) fresh() bool {
	for path, was := range m.read {
		if stampOf(path) != was {
			return false
		}
	}
	return true
}

// open opens a module whose paths are relative to dir. Its files are read, only from the folder if it is not nil, and nothing is compiled.
func (c *modules) open(ctx context.Context, folder *files.Folder, dir string, declared dag.Module) (dag.Library, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := fmt.Sprintf("%q %q %q %q %q %q %q", dir, declared.Name, declared.Path, declared.Include, declared.Define, declared.Options, declared.Compiler)
	if known := c.opened[key]; known != nil && known.fresh() {
		return known.library, nil
	}
	opened := &module{read: map[string]stamp{}}
	read := func(path string) ([]byte, error) {
		opened.read[path] = stampOf(path)
		return ReadModule(ctx, folder, path)
	}
	library, err := kernels.ModuleOpener(dir, read, nil)(declared)
	if err != nil {
		return nil, err
	}
	if c.opened == nil || len(c.opened) >= mostModules {
		c.opened = map[string]*module{}
	}
	opened.library = library
	c.opened[key] = opened
	return library, nil
}

// ReadModule reads a file of a module, only from the folder if it is not nil.
func ReadModule(ctx context.Context, folder *files.Folder, path string) ([]byte, error) {
	return folder.Regular(ctx, path, source.MostBytes(path))
}
