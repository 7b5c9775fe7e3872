// Which devices hold the current contents of which bytes of a buffer.

package placement

import (
	"math/bits"
	"slices"
	"sort"
)

// run is a range of bytes that the same devices hold.
type run struct {
	lo, hi  int64
	holders uint64 // the devices, as bits
	// free tells, once copies were made, in which round each holder can send next, the first after the write being round 0. In one round a
	// holder sends to one device, so that choosing the earliest sender makes a tree.
	free []uint16
}

// runs are ranges in order that cover what has contents.
type runs []run

// cut makes lo..hi the bounds of whole runs, and returns which they are.
func (r *runs) cut(lo, hi int64) (first, end int) {
	r.splitAt(lo)
	r.splitAt(hi)
	s := *r
	first = sort.Search(len(s), func(k int) bool { return s[k].lo >= lo })
	end = first
	for end < len(s) && s[end].hi <= hi {
		end++
	}
	return first, end
}

func (r *runs) splitAt(at int64) {
	s := *r
	k := sort.Search(len(s), func(k int) bool { return s[k].hi > at })
	if k == len(s) || s[k].lo >= at {
		return
	}
	left := s[k]
	left.hi, left.free = at, slices.Clone(left.free)
	s[k].lo = at
	*r = slices.Insert(s, k, left)
}

// write makes one set of devices the only holders of lo..hi.
func (r *runs) write(lo, hi int64, holders uint64) {
	if lo >= hi {
		return
	}
	first, end := r.cut(lo, hi)
	*r = slices.Replace(*r, first, end, run{lo: lo, hi: hi, holders: holders})
}

// common returns the devices that hold all of lo..hi.
func (r *runs) common(lo, hi int64) uint64 {
	all, at := ^uint64(0), lo
	for _, x := range *r {
		if x.hi <= lo || x.lo >= hi {
			continue
		}
		if x.lo > at {
			return 0
		}
		all, at = all&x.holders, x.hi
	}
	if at < hi {
		return 0
	}
	return all
}

// send chooses the holder that can send first, and notes that it sends to a device.
func (x *run) send(to int32, devices int) (from int32) {
	if x.free == nil {
		x.free = make([]uint16, devices)
	}
	from = -1
	for set := x.holders; set != 0; set &= set - 1 {
		if d := int32(bits.TrailingZeros64(set)); from < 0 || x.free[d] < x.free[from] {
			from = d
		}
	}
	if from < 0 {
		return from
	}
	x.free[from]++
	x.free[to] = x.free[from]
	x.holders |= 1 << to
	return from
}
