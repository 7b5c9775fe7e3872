// Functions that every device has: printf and the failure of an assertion.

package simt

import (
	"bytes"
	"fmt"
	"math/bits"
	"strings"
)

// builtins are the functions that CUDA's runtime provides, by name.
var builtins = map[string]func(x *exec, m uint32, c *call){
	"vprintf":      printf,
	"__assertfail": assertFail,
}

// printf prints lane by lane, in the order of the lanes.
func printf(x *exec, m uint32, c *call) {
	for ; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m) & 31
		text, n := x.format(x.text(c.argument(x, 0, lane), lane), c.argument(x, 1, lane), lane)
		if out := x.block.run.Print; out != nil {
			out(text)
		}
		c.answer(x, lane, uint64(n))
	}
}

// format formats like C's printf. The arguments are in a buffer, each aligned to its size.
func (x *exec) format(format string, buffer uint64, lane int) (string, int) {
	var text strings.Builder
	at, count := uint64(0), 0
	next := func(size uint64) uint64 {
		at = (at + size - 1) &^ (size - 1)
		p := x.resolve(buffer+at, int(size), lane)
		if x.check != nil {
			x.mustBeWritten(0, buffer+at, int(size), lane)
		}
		at += size
		if size == 8 {
			return *(*uint64)(p)
		}
		return uint64(*(*uint32)(p))
	}
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			text.WriteByte(format[i])
			continue
		}
		start := i
		long := false
		verb := []byte{'%'}
		for i++; i < len(format); i++ {
			switch ch := format[i]; ch {
			case 'l', 'j', 'z', 't':
				long = true
				continue
			case 'h':
				continue
			case '*':
				verb = fmt.Appendf(verb, "%d", int32(next(4)))
				continue
			default:
				if strings.IndexByte("-+ #0123456789.", ch) >= 0 {
					verb = append(verb, ch)
					continue
				}
			}
			break
		}
		if i >= len(format) {
			text.WriteString(format[start:])
			break
		}
		count++
		switch ch := format[i]; ch {
		case '%':
			text.WriteByte('%')
			count--
		case 'd', 'i':
			if long {
				fmt.Fprintf(&text, string(append(verb, 'd')), int64(next(8)))
			} else {
				fmt.Fprintf(&text, string(append(verb, 'd')), int32(next(4)))
			}
		case 'u', 'x', 'X', 'o':
			if ch == 'u' {
				ch = 'd'
			}
			if long {
				fmt.Fprintf(&text, string(append(verb, ch)), next(8))
			} else {
				fmt.Fprintf(&text, string(append(verb, ch)), uint32(next(4)))
			}
		case 'c':
			fmt.Fprintf(&text, string(append(verb, 'c')), rune(byte(next(4))))
		case 'f', 'F', 'e', 'E', 'g', 'G':
			if (ch == 'g' || ch == 'G') && !bytes.ContainsRune(verb, '.') {
				verb = append(verb, ".6"...) // C's; Go's has as many digits as the number needs
			}
			fmt.Fprintf(&text, string(append(verb, ch)), float64Of(next(8)))
		case 'p':
			fmt.Fprintf(&text, "%#x", next(8))
		case 's':
			fmt.Fprintf(&text, string(append(verb, 's')), x.text(next(8), lane))
		default:
			text.WriteString(format[start : i+1])
		}
	}
	return text.String(), count
}

// text reads a string that ends with 0.
func (x *exec) text(address uint64, lane int) string {
	var text []byte
	for len(text) < mostText {
		c := *(*byte)(x.resolve(address+uint64(len(text)), 1, lane))
		if c == 0 {
			break
		}
		text = append(text, c)
	}
	return string(text)
}

const mostText = 1 << 16

func assertFail(x *exec, m uint32, c *call) {
	lane := bits.TrailingZeros32(m)
	what := x.text(c.argument(x, 0, lane), lane)
	file := x.text(c.argument(x, 1, lane), lane)
	x.fail(Trapped, lane, "the assertion %q failed (%s:%d)", what, file, uint32(c.argument(x, 2, lane)))
}

// answer sets a lane's result of a built-in function.
func (c *call) answer(x *exec, lane int, value uint64) {
	if len(c.results) == 0 {
		return
	}
	r := c.results[0]
	if r.slot >= 0 {
		x.frame.replace(r.slot, 1<<lane, nil)
		x.s[r.slot][lane] = value
		return
	}
	to := x.warp.stack(lane, x.frame.local+r.offset, r.size)
	for k := range to {
		to[k] = byte(value >> (8 * k))
	}
	if x.check != nil {
		at := x.warp.stackAt(lane, x.frame.local+r.offset)
		fill(x.warp.valid[at:at+r.size], 1)
	}
}

// argument returns a lane's argument of a built-in function.
func (c *call) argument(x *exec, i, lane int) uint64 {
	if i >= len(c.args) {
		return 0
	}
	a := c.args[i]
	if a.slot >= 0 {
		if u := x.frame.undefined[a.slot]; u != nil && u.lanes>>lane&1 != 0 {
			x.usesUndefined(lane, u.from[lane])
		}
		return x.s[a.slot][lane]
	}
	if x.check != nil {
		x.mustBeWritten(inLocal, uint64(x.frame.local+a.offset), int(a.size), lane)
	}
	value := uint64(0)
	for k, b := range x.warp.stack(lane, x.frame.local+a.offset, min(a.size, 8)) {
		value |= uint64(b) << (8 * k)
	}
	return value
}
