// Saving files: written to a temporary file beside the target and renamed, so that a failure leaves the old contents. Targets that are
// not regular files are written to directly.

package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"

	"golang.org/x/term"

	"github.com/dagrun/dagrun/internal/words"
)

// Save writes a file. A file that exists keeps its mode, its owner and its other names, a new one gets the mode that the umask
// allows. Symbolic links are followed. Devices, pipes and the process's own descriptors (/dev/stdout) are written to directly.
func Save(ctx context.Context, name string, write func(io.Writer) error) error {
	if err := save(ctx, name, write); err != nil {
		return fmt.Errorf("cannot write %s: %w", name, Reason(err))
	}
	return nil
}

func save(ctx context.Context, name string, write func(io.Writer) error) error {
	target, descriptor, err := follow(name)
	if err != nil {
		return err
	}
	info, err := os.Stat(target)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return anywhere.replace(ctx, target, nil, write)
	case err != nil:
		return err
	case info.IsDir():
		return errors.New("it is a directory")
	}
	for _, own := range []*os.File{os.Stdout, os.Stderr} {
		if same, err := own.Stat(); err == nil && os.SameFile(info, same) {
			return writeTo(ctx, shown(own), write)
		}
	}
	if descriptor || !info.Mode().IsRegular() {
		return through(ctx, target, info, write)
	}
	return anywhere.replace(ctx, target, info, write)
}

// descriptors are the folders whose entries are open files of a process, which must not be replaced.
var descriptors = regexp.MustCompile(`^(/proc/(self|thread-self|[0-9]+)(/task/[0-9]+)?/fd|/dev/fd)$`)

// follow returns the file that a name leads to, which need not exist, and whether it is an open file of a process.
func follow(name string) (target string, descriptor bool, err error) {
	for range 40 { // as many links as Linux follows
		dir, err := filepath.EvalSymlinks(filepath.Dir(name))
		if err != nil {
			return name, false, err
		}
		if descriptors.MatchString(filepath.ToSlash(dir)) {
			return name, true, nil
		}
		info, err := os.Lstat(name)
		if err != nil || info.Mode()&os.ModeSymlink == 0 {
			return name, false, nil // a new file, or the end of the links
		}
		link, err := os.Readlink(name)
		if err != nil {
			return name, false, err
		}
		if name = link; !filepath.IsAbs(link) {
			name = filepath.Join(dir, link)
		}
	}
	return name, false, errors.New("too many symbolic links")
}

// shown returns the writer to an open file: text for a terminal is escaped so that it cannot control it.
func shown(file *os.File) io.Writer {
	if term.IsTerminal(int(file.Fd())) {
		return words.NewWriter(file)
	}
	return file
}

// through writes to an existing file directly. Opening a FIFO waits for its reader, and writing waits for it to read; both end with the
// context.
func through(ctx context.Context, name string, info os.FileInfo, write func(io.Writer) error) error {
	flags := os.O_WRONLY
	if info.Mode().IsRegular() {
		flags |= os.O_APPEND
	}
	reader, writer := io.Pipe()
	unwatch := context.AfterFunc(ctx, func() { reader.CloseWithError(context.Cause(ctx)) })
	defer unwatch()
	done := make(chan error, 1)
	go func() {
		file, err := os.OpenFile(name, flags, 0)
		if err == nil {
			_, err = io.Copy(shown(file), reader)
			err = errors.Join(err, file.Close())
		}
		reader.CloseWithError(err)
		done <- err
	}()
	writeErr := writeTo(ctx, writer, write)
	writer.CloseWithError(writeErr)
	if writeErr != nil {
		return writeErr
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Place is the file that a name leads to, or would create. The zero Place is no file.
type Place struct {
	path string      // links followed, absolute
	info os.FileInfo // nil if there is no file yet
}

// String is the path, "" for no file.
func (p Place) String() string { return p.path }

// PlaceOf finds where a name leads.
func PlaceOf(name string) Place {
	target, _, err := follow(name)
	if err != nil {
		return Place{}
	}
	p := Place{path: target}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(target)); err == nil {
		p.path = filepath.Join(dir, filepath.Base(target))
	}
	if p.path, err = filepath.Abs(p.path); err != nil {
		return Place{}
	}
	p.info, _ = os.Stat(target) // the file need not exist yet
	return p
}

// PlaceOfOpen is the place of an open file, such as what standard input was redirected from.
func PlaceOfOpen(file *os.File) Place {
	info, _ := file.Stat() // without info, Same reports false
	return Place{info: info}
}

// Same reports whether two places are the same file. Files that do not keep what is written (pipes, terminals, /dev/null) never are.
func (p Place) Same(q Place) bool {
	if p.info != nil && q.info != nil {
		return p.info.Mode().IsRegular() && os.SameFile(p.info, q.info)
	}
	return p.path != "" && p.path == q.path
}
