// Library calls: nodes that run a function of a vendor's library, such as cublas.gemm. What a call touches follows from its arguments.

package dag

import (
	"strings"

	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/internal/words"
)

// CallLibrary is implemented by libraries that have functions of vendors' libraries, besides their kernels.
type CallLibrary interface{ Calls() Calls }

// Calls finds functions of vendors' libraries by name, such as "cublas.gemm". Their arguments are given by name.
type Calls interface {
	Library
	ParameterNames
	// Argument tells about an argument that is a number: which words may stand for it, and the value that it has where it is left out.
	Argument(call, name string) (words []string, usual expr.Value, optional bool)
}

// CallsOf returns a library's calls, nil if it has none.
func CallsOf(library Library) Calls {
	if has, ok := library.(CallLibrary); ok {
		return has.Calls()
	}
	return nil
}

// usualArgument is the value of an argument that is left out, for a library's kernels that have such arguments.
func usualArgument(library Library, kernel, name string) (expr.Value, bool) {
	calls, ok := library.(Calls)
	if !ok {
		return expr.Value{}, false
	}
	_, usual, optional := calls.Argument(kernel, name)
	return usual, optional
}

// WordsOf lists the words that may stand for an argument of a call.
func WordsOf(library Library, call, name string) []string {
	calls := CallsOf(library)
	if calls == nil {
		return nil
	}
	list, _, _ := calls.Argument(call, name)
	return list
}

// CallArgs are the arguments of a call by name: ranges, numbers, bools, and words such as "tf32".
type CallArgs map[string]any

// measured gives parameter k, a measure of an argument, its value.
func (r *resolution) measured(k int, m Measured) {
	a := &r.args[m.Of-1]
	if !a.IsBuffer || len(r.problems) > 0 {
		return
	}
	var value int64
	if m.What == Elements {
		value = a.Range.Bytes() / a.DType.Size()
	} else {
		sizes, ok := r.pipeline.matrix(a.Range)
		if !ok {
			b := &r.pipeline.Buffers[a.Range.Buffer]
			r.argProblem(int(m.Of-1), "must be a matrix, but %q has %s", b.Name, words.Count(int64(len(b.Shape)), "dimension", "dimensions"))
			return
		}
		value = sizes[m.What]
	}
	r.args[k] = Arg{DType: I64, Bits: uint64(value)}
}

// matrix measures a slice of a buffer of two dimensions; false where it is no whole rows and no tile.
func (p *Pipeline) matrix(r Range) (sizes [RowLength + 1]int64, ok bool) {
	b := &p.Buffers[r.Buffer]
	if len(b.Shape) != 2 {
		return sizes, false
	}
	if y, x, tile := tileSpans(b, r); tile {
		sizes[Rows], sizes[Columns], sizes[RowLength] = y.Hi-y.Lo, x.Hi-x.Lo, b.Shape[1]
		return sizes, true
	}
	row := rowBytes(b)
	switch {
	case row == 0:
		sizes[Rows] = b.Shape[0]
		return sizes, true
	case r.Lo%row != 0 || r.Hi%row != 0:
		return sizes, false
	}
	sizes[Rows], sizes[Columns], sizes[RowLength] = (r.Hi-r.Lo)/row, b.Shape[1], b.Shape[1]
	return sizes, true
}

// status declares the hidden buffer in which a call leaves 0 if it succeeded. It is tested after the run.
func (r *resolution) status() Range {
	p := r.pipeline
	p.Buffers = append(p.Buffers, Buffer{Name: r.node.Name + "$status", Place: Device, DType: I32, Scratch: true, Device: r.device, Shape: []int64{1}, Bytes: 4,
		Init: &Init{Kind: InitZeros}, Expect: &Expect{Kind: ExpectValue, Value: expr.Int(0)}, Pos: r.node.Pos})
	return Range{Buffer: BufferID(len(p.Buffers) - 1), Lo: 0, Hi: 4}
}

// Status reports whether a buffer is what a call says about its success, and the name of the call's node.
func (b *Buffer) Status() (node string, ok bool) {
	node, ok = strings.CutSuffix(b.Name, "$status")
	return node, ok && b.Scratch && b.Expect != nil
}
