// One source on its way through a compiler: what the compiler gets, and what it gives back.

package source

import (
	"bytes"
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
	longs     bool // types of 64 bits are long, as nvcc has them
	missing   []missingHeader
	// confined are the folders that the compiler may read; nil: there is no limit.
	confined []string
	search   *search
}

func newJob(m *launch.Module, target launch.Target, p *preprocessor) *job {
	j := &job{module: m, target: target, main: withoutHostCode(m.Name, m.Code, p), found: p.found, libraries: p.libraries, thrust: p.thrust,
		missing: p.missing, search: &p.search}
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

// has reports whether one of the user's files matches.
func (j *job) has(pattern *regexp.Regexp) bool {
	return slices.ContainsFunc(append([]*userFile{j.main}, j.files...), func(f *userFile) bool { return pattern.Match(f.text) })
}

// ofCCCL is an include of headers that have types of fixed width of their own.
var ofCCCL = regexp.MustCompile(`#[ \t]*include[ \t]*[<"](?:cub/|cuda/|thrust/|cooperative_groups|tuple)`)

// mayHaveLongs reports whether types of 64 bits can be those of nvcc, where a source does not compile with those of CCCL.
func (j *job) mayHaveLongs() bool {
	return j.prelude && !j.thrust && j.has(fixedWidthType) && !j.has(ofCCCL)
}

// headers are what NVRTC gets in the place of files: headers that it lacks, and those of the user's that have host code.
func (j *job) headers() []nvrtc.Header {
	var list []nvrtc.Header
	given := map[string]bool{}
	code := func(f *userFile) []byte { return f.text }
	if j.prelude {
		code = func(f *userFile) []byte { return withLambdas(f.text) }
	}
	if slices.ContainsFunc(j.files, func(f *userFile) bool { return f.changed || !bytes.Equal(code(f), f.text) }) {
		for _, h := range j.found {
			for _, f := range j.files {
				if f.path == h.path && !given[h.name] {
					given[h.name] = true
					list = append(list, nvrtc.Header{Name: h.name, Code: code(f)})
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
			if j.longs {
				h.Code = []byte(ofLongs.Replace(string(h.Code)))
			}
			list = append(list, h)
		}
	}
	return list
}

var (
	registerClass = regexp.MustCompile(`\bregister\b`)
	// designated are initialisers that name members, which nvcc takes before C++20 too.
	designated = regexp.MustCompile(`[{,]\s*\.\s*[A-Za-z_]\w*\s*=[^=]`)
)

// hasStandard reports whether the build says which C++ it is.
func (j *job) hasStandard() bool {
	return slices.ContainsFunc(j.module.Build.Options, func(o string) bool { return strings.Contains(o, "std=") })
}

// implied are the options for NVRTC that include what nvcc includes in every file, where a source counts on it: types of fixed width, and those of
// libraries.
func (j *job) implied() []string {
	var options []string
	if j.libraries {
		options = append(options, "--pre-include="+libraryTypes)
	}
	if j.prelude {
		options = append(options, "--pre-include="+preludeHeader)
		if j.thrust && len(j.search.system) > 0 {
			options = append(options, "--pre-include="+thrustHeader)
		}
		if j.has(registerClass) {
			options = append(options, "-Dregister=") // which C++17 has no more
		}
		if j.has(designated) && !j.hasStandard() {
			options = append(options, "--std=c++20")
		}
	}
	switch {
	case !j.has(fixedWidthType) || j.has(fixedWidthDeclared):
	case j.prelude:
		options = append(options, "--pre-include=cstdint")
	case !j.has(fixedWidthIncluded):
		options = append(options, "--pre-include=stdint.h")
	}
	return options
}
