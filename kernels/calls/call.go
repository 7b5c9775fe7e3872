// One call: its parameters, its versions by element type, and what a use of it reads, writes and costs.

package calls

import (
	"fmt"
	"math"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/kernels/internal/describe"
	"github.com/dagrun/dagrun/kernels/internal/reference"
	"github.com/dagrun/dagrun/kernels/launch"
)

// call is a row of the table.
type call struct {
	name   string // "cublas.gemm"
	doc    string
	notes  string
	params []param
	status bool // it leaves 0 in a status if it succeeded
	types  []binding
	// describe checks the sizes and says what the call accesses and costs; v has all arguments.
	describe func(v *values, info *dag.LaunchInfo) error
	run      func(v *version) launch.Reference

	versions []*version
}

// binding is the element type of a version. R is that of its real numbers, S that of its scalars.
type binding struct{ T, R dag.DType }

// kind says what an argument is.
type kind uint8

const (
	matrix kind = iota
	vector
	number  // of type T
	integer // i64
	boolean
	choice // one of some words
)

// param is a parameter that the user gives an argument for.
type param struct {
	name  string
	kind  kind
	mode  dag.Mode // of a buffer
	words []string // of a choice
	usual *expr.Value
	real  bool // of a buffer: its elements are of type R
}

func (p *param) buffer() bool { return p.kind == matrix || p.kind == vector }

func (p *param) doc() ParamDoc {
	d := ParamDoc{Name: p.name, Type: [...]string{"matrix", "vector", "number", "integer", "true or false", ""}[p.kind]}
	if p.words != nil {
		d.Type = strings.Join(p.words, " or ")
	}
	if p.buffer() {
		d.Access = p.mode.String()
	}
	if p.usual != nil {
		n, _ := p.usual.Int()
		switch {
		case p.kind == boolean:
			d.Usual = fmt.Sprint(n != 0)
		case p.words != nil:
			d.Usual = p.words[n]
		default:
			d.Usual = fmt.Sprint(n)
		}
	}
	return d
}

// Parameters of each kind.
func in(name string) param    { return param{name: name, kind: matrix, mode: dag.Read} }
func inout(name string) param { return param{name: name, kind: matrix, mode: dag.ReadWrite} }

func flag(name string) param {
	usual := expr.Int(0)
	return param{name: name, kind: boolean, usual: &usual}
}

func scale(name string, usual int64) param {
	v := expr.Int(usual)
	return param{name: name, kind: number, usual: &v}
}

// oneOf is a word, the first unless it is given.
func oneOf(name string, words ...string) param {
	usual := expr.Int(0)
	return param{name: name, kind: choice, words: words, usual: &usual}
}

// version is a call for one binding. It implements [dag.LaunchKernel].
type version struct {
	call       *call
	module     *launch.Module // the library that has the call
	types      binding
	entry      string
	parameters []dag.KernelParam
}

// make makes the versions of a call of a library. Their parameters are those of the user, then the measures of the buffers, a workspace and a status.
func (c *call) make(library *launch.Module) {
	for _, b := range c.types {
		v := &version{call: c, module: library, types: b, entry: c.name + "_" + b.T.String()}
		for i := range c.params {
			p := &c.params[i]
			k := dag.KernelParam{Name: p.name, Words: p.words}
			switch p.kind {
			case matrix, vector:
				k.Buffer, k.Mode, k.DType, k.Size, k.Tile = true, p.mode, b.T, 8, p.kind == matrix
				if p.real {
					k.DType = b.R
				}
			case number:
				k.DType = b.T
			case integer, choice:
				k.DType = dag.I64
			case boolean:
				k.DType = dag.Bool
			}
			if !k.Buffer {
				k.Size = int32(k.DType.Size())
			}
			v.parameters = append(v.parameters, k)
		}
		measure := func(of int, suffix string, what dag.Measure) {
			v.parameters = append(v.parameters, dag.KernelParam{Name: c.params[of].name + "." + suffix, DType: dag.I64, Size: 8,
				Measured: dag.Measured{Of: int32(of + 1), What: what}})
		}
		for i := range c.params {
			switch c.params[i].kind {
			case matrix:
				measure(i, "rows", dag.Rows)
				measure(i, "columns", dag.Columns)
				measure(i, "ld", dag.RowLength)
			case vector:
				measure(i, "elements", dag.Elements)
			}
		}
		v.parameters = append(v.parameters, dag.KernelParam{Name: "workspace", DType: dag.U8, Buffer: true, Scratch: true, Mode: dag.Write, Size: 8})
		if c.status {
			v.parameters = append(v.parameters, dag.KernelParam{Name: "status", DType: dag.I32, Buffer: true, Status: true, Mode: dag.Write, Size: 8})
		}
		library.References[v.entry] = c.run(v)
		for k := range v.parameters {
			library.Parameters[v.entry] = append(library.Parameters[v.entry], v.parameters[k].Name)
		}
		c.versions = append(c.versions, v)
	}
}

// Entry implements [dag.LaunchKernel].
func (v *version) Entry() string { return v.entry }

// Params implements [dag.LaunchKernel].
func (v *version) Params() []dag.KernelParam { return v.parameters }

// Module is the library that has the call.
func (v *version) Module() *launch.Module { return v.module }

func (v *version) accepts(elems []dag.DType) bool {
	for i := range v.call.params {
		if v.call.params[i].buffer() && v.parameters[i].DType != elems[i] {
			return false
		}
	}
	return true
}

// bufferTypes is "f32", or "x f32, y c64" if the buffers have several types.
func (v *version) bufferTypes() string {
	if v.types.R == dag.InvalidDType {
		return v.types.T.String()
	}
	var list []string
	for i := range v.call.params {
		if p := &v.call.params[i]; p.buffer() {
			list = append(list, p.name+" "+v.parameters[i].DType.String())
		}
	}
	return strings.Join(list, ", ")
}

// Tolerance is how far results may be from those of the Go version, relative to the largest element: the order of operations is another.
func (v *version) Tolerance(args []dag.Arg) float64 {
	for i := range v.parameters {
		if v.parameters[i].Name == "math" && i < len(args) && args[i].Bits != 0 {
			return 2e-3 // factors of 10 bits
		}
	}
	if v.types.T.Component() == dag.F64 {
		return 1e-12
	}
	return 1e-5
}

// Describe implements [dag.LaunchKernel].
func (v *version) Describe(args []dag.Arg) (dag.LaunchInfo, error) {
	info := dag.LaunchInfo{HasHint: true, Fixed: true, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
	if err := describe.CheckKinds(v.parameters, args); err != nil {
		return info, err
	}
	info.Extents, info.Modes = make([]int64, len(args)), make([]dag.Mode, len(args))
	for i := range info.Extents {
		info.Extents[i] = -1
	}
	all := &values{v, args}
	for i := range v.parameters {
		if p := &v.parameters[i]; p.Measured.Of > 0 && describe.IntegerValue(args[i]) > math.MaxInt32 {
			return info, describe.Wrong(v.call.params[p.Measured.Of-1].name, "is too large: its rows and columns can be at most %d", math.MaxInt32)
		}
	}
	if err := v.call.describe(all, &info); err != nil {
		return info, err
	}
	for i := range v.parameters {
		p := &v.parameters[i]
		if p.Scratch {
			info.Extents[i] = info.Scratch
		}
		if !p.Buffer || p.Scratch || p.Status {
			continue
		}
		mode := p.Mode
		if info.Modes[i] != 0 {
			mode = info.Modes[i]
		}
		if mode&dag.Write != 0 {
			info.Work.Bytes += args[i].Range.Bytes()
		}
		if mode&dag.Read != 0 {
			info.Work.Bytes += args[i].Range.Bytes()
		}
	}
	return info, v.checkOverlap(args)
}

// checkOverlap refuses a call that writes memory that another argument has too.
func (v *version) checkOverlap(args []dag.Arg) error {
	for i := range v.call.params {
		if v.parameters[i].Mode&dag.Write == 0 {
			continue
		}
		for j := range v.call.params {
			if i == j || !v.parameters[j].Buffer || v.parameters[j].Mode&dag.Write != 0 && j < i || !args[i].Range.Overlaps(args[j].Range) {
				continue
			}
			return describe.Wrong(v.parameters[max(i, j)].Name, "overlaps %s in memory, and %s is written", v.parameters[min(i, j)].Name, v.parameters[i].Name)
		}
	}
	return nil
}

// values are the arguments of a call by name.
type values struct {
	*version
	args []dag.Arg
}

// at is the index of a parameter. It panics for a name that the call lacks.
func (v *values) at(name string) int {
	for i := range v.parameters {
		if v.parameters[i].Name == name {
			return i
		}
	}
	panic("calls: no parameter " + name + " in " + v.call.name)
}

func (v *values) integer(name string) int64 { return describe.IntegerValue(v.args[v.at(name)]) }
func (v *values) truth(name string) bool    { return v.integer(name) != 0 }

// zero reports whether a number is zero.
func (v *values) zero(name string) bool {
	a := v.args[v.at(name)]
	return a.DType.ToFloat(a.Bits) == 0
}

// shape is the rows and columns of a matrix.
func (v *values) shape(name string) shape {
	return shape{v.integer(name + ".rows"), v.integer(name + ".columns")}
}

// shape is the size of a matrix.
type shape struct{ rows, columns int64 }

func (s shape) String() string { return fmt.Sprintf("%d x %d", s.rows, s.columns) }

// flip is the shape of the transposed matrix if a condition holds.
func (s shape) flip(transposed bool) shape {
	if transposed {
		return shape{s.columns, s.rows}
	}
	return s
}

// must checks the shape of a matrix against what the other arguments ask for.
func (v *values) must(name string, want shape, because string) error {
	if have := v.shape(name); have != want {
		return describe.Wrong(name, "is a matrix of %s; %s it must be %s", have, because, want)
	}
	return nil
}

// inGo makes a Go version that reads its arguments by name.
func (v *version) inGo(spans func(*arguments) int64, run func(a *arguments, lo, hi int64)) launch.Reference {
	return launch.Reference{
		Spans: func(c *launch.Call) int64 { return spans(&arguments{v, c}) },
		Run:   func(c *launch.Call, lo, hi int64) { run(&arguments{v, c}, lo, hi) },
	}
}

// readingAll is inGo for a version that reads every element of its inputs.
func (v *version) readingAll(spans func(*arguments) int64, run func(a *arguments, lo, hi int64)) launch.Reference {
	r := v.inGo(spans, run)
	r.ReadsAll = true
	return r
}

// arguments are those of a Go version by name.
type arguments struct {
	*version
	call *launch.Call
}

func (a *arguments) of(name string) launch.Arg {
	for i := range a.parameters {
		if a.parameters[i].Name == name {
			return a.call.Args[i]
		}
	}
	panic("calls: no parameter " + name + " in " + a.entry)
}

func (a *arguments) integer(name string) int64 { return reference.Integer(a.of(name)) }
func (a *arguments) truth(name string) bool    { return a.of(name).Bits&0xff != 0 }

// ParamDoc describes one argument.
type ParamDoc struct {
	Name   string
	Type   string // "matrix", "vector", "number", "bool", or the words that it may be
	Access string // "in", "out" or "inout" of a buffer
	Usual  string // where it is left out; "": it must be given
}
