// Lines of Python: which line an instruction of a code object belongs to, by the table that the object carries.

package recording

// code is a code object of Python.
type code struct {
	file, function string
	first          int // line
	version        uint64
	table          []byte
}

// line returns the line of the instruction at an offset in bytes, 0 if the table does not tell.
func (c *code) line(offset uint64) int {
	if c.version >= 3*256+11 {
		return c.location(offset)
	}
	return c.pairs(offset)
}

// noLine marks instructions without a line in a table of pairs.
const noLine = -128

// pairs reads the table of Python 3.10: how many bytes of code, and how many lines further these are.
func (c *code) pairs(offset uint64) int {
	line, end := c.first, uint64(0)
	for k := 0; k+1 < len(c.table); k += 2 {
		end += uint64(c.table[k])
		step := int(int8(c.table[k+1]))
		if step != noLine {
			line += step
		}
		if offset < end {
			if step == noLine {
				return 0
			}
			return line
		}
	}
	return 0
}

// location reads the table of Python 3.11 and later: entries of a byte that says what follows and how many instructions it is about.
func (c *code) location(offset uint64) int {
	line, end := c.first, uint64(0)
	for k := 0; k < len(c.table); {
		head := c.table[k]
		k++
		end += 2 * (uint64(head&7) + 1) // an instruction has two bytes
		known := true
		switch kind := head >> 3 & 15; {
		case kind == 15:
			known = false
		case kind == 14: // lines and columns, of any size
			var step int
			step, k = signed(c.table, k)
			line += step
			for range 3 {
				_, k = unsigned(c.table, k)
			}
		case kind == 13: // no columns
			var step int
			step, k = signed(c.table, k)
			line += step
		case kind >= 10: // up to two lines further, two columns
			line += int(kind) - 10
			k += 2
		default: // the same line, columns in a byte
			k++
		}
		if offset < end {
			if !known || k > len(c.table) {
				return 0
			}
			return line
		}
	}
	return 0
}

// unsigned reads a number in pieces of six bits, the lowest first. Where b ends within it, next is behind the end.
func unsigned(b []byte, at int) (value, next int) {
	for shift := 0; at < len(b); shift += 6 {
		piece := b[at]
		at++
		if shift < 32 {
			value |= int(piece&63) << shift
		}
		if piece&64 == 0 {
			return value, at
		}
	}
	return value, len(b) + 1
}

// signed reads a number whose lowest bit is its sign.
func signed(b []byte, at int) (value, next int) {
	value, next = unsigned(b, at)
	if value&1 != 0 {
		return -(value >> 1), next
	}
	return value >> 1, next
}
