// Texts: what is kept as it is given, under a key.

package cache

import (
	"context"
	"fmt"
	"path/filepath"
)

// entry is the file of a kind that is kept under a key.
func (f *Folder) entry(kind, key string) string {
	return filepath.Join(f.path, kind, Fingerprint([]byte(key)))
}

// text returns what is kept under a key, nil if there is nothing. The error says why a file is ignored.
func (f *Folder) text(kind, key string) ([]byte, error) {
	if f == nil {
		return nil, nil
	}
	name := f.entry(kind, key)
	body, err := read(kind, name)
	if err != nil {
		return nil, skipped(name, err)
	}
	touch(name)
	return body, nil
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
