// Notes: short texts under a key, for what must be known before there is a device.

package cache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

const (
	notesKind     = "notes"
	mostNotes     = 1000
	mostNoteBytes = 64 << 10
)

// Note returns the note kept under a key, nil if there is none. The error says why a file is ignored.
func (f *Folder) Note(key string) ([]byte, error) { return f.text(notesKind, key) }

// KeepNote keeps a note under a key, replacing an earlier one. An empty note removes it. A note that is kept already is not written again.
func (f *Folder) KeepNote(ctx context.Context, key string, note []byte) error {
	if f == nil {
		return nil
	}
	name := f.entry(notesKind, key)
	if len(note) == 0 {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot remove %s: %w", name, err)
		}
		return nil
	}
	if err := checkSize("note", note, mostNoteBytes); err != nil {
		return err
	}
	if kept, err := read(notesKind, name); err == nil && string(kept) == string(note) {
		return nil
	}
	return f.keepText(ctx, notesKind, key, note, mostNotes)
}
