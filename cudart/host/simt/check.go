// Checks beyond bounds and alignment: what each byte of memory has seen, and whether two accesses race. What is ordered is in
// order.go.

package simt

import (
	"fmt"
	"slices"
	"unsafe"
)

// note enters an access of a lane, which lies in memory that it may touch, and reports what is wrong with it.
func (x *exec) note(window, address uint64, size, lane int, kind uint8) {
	switch window, address = placeOf(window, address); window {
	case 0:
		x.noteGlobal(address, size, lane, kind)
	case inShared:
		if address>>rankShift != 0 {
			if kind&writes != 0 { // of the shared memory of another block, this is all that is known
				other, offset := x.block.peer(address)
				fill(other.history.valid[offset:offset+uint64(size)], 1)
			}
			return
		}
		x.noteShared(address, size, lane, kind)
	case inLocal:
		if kind&writes != 0 {
			at := x.warp.stackAt(lane, int64(address))
			fill(x.warp.valid[at:at+int64(size)], 1)
		}
	}
}

// noteStore is note for a store whose values may be undefined: local memory stays unwritten then, elsewhere it is a fault.
func (x *exec) noteStore(at *located, address uint64, p unsafe.Pointer, sources []int, size, lane int) {
	total := size * len(sources)
	if at.window == inLocal && x.frame.undefined == nil { // what calls pass, most often
		start := x.warp.stackAt(lane, int64(address&inWindow))
		fill(x.warp.valid[start:start+int64(total)], 1)
		return
	}
	x.sameValue = true
	for k, s := range sources {
		x.sameValue = x.sameValue && unchanged(unsafe.Add(p, k*size), size, x.s[s][lane])
	}
	x.note(at.window, address, total, lane, at.kind)
	x.sameValue = false
	if x.frame.undefined == nil {
		return
	}
	window, address := placeOf(at.window, address)
	for k, s := range sources {
		switch u := x.frame.undefined[s]; {
		case u == nil || u.lanes>>lane&1 == 0:
		case window == inLocal:
			x.warp.keep(x.warp.stackAt(lane, int64(address)+int64(k*size)), int64(size), u.from[lane])
		case window == 0, window == inShared:
			x.usesUndefined(lane, u.from[lane])
		}
	}
}

func (x *exec) noteShared(offset uint64, size, lane int, kind uint8) {
	h := x.block.history
	if kind&writes != 0 {
		fill(h.valid[offset:offset+uint64(size)], 1)
	}
	me := x.stampOf(lane, kind)
	if size < 4 {
		h.part(offset >> 2)
	}
	for at := offset; at < offset+uint64(size); {
		word := at >> 2
		if h.parts[word>>6]>>(word&63)&1 == 0 {
			x.enter(&h.words[word], &me, inShared, at, min(size, 4), lane)
			at += 4
			continue
		}
		x.enter(&h.bytes[at], &me, inShared, at, 1, lane)
		at++
	}
	x.synchronise(inShared|offset, lane, kind)
}

// readShared enters a whole warp's reads of words, where nothing about them is unusual. Otherwise it returns false, and they are entered
// one by one: what it has entered by then is entered twice, which changes nothing.
func (x *exec) readShared(from *lanes, offset uint64) bool {
	h, b := x.block.history, x.block
	me := x.stampOf(0, 0)
	base := b.base
	for i := range from {
		a := uint64(uint32(from[i] + offset))
		word := a >> 2
		if a&3 != 0 || a+4 > uint64(len(h.valid)) || h.parts[word>>6]>>(word&63)&1 != 0 {
			return false
		}
		if *(*uint32)(unsafe.Pointer(&h.valid[a])) == 0 {
			return false
		}
		c := &h.words[word]
		if c.write.block == me.block && c.write.time >= base && c.write.thread != me.thread {
			return false
		}
		switch {
		case c.read.time < base || c.read.thread == me.thread || c.read.block != me.block:
			c.read = me
		case c.other.time < base || c.other.thread == me.thread || c.other.block != me.block || (c.other.thread^c.read.thread)/warpSize == 0:
			c.other = me
		}
		me.thread++
	}
	return true
}

func (x *exec) noteGlobal(address uint64, size, lane int, kind uint8) {
	if kind&silent != 0 {
		return
	}
	if kind&writes != 0 {
		if w := x.written(address); w != nil {
			w.Mark(address, int64(size))
		}
		if x.block.run.readOnly != nil {
			x.mustBeWritable(address, size, lane)
		}
	}
	if kind&writes == 0 && x.check.level == CheckFast && kind&strongs == 0 {
		x.afterWrite(address, size, lane, kind)
		return
	}
	me := x.stampOf(lane, kind)
	if kind&(writes|strongs) == writes {
		x.check.order.wrote[lane] = me.time + 1
	}
	p := x.lockPage(address)
	in := address & (pageBytes - 1)
	if size < 4 {
		p.part(in >> 2)
	}
	for at := in; at < in+uint64(size); {
		word := at >> 2
		if p.parts[word>>6]>>(word&63)&1 == 0 {
			x.enter(&p.words[word], &me, 0, address-in+at, min(size, 4), lane)
			at += 4
			continue
		}
		x.enter(&p.bytes[at], &me, 0, address-in+at, 1, lane)
		at++
	}
	p.mu.Unlock()
	x.synchronise(address, lane, kind)
}

// mustBeWritable reports a write to memory that only arguments hold which the launch was declared to read.
func (x *exec) mustBeWritable(address uint64, size, lane int) {
	r := x.block.run
	if !slices.ContainsFunc(r.readOnly, func(m memory) bool { return m.has(address) }) {
		return
	}
	for i := range r.Args {
		if a := &r.Args[i]; a.Pointer && !a.ReadOnly {
			if m := a.memory(); m.has(address) {
				return
			}
		}
	}
	x.fail(Undeclared, lane, "writes %s, which the launch was declared only to read", x.describe(0, address, size))
}

// afterWrite looks only for writes that a read races with.
func (x *exec) afterWrite(address uint64, size, lane int, kind uint8) {
	p := x.lockPage(address)
	in := address & (pageBytes - 1)
	for at := in; at < in+uint64(size); {
		word := at >> 2
		c, bytes := &p.words[word], 4
		if p.parts[word>>6]>>(word&63)&1 != 0 {
			c, bytes = &p.bytes[at], 1
		}
		if c.write.block != 0 {
			me := x.stampOf(lane, kind)
			if x.races(&c.write, &me) {
				x.raced(&c.write, &me, 0, address-in+at, min(size, bytes), lane)
			}
		}
		at += uint64(bytes)
	}
	p.mu.Unlock()
}

// lockPage finds the history of an address; the caller unlocks it.
func (x *exec) lockPage(address uint64) *page {
	number := address >> pageShift
	if x.check.page == nil || x.check.number != number {
		x.check.page, x.check.number = x.block.run.history.page(number), number
	}
	x.check.page.mu.Lock()
	return x.check.page
}

// enter adds an access to a cell and reports the races that it has.
func (x *exec) enter(c *cell, me *stamp, window, address uint64, size, lane int) {
	if window == inShared && c.write.block != me.block && c.read.block != me.block {
		*c = cell{} // of an earlier block
	}
	if c.write.block != 0 && (c.write.thread != me.thread || c.write.block != me.block) && x.races(&c.write, me) {
		x.raced(&c.write, me, window, address, size, lane)
	}
	if me.kind&writes == 0 {
		switch {
		case c.read.block == 0 || x.before(&c.read, me):
			c.read = *me
		case c.other.block == 0 || x.before(&c.other, me) || c.other.thread/warpSize == c.read.thread/warpSize && c.other.block == c.read.block:
			c.other = *me
		}
		return
	}
	for _, r := range [2]*stamp{&c.read, &c.other} {
		if r.block != 0 && x.races(r, me) {
			x.raced(r, me, window, address, size, lane)
		}
		r.block = 0
	}
	c.write = *me
}

// races says whether an earlier access and a later one, of which one writes, are ordered by nothing.
func (x *exec) races(old, me *stamp) bool {
	strong := old.kind&me.kind&strongs != 0 && (old.block == me.block || (old.kind|me.kind)&blockly == 0)
	return !strong && !x.before(old, me)
}

// raced reports a race.
func (x *exec) raced(old, me *stamp, window, address uint64, size, lane int) {
	if old.kind&me.kind&writes != 0 && x.sameValue {
		return
	}
	verb := func(kind uint8) string {
		switch {
		case kind&updates != 0:
			return "updates"
		case kind&writes != 0:
			return "writes"
		}
		return "reads"
	}
	r := x.block.run
	other := r.accessAt(old)
	where := "thread " + triple(other.Thread)
	if old.block != me.block {
		where = fmt.Sprintf("thread %s of block %s", triple(other.Thread), triple(other.Block))
	}
	f := x.fault(Race, lane, "%s %s, which %s %s, and nothing orders the two", verb(me.kind), x.describe(window, address, size), where, verb(old.kind))
	f.Other = other
	if window == 0 {
		x.check.page.mu.Unlock()
	}
	panic(f)
}

// unchanged says whether a store leaves memory as it is.
func unchanged(p unsafe.Pointer, size int, v uint64) bool {
	return read(p, size) == v&(^uint64(0)>>(64-8*size))
}
