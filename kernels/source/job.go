// One source on its way through a compiler: what the compiler gets, and what it gives back.

package source

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dagrun/dagrun/kernels/launch"
	"github.com/dagrun/dagrun/kernels/source/nvrtc"
)

// CompileError is the error for a source that does not compile.
type CompileError = launch.CompileError

// job is one source on its way through the compilers.
type job struct {
	module *launch.Module
	target launch.Target
	main   *userFile
	files  []*userFile // that it includes, of the user's
	found  []foundHeader

	libraries bool // headers of NVIDIA's libraries are included
	thrust    bool // headers of Thrust for the host are
	prelude   bool // what nvcc includes in every file is wanted
	missing   []missingHeader
	// confined are the folders that the compiler may read; nil: there is no limit.
	confined []string
	search   *search
}

func newJob(m *launch.Module, target launch.Target, p *preprocessor) *job {
	j := &job{module: m, target: target, main: withoutHostCode(m.Name, m.Code, p), found: p.found, libraries: p.libraries, thrust: p.thrust, missing: p.missing, search: &p.search}
	seen := map[string]bool{}
	for _, h := range p.found {
		if !seen[h.path] {
			seen[h.path] = true
			j.files = append(j.files, withoutHostCode(h.path, p.texts[h.path], p))
		}
	}
	return j
}

// errNotInstalled is the error of a compiler that is not there.
var errNotInstalled = errors.New("not installed")

// errorPlace is where compilers say that an error is: file(3): error, or file:3:7: error.
var errorPlace = regexp.MustCompile(`(?m)^(.+?)(?:\((\d+)\)|:(\d+):\d+): (?:catastrophic |fatal )?error`)

// hide leaves out the host code that errors are in; false where there is none.
func (j *job) hide(log string) bool {
	hidden := false
	for _, m := range errorPlace.FindAllStringSubmatch(log, -1) {
		line, err := strconv.ParseInt(m[2]+m[3], 10, 32)
		if err != nil {
			continue
		}
		path := m[1]
		for _, h := range j.found {
			if h.name == path {
				path = h.path
				break
			}
		}
		for _, f := range append([]*userFile{j.main}, j.files...) {
			if filepath.Clean(f.path) == filepath.Clean(path) && f.hideAt(int32(line)) {
				hidden = true
			}
		}
	}
	return hidden
}

// absent says which headers were left out because they are not found: device code may lack what they declare.
func (j *job) absent() []string {
	var notes []string
	for _, h := range j.missing {
		if !j.search.leftOut(h.name, h.quoted) {
			continue
		}
		note := fmt.Sprintf("%s:%d: <%s> is not found and was left out; name its folder with -I, or in the pipeline with include:", h.file, h.line, h.name)
		if forDevices(h.name) && (strings.HasPrefix(h.name, "cub/") || strings.HasPrefix(h.name, "thrust/") || strings.HasPrefix(h.name, "cuda/")) {
			note = fmt.Sprintf("%s:%d: <%s> is not found and was left out; it is a part of CCCL, which a CUDA toolkit and the pip package nvidia-cuda-cccl bring, or name its folder with -I, in the pipeline with include:",
				h.file, h.line, h.name)
		}
		if !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
	}
	return notes
}

// result is what a compiler gave, with the symbols in the order of the names.
func (j *job) result(compiled *launch.Compiled, symbols []string) *launch.Compiled {
	compiled.Symbols = map[string]string{}
	for i, name := range j.module.Build.Names {
		if i < len(symbols) {
			compiled.Symbols[name] = symbols[i]
		}
	}
	return compiled
}

// definitions are the options that define macros.
func (j *job) definitions() []string {
	var list []string
	for _, d := range j.module.Build.Define {
		list = append(list, "-D"+d.Name+"="+d.Value)
	}
	return list
}

// headers are what NVRTC gets in the place of files: headers that it lacks, and those of the user's that have host code.
func (j *job) headers() []nvrtc.Header {
	var list []nvrtc.Header
	given := map[string]bool{}
	if slices.ContainsFunc(j.files, func(f *userFile) bool { return f.changed }) {
		for _, h := range j.found {
			for _, f := range j.files {
				if f.path == h.path && !given[h.name] {
					given[h.name] = true
					list = append(list, nvrtc.Header{Name: h.name, Code: f.text})
				}
			}
		}
	}
	headers := standardHeaders
	if j.prelude {
		headers = slices.Concat(standardHeaders, preludeHeaders)
	}
	for _, h := range headers {
		if !given[h.Name] {
			list = append(list, h)
		}
	}
	return list
}

var registerClass = regexp.MustCompile(`\bregister\b`)

// implied are the options for NVRTC that include what nvcc includes in every file, where a source counts on it: types of fixed width, and those of
// libraries.
func (j *job) implied() []string {
	var options []string
	if j.libraries {
		options = append(options, "--pre-include="+libraryTypes)
	}
	files := append([]*userFile{j.main}, j.files...)
	if j.prelude {
		options = append(options, "--pre-include="+preludeHeader)
		if j.thrust && len(j.search.system) > 0 {
			options = append(options, "--pre-include="+thrustHeader)
		}
		if slices.ContainsFunc(files, func(f *userFile) bool { return registerClass.Match(f.text) }) {
			options = append(options, "-Dregister=") // which C++17 has no more
		}
	}
	uses := func(f *userFile) bool { return fixedWidthType.Match(f.text) }
	declares := func(f *userFile) bool { return fixedWidthDeclared.Match(f.text) }
	if slices.ContainsFunc(files, uses) && !slices.ContainsFunc(files, declares) {
		options = append(options, "--pre-include=stdint.h")
	}
	return options
}
