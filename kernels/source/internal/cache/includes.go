// What a source includes, for the cache's key: every file that a compilation may read.

package cache

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/dagrun/dagrun/internal/files"
)

var includePattern = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>|(\S))`)

// KeyOf hashes a compiler with its version, a source with its title, the options, and every file that the source includes from the
// folders. It is not cacheable if an include's name is made by a macro.
func KeyOf(compiler, title string, code []byte, options, folders []string) (key Key, cacheable bool) {
	h := sha256.New()
	part(h, []byte(compiler))
	part(h, []byte(title))
	for _, option := range options {
		part(h, []byte(option))
	}
	s := scan{hash: h, folders: folders, seen: map[string]bool{}, room: mostHashed, cacheable: true}
	s.text(code, "")
	return Key(h.Sum(nil)), s.cacheable
}

// part adds a string with its length, so that different lists of strings hash differently.
func part(h hash.Hash, text []byte) {
	h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(text))))
	h.Write(text)
}

// mostHashed is how many bytes of headers are hashed. A source with more is compiled each time.
const mostHashed = 64 << 20

// scan hashes a source and its includes in order of appearance. Conditions are ignored: a file too many costs one compilation at
// worst.
type scan struct {
	hash      hash.Hash
	folders   []string
	seen      map[string]bool
	room      int64 // bytes that may still be read
	cacheable bool
}

func (s *scan) text(code []byte, folder string) {
	part(s.hash, code)
	for _, m := range includePattern.FindAllSubmatch(code, -1) {
		switch {
		case len(m[1]) > 0:
			s.include(string(m[1]), folder)
		case len(m[2]) > 0:
			s.include(string(m[2]), "")
		default:
			s.cacheable = false
		}
	}
}

// include hashes the first file of that name. If none is found, it is one of the compiler's own, or an error that it will report.
func (s *scan) include(name, folder string) {
	folders := s.folders
	if folder != "" {
		folders = append([]string{folder}, folders...)
	}
	for _, folder := range folders {
		path := filepath.Join(folder, name)
		info, err := os.Stat(path)
		if err != nil || info.IsDir() {
			continue
		}
		code, err := files.Regular(context.Background(), path, s.room)
		if err != nil {
			s.cacheable, s.room = false, 0
			return
		}
		s.room -= int64(len(code))
		part(s.hash, []byte(name))
		if !s.seen[path] {
			s.seen[path] = true
			s.text(code, filepath.Dir(path))
		}
		return
	}
	part(s.hash, []byte("absent "+name))
}

// OptionFolders lists the include folders among a user's options, which the compiler searches first.
func OptionFolders(options []string) []string {
	var folders []string
	for i, option := range options {
		switch {
		case (option == "-I" || option == "-iquote" || option == "--include-path") && i+1 < len(options):
			folders = append(folders, options[i+1])
		case strings.HasPrefix(option, "--include-path="):
			folders = append(folders, strings.TrimPrefix(option, "--include-path="))
		case strings.HasPrefix(option, "-I"):
			folders = append(folders, strings.TrimPrefix(option, "-I"))
		}
	}
	return folders
}
