// Checks of single declarations: names, sizes, ranges, copies. Files and Go calls use the same ones.

package dag

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/internal/words"
)

// MaxName is how many bytes the name of a pipeline, buffer or node may have.
const MaxName = 255

// MaxNodes is how many nodes a pipeline may have.
const MaxNodes = 4 << 20

// CheckName says what is wrong with a name, or nil.
func CheckName(name string) error {
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

// SetBytes computes the size of a buffer from its type and shape.
func (b *Buffer) SetBytes() (err error) {
	b.Bytes, err = bufferBytes(b.DType, b.Shape)
	return err
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
		unit, size := "byte", int64(1)
		if a, b := p.buffer(src.Buffer), p.buffer(dst.Buffer); a != nil && b != nil && a.DType == b.DType && from%a.DType.Size() == 0 && to%a.DType.Size() == 0 {
			unit, size = "element", a.DType.Size() // as slices are written
		}
		return fmt.Errorf("the sizes differ: %s has %s, %s has %s", p.rangeText(src), words.Count(from/size, unit, unit+"s"), p.rangeText(dst),
			words.Count(to/size, unit, unit+"s"))
	}
	if dst.Overlaps(src) {
		return fmt.Errorf("source and destination overlap in %s", p.rangeText(p.overlap(dst, src)))
	}
	return nil
}

// Copy makes a node a copy, on the device whose copy engine does it.
func (d *Draft) Copy(node *Node, dst, src Range) error {
	if err := d.copyProblem(dst, src); err != nil {
		return err
	}
	node.Copy, node.Work, node.Device = &Copy{dst, src}, copyWork(src), d.CopyDevice(dst, src)
	return nil
}

// CopyDevice is the device whose copy engine does a copy unless the node says otherwise.
func (p *Pipeline) CopyDevice(dst, src Range) int32 {
	to, from := p.buffer(dst.Buffer), p.buffer(src.Buffer)
	if to == nil || from == nil {
		return 0
	}
	if from.Place == Device {
		return from.Device
	}
	return to.Device
}

// Memset makes a node fill a range with an element of these bits (see [DType.FillBits]), on the device of the range.
func (d *Draft) Memset(node *Node, dst Range, bits uint64) error {
	if err := d.setProblem(dst, bits); err != nil {
		return err
	}
	node.Set, node.Work, node.Device = &Set{dst, bits}, setWork(dst), d.Buffers[dst.Buffer].Device
	return nil
}

// buffer is a buffer of the pipeline, or nil.
func (p *Pipeline) buffer(id BufferID) *Buffer {
	if p == nil || id < 0 || int(id) >= len(p.Buffers) {
		return nil
	}
	return &p.Buffers[id]
}

// RangeText writes a range the way a pipeline file does: d_x, or d_x(4..8) in units of the first dimension; where it does not
// fall on whole rows, as d_x[16:20] in bytes. A tile is a(0..8)(16..32).
func (p *Pipeline) RangeText(r Range) string { return p.rangeText(r) }

func (p *Pipeline) rangeText(r Range) string {
	b := p.buffer(r.Buffer)
	if b == nil {
		return "nothing"
	}
	if bounds, ok := p.Bounds(r); ok {
		return b.Name + bounds
	}
	return fmt.Sprintf("%s[%d:%d]", b.Name, r.Lo, r.Hi)
}

// Bounds writes a range the way a pipeline file does, as it follows the name of the buffer: "", (4..8) or (0..8)(16..32). It is false for a range that
// does not fall on whole rows and is no tile.
func (p *Pipeline) Bounds(r Range) (text string, ok bool) {
	b := p.buffer(r.Buffer)
	if b == nil {
		return "", false
	}
	if r.Lo == 0 && r.Hi == b.Bytes && r.Pitch == 0 {
		return "", true
	}
	if rows, columns, ok := tileSpans(b, r); ok {
		return fmt.Sprintf("(%d..%d)(%d..%d)", rows.Lo, rows.Hi, columns.Lo, columns.Hi), true
	}
	if row := rowBytes(b); row > 0 && r.Lo%row == 0 && r.Hi%row == 0 {
		return fmt.Sprintf("(%d..%d)", r.Lo/row, r.Hi/row), true
	}
	return "", false
}

// rowBytes is the size of one step along the first dimension; 0 for a scalar or where a later dimension is empty.
func rowBytes(b *Buffer) int64 {
	if len(b.Shape) == 0 || b.Shape[0] == 0 {
		return 0
	}
	return b.Bytes / b.Shape[0]
}

// TileBox returns the rows of a tile and its columns, in steps along the first dimension and along the second; false for any other range.
func (p *Pipeline) TileBox(r Range) (rows, columns [2]int64, ok bool) {
	if p == nil || r.Pitch == 0 || p.rangeProblem(r) != nil {
		return rows, columns, false
	}
	y, x, ok := tileSpans(&p.Buffers[r.Buffer], r)
	return [2]int64{y.Lo, y.Hi}, [2]int64{x.Lo, x.Hi}, ok
}

// overlap is the smallest range or tile around the bytes that two ranges share.
func (p *Pipeline) overlap(a, b Range) Range {
	if a.Pitch == 0 && b.Pitch == 0 {
		return Range{Buffer: a.Buffer, Lo: max(a.Lo, b.Lo), Hi: min(a.Hi, b.Hi)}
	}
	row := rowBytes(&p.Buffers[a.Buffer])
	var shared box
	first, second := boxesIn(a, row), boxesIn(b, row)
	for _, x := range first.list[:first.count] {
		for _, y := range second.list[:second.count] {
			switch z := x.intersect(y); {
			case z.empty():
			case shared.empty():
				shared = z
			default:
				shared = shared.hull(z)
			}
		}
	}
	return rangeOf(a.Buffer, row, shared)
}

// setProblem says what is wrong with a memset, or nil. The devices fill the rows of a tile with patterns of up to four bytes.
func (p *Pipeline) setProblem(dst Range, bits uint64) error {
	if b := &p.Buffers[dst.Buffer]; dst.Tile() && b.DType.Component().Size() == 8 && bits>>32 != bits&math.MaxUint32 {
		return fmt.Errorf("%s is a tile of %s, which can only be filled with a value whose upper and lower four bytes are the same, such as 0",
			p.rangeText(dst), b.DType)
	}
	return nil
}

// tileProblem says what is wrong with a tile made by hand, or nil.
func tileProblem(b *Buffer, r Range) error {
	row := rowBytes(b)
	if int64(r.Pitch) != row {
		return fmt.Errorf("a tile of %q has rows %d bytes apart, but a row has %d", b.Name, r.Pitch, row)
	}
	if rangeOf(r.Buffer, row, boxesIn(r, row).list[0]) != r {
		return fmt.Errorf("bytes %d to %d of %q are not a tile", r.Lo, r.Hi, b.Name)
	}
	return nil
}

// tileSpans returns the rows and columns of a range that is not whole rows; false if it has no such form.
func tileSpans(b *Buffer, r Range) (rows, columns expr.Span, ok bool) {
	row := rowBytes(b)
	if len(b.Shape) < 2 || row == 0 || r.Lo >= r.Hi || r.Pitch == 0 && r.Lo%row == 0 && r.Hi%row == 0 {
		return rows, columns, false
	}
	if b.Shape[1] == 0 || row/b.Shape[1] == 0 { // a buffer made by hand, whose size and shape disagree
		return rows, columns, false
	}
	made, column := boxesIn(r, row), row/b.Shape[1]
	x := made.list[0]
	if made.count != 1 || x.left%column != 0 || x.right%column != 0 {
		return rows, columns, false
	}
	return expr.Span{Lo: x.top, Hi: x.bottom}, expr.Span{Lo: x.left / column, Hi: x.right / column}, true
}

// MaxDevices is one more than the largest device number.
const MaxDevices = 1024

// rangeProblem says what is wrong with a range made by hand, or nil.
func (p *Pipeline) rangeProblem(r Range) error {
	b := p.buffer(r.Buffer)
	switch {
	case b == nil:
		return fmt.Errorf("there is no buffer with id %d", r.Buffer)
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

func setWork(dst Range) Work { return Work{Bytes: dst.Bytes()} }

// Extent is the range of some rows of a buffer, and of each some positions along the second dimension.
func (p *Pipeline) Extent(id BufferID, rows, columns expr.Span) (Range, error) {
	b := p.buffer(id)
	if b == nil {
		return Range{Buffer: -1}, fmt.Errorf("there is no buffer %d", id)
	}
	row := rowBytes(b)
	if len(b.Shape) < 2 || b.Shape[1] == 0 || columns == (expr.Span{Lo: 0, Hi: b.Shape[1]}) {
		return Range{Buffer: id, Lo: rows.Lo * row, Hi: rows.Hi * row}, nil
	}
	if row > maxPitch {
		return Range{Buffer: id}, fmt.Errorf("a row of %s has %d bytes; its columns can only be sliced up to %d", b.Name, row, maxPitch)
	}
	column := row / b.Shape[1]
	return rangeOf(id, row, box{rows.Lo, rows.Hi, columns.Lo * column, columns.Hi * column}), nil
}
