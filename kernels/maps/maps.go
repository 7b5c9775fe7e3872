// Package maps makes kernels from elementwise expressions such as "z = a*x + y".
//
// An expression becomes one straight-line program, from which the PTX and the Go reference are made. So a map needs a driver,
// but no compiler.
package maps

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	gomaps "maps"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/kernels/internal/describe"
	"github.com/dagrun/dagrun/kernels/launch"
	"github.com/dagrun/dagrun/kernels/library/ptx"
)

// mapKernel is the kernel of an expression.
type mapKernel struct {
	entry   string
	module  *launch.Module
	params  []dag.KernelParam
	program *mapProgram
	short   *mapKernel // the form for few elements; nil if it is no better, or this is it
	turn    int64      // elements of a block in a turn
}

// Entry returns the kernel's name. It contains a hash of the code, so that equal kernels have equal names.
func (k *mapKernel) Entry() string { return k.entry }

// Params returns n, the output, the inputs and the scalars.
func (k *mapKernel) Params() []dag.KernelParam { return k.params }

// Module returns the module with the entry.
func (k *mapKernel) Module() *launch.Module { return k.module }

// Maker makes kernels from expressions and caches them, so that equal map nodes share one module. The zero value is ready to use;
// any number of goroutines may use it.
type Maker struct {
	made sync.Map // *mapKernel by mapKey
}

// Map makes the kernel of an expression. With integers among its elements, whole numbers are computed as such: they are exact and wrap. Others are
// computed in f32 if all elements are f32, f16, bf16 or integers of at most 16 bits, otherwise in f64; one that is stored as an integer is truncated
// toward zero and clamped to the type's range.
func (m *Maker) Map(spec *dag.MapSpec) (dag.LaunchKernel, error) {
	if err := checkSpec(spec); err != nil {
		return nil, err
	}
	key := mapKey(spec)
	if k, ok := m.made.Load(key); ok {
		return k.(*mapKernel), nil
	}
	p, err := compileMap(spec)
	if err != nil {
		return nil, err
	}
	k := p.kernel(spec, mapTurn)
	if p.calls() {
		k.short = p.kernel(spec, describe.BlockSize)
	}
	made, _ := m.made.LoadOrStore(key, k)
	return made.(*mapKernel), nil
}

// kernel makes the form of the kernel in which a block has so many elements in a turn: one for each thread in the short form.
func (p *mapProgram) kernel(spec *dag.MapSpec, turn int64) *mapKernel {
	body := p.ptx(mapEntryPlaceholder, turn)
	k := &mapKernel{entry: fmt.Sprintf("dagrun_map_%x", sha256.Sum256([]byte(body)))[:27], program: p, turn: turn}
	k.params = append(k.params, dag.KernelParam{Name: "n", DType: dag.I64, Size: 8},
		dag.KernelParam{Name: spec.Out, DType: spec.OutType, Buffer: true, Mode: dag.Write, Size: 8})
	for i, name := range spec.Inputs {
		k.params = append(k.params, dag.KernelParam{Name: name, DType: spec.InTypes[i], Buffer: true, Mode: dag.Read, Size: 8})
	}
	for i, name := range spec.Scalars {
		k.params = append(k.params, dag.KernelParam{Name: name, DType: p.scalars[i], Size: 8})
	}
	body = strings.ReplaceAll(body, mapEntryPlaceholder, k.entry)
	k.module = &launch.Module{Name: "map " + spec.Text, Kind: launch.PTX, MayWait: true, Code: ptx.Complete(body),
		References: map[string]launch.Reference{k.entry: p.reference()}}
	if turn == describe.BlockSize || !p.calls() {
		k.module.Body = body
	}
	return k
}

// fewElements is how many elements the short form is for: a GPU has threads for all of them. Functions are called once in its code instead of five
// times, which takes two thirds of the time to compile.
const fewElements = 1 << 16

// Form implements [dag.ShapedKernel].
func (k *mapKernel) Form(args []dag.Arg) dag.LaunchKernel {
	if k.short != nil && len(args) > 0 && !args[0].IsBuffer && describe.IntegerValue(args[0]) <= fewElements {
		return k.short
	}
	return k
}

// Join makes one module of several maps that call no functions, or are in their short form, and of other modules that have a Body. Those that have
// the same code are there once, and other modules are left out. A driver compiles it in less time than all of them, each of which takes it over ten
// milliseconds, however short. It keeps what it has compiled by module, so that an edit of one map should not have others compiled again that take
// long: those that have functions in all of their copies.
func Join(modules []*launch.Module) *launch.Module {
	joined := &launch.Module{Name: "maps", Kind: launch.PTX, MayWait: true, References: map[string]launch.Reference{}}
	more := -1
	for _, m := range modules {
		if m == nil || m.Body == "" || strings.Contains(joined.Body, m.Body) {
			continue
		}
		if joined.Body == "" {
			joined.Name = m.Name
		}
		gomaps.Copy(joined.References, m.References)
		joined.Body += m.Body
		more++
	}
	if more > 0 {
		joined.Name += fmt.Sprintf(", and %d more", more)
	}
	joined.Code = ptx.Complete(joined.Body)
	return joined
}

// checkSpec refuses what nothing can be made of.
func checkSpec(spec *dag.MapSpec) error {
	switch {
	case spec == nil:
		return errors.New("there is nothing to compute")
	case spec.OutType.Size() == 0:
		return errors.New("the output has no element type")
	case len(spec.Inputs) != len(spec.InTypes):
		return fmt.Errorf("there are %d inputs, but the types of %d", len(spec.Inputs), len(spec.InTypes))
	case spec.Single != nil && len(spec.Single) != len(spec.Inputs):
		return fmt.Errorf("there are %d inputs, but it is said of %d whether they have one element", len(spec.Inputs), len(spec.Single))
	}
	for i, t := range spec.InTypes {
		if t.Size() == 0 {
			return fmt.Errorf("the input %q has no element type", spec.Inputs[i])
		}
	}
	if spec.ScalarTypes != nil && len(spec.ScalarTypes) != len(spec.Scalars) {
		return fmt.Errorf("there are %d numbers, but the types of %d", len(spec.Scalars), len(spec.ScalarTypes))
	}
	for i, t := range spec.ScalarTypes {
		if t != dag.F64 && t != dag.I64 {
			return fmt.Errorf("the number %q is of type %s; it must be f64 or i64", spec.Scalars[i], t)
		}
	}
	return spec.Expr.Check()
}

const mapEntryPlaceholder = "ENTRY"

// mapKey identifies a map by its tree, names and types. For a map that was made before, computing this key is all the work.
func mapKey(spec *dag.MapSpec) string {
	b := make([]byte, 0, 256)
	name := func(name string, t dag.DType) {
		b = append(append(b, name...), 0, byte(t))
	}
	name(spec.Out, spec.OutType)
	for i, in := range spec.Inputs {
		name(in, spec.InTypes[i])
		if spec.Single != nil && spec.Single[i] {
			b = append(b, 1)
		}
	}
	for i, scalar := range spec.Scalars {
		if name(scalar, dag.InvalidDType); spec.ScalarTypes != nil {
			b = append(b, byte(spec.ScalarTypes[i]))
		}
	}
	var term func(t *expr.Term)
	term = func(t *expr.Term) {
		b = append(b, byte(t.Op), byte(len(t.Args)), byte(len(t.Args)>>8))
		if t.Op == expr.Literal {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(t.Value.Float()))
			if whole, ok := literalInt(t.Value); ok {
				b = binary.LittleEndian.AppendUint64(append(b, 1), uint64(whole))
			}
		}
		name(t.Name, dag.InvalidDType)
		for _, a := range t.Args {
			term(a)
		}
	}
	term(spec.Expr.Root)
	return string(b)
}

// Describe implements [dag.LaunchKernel].
func (k *mapKernel) Describe(args []dag.Arg) (dag.LaunchInfo, error) {
	info := dag.LaunchInfo{HasHint: true, Extents: make([]int64, len(args))}
	if err := describe.CheckKinds(k.params, args); err != nil {
		return info, err
	}
	n := describe.IntegerValue(args[0])
	if n < 0 {
		return info, describe.Wrong("n", "is %d; it must be at least 0", n)
	}
	for i, p := range k.params {
		if !p.Buffer {
			continue
		}
		size, count, single := p.DType.Size(), n, i > 1 && k.program.single[i-2]
		if single {
			count = min(n, 1)
		}
		if have := args[i].Range.Bytes() / size; count > have {
			return info, describe.Wrong(p.Name, "needs %s, but its slice has only %d", describe.CountElements(count), have)
		}
		info.Extents[i] = count
		info.Work.Bytes += count * size
		if a, out := args[i].Range, args[1].Range; i > 1 && a.Buffer == out.Buffer && (a.Lo != out.Lo || single && n > 1) &&
			a.Lo < out.Lo+n*k.params[1].DType.Size() && out.Lo < a.Lo+count*size {
			return info, describe.Wrong(p.Name, "overlaps %s in memory, and %s is written", k.params[1].Name, k.params[1].Name)
		}
	}
	info.Work.Flops = n * k.program.flops
	info.Work.Steps = 4 + float64(k.program.flops)/4
	many := k.turn
	if !slices.ContainsFunc(k.params, func(p dag.KernelParam) bool { return p.Buffer && p.DType.Size() > 1 }) {
		many *= 4 // a turn of bytes is short
	}
	describe.Divide(&info, n, k.turn, many)
	info.Work.Blocks, info.Work.Threads = int64(info.Grid[0]), int32(info.Block[0])
	return info, nil
}
