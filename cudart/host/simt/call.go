// Calls of device functions: arguments and results pass through each lane's local memory or through registers.

package simt

import (
	"fmt"
	"math/bits"
	"strings"
	"unsafe"

	"github.com/dagrun/dagrun/kernels/ptx"
)

// call is one call instruction.
type call struct {
	callee  *function // nil: through the address in slot
	slot    int
	builtin func(x *exec, m uint32, c *call)
	args    []place // of the caller
	results []place
}

const mostDepth = 1 << 12 // of nested calls

// enter starts a function, or runs one that is built in.
func (w *warp) enter(g *group, b *basic, mask uint32) {
	c := b.call
	x := &w.x
	if c.builtin != nil {
		c.builtin(x, mask, c)
		g.pc++
		return
	}
	callee := c.callee
	if callee == nil {
		lane := bits.TrailingZeros32(mask)
		address := x.s[c.slot][lane]
		same := uint32(0)
		for m := mask; m != 0; m &= m - 1 {
			if i := bits.TrailingZeros32(m); x.s[c.slot][i] == address {
				same |= 1 << i
			}
		}
		if same != mask { // lanes that call another function run after these
			rest := group{frame: g.frame, pc: g.pc, mask: mask &^ same, age: g.age, waiting: -1}
			frame, pc, age := g.frame, g.pc, g.age
			g.mask = 0
			defer func() { w.groups = append(w.groups, rest) }()
			child := w.child(frame, c, x.function(address, lane), pc+1)
			w.pass(frame, child, c, same)
			w.groups = append(w.groups, group{frame: child, mask: same, age: age, waiting: -1})
			return
		}
		callee = x.function(address, lane)
	}
	child := w.child(g.frame, c, callee, g.pc+1)
	w.pass(g.frame, child, c, mask)
	g.frame, g.pc = child, 0
}

// function returns the function at a code address.
func (x *exec) function(address uint64, lane int) *function {
	if address&^inWindow == inCode {
		if f := x.block.run.kernel.functions[ptx.FunctionID(address&inWindow)]; f != nil && !f.f.Entry {
			return f
		}
	}
	x.fail(BadCall, lane, "a call through the address %#x, which is not the address of a function", address)
	return nil
}

// child is the frame of a call from another.
func (w *warp) child(parent *frame, c *call, callee *function, back int32) *frame {
	if f := parent.children[c]; f != nil && f.fn == callee {
		return f
	}
	f := w.newFrame(w.x.block, callee, parent, c, back)
	if f.depth > mostDepth || f.local+callee.frame > w.x.block.run.kernel.stack {
		w.x.fail(Overflowed, 0, "device functions call each other too deeply: the stack of a thread has %d bytes", w.x.block.run.kernel.stack)
	}
	if parent.children == nil {
		parent.children = map[*call]*frame{}
	}
	parent.children[c] = f
	return f
}

// pass copies the arguments.
func (w *warp) pass(from, to *frame, c *call, mask uint32) {
	if w.valid != nil {
		for m := mask; m != 0; m &= m - 1 {
			start := int64(firstLane(m))*w.x.block.run.kernel.stack + to.local
			clear(w.valid[start : start+to.fn.frame])
		}
		for _, u := range to.undefined {
			u.lanes &^= mask
		}
	}
	for i, a := range c.args {
		if i < len(to.fn.params) {
			w.move(from, a, to, to.fn.params[i], mask)
		}
	}
}

// leaveCall returns the results and continues after the call.
func (w *warp) leaveCall(g *group, mask uint32) {
	f := g.frame
	for i, r := range f.call.results {
		if i < len(f.fn.results) {
			w.move(f, f.fn.results[i], f.parent, r, mask)
		}
	}
	g.frame, g.pc = f.parent, f.back
}

// move copies a value between the places of two frames.
func (w *warp) move(from *frame, a place, to *frame, b place, mask uint32) {
	if a.predicate > 0 && b.predicate > 0 {
		to.p[b.predicate-1] = to.p[b.predicate-1]&^mask | from.p[a.predicate-1]&mask
		return
	}
	for k := range min(a.more, b.more) {
		for m := mask; m != 0; m &= m - 1 {
			lane := firstLane(m)
			to.s[b.slot+1+k][lane] = from.s[a.slot+1+k][lane]
		}
	}
	for ; mask != 0; mask &= mask - 1 {
		lane := bits.TrailingZeros32(mask) & 31
		var source, target []byte
		if a.slot >= 0 {
			source = unsafe.Slice((*byte)(unsafe.Pointer(&from.s[a.slot][lane])), 8)
		} else {
			source = w.stack(lane, from.local+a.offset, a.size)
		}
		if b.slot >= 0 {
			to.s[b.slot][lane] = 0
			target = unsafe.Slice((*byte)(unsafe.Pointer(&to.s[b.slot][lane])), 8)[:min(8, max(b.size, 1))]
		} else {
			target = w.stack(lane, to.local+b.offset, b.size)
		}
		copy(target, source)
		if b.slot < 0 && w.valid != nil {
			start := int64(lane)*w.x.block.run.kernel.stack + to.local + b.offset
			for i := range b.size {
				w.valid[start+i] = 1
			}
		}
	}
}

// stack returns a part of a lane's local memory.
func (w *warp) stack(lane int, offset, size int64) []byte {
	start := int64(lane)*w.x.block.run.kernel.stack + offset
	return w.local[start : start+size]
}

// builtins are the functions that CUDA's runtime provides, by name.
var builtins = map[string]func(x *exec, m uint32, c *call){
	"vprintf":      printf,
	"__assertfail": assertFail,
}

// argument returns a lane's argument of a built-in function.
func (c *call) argument(x *exec, i, lane int) uint64 {
	if i >= len(c.args) {
		return 0
	}
	a := c.args[i]
	if a.slot >= 0 {
		return x.s[a.slot][lane]
	}
	value := uint64(0)
	for k, b := range x.warp.stack(lane, x.frame.local+a.offset, min(a.size, 8)) {
		value |= uint64(b) << (8 * k)
	}
	return value
}

// answer sets a lane's result of a built-in function.
func (c *call) answer(x *exec, lane int, value uint64) {
	if len(c.results) == 0 {
		return
	}
	r := c.results[0]
	if r.slot >= 0 {
		x.s[r.slot][lane] = value
		return
	}
	to := x.warp.stack(lane, x.frame.local+r.offset, r.size)
	for k := range to {
		to[k] = byte(value >> (8 * k))
	}
}

const mostText = 1 << 16

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

func assertFail(x *exec, m uint32, c *call) {
	lane := bits.TrailingZeros32(m)
	what := x.text(c.argument(x, 0, lane), lane)
	file := x.text(c.argument(x, 1, lane), lane)
	x.fail(Trapped, lane, "the assertion %q failed (%s:%d)", what, file, uint32(c.argument(x, 2, lane)))
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
