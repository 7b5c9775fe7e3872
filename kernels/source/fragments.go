// Fragments: files that are meant to be included by another one, which lies beside them.

package source

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Limits of looking for who includes a file.
const (
	mostBeside      = 200     // files in its folder and the one above
	mostBesideBytes = 4 << 20 // of them together
)

var (
	mainFunction = regexp.MustCompile(`\bmain\s*\(`)
	includes     = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]`)
)

// includedBy finds the file of CUDA C that includes this one, directly or by headers beside it; "" if there is none, or if it is a program.
func includedBy(path string, code []byte, read func(path string) ([]byte, error)) string {
	if path == "" || read == nil || mainFunction.Match(code) {
		return ""
	}
	who := map[string][]string{} // by the file that is included
	files, bytes := 0, int64(0)
	for _, folder := range []string{filepath.Dir(path), filepath.Join(filepath.Dir(path), "..")} {
		entries, err := os.ReadDir(folder)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if !slices.Contains([]string{".cu", ".cuh", ".h", ".hpp", ".inl", ".cpp", ".c"}, filepath.Ext(e.Name())) || !e.Type().IsRegular() {
				continue
			}
			info, err := e.Info()
			if err != nil || bytes+info.Size() > mostBesideBytes || files == mostBeside {
				continue
			}
			files, bytes = files+1, bytes+info.Size()
			by := filepath.Join(folder, e.Name())
			text, err := read(by)
			if err != nil {
				continue
			}
			for _, m := range includes.FindAllStringSubmatch(string(text), -1) {
				at := filepath.Join(folder, m[1])
				who[at] = append(who[at], by)
			}
		}
	}
	seen := map[string]bool{}
	for next := []string{filepath.Clean(path)}; len(next) > 0; {
		at := next[0]
		next = next[1:]
		for _, by := range who[at] {
			if strings.HasSuffix(by, ".cu") {
				return by
			}
			if !seen[by] {
				seen[by] = true
				next = append(next, by)
			}
		}
	}
	return ""
}
