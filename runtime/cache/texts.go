// Entries: what is kept under a key, as a text or as JSON.

package cache

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/dagrun/dagrun/internal/words"
)

// entry is the file of a kind that is kept under a key.
func (f *Folder) entry(kind, key string) string {
	return filepath.Join(f.path, kind, Fingerprint([]byte(key)))
}

// text returns what is kept under a key, nil if there is nothing. The error says why a file is ignored.
func (f *Folder) text(kind, key string) ([]byte, error) {
	return kept(f, kind, key, func(body []byte, _ string) ([]byte, error) { return body, nil })
}

// kept returns what is kept under a key as decode reads it, nothing if there is nothing. The error says why a file is ignored.
func kept[T any](f *Folder, kind, key string, decode func(body []byte, key string) (T, error)) (none T, err error) {
	if f == nil {
		return none, nil
	}
	name := f.entry(kind, key)
	var value T
	body, err := read(kind, name)
	if err == nil {
		value, err = decode(body, key)
	}
	if err != nil {
		return none, skipped(name, err)
	}
	touch(name)
	return value, nil
}

// longestReason is how many columns of an error about the contents of a file are shown.
const longestReason = 200

// decodeEntry reads JSON that this version may have written, and nothing else.
func decodeEntry(body []byte, entry any) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(entry); err != nil { // which may repeat a text of any length
		return fmt.Errorf("%w: %s", ErrDamaged, words.Cut(err.Error(), longestReason))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: something follows its end", ErrDamaged)
	}
	return nil
}

// keepText keeps a text under a key, replacing an earlier one, and so many texts of its kind.
func (f *Folder) keepText(ctx context.Context, kind, key string, text []byte, most int) error {
	name := f.entry(kind, key)
	if err := write(ctx, kind, name, text); err != nil {
		return err
	}
	return trim(filepath.Dir(name), most, mostBytes)
}

func checkSize(what string, body []byte, most int) error {
	if len(body) > most {
		return fmt.Errorf("a %s of %d bytes: at most %d are possible", what, len(body), most)
	}
	return nil
}
