// A folder that bounds what is read and written: links and .. may not lead out of it, and only regular files count.

package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Folder is where files are read and written. nil stands for the whole system.
type Folder struct {
	path string
	root *os.Root
}

// errOutside is the error of a name that leads out of a folder.
var errOutside = errors.New("it is outside of the pipeline's folder, and --confined allows nothing there")

// errIrregular is the error of a FIFO or a device where only files count.
var errIrregular = errors.New("it is not a regular file")

// OpenFolder opens a folder; "" is the working directory.
func OpenFolder(path string) (*Folder, error) {
	path, err := filepath.Abs(cmp.Or(path, "."))
	if err != nil {
		return nil, err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return &Folder{path, root}, nil
}

// Close ends the use of the folder.
func (f *Folder) Close() error {
	if f == nil {
		return nil
	}
	return f.root.Close()
}

// within returns the path of a file from the folder, with links followed. os.Root refuses what may lead out of it meanwhile.
func (f *Folder) within(name string) (string, error) {
	path := PlaceOf(name).path
	if path == "" { // its folder does not exist
		var err error
		if path, err = filepath.Abs(name); err != nil {
			return "", err
		}
	}
	inner, err := filepath.Rel(f.path, path)
	if err != nil || !filepath.IsLocal(inner) {
		return "", errOutside
	}
	return inner, nil
}

// Open is [Open] for the files of a folder, which must be regular.
func (f *Folder) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	if f == nil {
		return Open(ctx, name)
	}
	inner, err := f.within(name)
	if err != nil {
		return nil, err
	}
	info, err := f.root.Stat(inner)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errIrregular
	}
	return f.root.Open(inner)
}

// Regular is [Regular] for the files of a folder.
func (f *Folder) Regular(ctx context.Context, name string, most int64) ([]byte, error) {
	if f == nil {
		return Regular(ctx, name, most)
	}
	file, err := f.Open(ctx, name)
	if err != nil {
		return nil, CannotRead(name, err)
	}
	return readAtMost(file, name, most)
}

// Save is [Save] for the files of a folder. It writes only regular files.
func (f *Folder) Save(ctx context.Context, name string, write func(io.Writer) error) error {
	if f == nil {
		return Save(ctx, name, write)
	}
	if err := f.save(ctx, name, write); err != nil {
		return fmt.Errorf("cannot write %s: %w", name, Reason(err))
	}
	return nil
}

func (f *Folder) save(ctx context.Context, name string, write func(io.Writer) error) error {
	inner, err := f.within(name)
	if err != nil {
		return err
	}
	info, err := f.root.Stat(inner)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return tree{f.root}.replace(ctx, inner, nil, write)
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errIrregular
	}
	return tree{f.root}.replace(ctx, inner, info, write)
}
