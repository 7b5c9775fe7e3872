// What is known of a libnvrtc from an earlier start. Opening the library takes longer than reading compiled code from the cache, so that it is
// opened only to compile.

package nvrtc

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/dagrun/dagrun/kernels/source/internal/cache"
)

// known is what a library says of itself, for as long as its file stays as it is.
type known struct {
	Path          string
	File          string // its size and time
	Version       [2]int
	Architectures []int
}

// stateOf is a file's size and time; "" if it does not exist.
func stateOf(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprint(info.Size(), " ", info.ModTime().UnixNano())
}

// questionOf is the key of what is known of the library that the loader would choose: it changes with everything that the choice depends on.
func questionOf(candidates []string, getenv func(string) string) cache.Key {
	paths := getenv("LD_LIBRARY_PATH")
	inputs := []string{paths, stateOf("/etc/ld.so.cache")}
	for _, name := range candidates {
		inputs = append(inputs, name)
		if filepath.IsAbs(name) {
			inputs = append(inputs, stateOf(name))
			continue
		}
		for _, folder := range strings.FieldsFunc(paths, func(c rune) bool { return c == ':' || c == ';' }) {
			inputs = append(inputs, stateOf(filepath.Join(folder, name)))
		}
	}
	key, _ := cache.KeyOf("libnvrtc itself", "", nil, inputs, nil)
	return key
}

// recall returns what is known of the library, if that is still true.
func recall(c *cache.Cache, question cache.Key) (k known, ok bool) {
	e, found := c.Get(question)
	if !found || json.Unmarshal([]byte(e.Log), &k) != nil {
		return known{}, false
	}
	return k, k.File != "" && k.File == stateOf(k.Path)
}

func (k *known) remember(c *cache.Cache, question cache.Key) {
	if k.File = stateOf(k.Path); k.File == "" {
		return
	}
	if text, err := json.Marshal(k); err == nil {
		c.Put(question, &cache.Entry{Log: string(text)})
	}
}

// fileAt returns the file that an address of this process is mapped from, "" if that is not known.
func fileAt(address uintptr) string {
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return ""
	}
	defer maps.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		var from, to, inode uint64
		var access, offset, device string
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x %s %s %s %d", &from, &to, &access, &offset, &device, &inode); n < 6 || uint64(address) < from ||
			uint64(address) >= to {
			continue
		}
		if _, path, ok := strings.Cut(lines.Text(), "/"); ok {
			return "/" + path
		}
	}
	return ""
}
