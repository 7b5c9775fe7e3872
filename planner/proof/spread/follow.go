// The proof of a spread: what single nodes read and write, byte by byte.

package spread

import (
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/planner/proof"
)

// follow checks what a node reads, and notes what it writes.
func (c *spreadCheck) follow(l *spreadLevel, i dag.NodeID) *proof.Violation {
	from := l.nodes[i]
	if from == plan.Inserted {
		move := l.g.Nodes[i].Copy
		for _, e := range c.extents(c.declared(move.Src)) {
			c.held[move.Dst.Buffer].take(&c.held[move.Src.Buffer], e)
		}
		return nil
	}
	accesses, declared := l.g.Accesses(i), l.original.Accesses(from)
	if c.moved {
		c.view = c.views[from]
	}
	for k, a := range accesses {
		if a.Mode&dag.Read == 0 || a.Lo >= a.Hi {
			continue
		}
		if v := c.reads(l, i, declared[k].Range, a); v != nil {
			return v
		}
	}
	c.view = nil
	for k, a := range accesses {
		if a.Mode&dag.Write != 0 && a.Lo < a.Hi {
			for _, e := range c.extents(declared[k].Range) {
				c.held[a.Buffer].set(e.lo, e.hi, l.first+int32(from))
				if !c.moved {
					c.wanted[declared[k].Buffer].set(e.lo, e.hi, l.first+int32(from))
				}
			}
		}
	}
	return nil
}

// reads checks that a node finds in a piece what it reads in the original.
func (c *spreadCheck) reads(l *spreadLevel, i dag.NodeID, declared dag.Range, a dag.Access) *proof.Violation {
	for _, e := range c.extents(declared) {
		at, want, has := c.differs(declared.Buffer, e, a.Buffer)
		if at.lo >= at.hi {
			continue
		}
		r := c.bands[declared.Buffer].rangeOf(declared.Buffer, at)
		v := wrongAt(l.g, i, "%q reads %s on %s and finds %s, but in the pipeline it reads %s", l.g.Nodes[i].Name, c.original.RangeText(r),
			c.placeText(a.Buffer), c.versionText(has), c.versionText(want))
		v.Buffer, v.BufferName, v.Access = a.Buffer, c.g.Buffers[a.Buffer].Name, a.Mode
		v.Lo, v.Hi = r.Lo-c.s.Buffers[a.Buffer].Lo, r.Hi-c.s.Buffers[a.Buffer].Lo
		return v
	}
	return nil
}

// differs finds the first places of an extent of a buffer of the original whose version differs from the one that a piece holds.
func (c *spreadCheck) differs(b dag.BufferID, e extent, piece dag.BufferID) (at extent, want, has int32) {
	for lo := e.lo; lo < e.hi; {
		w, wEnd := c.wantedNow(b).at(lo)
		h, hEnd := c.held[piece].at(lo)
		end := min(e.hi, wEnd, hEnd)
		if w != h {
			return extent{lo, end}, w, h
		}
		lo = end
	}
	return extent{}, 0, 0
}

func (c *spreadCheck) placeText(id dag.BufferID) string {
	if c.g.Buffers[id].Place == dag.Host {
		return "the host"
	}
	return "device " + number(c.g.Buffers[id].Device)
}

func (c *spreadCheck) versionText(version int32) string {
	switch {
	case version == noVersion:
		return "bytes that nothing brought there"
	case version == atStart:
		return "what was there when the replay began"
	}
	if n := int32(len(c.names)); version >= n {
		return "what a run of a body of \"" + c.names[version-n] + "\" begins with"
	}
	return "what \"" + c.names[version] + "\" wrote"
}

// covers reports whether all bytes of inner are in outer; both are in order.
func covers(outer, inner []extent) bool {
	k := 0
	for _, e := range inner {
		for k < len(outer) && outer[k].hi <= e.lo {
			k++
		}
		if k == len(outer) || outer[k].lo > e.lo || outer[k].hi < e.hi {
			return false
		}
	}
	return true
}
