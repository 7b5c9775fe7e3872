// Ranges: slices and parts of buffers as bytes, and accesses of them.

package dag

import (
	"fmt"

	"github.com/dagrun/dagrun/internal/words"
)

// In is a node's reading of the range.
func (r Range) In() Access { return Access{r, Read} }

// Out is a node's writing of the range: every byte is written before it is read.
func (r Range) Out() Access { return Access{r, Write} }

// InOut is a node's reading and writing of the range.
func (r Range) InOut() Access { return Access{r, ReadWrite} }

// Bytes returns the size of the range.
func (r Range) Bytes() int64 { return r.Hi - r.Lo }

// sliceOf is lo..hi of a buffer along its first dimension.
func sliceOf(id BufferID, b *Buffer, lo, hi int64) (Range, error) {
	switch {
	case len(b.Shape) == 0:
		return Range{Buffer: id}, fmt.Errorf("%s is a scalar and cannot be sliced", b.Name)
	case lo < 0 || hi < 0:
		return Range{Buffer: id}, fmt.Errorf("slice %d..%d of %s: bounds must not be negative", lo, hi, b.Name)
	case lo > hi:
		return Range{Buffer: id}, fmt.Errorf("slice %d..%d of %s is reversed", lo, hi, b.Name)
	case hi > b.Shape[0]:
		return Range{Buffer: id}, fmt.Errorf("slice %d..%d of %s goes past its end (%d)", lo, hi, b.Name, b.Shape[0])
	}
	row := rowBytes(b)
	return Range{id, lo * row, hi * row}, nil
}

// partOf is part i of k even parts of a buffer's first dimension.
func partOf(id BufferID, b *Buffer, i, k int64) (Range, error) {
	switch {
	case len(b.Shape) == 0:
		return Range{Buffer: id}, fmt.Errorf("%s is a scalar and cannot be sliced", b.Name)
	case k < 1:
		return Range{Buffer: id}, fmt.Errorf("part %d of %d of %s: there must be at least one part", i, k, b.Name)
	case i < 0 || i >= k:
		return Range{Buffer: id}, fmt.Errorf("part %d of %d of %s: parts count from 0 to %d", i, k, b.Name, k-1)
	}
	size, longer := b.Shape[0]/k, b.Shape[0]%k
	lo := i*size + min(i, longer)
	hi := lo + size
	if i < longer {
		hi++
	}
	row := rowBytes(b)
	return Range{id, lo * row, hi * row}, nil
}

// rangeProblem says what is wrong with a range made by hand, or nil.
func (p *Pipeline) rangeProblem(r Range) error {
	if r.Buffer < 0 || int(r.Buffer) >= len(p.Buffers) {
		return fmt.Errorf("there is no buffer with id %d", r.Buffer)
	}
	b := &p.Buffers[r.Buffer]
	switch {
	case r.Lo < 0 || r.Lo > r.Hi:
		return fmt.Errorf("bytes %d to %d of %q are not a range", r.Lo, r.Hi, b.Name)
	case r.Hi > b.Bytes:
		return fmt.Errorf("bytes %d to %d of %q go past its end (%s)", r.Lo, r.Hi, b.Name, words.Count(b.Bytes, "byte", "bytes"))
	}
	return nil
}

// copyWork and setWork are what a memcpy and a memset ask of the machine: every byte is read and written, or written.
func copyWork(src Range) Work { return Work{Bytes: src.Bytes()} }
func setWork(dst Range) Work  { return Work{Bytes: dst.Bytes()} }
