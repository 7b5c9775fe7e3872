// The index of names: finds the id of a name and the first of two equal ones. Stores ids only; the names stay where they are.

package dag

import "hash/maphash"

// nameIndex is an open-addressing table of ids. A Go map of strings would take five times the memory for a million nodes.
type nameIndex struct {
	seed  maphash.Seed // decides where ids lie, never what is found
	slots []int32      // id + 1; 0: empty
}

func newNameIndex(n int) *nameIndex {
	size := 16
	for size < 2*n {
		size *= 2
	}
	return &nameIndex{maphash.MakeSeed(), make([]int32, size)}
}

// add enters an id under its name and returns it, or the id that has that name already.
func (x *nameIndex) add(id int32, name func(id int32) string) int32 {
	own := name(id)
	slot := x.slot(own, name)
	if x.slots[slot] != 0 {
		return x.slots[slot] - 1
	}
	x.slots[slot] = id + 1
	return id
}

// slot returns where the name is, or the empty slot where it would go.
func (x *nameIndex) slot(wanted string, name func(id int32) string) int {
	mask := len(x.slots) - 1
	k := int(maphash.String(x.seed, wanted)) & mask
	for x.slots[k] != 0 && name(x.slots[k]-1) != wanted {
		k = (k + 1) & mask
	}
	return k
}

// find returns the id that has that name, or -1.
func (x *nameIndex) find(wanted string, name func(id int32) string) int32 {
	return x.slots[x.slot(wanted, name)] - 1
}
