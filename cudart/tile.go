// Tiles: memory of several rows with bytes between them that are not part of it.

package cudart

// Strip is Rows rows of memory, Pitch bytes from the start of one to the start of the next. Bytes are those of all rows together. With 0
// or 1 rows it is Bytes bytes that follow each other.
type Strip struct {
	Ptr   Ptr
	Bytes int64
	Rows  int64
	Pitch int64
}

// Width returns the bytes of a row.
func (s Strip) Width() int64 {
	if s.Rows <= 1 {
		return s.Bytes
	}
	return s.Bytes / s.Rows
}

// Span returns the bytes from the start of the first row to the end of the last.
func (s Strip) Span() int64 {
	if s.Rows <= 1 || s.Bytes <= 0 {
		return s.Bytes
	}
	return (s.Rows-1)*s.Pitch + s.Width()
}

// Row returns where row k begins.
func (s Strip) Row(k int64) Ptr { return s.Ptr + Ptr(k*s.Pitch) }

// Overlaps reports whether two strips share a byte.
func (s Strip) Overlaps(other Strip) bool {
	if s.Bytes <= 0 || other.Bytes <= 0 || s.Ptr >= other.Ptr+Ptr(other.Span()) || other.Ptr >= s.Ptr+Ptr(s.Span()) {
		return false
	}
	if other.Rows > s.Rows {
		s, other = other, s
	}
	if s.Rows <= 1 {
		return true
	}
	for k := range max(other.Rows, 1) {
		if s.touches(other.Row(k), other.Width()) {
			return true
		}
	}
	return false
}

// touches reports whether the strip, of several rows, has one of the bytes at an address.
func (s Strip) touches(at Ptr, bytes int64) bool {
	lo := int64(at) - int64(s.Ptr)
	if lo+bytes <= 0 || lo >= s.Span() {
		return false
	}
	if lo < 0 || s.Pitch <= 0 {
		return true
	}
	in := lo % s.Pitch
	return in < s.Width() || in+bytes > s.Pitch && lo/s.Pitch+1 < s.Rows
}

// valid reports whether rows can be laid out so, without overlap.
func (s Strip) valid() bool {
	if s.Rows <= 1 {
		return s.Rows >= 0
	}
	return s.Bytes%s.Rows == 0 && s.Width() <= s.Pitch && s.Pitch <= MaxPitch
}

// MaxPitch is how far apart the rows of a copy or a set may be.
const MaxPitch = 1<<31 - 1

// Strip returns the memory that is accessed.
func (a *Access) Strip() Strip { return Strip{a.Ptr, a.Bytes, a.Rows, a.Pitch} }

// Target returns what a copy or a set writes.
func (c *Command) Target() Strip { return Strip{c.Dst, c.Bytes, c.Rows, c.DstPitch} }

// Source returns what a copy reads.
func (c *Command) Source() Strip { return Strip{c.Src, c.Bytes, c.Rows, c.SrcPitch} }

// RowProblem says what is wrong with the rows of a copy or a set, "" if nothing is.
func (c *Command) RowProblem() string {
	if !c.Target().valid() || c.Kind == CopyMemory && !c.Source().valid() {
		return "rows that do not divide its bytes, lie closer than they are wide, or lie more than 2147483647 bytes apart"
	}
	if c.Kind == SetMemory && c.Rows > 1 && c.Width > 0 && (c.Target().Width()%int64(c.Width) != 0 || c.DstPitch%int64(c.Width) != 0) {
		return "rows that are no multiples of the pattern's bytes"
	}
	return ""
}
