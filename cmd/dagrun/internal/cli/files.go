// The files that a command reads and writes.

package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/dagrun/dagrun/internal/files"
)

// NoteInput remembers a file that is read.
func (t *Console) NoteInput(role, name string) {
	t.Inputs = append(t.Inputs, Input{NamedFile: NamedFile{Role: role, Name: name}, Place: files.PlaceOf(name)})
}

// DecodeFile reads a file with one of the decoders that take a reader.
func DecodeFile[T any](ctx context.Context, name string, decode func(io.Reader) (T, error)) (T, error) {
	var none T
	file, err := files.Open(ctx, name)
	if err != nil {
		return none, files.CannotRead(name, err)
	}
	defer file.Close()
	value, err := decode(file)
	if err != nil {
		return none, fmt.Errorf("%s: %w", name, err)
	}
	return value, nil
}

// Write writes a file that the command line names, and says so.
func (t *Console) Write(ctx context.Context, name string, write func(io.Writer) error) error {
	if err := WriteOut(ctx, name, write); err != nil {
		return err
	}
	return t.Wrote(name)
}

func (t *Console) Wrote(name string) error {
	if t.Flags.Quiet || t.Flags.Output == "json" {
		return nil
	}
	t.Progress.Clear()
	return t.Stderr.Printf("wrote %s\n", name)
}

// WriteOut writes a file without a message, for a command that prints its own.
func WriteOut(ctx context.Context, name string, write func(io.Writer) error) error {
	return WithStatus(StatusInternal, files.Save(ctx, name, write))
}

// Closing closes c and keeps the first error: after a failure, errors of closing add nothing.
func Closing(err error, c interface{ Close() error }) error {
	closeErr := c.Close()
	if err != nil {
		return err
	}
	return closeErr
}
