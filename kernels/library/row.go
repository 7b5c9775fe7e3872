// A row of the table: what is known about a kernel of the library, and the kernel for one choice of element types.

package library

import (
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/internal/describe"
	"github.com/dagrun/dagrun/kernels/launch"
)

// matrix is the shape in which a kernel reads or writes a buffer that may be a tile.
type matrix struct {
	param string
	shape func(v scalars) (rows, cols int64)
}

// row is one kernel of the library. Its CUDA C is in cuda/, with entries called dagrun_<name>_<types>.
type row struct {
	name      string
	alias     string // another name for the same kernel, "" for none
	doc       string // one line
	signature string
	flops     string   // formula; "" for none
	launch    geometry // grid, block and shared memory from the arguments
	inPlace   bool     // an output may be exactly one of the inputs
	check     func(v scalars) error
	us        func(v scalars) float64 // how long it takes, by its arguments, if that does not follow from its work; nil for most
	steps     steps                   // how many of its longest thread wait for each other; nil for a few
	matrices  []matrix                // the buffers that may be tiles, in the order of the signature
	forms     []form                  // the first that suits a launch is used, otherwise the kernel itself
	versions  []version
}

// form is another way to compute what a row computes.
type form struct {
	name    string                // in the name of the entry
	f32     bool                  // only what is computed in f32 has it
	tiles   bool                  // there is one for tiles too
	scratch string                // a parameter besides those of the row, as in a signature; "" for none
	suits   func(v scalars) bool  // for which launches it is the best
	check   func(v scalars) error // for which it is correct, as in row
	launch  geometry
	steps   steps
}

// version is a row for one binding of its type letters.
type version struct {
	types bind
	run   func(k *libraryKernel) launch.Reference
}

// geometry sets the shape of a launch.
type geometry func(k *libraryKernel, v scalars, info *dag.LaunchInfo)

// steps counts the steps of a launch's longest thread that wait for each other, in units of dag.Work.Steps.
type steps func(k *libraryKernel, v scalars) float64

// scalars holds the scalars of a launch by parameter. v has the integers, and 0 for floats.
type scalars struct {
	k    *libraryKernel
	v    []int64
	args []dag.Arg
}

func (k *libraryKernel) scalarsOf(args []dag.Arg) scalars {
	v := scalars{k, make([]int64, len(args), len(args)+len(sizeNames)), args}
	for i, p := range k.parameters {
		if p.mode == 0 {
			v.v[i] = describe.IntegerValue(args[i])
		}
	}
	return v
}

// of returns an integer by name, float returns a float by name.
func (v scalars) of(name string) int64      { return v.v[v.at(name)] }
func (v scalars) float(name string) float64 { return describe.FloatValue(v.args[v.at(name)]) }

// at returns the index of a parameter. It panics for a name that the signature lacks.
func (v scalars) at(name string) int {
	i := v.k.index(name)
	if i < 0 {
		panic("kernels: no parameter " + name + " in " + v.k.row.name)
	}
	return i
}

// libraryKernel is the kernel of a row for one binding of types.
type libraryKernel struct {
	row        *row
	types      bind
	onTile     bool // its matrices may be tiles
	entry      string
	parameters []parameter
	params     []dag.KernelParam
	given      []dag.KernelParam // the parameters that a user gives arguments for: all except scratch
	flops      *formula
	reference  launch.Reference
	tiles      *libraryKernel // the kernel for launches on tiles, nil if there is none
	forms      []shapedKernel // nil: there is one
}

// shapedKernel is the kernel of a form, and for which launches it is the best.
type shapedKernel struct {
	suits  func(v scalars) bool
	kernel *libraryKernel
}

// Entry implements [dag.LaunchKernel].
func (k *libraryKernel) Entry() string { return k.entry }

// Params implements [dag.LaunchKernel].
func (k *libraryKernel) Params() []dag.KernelParam { return k.params }

func (k *libraryKernel) accepts(elems []dag.DType) bool {
	for i, p := range k.given {
		if p.Buffer && p.DType != elems[i] {
			return false
		}
	}
	return true
}

// bufferTypes returns "x f32, y f32", or "f32" if all buffers have one type.
func (k *libraryKernel) bufferTypes() string {
	var list []string
	same := true
	first := dag.InvalidDType
	for _, p := range k.given {
		if p.Buffer {
			if first == dag.InvalidDType {
				first = p.DType
			}
			same = same && p.DType == first
			list = append(list, p.Name+" "+p.DType.String())
		}
	}
	if same {
		return first.String()
	}
	return strings.Join(list, ", ")
}

func (k *libraryKernel) index(name string) int {
	for i := range k.params {
		if k.params[i].Name == name {
			return i
		}
	}
	return -1
}

// both are the versions for f32 and f64.
func both(f, d func(*libraryKernel) launch.Reference) []version {
	return []version{{bind{T: dag.F32}, f}, {bind{T: dag.F64}, d}}
}
