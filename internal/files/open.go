// Reading files: regular files are read directly; files that may wait for another process (a FIFO, a terminal) are read so that the
// context can interrupt it.

// Package files reads and writes the files that people name: pipelines, plans, arrays, pictures. Nothing in it outlives its context,
// and a write never destroys what was there unless the new contents are whole.
package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/dagrun/dagrun/internal/words"
)

// Open opens a file for reading. With a FIFO or a terminal, opening and reading end when the context does.
func Open(ctx context.Context, name string) (io.ReadCloser, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.Mode().IsRegular() || info.IsDir() {
		return os.Open(name)
	}
	return interruptible(ctx, func() (io.ReadCloser, error) { return os.Open(name) }), nil
}

// Reader reads from r, such as standard input, until the context ends.
func Reader(ctx context.Context, r io.Reader) io.ReadCloser {
	if file, ok := r.(*os.File); ok {
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			return io.NopCloser(file)
		}
	}
	return interruptible(ctx, func() (io.ReadCloser, error) { return io.NopCloser(r), nil })
}

// interruptible opens and reads on a separate goroutine, because neither can be interrupted. If the context ends first, the goroutine ends
// after its next read, or with the process.
func interruptible(ctx context.Context, open func() (io.ReadCloser, error)) io.ReadCloser {
	reader, writer := io.Pipe()
	unwatch := context.AfterFunc(ctx, func() { writer.CloseWithError(context.Cause(ctx)) })
	go func() {
		defer unwatch()
		from, err := open()
		if err == nil {
			_, err = io.Copy(writer, from)
			err = errors.Join(err, from.Close())
		}
		writer.CloseWithError(err)
	}()
	return reader
}

// readAtMost reads and closes a file, which must not be larger than most bytes.
func readAtMost(file io.ReadCloser, name string, most int64) ([]byte, error) {
	defer file.Close()
	contents, err := io.ReadAll(io.LimitReader(file, most+1))
	switch {
	case err != nil:
		return nil, CannotRead(name, err)
	case int64(len(contents)) > most:
		return nil, errors.New(name + " is larger than " + words.Bytes(most))
	}
	return contents, nil
}

// Reason returns what went wrong with a file, without the name and the call that the system adds.
func Reason(err error) error {
	var at *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &at):
		return at.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}

// CannotRead is the error of a file that could not be opened or read.
func CannotRead(name string, err error) error {
	return fmt.Errorf("cannot read %s: %w", name, Reason(err))
}

// Regular reads a whole regular file of at most most bytes. A folder, a FIFO or a device is an error instead of a wait.
func Regular(ctx context.Context, name string, most int64) ([]byte, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, CannotRead(name, err)
	case info.IsDir():
		return nil, fmt.Errorf("cannot read %s: it is a folder", name)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("cannot read %s: it is not a regular file", name)
	case info.Size() > most:
		return nil, fmt.Errorf("%s has %d bytes; at most %d are allowed", name, info.Size(), most)
	}
	file, err := Open(ctx, name)
	if err != nil {
		return nil, CannotRead(name, err)
	}
	return readAtMost(file, name, most)
}
