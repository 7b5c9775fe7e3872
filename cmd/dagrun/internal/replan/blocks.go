// Which block of memory an address lay in at a moment: a tensor where the framework's allocator told of it, else an allocation of the driver.

package replan

import (
	"cmp"
	"slices"

	"github.com/dagrun/dagrun/internal/recording"
)

// block is a stretch of memory from when it was given out.
type block struct {
	extent Extent
	tensor bool
	freed  bool // given back later
	place  uint64
}

// given is a change of what is given out.
type given struct {
	sequence uint64
	index    int32
	free     bool
}

// blocks goes through what a process was given, in time.
type blocks struct {
	all     []block
	changes []given
	tensors []int32 // those given out now, by address, none over another
	driver  []int32
}

func newBlocks(p *recording.Process) *blocks {
	b := &blocks{}
	latest := map[uint64]int32{}
	take := func(sequence uint64, e Extent, tensor bool, place uint64) {
		latest[e[0]] = int32(len(b.all))
		b.changes = append(b.changes, given{sequence, int32(len(b.all)), false})
		b.all = append(b.all, block{extent: e, tensor: tensor, place: place})
	}
	for _, t := range p.Tensors {
		switch t.Action {
		case recording.TensorAlloc:
			take(t.Sequence, Extent{t.Address, roundUp(t.Bytes)}, true, t.Place)
		case recording.TensorFreeRequested:
			if k, found := latest[t.Address]; found {
				b.all[k].freed = true
				delete(latest, t.Address)
			}
		}
	}
	for i := range p.Calls {
		c := &p.Calls[i]
		switch {
		case c.Kind == recording.Alloc && len(c.Args) > 2 && c.Result == 0:
			take(c.End, Extent{c.Args[0], c.Args[1]}, false, c.Place)
		case c.Kind == recording.Free && len(c.Args) > 0:
			if k, found := latest[c.Args[0]]; found && !b.all[k].tensor {
				b.changes = append(b.changes, given{c.Begin, k, true})
				delete(latest, c.Args[0])
			}
		}
	}
	slices.SortStableFunc(b.changes, func(a, b given) int { return cmp.Compare(a.sequence, b.sequence) })
	return b
}

// roundUp gives a tensor the bytes that allocators give it.
func roundUp(bytes uint64) uint64 { return (bytes + 511) &^ 511 }

// until goes on to a moment, which is no earlier than those before.
func (b *blocks) until(sequence uint64) {
	for len(b.changes) > 0 && b.changes[0].sequence <= sequence {
		c := b.changes[0]
		b.changes = b.changes[1:]
		list := &b.driver
		if b.all[c.index].tensor {
			list = &b.tensors
		}
		e := b.all[c.index].extent
		// a tensor that was given back stays known by its address until another one takes its place
		from := b.find(*list, e[0])
		to := from
		for to < len(*list) && b.all[(*list)[to]].extent[0] < e.end() {
			to++
		}
		if c.free {
			*list = slices.Delete(*list, from, to)
		} else {
			*list = slices.Replace(*list, from, to, c.index)
		}
	}
}

// find returns where in a list the first block is that ends behind an address.
func (b *blocks) find(list []int32, address uint64) int {
	at, _ := slices.BinarySearchFunc(list, address, func(k int32, address uint64) int {
		if b.all[k].extent.end() <= address {
			return -1
		}
		return 1
	})
	return at
}

// at returns the block that an address lies in now, or -1.
func (b *blocks) at(address uint64) int32 {
	for _, list := range [][]int32{b.tensors, b.driver} {
		if k := b.find(list, address); k < len(list) && b.all[list[k]].extent.holds(address) {
			return list[k]
		}
	}
	return -1
}
