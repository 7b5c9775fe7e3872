// A small library for tests, with kernels of every kind of parameter. Launches nothing.

package dag

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// testKernel is a kernel whose first scalar, where it has one, is the number of elements it touches of every buffer.
type testKernel struct {
	entry   string
	params  []KernelParam
	hint    bool
	scratch int64
}

func (k *testKernel) Entry() string         { return k.entry }
func (k *testKernel) Params() []KernelParam { return k.params }

func (k *testKernel) Describe(args []Arg) (LaunchInfo, error) {
	info := LaunchInfo{HasHint: k.hint, Scratch: k.scratch, Extents: make([]int64, len(args))}
	n := int64(-1)
	for i, p := range k.params {
		switch {
		case !p.Buffer && p.DType == I64 && n < 0:
			if n = int64(args[i].Bits); n < 0 {
				return info, &ArgumentError{Param: p.Name, Index: -1, Problem: "must not be negative"}
			}
		case p.Name == "result":
			info.Extents[i] = 1
		case p.Scratch:
			info.Extents[i] = k.scratch
		default:
			info.Extents[i] = n
		}
	}
	if k.hint {
		info.Grid, info.Block = [3]uint32{uint32((n + 255) / 256), 1, 1}, [3]uint32{256, 1, 1}
		info.Work = Work{Flops: n, Blocks: (n + 255) / 256, Threads: 256}
	}
	return info, nil
}

func scalarParam(name string, t DType) KernelParam {
	return KernelParam{Name: name, DType: t, Size: int32(t.Size())}
}

func bufferParam(name string, t DType, mode Mode) KernelParam {
	return KernelParam{Name: name, DType: t, Buffer: true, Mode: mode, Size: 8}
}

type testLibrary map[string]*testKernel

func (l testLibrary) Names() []string {
	var names []string
	for name := range l {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (l testLibrary) Kernel(name string, elems []DType) (LaunchKernel, error) {
	base, _, _ := strings.Cut(name, "<") // blur is a template too
	k := l[base]
	if k == nil {
		return nil, fmt.Errorf("%w %q", ErrUnknownKernel, name)
	}
	if name == "picky" && elems[0] == F64 {
		return nil, &ArgumentError{Param: "x", Index: 0, Problem: "cannot be f64"}
	}
	return k, nil
}

func (l testLibrary) ParameterNames(name string) ([]string, error) {
	k, err := l.Kernel(name, []DType{F32})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range k.Params() {
		if p.Name != "" && !p.Scratch {
			names = append(names, p.Name)
		}
	}
	return names, nil
}

func (l testLibrary) Map(spec *MapSpec) (LaunchKernel, error) {
	if spec.OutType == Bool {
		return nil, errors.New("no map gives bool")
	}
	k := &testKernel{entry: "map", hint: true, params: []KernelParam{scalarParam("n", I64), bufferParam(spec.Out, spec.OutType, Write)}}
	for i, name := range spec.Inputs {
		k.params = append(k.params, bufferParam(name, spec.InTypes[i], Read))
	}
	for _, name := range spec.Scalars {
		k.params = append(k.params, scalarParam(name, F64))
	}
	return k, nil
}

var kernelsForTests = testLibrary{
	"saxpy": {entry: "saxpy_f32", hint: true, params: []KernelParam{
		scalarParam("n", I64), scalarParam("alpha", F32), bufferParam("x", F32, Read), bufferParam("y", F32, ReadWrite)}},
	"sum": {entry: "sum_f32", hint: true, scratch: 1024, params: []KernelParam{
		scalarParam("n", I64), bufferParam("x", F32, Read), bufferParam("result", F32, Write), {Name: "partial", DType: U8, Buffer: true, Scratch: true, Mode: Write, Size: 8}}},
	"picky": {entry: "picky", hint: true, params: []KernelParam{bufferParam("x", InvalidDType, Read)}},
	"tiny":  {entry: "tiny", hint: true, params: []KernelParam{scalarParam("k", U8), scalarParam("h", F16)}},
}

// userKernels stand for a module: blur from CUDA C, opaque from a cubin, seen from PTX.
var userKernels = testLibrary{
	"blur": {entry: "blur", params: []KernelParam{scalarParam("n", I64), bufferParam("from", F32, Read), bufferParam("to", F32, ReadWrite)}},
	"opaque": {entry: "opaque", params: []KernelParam{
		{Name: "", Size: 8}, {Name: "", Size: 4}}},
	"seen": {entry: "seen", params: []KernelParam{
		{Size: 8, Code: CodeUse{Decided: true, Mode: Read}},
		{Size: 8, Code: CodeUse{Decided: true, Mode: Write, Written: "seen.cu:3"}},
		{Size: 8, Code: CodeUse{Mode: Write, Written: "seen.cu:4", Why: "an address is loaded from memory (seen.cu:2)"}}}},
}
