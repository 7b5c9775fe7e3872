// Replacing files: written to a temporary file in the same folder, which is renamed.

package files

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// tree is where files are replaced: in a folder that they cannot lead out of, or anywhere.
type tree struct{ root *os.Root }

var anywhere = tree{}

func (t tree) openFile(name string, flags int, mode os.FileMode) (*os.File, error) {
	if t.root != nil {
		return t.root.OpenFile(name, flags, mode)
	}
	return os.OpenFile(name, flags, mode)
}

// replace writes a file beside a name and renames it. info is that of the existing file, nil if there is none.
func (t tree) replace(ctx context.Context, name string, info os.FileInfo, write func(io.Writer) error) (err error) {
	mode := os.FileMode(0o666) // reduced by the umask
	if info != nil {
		mode = 0o600
		if err := t.writable(name); err != nil {
			return err
		}
	}
	file, err := t.beside(name, mode)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, discard(file))
	}()
	if err := writeTo(ctx, file, write); err != nil {
		return err
	}
	if info == nil {
		return t.rename(file, name)
	}
	switch linked := otherNames(info); {
	case linked && t.root != nil: // another name may be outside of the folder: only this one gets the new contents
	case !keepOwner(file, info) || linked:
		return t.overwrite(file, name) // a rename would lose owner and links
	}
	if err := file.Chmod(info.Mode().Perm()); err != nil {
		return err
	}
	return t.rename(file, name)
}

// writable returns an error if a file must not be written; renaming would check only the permissions of its folder.
func (t tree) writable(name string) error {
	file, err := t.openFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return file.Close()
}

// beside makes a temporary file in the folder of name. Its name is short, even if name is long.
func (t tree) beside(name string, mode os.FileMode) (*os.File, error) {
	unfinished.mu.Lock()
	defer unfinished.mu.Unlock()
	if unfinished.ended {
		return nil, errEnded
	}
	for {
		var random [8]byte
		rand.Read(random[:])
		file, err := t.openFile(filepath.Join(filepath.Dir(name), ".dagrun-"+hex.EncodeToString(random[:])), os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err == nil {
			unfinished.names[file.Name()] = true
		}
		return file, err
	}
}

// discard closes a temporary file and removes it if it was not renamed. Abandon knows the file until it is gone.
func discard(file *os.File) error {
	unfinished.mu.Lock()
	defer unfinished.mu.Unlock()
	if !unfinished.names[file.Name()] {
		return nil
	}
	_ = file.Close() // already closed if its contents were copied
	err := os.Remove(file.Name())
	delete(unfinished.names, file.Name())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func (t tree) rename(file *os.File, name string) error {
	if err := file.Close(); err != nil {
		return err
	}
	var err error
	if t.root != nil {
		err = t.root.Rename(filepath.Join(filepath.Dir(name), filepath.Base(file.Name())), name)
	} else {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		return err
	}
	unfinished.mu.Lock()
	delete(unfinished.names, file.Name())
	unfinished.mu.Unlock()
	return nil
}

// overwrite copies a finished temporary file over the contents of name. If that fails half-way, the temporary file stays.
func (t tree) overwrite(file *os.File, name string) error {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	unfinished.mu.Lock()
	if unfinished.ended {
		unfinished.mu.Unlock()
		return errEnded
	}
	unfinished.overwriting[file.Name()] = name
	unfinished.mu.Unlock()

	to, err := t.openFile(name, os.O_WRONLY|os.O_TRUNC, 0)
	opened := err == nil
	if opened {
		_, err = copyContents(to, file)
		err = errors.Join(err, to.Close())
	}

	unfinished.mu.Lock()
	defer unfinished.mu.Unlock()
	delete(unfinished.overwriting, file.Name())
	select {
	case unfinished.copied <- struct{}{}:
	default:
	}
	if err != nil && opened {
		delete(unfinished.names, file.Name())
		err = fmt.Errorf("%w; %s", Reason(errors.Join(err, file.Close())), incompleteText(file.Name(), name))
	}
	return err
}

// copyContents is io.Copy, except in tests of copies that fail or take long.
var copyContents = io.Copy

// piece is how much is written between checks of the context.
const piece = 4 << 20

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// writeTo calls write with a buffered w, until the context ends.
func writeTo(ctx context.Context, w io.Writer, write func(io.Writer) error) error {
	buffer := bufio.NewWriterSize(writerFunc(func(p []byte) (int, error) {
		written := 0
		for written < len(p) {
			if ctx.Err() != nil {
				return written, context.Cause(ctx)
			}
			n, err := w.Write(p[written:min(len(p), written+piece)])
			written += n
			if err != nil {
				return written, err
			}
		}
		return written, nil
	}), 1<<20)
	if err := write(buffer); err != nil {
		return err
	}
	return buffer.Flush()
}
