// Calls of functions: frames, arguments and results, for lanes that call together.

package simt

import (
	"maps"
	"math/bits"
	"unsafe"

	"github.com/dagrun/dagrun/internal/ptx"
)

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
			child := w.child(frame, c, x.function(address, lane), pc+1, lane)
			w.pass(frame, child, c, same)
			w.groups = append(w.groups, group{frame: child, mask: same, age: age, waiting: -1})
			return
		}
		callee = x.function(address, lane)
	}
	child := w.child(g.frame, c, callee, g.pc+1, firstLane(mask))
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

// child is the frame of a call from another, which a lane makes.
func (w *warp) child(parent *frame, c *call, callee *function, back int32, lane int) *frame {
	if f := parent.children[c]; f != nil && f.fn == callee {
		return f
	}
	f := w.newFrame(w.x.block, callee, parent, c, back)
	if f.depth > mostDepth || f.local+callee.frame > w.x.block.run.kernel.stack {
		w.x.fail(Overflowed, lane, "device functions call each other too deeply: the stack of a thread has %d bytes", w.x.block.run.kernel.stack)
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
			start := w.stackAt(firstLane(m), to.local)
			clear(w.valid[start : start+to.fn.frame])
		}
		maps.DeleteFunc(w.origins, func(at int64, _ origin) bool {
			lane, offset := at/w.x.block.run.kernel.stack, at%w.x.block.run.kernel.stack-to.local
			return mask>>lane&1 != 0 && offset >= 0 && offset < to.fn.frame
		})
		for slot := range to.undefined {
			to.replace(slot, mask, nil)
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
	if w.valid != nil {
		w.moveState(from, a, to, b, mask)
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
	}
}

// moveState is move for what is known of the value: whether anybody wrote it.
func (w *warp) moveState(from *frame, a place, to *frame, b place, mask uint32) {
	x := &w.x
	if a.slot >= 0 && b.slot >= 0 {
		for k := range 1 + min(a.more, b.more) {
			to.replace(b.slot+k, mask, from.undefined[a.slot+k])
		}
		return
	}
	if b.slot >= 0 {
		to.replace(b.slot, mask, nil)
	}
	for ; mask != 0; mask &= mask - 1 {
		lane := firstLane(mask)
		source, target := w.stackAt(lane, from.local+a.offset), w.stackAt(lane, to.local+b.offset)
		switch {
		case b.slot >= 0:
			if at := uint64(from.local + a.offset); !anyOf(w.valid[source : source+a.size]) {
				to.mark(b.slot, lane, x.originOf(inLocal, at, int(a.size), lane))
			}
		case a.slot >= 0:
			fill(w.valid[target:target+b.size], 1)
			if u := from.undefined[a.slot]; u != nil && u.lanes>>lane&1 != 0 {
				w.keep(target, b.size, u.from[lane])
			}
		default:
			n := min(a.size, b.size)
			copy(w.valid[target:target+n], w.valid[source:source+n])
			if len(w.origins) == 0 {
				continue
			}
			for i := range n {
				if of, known := w.origins[source+i]; known {
					w.origins[target+i] = of
				}
			}
		}
	}
}

// stack returns a part of a lane's local memory.
func (w *warp) stack(lane int, offset, size int64) []byte {
	start := w.stackAt(lane, offset)
	return w.local[start : start+size]
}

// special is the array of a special register.
func (b *block) special(w *warp, s specialSlot) *lanes {
	same := func(v uint64) *lanes {
		if b.other == nil {
			b.other = map[specialSlot]*lanes{}
		}
		l := b.other[s]
		if l == nil {
			l = &lanes{}
			for i := range l {
				l[i] = v
			}
			b.other[s] = l
		}
		return l
	}
	axis := min(s.part, 2)
	r := b.run
	switch s.special {
	case ptx.Tid:
		return &w.tid[axis]
	case ptx.Ctaid:
		return &b.ctaid[axis]
	case ptx.ClusterID:
		return &b.clusterid[axis]
	case ptx.ClusterCtaid:
		return same(uint64(b.place()[axis]))
	case ptx.ClusterCtarank:
		return same(uint64(b.rank))
	case ptx.ClusterNctaid:
		return same(uint64(r.cluster[axis]))
	case ptx.ClusterNctarank:
		return same(uint64(len(b.cluster.blocks)))
	case ptx.Ntid:
		return same(uint64(r.block[axis]))
	case ptx.Nctaid:
		return same(uint64(r.grid[axis]))
	case ptx.NclusterID:
		return same(uint64(r.grid[axis] / r.cluster[axis]))
	case ptx.Laneid:
		return &w.lane
	case ptx.Warpid:
		l := &lanes{}
		for i := range l {
			l[i] = uint64(w.index)
		}
		return l
	case ptx.Nwarpid:
		return same(uint64(len(b.warps)))
	case ptx.Nsmid:
		return same(1)
	case ptx.LanemaskEq, ptx.LanemaskLe, ptx.LanemaskLt, ptx.LanemaskGe, ptx.LanemaskGt:
		l := &lanes{}
		for i := range l {
			bit := uint32(1) << i
			switch s.special {
			case ptx.LanemaskEq:
				l[i] = uint64(bit)
			case ptx.LanemaskLe:
				l[i] = uint64(bit | (bit - 1))
			case ptx.LanemaskLt:
				l[i] = uint64(bit - 1)
			case ptx.LanemaskGe:
				l[i] = uint64(^(bit - 1))
			default:
				l[i] = uint64(^(bit | (bit - 1)))
			}
		}
		return l
	case ptx.DynamicSmemSize:
		return same(uint64(r.Shared))
	case ptx.TotalSmemSize, ptx.AggrSmemSize:
		return same(uint64(r.sharedBytes))
	}
	if s.special == ptx.Envreg && len(r.meeting) > 0 {
		switch at := uint64(uintptr(unsafe.Pointer(&r.meeting[0]))); s.part {
		case workspaceHigh:
			return same(at >> 32)
		case workspaceLow:
			return same(at & 0xffffffff)
		}
	}
	return same(0) // smid, gridid, envreg, performance counters
}

// newFrame makes the frame of a call.
func (w *warp) newFrame(b *block, fn *function, parent *frame, c *call, back int32) *frame {
	f := &frame{fn: fn, parent: parent, back: back, call: c}
	if parent != nil {
		f.depth = parent.depth + 1
		f.local = parent.local + parent.fn.frame
	}
	registers := make([]lanes, fn.slots)
	f.p = make([]uint32, fn.preds)
	f.s = make([]*lanes, 0, fn.slots+len(fn.extras))
	for i := range fn.slots {
		f.s = append(f.s, &registers[i])
	}
	for _, e := range fn.extras {
		switch {
		case e.constant != nil:
			f.s = append(f.s, e.constant)
		case e.local:
			address := uint64(f.local + e.offset)
			if e.generic {
				address |= inLocal
			}
			r := &lanes{}
			for k := range r {
				r[k] = address
			}
			f.s = append(f.s, r)
		default:
			f.s = append(f.s, b.special(w, e.special))
		}
	}
	if parent == nil {
		w.slots = registers[:fn.slots]
	}
	return f
}
