// The proof of a spread whose nodes come in another order than declared: every read must find what it finds in the declared order.

package spread

import (
	"slices"

	"github.com/dagrun/dagrun/dag"
)

// followDeclared follows the original on its own, in the order in which it was declared, and keeps what each node finds and what there is in
// the end. A loop or branch finds what its bodies use, and writes all that they may write.
func (c *spreadCheck) followDeclared() {
	c.views = make([][]readView, c.original.Len())
	c.wanted = c.startVersions()
	for i := range c.original.Nodes {
		find := func(r dag.Range) {
			for _, e := range c.extents(r) {
				c.viewOf(i, r.Buffer).take(&c.wanted[r.Buffer], e)
			}
		}
		if control := c.original.Nodes[i].Control; control != nil {
			if control.Condition != nil {
				for _, r := range control.Condition.Operands {
					find(r)
				}
			}
			for _, body := range control.Bodies {
				eachRange(body, find)
			}
			used := c.changedBy(c.top, c.top.ids[i])
			for _, b := range used.all {
				for _, e := range b.places {
					c.viewOf(i, b.buffer).take(&c.wanted[b.buffer], e)
				}
			}
			for _, b := range used.buffers {
				for _, e := range b.places {
					c.wanted[b.buffer].set(e.lo, e.hi, int32(i))
				}
			}
			continue
		}
		accesses := c.original.Accesses(dag.NodeID(i))
		for _, a := range accesses {
			if a.Mode&dag.Read != 0 && a.Lo < a.Hi {
				find(a.Range)
			}
		}
		for _, a := range accesses {
			if a.Mode&dag.Write != 0 && a.Lo < a.Hi {
				for _, e := range c.extents(a.Range) {
					c.wanted[a.Buffer].set(e.lo, e.hi, int32(i))
				}
			}
		}
	}
}

// viewOf finds the view of a node into a buffer, or begins it.
func (c *spreadCheck) viewOf(i int, b dag.BufferID) *byteVersions {
	for k := range c.views[i] {
		if c.views[i][k].buffer == b {
			return &c.views[i][k].versions
		}
	}
	c.views[i] = append(c.views[i], readView{buffer: b})
	return &c.views[i][len(c.views[i])-1].versions
}

// wantedIn are the versions that a loop or branch finds in the declared order, of the bytes that it uses.
func (c *spreadCheck) wantedIn(i dag.NodeID) []byteVersions {
	list := make([]byteVersions, len(c.original.Buffers))
	for _, v := range c.views[i] {
		list[v.buffer].runs = slices.Clone(v.versions.runs)
	}
	return list
}

// startVersions are the versions of all buffers when a replay begins.
func (c *spreadCheck) startVersions() []byteVersions {
	list := make([]byteVersions, len(c.original.Buffers))
	for k := range list {
		list[k].set(0, c.bands[k].size(c.original.Buffers[k].Bytes), atStart)
	}
	return list
}

// wantedNow are the versions of a buffer of the original: for a node that has been moved, those that it finds in the declared order.
func (c *spreadCheck) wantedNow(b dag.BufferID) *byteVersions {
	for k := range c.view {
		if c.view[k].buffer == b {
			return &c.view[k].versions
		}
	}
	return &c.wanted[b]
}
