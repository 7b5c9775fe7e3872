// What resolving a launch works on: the node as written, what is known of it so far, and what is wrong with it.

package dag

import (
	"fmt"
	"strings"

	"github.com/dagrun/dagrun/dag/expr"
)

// LaunchSpec is a kernel or map node as it was written.
type LaunchSpec struct {
	Label  string // the kernel as written, "mine.blur"
	Kernel string // its name in its library, "blur"
	Module int32  // index into Pipeline.Modules; -1: the library that came with dagrun
	Args   []ArgumentSpec
	Names  []string  // of Args where they are given by name; nil: by position
	Grid   [3]uint32 // all zero: not given
	Block  [3]uint32 // all zero: not given
	Shared uint32
	Device int32 // -1: not given

	Cluster     [3]uint32 // blocks; all zero: not given
	Cooperative bool
	HasGrid     bool // Grid is given although Grid[0] is zero: a launch of nothing
	HasShared   bool
	Call        bool // Kernel is a function of a vendor's library
	// Map is set for a map node. Its Args are then the output, the inputs and the scalars, in the order of MapSpec, which must be
	// complete but for OutType and InTypes; Kernel and Module are not looked at.
	Map *MapSpec

	Origin   []int  // once it is resolved: which of Args each parameter got; -1: none
	Declared []Mode // once it is resolved: how the file says that each parameter is used; 0: it says nothing
}

// buffers calls see for each buffer that is given, and for the argument that it is in.
func (s *LaunchSpec) buffers(see func(i int, a *ArgumentSpec)) {
	for i := range s.Args {
		if a := &s.Args[i]; a.IsBuffer {
			see(i, a)
		} else if a.Struct != nil {
			a.Struct.buffers(func(inner *ArgumentSpec) { see(i, inner) })
		}
	}
}

// ArgumentSpec is one argument as it was written.
type ArgumentSpec struct {
	IsBuffer bool
	Range    Range      // IsBuffer
	Mode     Mode       // IsBuffer; 0: as the signature says
	Value    expr.Value // a number
	DType    DType      // of the number; InvalidDType: as the signature says
	Null     bool       // no memory
	Struct   *StructureSpec
	Texture  *Texture // IsBuffer: as it was written
	Start    int64    // IsBuffer: elements from the slice's first to where the pointer points
}

// StructureSpec is a structure as it was written, or one of its members.
type StructureSpec struct {
	Number expr.Value
	DType  DType         // of the number, where it was written
	Memory *ArgumentSpec // a buffer or null, not a number
	List   []StructureSpec
	Names  []string // of List where members are given by name
	Whole  bool     // a list, not a number
}

// buffers calls see for each buffer that is given in a structure.
func (v *StructureSpec) buffers(see func(a *ArgumentSpec)) {
	if v.Memory != nil && v.Memory.IsBuffer {
		see(v.Memory)
	}
	for k := range v.List {
		v.List[k].buffers(see)
	}
}

// LaunchProblem is something wrong with a LaunchSpec.
type LaunchProblem struct {
	Part    LaunchPart
	Arg     int    // index into Args; -1 where Part is not PartArg
	Message string // complete, kernel and argument named
	Hint    string // what to do, or ""
}

// LaunchPart says where in a node the problem lies.
type LaunchPart uint8

type resolution struct {
	pipeline *Pipeline
	node     *Node
	spec     *LaunchSpec
	what     string // "kernel "saxpy"" or "map"
	device   int32
	written  []ArgumentSpec // spec.Args in the order of the parameters, for a map with the count in front
	order    []int          // which of spec.Args they are; nil: as written
	kernel   LaunchKernel
	params   []KernelParam
	origin   []int  // per parameter: index into spec.Args; -1: not written by the user
	declared []Mode // per parameter: how the file says that it is used; 0: it says nothing
	args     []Arg
	info     LaunchInfo
	problems []LaunchProblem
}

func (r *resolution) problem(part LaunchPart, message, hint string) {
	r.problems = append(r.problems, LaunchProblem{part, -1, message, hint})
}

// problemOf is a problem of an argument as written.
func (r *resolution) problemOf(arg int, message, hint string) {
	r.problems = append(r.problems, LaunchProblem{PartArg, arg, message, hint})
}

// argProblem is a problem of parameter k.
func (r *resolution) argProblem(k int, format string, a ...any) {
	message := fmt.Sprintf("argument %s of %s %s", r.paramName(k), r.what, fmt.Sprintf(format, a...))
	if r.origin[k] < 0 {
		r.problem(PartArgs, message, "")
		return
	}
	r.problemOf(r.origin[k], message, "")
}

func (r *resolution) paramName(k int) string {
	if name := r.params[k].Name; name != "" {
		return name
	}
	return fmt.Sprint(k + 1)
}

const (
	PartKernel LaunchPart = iota // its name, or the launch as a whole
	PartArgs                     // the list of arguments
	PartArg                      // one argument
	PartGrid
	PartCluster
	PartDevice
)

// take notes the kernel and which written argument each parameter gets.
func (r *resolution) take(kernel LaunchKernel, origin func(int) int) {
	if kernel == nil {
		r.problem(PartKernel, fmt.Sprintf("the library has no %s, and no error either", r.what), "")
		return
	}
	r.kernel, r.params = kernel, kernel.Params()
	for k := range r.params {
		if p := &r.params[k]; p.DType != InvalidDType && !p.DType.known() || p.Mode > ReadWrite || p.Size < 0 {
			r.problem(PartKernel, fmt.Sprintf("the library describes parameter %d of %s wrongly: type %s, use %s, %d bytes", k+1, r.what, p.DType, p.Mode,
				p.Size), "")
			return
		}
	}
	var names []string
	r.origin, r.declared = make([]int, len(r.params)), make([]Mode, len(r.params))
	given := 0
	for k := range r.params {
		if within := r.params[k].Within; within > 0 {
			r.origin[k] = r.origin[within-1]
			continue
		}
		if r.origin[k] = -1; r.params[k].Hidden() {
			continue
		}
		r.origin[k] = origin(given)
		names = append(names, r.paramName(k))
		given++
	}
	if given == len(r.written) {
		return
	}
	count := fmt.Sprintf("%d arguments (%s)", given, strings.Join(names, ", "))
	switch given {
	case 0:
		count = "no arguments"
	case 1:
		count = "1 argument (" + names[0] + ")"
	}
	r.problem(PartArgs, fmt.Sprintf("%s takes %s, got %d", r.what, count, len(r.written)), "")
}
