// Which files are tried: those of CUDA C that define kernels, and which files include which.

package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// found are the files of a sweep.
type found struct {
	roots    []string            // absolute
	kernels  []string            // files of CUDA C with __global__, in code
	programs map[string]bool     // those of them that have a main function
	includes map[string][]string // who includes a file, by the file's absolute path
}

var (
	mainFunction = regexp.MustCompile(`\bmain\s*\(`)
	notCode      = regexp.MustCompile(`(?s)//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'`)
	includeLine  = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]`)
	// endings are those of files that may include others.
	endings = []string{".cu", ".cpp", ".cc", ".c", ".cuh", ".h", ".hpp", ".inl"}
)

func find(roots []string) (*found, error) {
	f := &found{programs: map[string]bool{}, includes: map[string][]string{}}
	for _, root := range roots {
		absolute, err := filepath.Abs(root)
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(root)
		if err != nil {
			return nil, err
		}
		top := root
		if !info.IsDir() {
			absolute, top = filepath.Dir(absolute), filepath.Dir(root)
		}
		f.roots = append(f.roots, absolute)
		err = filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() || !slices.Contains(endings, filepath.Ext(path)) {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			f.read(path, string(text))
			if filepath.Ext(path) == ".cu" && strings.Contains(notCode.ReplaceAllString(string(text), " "), "__global__") &&
				(info.IsDir() || filepath.Clean(path) == filepath.Clean(root)) {
				f.kernels = append(f.kernels, path)
				f.programs[path] = mainFunction.MatchString(string(text))
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if len(f.kernels) == 0 {
		return nil, fmt.Errorf("%s: no file of CUDA C has __global__", strings.Join(roots, " "))
	}
	return f, nil
}

// read notes what a file includes.
func (f *found) read(path, text string) {
	for _, m := range includeLine.FindAllStringSubmatch(text, -1) {
		at, err := filepath.Abs(filepath.Join(filepath.Dir(path), m[1]))
		if err == nil && !slices.Contains(f.includes[at], path) {
			f.includes[at] = append(f.includes[at], path)
		}
	}
}

// through returns the file that includes this one, "" if it is a program of its own.
func (f *found) through(path string) string {
	absolute, err := filepath.Abs(path)
	if err != nil || f.programs[path] || len(f.includes[absolute]) == 0 {
		return ""
	}
	return f.includes[absolute][0]
}
