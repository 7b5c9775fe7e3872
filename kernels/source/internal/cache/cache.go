// The cache: compiled code on disk, by the hash of its inputs. Entries have checksums.

// Package cache keeps compiled code on disk for all compilers. A cache that cannot be used never fails a compilation.
package cache

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	magic     = "dagrun compiled 2\n"
	mostBytes = 512 << 20 // of all entries; the least recently used ones are removed first
)

// Entry is compiled code and what the compiler said about it.
type Entry struct {
	Code []byte
	Log  string
	// Symbols are where the code has the kernels that were asked for, in the order of the question.
	Symbols []string
}

// Key is the hash of everything that an entry depends on.
type Key [sha256.Size]byte

// Cache is a folder; nil means that nothing is cached.
type Cache struct {
	Folder string
	Limit  int64 // of all entries' bytes
}

// Open returns a tool's cache: "" is its folder in os.UserCacheDir, "off" none.
func Open(tool, folder string) *Cache {
	switch folder {
	case "off":
		return nil
	case "":
		base, err := os.UserCacheDir()
		if err != nil {
			return nil
		}
		folder = filepath.Join(base, "dagrun", tool)
	}
	return &Cache{Folder: folder, Limit: mostBytes}
}

func (c *Cache) path(key Key) string {
	return filepath.Join(c.Folder, hex.EncodeToString(key[:]))
}

// Get reads an entry. A damaged one is removed, so that it is built again.
func (c *Cache) Get(key Key) (*Entry, bool) {
	if c == nil {
		return nil, false
	}
	path := c.path(key)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, false
	}
	r, ok := decode(key, text)
	if !ok {
		os.Remove(path)
		return nil, false
	}
	now := time.Now()
	os.Chtimes(path, now, now)
	return r, true
}

// Put writes an entry under a temporary name and renames it, so that no process reads half of it.
func (c *Cache) Put(key Key, r *Entry) {
	if c == nil || os.MkdirAll(c.Folder, 0o755) != nil {
		return
	}
	file, err := os.CreateTemp(c.Folder, "new-*")
	if err != nil {
		return
	}
	_, err = file.Write(encode(key, r))
	if e := file.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(file.Name(), c.path(key))
	}
	if err != nil {
		os.Remove(file.Name())
		return
	}
	c.trim()
}

// An entry is the magic, the key, the log with its length, the symbols with theirs, the code, and a checksum of it all.
func encode(key Key, r *Entry) []byte {
	b := append([]byte(magic), key[:]...)
	for _, text := range []string{r.Log, strings.Join(r.Symbols, "\n")} {
		b = binary.LittleEndian.AppendUint64(b, uint64(len(text)))
		b = append(b, text...)
	}
	b = append(b, r.Code...)
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

func decode(key Key, b []byte) (*Entry, bool) {
	const head = len(magic) + sha256.Size
	if len(b) < head+sha256.Size || string(b[:len(magic)]) != magic || !bytes.Equal(b[len(magic):head], key[:]) {
		return nil, false
	}
	body := b[:len(b)-sha256.Size]
	if sum := sha256.Sum256(body); !bytes.Equal(sum[:], b[len(body):]) {
		return nil, false
	}
	var texts [2]string
	rest := body[head:]
	for i := range texts {
		if len(rest) < 8 {
			return nil, false
		}
		n := binary.LittleEndian.Uint64(rest)
		if rest = rest[8:]; n > uint64(len(rest)) {
			return nil, false
		}
		texts[i], rest = string(rest[:n]), rest[n:]
	}
	e := &Entry{Log: texts[0], Code: rest}
	if texts[1] != "" {
		e.Symbols = strings.Split(texts[1], "\n")
	}
	return e, true
}

// trim removes the least recently used entries when the cache has grown too large, and files that a killed process left.
func (c *Cache) trim() {
	entries, err := os.ReadDir(c.Folder)
	if err != nil {
		return
	}
	var files []os.FileInfo
	total := int64(0)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			files = append(files, info)
			total += info.Size()
		}
	}
	slices.SortFunc(files, func(a, b os.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	for _, info := range files {
		if total <= c.Limit {
			return
		}
		if os.Remove(filepath.Join(c.Folder, info.Name())) == nil {
			total -= info.Size()
		}
	}
}
