// Owners: which placement had each byte of an arena last. A tree over the ends of all placements, coloured by ranges.

package planner

import "slices"

// Colours of a part of the arena that is not all one placement's.
const (
	noOwner    = -1
	manyOwners = -2
)

// owners is a segment tree; a node's colour holds for its whole range unless it is manyOwners.
type owners struct {
	cuts   []int64 // ascending; leaf i covers cuts[i]..cuts[i+1]
	colour []int32
}

func newOwners(p *Plan, placements []int32, device int32) *owners {
	o := &owners{}
	for _, k := range placements {
		if m := &p.Memory[k]; m.Device == device {
			o.cuts = append(o.cuts, m.Offset, m.Offset+m.Bytes)
		}
	}
	slices.Sort(o.cuts)
	o.cuts = slices.Compact(o.cuts)
	o.colour = make([]int32, 4*len(o.cuts))
	for i := range o.colour {
		o.colour[i] = noOwner
	}
	return o
}

// take gives bytes lo..hi to a placement and visits those that had them, some perhaps more than once.
func (o *owners) take(lo, hi int64, placement int32, visit func(int32)) {
	a, _ := slices.BinarySearch(o.cuts, lo)
	b, _ := slices.BinarySearch(o.cuts, hi)
	o.paint(1, 0, len(o.cuts)-1, a, b, placement, visit)
}

func (o *owners) paint(node, from, to, a, b int, placement int32, visit func(int32)) {
	if b <= from || to <= a {
		return
	}
	if a <= from && to <= b {
		o.visit(node, from, to, visit)
		o.colour[node] = placement
		return
	}
	if c := o.colour[node]; c != manyOwners {
		o.colour[2*node], o.colour[2*node+1] = c, c
		o.colour[node] = manyOwners
	}
	middle := (from + to) / 2
	o.paint(2*node, from, middle, a, b, placement, visit)
	o.paint(2*node+1, middle, to, a, b, placement, visit)
}

func (o *owners) visit(node, from, to int, visit func(int32)) {
	switch c := o.colour[node]; c {
	case noOwner:
	case manyOwners:
		middle := (from + to) / 2
		o.visit(2*node, from, middle, visit)
		o.visit(2*node+1, middle, to, visit)
	default:
		visit(c)
	}
}
