// Places: which frame of a call stack is the user's.

package recording

import (
	"path"
	"regexp"
	"slices"
	"sort"
	"strings"
)

// Where returns the innermost frame of a place that is the user's own code, or the innermost of all if none is; false if the place is not known.
// It reads the files of programs and libraries when it is asked, see Process.Confined.
func (p *Process) Where(place uint64) (Frame, bool) {
	frames := p.Places[place]
	if len(frames) == 0 {
		return Frame{}, false
	}
	p.finding.Lock()
	defer p.finding.Unlock()
	if p.where == nil {
		p.where, p.files = map[uint64]Frame{}, images{}
		p.kernels = map[string]bool{}
		for _, list := range p.Functions {
			for _, f := range list {
				p.kernels[f.Name] = true
			}
		}
	}
	if known, ok := p.where[place]; ok {
		return known, true
	}
	found := p.chosen(frames)
	p.where[place] = found
	return found, true
}

func (p *Process) chosen(frames []Frame) Frame {
	var without []Frame // the user's, but without a line
	for _, f := range frames {
		if f.Package {
			continue
		}
		if !f.Python {
			if !p.Confined {
				function, file, line := p.files.of(f.File, f.BuildID).resolve(f.Offset)
				if f.Function = function; line > 0 {
					f.File, f.Line = file, line
				}
			}
			if packaged(f.File) || p.generated(f) {
				continue
			}
		}
		if f.Line > 0 {
			return f
		}
		without = append(without, f)
	}
	if len(without) > 0 {
		return without[0]
	}
	return frames[0]
}

// generated tells whether a frame is what nvcc made for a launch, or the runtime that is linked into the program. The function that stands for a
// kernel on the host has the kernel's name.
func (p *Process) generated(f Frame) bool {
	return p.kernels[f.Function] || strings.HasSuffix(f.File, ".stub.c") ||
		slices.ContainsFunc([]string{"libcudart_static_", "__cuda", "_ZN6cudart", "_Z16cudaLaunchKernel", "_ZL16cudaLaunchKernel"}, func(begin string) bool {
			return strings.HasPrefix(f.Function, begin)
		}) || strings.Contains(f.Function, "__device_stub__") || runtimeCall.MatchString(f.Function)
}

// runtimeCall is a function of the runtime that is linked into the program.
var runtimeCall = regexp.MustCompile(`^cuda[A-Z]`)

// libraries are those that programs use and do not contain.
var libraries = regexp.MustCompile(`^(libcuda|libcudart|libcupti|libcublas|libcudnn|libcufft|libcurand|libcusolver|libcusparse|libnvrtc|libnvJitLink|libnvidia|libnccl|libtorch|libc10|libcaffe2|libc\.|libpthread|libdl|libstdc\+\+|libgcc_s|libpython|ld-linux|linux-vdso|libgomp|libcheckpoint)`)

// packaged tells whether a file belongs to an installed package, the language or the system.
func packaged(file string) bool {
	for _, part := range []string{"/site-packages/", "/dist-packages/", "/lib/python3", "/dagrun/recorder/"} {
		if strings.Contains(file, part) {
			return true
		}
	}
	for _, begin := range []string{"<frozen", "/usr/include/", "/usr/lib", "/lib/", "/lib64/", "/usr/local/cuda", "/usr/local/nvidia/", "/opt/cuda"} {
		if strings.HasPrefix(file, begin) {
			return true
		}
	}
	return libraries.MatchString(path.Base(file))
}

// FunctionAt returns the kernel that a handle meant at a moment, one without a name if it is not known.
func (p *Process) FunctionAt(handle, moment uint64) *FunctionInfo {
	list := p.Functions[handle]
	if len(list) == 0 {
		return &FunctionInfo{Handle: handle}
	}
	return &list[max(sort.Search(len(list), func(k int) bool { return list[k].Sequence > moment })-1, 0)]
}

// FunctionName returns the mangled name of the kernel that a handle meant at a moment, "" if it is not known.
func (p *Process) FunctionName(handle, moment uint64) string {
	return p.FunctionAt(handle, moment).Name
}
