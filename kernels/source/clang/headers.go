// The device headers: declarations of what CUDA C has built in, and the parts of the standard headers that kernels use.

package clang

import (
	"crypto/sha256"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/dagrun/dagrun/kernels/library/cuda"
)

//go:embed headers
var headers embed.FS

// libraryHeaders are those of dagrun's own kernels that the mathematical functions are made of.
var libraryHeaders = []string{"common.cuh", "math.cuh"}

// eachHeader visits every header with its path below the folder that holds them, in a fixed order.
func eachHeader(visit func(path string, text []byte) error) error {
	err := fs.WalkDir(headers, "headers", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := headers.ReadFile(path)
		if err != nil {
			return err
		}
		return visit(path[len("headers/"):], text)
	})
	if err != nil {
		return err
	}
	for _, name := range libraryHeaders {
		text, err := cuda.Files.ReadFile(name)
		if err != nil {
			return err
		}
		if err := visit("dagrun_library/"+name, text); err != nil {
			return err
		}
	}
	return nil
}

// Header returns the text of one of the headers, nil if there is none of that name.
func Header(name string) []byte {
	text, err := headers.ReadFile("headers/" + name)
	if err != nil {
		return nil
	}
	return text
}

// headersHash is a part of the cache's key.
var headersHash = sync.OnceValue(func() string {
	h := sha256.New()
	if err := eachHeader(func(path string, text []byte) error {
		_, err := fmt.Fprintf(h, "%s %d\n%s", path, len(text), text)
		return err
	}); err != nil {
		panic(err) // the files are part of this program
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
})

// writeHeaders puts the headers into a folder.
func writeHeaders(folder string) error {
	return eachHeader(func(path string, text []byte) error {
		path = filepath.Join(folder, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		return os.WriteFile(path, text, 0o600)
	})
}

// Overlaid is a file that the compiler reads as if it had this text.
type Overlaid struct {
	Path string
	Code []byte
}

// writeOverlay writes texts that take the place of files, and the list of them that clang reads. Its paths must be absolute.
func writeOverlay(folder string, overlay []Overlaid) (file string, err error) {
	type entry struct {
		Type     string `json:"type"`
		Name     string `json:"name"`
		Contents string `json:"external-contents"`
	}
	var roots []entry
	for i, o := range overlay {
		path, err := filepath.Abs(o.Path)
		if err != nil {
			return "", err
		}
		text := filepath.Join(folder, fmt.Sprintf("overlay-%d", i))
		if err := os.WriteFile(text, o.Code, 0o600); err != nil {
			return "", err
		}
		roots = append(roots, entry{"file", path, text})
	}
	list, err := json.Marshal(map[string]any{"version": 0, "use-external-names": false, "roots": roots})
	if err != nil {
		return "", err
	}
	file = filepath.Join(folder, "overlay.json")
	return file, os.WriteFile(file, list, 0o600)
}
