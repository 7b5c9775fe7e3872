// Checks of single declarations: names, sizes, copies. Files and Go calls use the same ones.

package dag

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dagrun/dagrun/internal/words"
)

// MaxName is how many bytes the name of a pipeline, buffer or node may have.
const MaxName = 255

// MaxNodes is how many nodes a pipeline may have.
const MaxNodes = 4 << 20

// checkName says what is wrong with a name, or nil.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("the name is empty")
	case len(name) > MaxName:
		return fmt.Errorf("the name has %d bytes; at most %d are allowed", len(name), MaxName)
	case !utf8.ValidString(name):
		return errors.New("the name is not UTF-8")
	}
	if i := strings.IndexFunc(name, unicode.IsControl); i >= 0 {
		r, _ := utf8.DecodeRuneInString(name[i:])
		return fmt.Errorf("the name has a control character (%U)", r)
	}
	return nil
}

// savedFile is the file that a path names, in one spelling: two buffers must not be saved to the same one. Links are not followed.
func savedFile(dir, path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return filepath.Clean(path) // there is no working directory
}

// elements returns the number of elements of a shape; a shape without dimensions has one.
func elements(shape []int64) (int64, error) {
	n := uint64(1)
	empty := false
	over := false
	for i, d := range shape {
		if d < 0 {
			return 0, fmt.Errorf("dimension %d of the shape is %d; it must not be negative", i, d)
		}
		if d == 0 {
			empty = true
			continue
		}
		hi, lo := bits.Mul64(n, uint64(d))
		if hi != 0 || lo > math.MaxInt64 {
			over, lo = true, 1
		}
		n = lo
	}
	switch {
	case empty:
		return 0, nil
	case over:
		return 0, errors.New("the number of elements does not fit in 64 bits")
	}
	return int64(n), nil
}

// bufferBytes returns the size of a buffer.
func bufferBytes(t DType, shape []int64) (int64, error) {
	if !t.known() {
		return 0, errors.New("the element type is missing")
	}
	n, err := elements(shape)
	if err != nil {
		return 0, err
	}
	if n > math.MaxInt64/t.Size() {
		return 0, fmt.Errorf("the size in bytes (%d elements of %s) does not fit in 64 bits", n, t)
	}
	return n * t.Size(), nil
}

// copyProblem says what is wrong with a copy, or nil.
func (p *Pipeline) copyProblem(dst, src Range) error {
	to, from := dst.Bytes(), src.Bytes()
	toRows, _ := dst.Box()
	fromRows, _ := src.Box()
	if to == from && toRows != fromRows && toRows > 1 && fromRows > 1 {
		return fmt.Errorf("the tiles differ: %s has %s, %s has %d", p.rangeText(src), words.Count(fromRows, "row", "rows"), p.rangeText(dst), toRows)
	}
	if to != from {
		return fmt.Errorf("the sizes differ: %s has %s, %s has %s", p.rangeText(src), words.Count(from, "byte", "bytes"), p.rangeText(dst), words.Count(to, "byte", "bytes"))
	}
	if dst.Overlaps(src) {
		return fmt.Errorf("source and destination overlap in %s", p.rangeText(p.overlap(dst, src)))
	}
	return nil
}

// copyDevice is the device whose copy engine does a copy unless the node says otherwise.
func (p *Pipeline) copyDevice(dst, src Range) int32 {
	to, from := &p.Buffers[dst.Buffer], &p.Buffers[src.Buffer]
	if from.Place == Device {
		return from.Device
	}
	return to.Device
}

// RangeText writes a range the way a pipeline file does: d_x, or d_x(4..8) in units of the first dimension; where it does not
// fall on whole rows, as d_x[16:20] in bytes. A tile is a(0..8)(16..32).
func (p *Pipeline) RangeText(r Range) string { return p.rangeText(r) }

func (p *Pipeline) rangeText(r Range) string {
	if p == nil || r.Buffer < 0 || int(r.Buffer) >= len(p.Buffers) {
		return "nothing"
	}
	b := &p.Buffers[r.Buffer]
	if r.Lo == 0 && r.Hi == b.Bytes && r.Pitch == 0 {
		return b.Name
	}
	if rows, columns, ok := tileSpans(b, r); ok {
		return fmt.Sprintf("%s(%d..%d)(%d..%d)", b.Name, rows.Lo, rows.Hi, columns.Lo, columns.Hi)
	}
	if row := rowBytes(b); row > 0 && r.Lo%row == 0 && r.Hi%row == 0 {
		return fmt.Sprintf("%s(%d..%d)", b.Name, r.Lo/row, r.Hi/row)
	}
	return fmt.Sprintf("%s[%d:%d]", b.Name, r.Lo, r.Hi)
}

// rowBytes is the size of one step along the first dimension; 0 for a scalar or where a later dimension is empty.
func rowBytes(b *Buffer) int64 {
	if len(b.Shape) == 0 || b.Shape[0] == 0 {
		return 0
	}
	return b.Bytes / b.Shape[0]
}
