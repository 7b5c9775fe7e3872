// Package ids has what finds and orders dense int32 ids: the index of their names, and a heap.
package ids

import (
	"hash/maphash"
	"math/bits"
)

// Names is an open-addressing table of ids. A Go map of strings would take five times the memory for a million nodes.
type Names struct {
	seed maphash.Seed // affects where ids are stored, not what a lookup returns
	// id + 1 in the low bits, and above it as much of the name's hash as there is room for; 0: empty. Most collisions are
	// recognised by the hash alone, which saves the two cache misses of comparing names.
	slots []uint32
	ids   uint32 // mask of the low bits
}

// NewNames has room for n names.
func NewNames(n int) *Names {
	size := 16
	for size < 2*n {
		size *= 2
	}
	return &Names{maphash.MakeSeed(), make([]uint32, size), 1<<bits.Len32(uint32(n)) - 1}
}

// Add enters an id under its name and returns it, or the id that has that name already.
func (x *Names) Add(id int32, name func(id int32) string) int32 {
	slot, tag := x.slot(name(id), name)
	if s := x.slots[slot]; s != 0 {
		return int32(s&x.ids) - 1
	}
	x.slots[slot] = tag | uint32(id+1)
	return id
}

// slot returns where the name is, or the empty slot where it would go, and what its slot has of its hash.
func (x *Names) slot(wanted string, name func(id int32) string) (slot int, tag uint32) {
	hash := maphash.String(x.seed, wanted)
	tag = uint32(hash>>32) &^ x.ids
	mask := len(x.slots) - 1
	k := int(hash) & mask
	for s := x.slots[k]; s != 0; s = x.slots[k] {
		if s&^x.ids == tag && name(int32(s&x.ids)-1) == wanted {
			break
		}
		k = (k + 1) & mask
	}
	return k, tag
}
