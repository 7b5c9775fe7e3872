// A small library for tests, with kernels of every kind of parameter. Launches nothing.

package fakes

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/dag"
)

// testKernel is a kernel whose first scalar, where it has one, is the number of elements it touches of every buffer.
type Kernel struct {
	entry   string
	params  []dag.KernelParam
	hint    bool
	scratch int64
}

func (k *Kernel) Entry() string             { return k.entry }
func (k *Kernel) Params() []dag.KernelParam { return k.params }

func (k *Kernel) Describe(args []dag.Arg) (dag.LaunchInfo, error) {
	info := dag.LaunchInfo{HasHint: k.hint, Scratch: k.scratch, Extents: make([]int64, len(args))}
	n := int64(-1)
	for i, p := range k.params {
		switch {
		case !p.Buffer && p.DType == dag.I64 && n < 0:
			if n = int64(args[i].Bits); n < 0 {
				return info, &dag.ArgumentError{Param: p.Name, Index: -1, Problem: "must not be negative"}
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
		info.Work = dag.Work{Flops: n, Blocks: (n + 255) / 256, Threads: 256}
	}
	return info, nil
}

func scalarParam(name string, t dag.DType) dag.KernelParam {
	return dag.KernelParam{Name: name, DType: t, Size: int32(t.Size())}
}

func bufferParam(name string, t dag.DType, mode dag.Mode) dag.KernelParam {
	return dag.KernelParam{Name: name, DType: t, Buffer: true, Mode: mode, Size: 8}
}

type Library map[string]*Kernel

func (l Library) Names() []string {
	var names []string
	for name := range l {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (l Library) Kernel(name string, elems []dag.DType) (dag.LaunchKernel, error) {
	base, _, _ := strings.Cut(name, "<") // blur is a template too
	k := l[base]
	if k == nil {
		return nil, fmt.Errorf("%w %q", dag.ErrUnknownKernel, name)
	}
	if name == "picky" && elems[0] == dag.F64 {
		return nil, &dag.ArgumentError{Param: "x", Index: 0, Problem: "cannot be f64"}
	}
	return k, nil
}

func (l Library) ParameterNames(name string) ([]string, error) {
	k, err := l.Kernel(name, []dag.DType{dag.F32})
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

func (l Library) Map(spec *dag.MapSpec) (dag.LaunchKernel, error) {
	if spec.OutType == dag.Bool {
		return nil, errors.New("no map gives bool")
	}
	k := &Kernel{entry: "map", hint: true, params: []dag.KernelParam{scalarParam("n", dag.I64), bufferParam(spec.Out, spec.OutType, dag.Write)}}
	for i, name := range spec.Inputs {
		k.params = append(k.params, bufferParam(name, spec.InTypes[i], dag.Read))
	}
	for _, name := range spec.Scalars {
		k.params = append(k.params, scalarParam(name, dag.F64))
	}
	return k, nil
}

var Kernels = Library{
	"saxpy": {entry: "saxpy_f32", hint: true, params: []dag.KernelParam{
		scalarParam("n", dag.I64), scalarParam("alpha", dag.F32), bufferParam("x", dag.F32, dag.Read), bufferParam("y", dag.F32, dag.ReadWrite)}},
	"sum": {entry: "sum_f32", hint: true, scratch: 1024, params: []dag.KernelParam{
		scalarParam("n", dag.I64), bufferParam("x", dag.F32, dag.Read), bufferParam("result", dag.F32, dag.Write), {Name: "partial", DType: dag.U8,
			Buffer: true, Scratch: true, Mode: dag.Write, Size: 8}}},
	"picky": {entry: "picky", hint: true, params: []dag.KernelParam{bufferParam("x", dag.InvalidDType, dag.Read)}},
	"tiny":  {entry: "tiny", hint: true, params: []dag.KernelParam{scalarParam("k", dag.U8), scalarParam("h", dag.F16)}},
}

// userKernels stand for a module: blur from CUDA C, opaque from a cubin, seen from PTX.
var UserKernels = Library{
	"blur": {entry: "blur", params: []dag.KernelParam{scalarParam("n", dag.I64), bufferParam("from", dag.F32, dag.Read),
		bufferParam("to", dag.F32, dag.ReadWrite)}},
	"opaque": {entry: "opaque", params: []dag.KernelParam{
		{Name: "", Size: 8}, {Name: "", Size: 4}}},
	"seen": {entry: "seen", params: []dag.KernelParam{
		{Size: 8, Code: dag.CodeUse{Decided: true, Mode: dag.Read}},
		{Size: 8, Code: dag.CodeUse{Decided: true, Mode: dag.Write, Written: "seen.cu:3"}},
		{Size: 8, Code: dag.CodeUse{Mode: dag.Write, Written: "seen.cu:4", Why: "an address is loaded from memory (seen.cu:2)"}}}},
}
