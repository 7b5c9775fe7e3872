// Where included files are: beside the file that includes them, in the folders of the user's, or among NVIDIA's headers, which are not read.

package source

import (
	"bytes"
	"os"
	"path/filepath"

	"github.com/dagrun/dagrun/kernels/source/clang"
)

// search finds the files that a source includes.
type search struct {
	folders []string                          // of the options
	read    func(path string) ([]byte, error) // nil: includes are ignored
	system  []string                          // folders of NVIDIA's device headers, which only compilers read
	folder  string                            // of the pipeline; see launch.Module
	device  bool                              // NVIDIA's device headers are never left out: the compiler may find them elsewhere
}

// newSearch tells the user's folders from those of NVIDIA's device headers, which may be among them.
func newSearch(include, system []string, folder string, read func(path string) ([]byte, error)) search {
	s := search{read: read, folder: folder}
	for _, folder := range include {
		if ofNVIDIA(folder) {
			s.system = append(s.system, folder)
		} else {
			s.folders = append(s.folders, folder)
		}
	}
	for _, folder := range system {
		if ofNVIDIA(folder) {
			s.system = append(s.system, folder)
		}
	}
	return s
}

// ofNVIDIA reports whether a folder has CUB, Thrust or libcu++.
func ofNVIDIA(folder string) bool {
	for _, name := range []string{"cub/version.cuh", "thrust/version.h", "cuda/std/version"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
			return true
		}
	}
	return false
}

// byteOrderMark is what some editors begin a file with.
const byteOrderMark = "\ufeff"

// find reads an included file: beside the file that asks for it if the name is in quotes, then in the folders. The path is "" if there is
// none; the error is that of a file that must not be read.
func (s *search) find(name string, quoted bool, from string) (path string, text []byte, err error) {
	if s.read == nil {
		return "", nil, nil
	}
	var folders []string
	if quoted {
		folders = append(folders, filepath.Dir(from))
	}
	for _, folder := range append(folders, s.folders...) {
		path := filepath.Join(folder, name)
		if filepath.IsAbs(name) {
			path = name
		}
		if err := checkHeader(path); err != nil {
			return path, nil, err
		}
		if text, err := s.read(path); err == nil {
			if err := checkOutside(s.folder, path, text); err != nil {
				return path, nil, err
			}
			return path, bytes.TrimPrefix(text, []byte(byteOrderMark)), readable(text, mostSource)
		}
	}
	return "", nil, nil
}

// has reports whether an included file exists.
func (s *search) has(name string, quoted bool, from string) bool {
	for _, folder := range s.system {
		if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
			return true
		}
	}
	path, _, _ := s.find(name, quoted, from)
	return path != ""
}

// leftOut reports whether an include that finds no file is ignored. Any system header is: device code gets what it needs of the standard
// library from dagrun, and host code may need the rest. Where device code needs it too, it does not compile, and telling headers are named.
func (s *search) leftOut(name string, quoted bool) bool {
	switch {
	case alwaysLeftOut(name):
		return true
	case clang.Header(name) != nil || s.device && forDevices(name):
		return false
	}
	return hostHeaders[name] || !quoted
}
