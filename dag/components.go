// Elements that consist of several numbers, vectors and complex numbers: their values in a file, and what can be done with them.

package dag

import (
	"fmt"

	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/internal/words"
)

// ValuesProblem says why so many numbers are not the contents of a buffer, as the rest of a sentence that begins with "init has"; or nil.
func (b *Buffer) ValuesProblem(given int) error {
	if b == nil || !b.DType.known() {
		return fmt.Errorf("%s, but the buffer has no type of elements", words.Count(int64(given), "number", "numbers"))
	}
	components, all := b.DType.Components(), b.Bytes/b.DType.Component().Size()
	switch has := words.Count(int64(given), "number", "numbers"); {
	case int64(given) == all || given == components && components > 1:
		return nil
	case components > 1:
		return fmt.Errorf("%s, but an element of type %s has %d, and all elements together have %d", has, b.DType, components, all)
	default:
		return fmt.Errorf("%s, but the buffer has %s", has, words.Count(all, "element", "elements"))
	}
}

// valuesProblem says what is wrong with the numbers of an init or expect, or nil.
func valuesProblem(what string, b *Buffer, given []expr.Value) error {
	if given == nil || !b.DType.known() {
		return nil
	}
	if err := b.ValuesProblem(len(given)); err != nil {
		return fmt.Errorf("%s has %w", what, err)
	}
	return nil
}

// FillBits is what a memset repeats: the bits of a component.
func (t DType) FillBits(v expr.Value) (uint64, error) {
	bits, err := t.Component().Bits(v)
	if err == nil && t.Complex() && bits != 0 {
		return 0, fmt.Errorf("is %s; complex numbers can only be filled with 0", v.Plain())
	}
	return bits, err
}

// reinterpreted says why memory of a buffer cannot be used as elements of another type, or "". Types that are laid out as the same numbers
// stand for each other, as a reinterpret_cast makes them: a float4* can point to f32, and a float* to c64.
func (p *Pipeline) reinterpreted(a *ArgumentSpec, want DType) string {
	b := &p.Buffers[a.Range.Buffer]
	if want == b.DType {
		return ""
	}
	if !sameComponents(want, b.DType) {
		return fmt.Sprintf("has elements of type %s, but %q has %s", want, b.Name, b.DType)
	}
	if a.Range.Lo%want.Align() != 0 {
		return fmt.Sprintf("has elements of type %s, which begin at multiples of %d bytes; %s begins at byte %d of %q", want, want.Align(),
			p.rangeText(a.Range), a.Range.Lo, b.Name)
	}
	if a.Range.Bytes()%want.Size() != 0 {
		return fmt.Sprintf("has elements of type %s (%d bytes); %s has %s", want, want.Size(), p.rangeText(a.Range), words.Count(a.Range.Bytes(), "byte", "bytes"))
	}
	return ""
}
