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

// Bytes returns the size of the range: of a tile that of all its rows.
func (r Range) Bytes() int64 {
	rows, width := r.Box()
	return rows * width
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
	case r.Pitch != 0:
		return tileProblem(b, r)
	}
	return nil
}

// copyWork and setWork are what a memcpy and a memset ask of the machine: every byte is read and written, or written.
func copyWork(src Range) Work { return Work{Bytes: src.Bytes()} }
func setWork(dst Range) Work  { return Work{Bytes: dst.Bytes()} }
