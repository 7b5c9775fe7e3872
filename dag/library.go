// The interface between dag and the packages that implement kernels, and what a launch consists of.

package dag

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/internal/words"
)

// ErrUnknownKernel is what Library.Kernel returns (wrapped) for a name that it does not have.
var ErrUnknownKernel = errors.New("unknown kernel")

// Library finds kernels by name.
type Library interface {
	// Names lists the kernels, sorted.
	Names() []string
	// Kernel resolves a name. elems[i] is the element type of the i-th argument as given where that is a buffer, InvalidDType
	// where it is a number: a kernel that exists for several element types picks its variant by them.
	Kernel(name string, elems []DType) (LaunchKernel, error)
	// Map makes the kernel of an elementwise expression.
	Map(spec *MapSpec) (LaunchKernel, error)
}

// ParameterNames is implemented by libraries whose kernels can be given their arguments by name.
type ParameterNames interface {
	// ParameterNames lists the names of a kernel's parameters in their order, without scratch. It lists none where they are unknown.
	ParameterNames(kernel string) ([]string, error)
}

// Confirmer is implemented by modules that can find out from compiled code what their kernels do. Declarations alone make the graph,
// so that it is the same where nothing can compile; code then confirms or contradicts them.
type Confirmer interface {
	// Confirm adds to the Params of this module's kernels what their code does. note says why the code was not compiled if that
	// is not an error, such as when no compiler is installed.
	Confirm(ctx context.Context, kernels []LaunchKernel) (note string, err error)
}

// SliceChecker is implemented by kernels whose code can be analysed for accesses outside the slices of a launch's arguments.
type SliceChecker interface {
	// Leaves returns the argument outside whose slice some thread is certain to read or write, and how, as the rest of a sentence
	// that begins with "argument x"; -1 if there is no proof for any argument.
	Leaves(l *Launch) (arg int, problem string)
}

// OutputChecker is implemented by kernels whose code can be analysed for what a launch leaves unwritten of an argument that is declared out.
type OutputChecker interface {
	// Writes reports whether every byte of the argument's slice is certain to be written, and otherwise, as the rest of a sentence that begins
	// with "argument x", what is certain not to be; "" if neither is known.
	Writes(l *Launch, arg int) (whole bool, problem string)
}

// ArgumentError is what Library.Kernel and LaunchKernel.Describe return (wrapped or not) where one argument is wrong: messages can
// then point at it. Its text is "argument x must be a buffer, got a number".
type ArgumentError struct {
	Param   string // the parameter's name
	Index   int    // from Library.Kernel: which argument as given; otherwise -1
	Problem string // what is wrong, as the rest of a sentence that begins with "argument x"
}

func (e *ArgumentError) Error() string { return "argument " + e.Param + " " + e.Problem }

// LaunchKernel is one kernel of a library or a user's module.
type LaunchKernel interface {
	// Entry is the symbol in the module, such as "dagrun_scale_f32".
	Entry() string
	// Params are the parameters in the kernel's own order.
	Params() []KernelParam
	// Describe states what a launch with these arguments touches and costs. Args holds one entry per parameter, scratch included
	// (its range empty). An error says which argument is wrong and why.
	Describe(args []Arg) (LaunchInfo, error)
}

// TileKernel is implemented by kernels that have another form for launches in which some argument is a tile.
type TileKernel interface {
	// OnTiles returns that form, or nil. Its first parameters are those of the kernel.
	OnTiles() LaunchKernel
}

// ShapedKernel is implemented by kernels that have other forms for launches of some shapes, so that a device loads only code that is used.
type ShapedKernel interface {
	// Form returns the form for a launch with these arguments, which may be the kernel itself. Its first parameters are those of the kernel, and
	// others are scratch. It does not check the arguments.
	Form(args []Arg) LaunchKernel
}

// Measure says what of a buffer's slice a parameter is.
type Measure uint8

const (
	Elements  Measure = iota // how many there are
	Rows                     // of a matrix
	Columns                  // of a matrix
	RowLength                // from the start of a row of a matrix to the next, in elements
)

// Measured is a parameter that is a measure of another one's argument.
type Measured struct {
	Of   int32 // 1 + the index of the other parameter; 0: it is no measure
	What Measure
}

// KernelParam is one parameter of a kernel.
type KernelParam struct {
	Name    string
	DType   DType // of the scalar, or of the elements; InvalidDType: untyped pointer or unknown scalar of Size bytes
	Buffer  bool
	Scratch bool // given by dagrun, never written in args:
	Tile    bool // Buffer: it may be a tile
	Mode    Mode // Buffer: 0 means that the signature cannot say; Code may, or else the user must
	Size    int32
	Struct  *Structure // of a structure or vector that is passed by value; nil: it is none, or its members are not known
	// Within makes it a pointer in a structure that another parameter takes by value, at Offset bytes in it: 1 + that parameter's index.
	// Such parameters come after all others, and their arguments are given with the structure.
	Within  int32
	Offset  int32
	Texture bool // the handle of a texture object
	Code    CodeUse
	// LengthOf makes it the row length of the argument of another parameter, in elements; 0 where that is no tile. It is 1 + that
	// parameter's index, and dagrun gives it.
	LengthOf int32
	// Measured makes it a measure of the argument of another parameter, which dagrun gives: its rows, its columns, ...
	Measured Measured
	// Words are what a file may write for a number: the value is the place among them. nil: numbers are written as numbers.
	Words []string
	// Status marks a buffer of one i32 that dagrun gives, in which the kernel leaves 0 if it succeeded. It is tested after the run.
	Status bool
}

// Hidden reports whether dagrun gives the parameter its argument.
func (p *KernelParam) Hidden() bool {
	return p != nil && (p.Scratch || p.Status || p.LengthOf > 0 || p.Measured.Of > 0 || p.Within > 0)
}

// CodeUse is what a kernel's code shows that it may do with the memory behind an argument. The zero value shows nothing.
type CodeUse struct {
	Decided bool   // it does nothing beyond Mode
	Mode    Mode   // what it may do, seen in the code; 0: nothing
	Written string // the first place that writes, such as "scan.cu:41", where Mode has Write
	Why     string // why it is not decided, where the code was looked at
	Fetch   Fetch
}

// Fetch is how a kernel's code reads through an argument that is the handle of a texture. The zero value is for other arguments.
type Fetch struct {
	Seen        bool
	Surface     bool   // it is a surface
	Dimensions  int8   // 0: several, or layers
	Floats      bool   // it is read as floats
	Integers    bool   // it is read as integers
	Coordinates bool   // it is read by coordinates that are floats
	At          string // the first place, such as "scan.cu:41"
}

// Evidence tells how it is known that a launch uses an argument as its Mode says.
type Evidence uint8

const (
	Declared Evidence = iota // by the file or by the kernel's declaration
	Inferred                 // the file says nothing, and the code shows it
	Proved                   // the code shows that the kernel does nothing else
)

var evidenceNames = []string{"declared", "inferred", "proved"}

func (e Evidence) String() string { return words.Name(e, "Evidence", evidenceNames) }

// Evidence is the ground on which argument k is taken to be used as its Mode says. The library's kernels are held to their
// table by a test. That an output is written whole is always declared: code shows what may be written.
func (l *Launch) Evidence(k int) Evidence {
	if l == nil || k < 0 || k >= len(l.Args) {
		return Declared
	}
	a := &l.Args[k]
	if a.Inferred {
		return Inferred
	}
	if l.Module < 0 {
		return Proved
	}
	if l.Kernel == nil {
		return Declared
	}
	params := l.Kernel.Params()
	if k >= len(params) {
		return Declared
	}
	code := params[k].Code
	if !code.Decided || code.Mode&^a.Mode != 0 {
		return Declared
	}
	if a.Mode == Write {
		checker, ok := l.Kernel.(OutputChecker)
		if !ok {
			return Declared
		}
		if whole, _ := checker.Writes(l, k); !whole {
			return Declared
		}
	}
	return Proved
}

// FloatAtomics is implemented by kernels that can tell where their code adds floats atomically, such as "scan.cu:41"; "" where it
// does not. Their results may differ in the last bits from run to run.
type FloatAtomics interface{ FloatAtomics() string }

// LaunchInfo is what a launch touches and costs.
type LaunchInfo struct {
	// Extents[i] is how many elements of argument i are touched, from the start of its slice; -1: the whole slice.
	Extents []int64
	// Modes[i] is how argument i is used where that depends on the others; 0, or no Modes: as its parameter says.
	Modes   []Mode
	Scratch int64 // bytes of scratch
	Grid    [3]uint32
	Block   [3]uint32
	Shared  uint32
	Work    Work
	// HasHint is false if the user must give Grid and Block.
	HasHint bool
	// Fixed is true if the kernel is only correct with this Grid, Block and Shared.
	Fixed bool
}

// problem says what cannot be true of a launch, or "".
func (in *LaunchInfo) problem(params []KernelParam) string {
	if err := in.Work.problem(); err != nil {
		return err.Error()
	}
	scratch := 0
	for k := range params {
		if params[k].Scratch {
			scratch++
		}
	}
	for k := range params {
		switch {
		case !params[k].Scratch:
		case scratch > 1 && k >= len(in.Extents):
			return fmt.Sprintf("there is no extent for parameter %d, one of %d that are scratch", k+1, scratch)
		case scratch > 1 && in.Extents[k] < 0:
			return fmt.Sprintf("parameter %d is scratch of %d bytes", k+1, in.Extents[k])
		case in.Scratch < 0:
			return fmt.Sprintf("%d bytes of scratch", in.Scratch)
		}
	}
	return ""
}

// MapSpec is an elementwise computation: Out = Expr(Inputs..., Scalars...). The launch's Args are: n (i64), the output, the inputs, the scalars.
type MapSpec struct {
	Text    string // as written, "y = a*x + b"
	Expr    *expr.Expr
	Out     string
	OutType DType
	Inputs  []string
	InTypes []DType
	// Single marks the inputs of one element, which goes with every element of the others; nil: there are none.
	Single  []bool
	Scalars []string
	// ScalarTypes tells whole numbers (i64) from others (f64), which makes a difference to maps with integers; nil: all are f64.
	ScalarTypes []DType
}

// Integers reports whether the output or an input consists of integers. Whole numbers are then computed as such.
func (m *MapSpec) Integers() bool {
	return m != nil && (!m.OutType.Float() || slices.ContainsFunc(m.InTypes, func(t DType) bool { return !t.Float() }))
}

// Launch is a kernel with its arguments. Args are in the kernel's own order and include scratch.
type Launch struct {
	Name   string       // the kernel as written, "saxpy" or "mine.blur"; "" for a map
	Module int32        // index into Pipeline.Modules; -1: the library that came with dagrun
	Kernel LaunchKernel // the resolved kernel
	Args   []Arg
	Grid   [3]uint32 // blocks, never zero, except that a launch of nothing has Grid[0] == 0
	Block  [3]uint32 // threads; Block[0] == 0: chosen from occupancy when the device is known
	Shared uint32    // dynamic shared memory
	// Cooperative says that all blocks must run at once, so that the kernel can wait for its whole grid.
	Cooperative bool
	Cluster     [3]uint32 // blocks of a thread block cluster; all zero: as the code of the kernel says
	Map         *MapSpec
}

// SizeText writes the size of a grid, block or cluster as a pipeline file has it, without trailing ones.
func SizeText(size [3]uint32) string {
	n := 3
	for n > 1 && size[n-1] <= 1 {
		n--
	}
	text := "["
	for i, v := range size[:n] {
		if i > 0 {
			text += ", "
		}
		text += strconv.FormatUint(uint64(v), 10)
	}
	return text + "]"
}

// WholeSize makes the second and third dimension ones where they are left out. A first dimension of zero has a meaning.
func WholeSize(size [3]uint32) [3]uint32 {
	return [3]uint32{size[0], max(size[1], 1), max(size[2], 1)}
}

// Arg is one argument of a launch.
type Arg struct {
	IsBuffer bool
	Inferred bool     // IsBuffer: Mode comes from the kernel's code, not from a declaration
	Mode     Mode     // IsBuffer
	DType    DType    // of the element or of the scalar
	Range    Range    // IsBuffer: the slice that is passed
	Bits     uint64   // scalar: its value as the bits of DType
	Struct   string   // structure that is passed by value: its bytes, with 0 for pointers; DType and Bits are 0
	Within   int32    // pointer in the structure that is another argument: 1 + the index of that; 0: an argument of its own
	Offset   int32    // Within: its offset in the structure in bytes
	Texture  *Texture // IsBuffer: the kernel reads it through a texture object
	Start    int64    // IsBuffer: bytes from the slice's first to where the pointer points, so that negative indexes are in the slice
}

// Work is what a node moves and computes. Figures that are not known are 0.
type Work struct {
	Bytes   int64 // read and written
	Flops   int64
	Blocks  int64 // of its grid
	Threads int32 // of a block
	Shared  int32 // bytes of a block
	// Steps is how many steps that wait for each other the longest thread takes, such as reads from memory of which each needs the one
	// before. Small launches take as long as their steps do, whatever their bytes and operations are. It is 0 if that is unknown.
	Steps float64
	// US is the least time in microseconds that the node takes on any machine because its arguments say so, as for spin. It is 0 if the
	// duration depends on bytes and operations only.
	US float64
}

// problem says what is wrong with a node's work, or nil.
func (w *Work) problem() error {
	if w.Bytes < 0 || w.Flops < 0 || w.Blocks < 0 || w.Threads < 0 || w.Shared < 0 || !(w.US >= 0 && w.US <= math.MaxFloat64) ||
		!(w.Steps >= 0 && w.Steps <= math.MaxFloat64) {
		return fmt.Errorf("its work (%d bytes, %d operations, %d blocks of %d threads and %d bytes, %v steps, %v us) must not be negative", w.Bytes,
			w.Flops, w.Blocks, w.Threads, w.Shared, w.Steps, w.US)
	}
	return nil
}
