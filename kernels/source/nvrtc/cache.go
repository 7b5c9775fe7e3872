// The cache: compiled code on disk, by the hash of its inputs. Entries have checksums. A cache that cannot be used never fails a
// compilation.

package nvrtc

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	cacheMagic = "dagrun nvrtc 1\n"
	cacheBytes = 512 << 20 // of all entries; the least recently used ones are removed first
)

// cache is a folder; nil means that nothing is cached.
type cache struct {
	folder string
	limit  int64
}

func openCache(folder string) *cache {
	switch folder {
	case "off":
		return nil
	case "":
		base, err := os.UserCacheDir()
		if err != nil {
			return nil
		}
		folder = filepath.Join(base, "dagrun", "nvrtc")
	}
	return &cache{folder: folder, limit: cacheBytes}
}

func (c *cache) path(key [sha256.Size]byte) string {
	return filepath.Join(c.folder, hex.EncodeToString(key[:]))
}

// get reads an entry. A damaged one is removed, so that it is built again.
func (c *cache) get(key [sha256.Size]byte) (*Result, bool) {
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

// put writes an entry under a temporary name and renames it, so that no process reads half of it.
func (c *cache) put(key [sha256.Size]byte, r *Result) {
	if c == nil || os.MkdirAll(c.folder, 0o755) != nil {
		return
	}
	file, err := os.CreateTemp(c.folder, "new-*")
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

// An entry is the magic, the key, the log, the code, and a checksum of it all.
func encode(key [sha256.Size]byte, r *Result) []byte {
	b := append([]byte(cacheMagic), key[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(r.Log)))
	b = append(b, r.Log...)
	b = append(b, r.Code...)
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

func decode(key [sha256.Size]byte, b []byte) (*Result, bool) {
	const head = len(cacheMagic) + sha256.Size + 8
	if len(b) < head+sha256.Size || string(b[:len(cacheMagic)]) != cacheMagic || !bytes.Equal(b[len(cacheMagic):head-8], key[:]) {
		return nil, false
	}
	body := b[:len(b)-sha256.Size]
	if sum := sha256.Sum256(body); !bytes.Equal(sum[:], b[len(body):]) {
		return nil, false
	}
	log := binary.LittleEndian.Uint64(body[head-8:])
	if log > uint64(len(body)-head) {
		return nil, false
	}
	return &Result{Log: string(body[head : head+int(log)]), Code: body[head+int(log):]}, true
}

// trim removes the least recently used entries when the cache has grown too large, and files that a killed process left.
func (c *cache) trim() {
	entries, err := os.ReadDir(c.folder)
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
		if total <= c.limit {
			return
		}
		if os.Remove(filepath.Join(c.folder, info.Name())) == nil {
			total -= info.Size()
		}
	}
}
