// Clusters: blocks that run together, wait for each other and reach each other's shared memory. Every block belongs to one, most often to
// one of its own. The blocks of a cluster take turns in one worker, so nothing here is shared between goroutines.

package simt

import (
	"fmt"
	"math/bits"

	"github.com/dagrun/dagrun/internal/ptx"
)

// clusterSize is how many blocks a cluster of a launch has on each axis.
func (k *Kernel) clusterSize(l *Launch) ([3]uint32, error) {
	size, asked := [3]uint32{1, 1, 1}, l.Cluster != [3]uint32{}
	for i, n := range k.limits.RequiredCluster {
		if n > 0 {
			size[i] = uint32(n)
		}
	}
	wrong := func(format string, a ...any) ([3]uint32, error) {
		return size, fmt.Errorf("kernel %q: "+format, append([]any{k.entry.f.Name}, a...)...)
	}
	if required := k.limits.RequiredCluster != [3]int32{}; asked && required && l.Cluster != size {
		return wrong("the launch has clusters of %s blocks, and the code of the kernel has clusters of %s", times(l.Cluster), times(size))
	} else if asked {
		size = l.Cluster
	} else if k.limits.ExplicitCluster && !required {
		return wrong("its code asks for a launch in clusters")
	}
	n := uint64(size[0]) * uint64(size[1]) * uint64(size[2])
	if most := k.limits.MaxClusterRank; most > 0 && n > uint64(most) {
		return wrong("a cluster of %d blocks; its code allows at most %d", n, most)
	}
	if n > mostCluster {
		return wrong("a cluster of %d blocks; at most %d are possible", n, mostCluster)
	}
	for i, axis := range [3]string{"x", "y", "z"} {
		if size[i] == 0 || l.Grid[i]%size[i] != 0 {
			return wrong("grid.%s is %d, which is not a multiple of the %d blocks of a cluster", axis, l.Grid[i], size[i])
		}
	}
	return size, nil
}

func times(size [3]uint32) string { return fmt.Sprintf("%dx%dx%d", size[0], size[1], size[2]) }

// place is where a block is in its cluster.
func (b *block) place() [3]uint32 {
	n, rank := b.cluster.size, uint32(b.rank)
	return [3]uint32{rank % n[0], rank / n[0] % n[1], rank / n[0] / n[1]}
}

// polling says whether all blocks that go on only look at memory that other threads write.
func (c *cluster) polling() bool {
	for _, b := range c.blocks {
		if b.alive > 0 && !b.polling {
			return false
		}
	}
	return true
}

// alive is how many threads have not ended.
func (c *cluster) alive() (n int) {
	for _, b := range c.blocks {
		n += b.alive
	}
	return n
}

// meet makes lanes arrive at the cluster's barrier, or wait there.
func (b *block) meet(w *warp, g *group, o *barrierOp, mask uint32) {
	x := &w.x
	if o.arrive {
		if again := w.arrived & mask; again != 0 {
			x.fail(Stuck, firstLane(again), "this thread arrives at the barrier of its cluster a second time without having waited there")
		}
		w.arrived |= mask
		w.met &^= mask
		b.cluster.arrived += bits.OnesCount32(mask)
		g.pc++
		b.cluster.settle()
		return
	}
	if never := mask &^ (w.arrived | w.met); never != 0 {
		x.fail(Stuck, firstLane(never), "this thread waits at the barrier of its cluster without having arrived there")
	}
	w.met &^= mask &^ w.arrived
	through := mask &^ w.arrived
	if through == mask {
		g.pc++
		return
	}
	if through != 0 {
		w.groups = append(w.groups, group{frame: g.frame, pc: g.pc + 1, mask: through, age: g.age, waiting: -1})
	}
	for i := range w.groups { // g may have moved
		if h := &w.groups[i]; h.mask == mask && h.waiting < 0 {
			h.mask, h.waiting = mask&^through, clusterPlace
			return
		}
	}
}

// leave takes ended lanes from those that have arrived.
func (c *cluster) leave(w *warp, mask uint32) {
	c.arrived -= bits.OnesCount32(w.arrived & mask)
	w.arrived &^= mask
	c.settle()
}

// settle opens the barrier if all threads of the cluster have arrived.
func (c *cluster) settle() {
	if c.arrived == 0 || c.arrived < c.alive() {
		return
	}
	c.arrived = 0
	c.opened()
	for _, b := range c.blocks {
		for _, w := range b.warps {
			w.met |= w.arrived
			w.arrived = 0
			for i := range w.groups {
				if g := &w.groups[i]; g.waiting == clusterPlace && g.mask != 0 {
					w.met &^= g.mask
					g.waiting = -1
					g.pc++
				}
			}
		}
	}
}

// opened orders the threads of the cluster, where that is checked.
func (c *cluster) opened() {
	if c.blocks[0].history == nil {
		return
	}
	if c.releases == nil {
		c.releases = &releases{last: map[uint32]int{}}
	}
	for _, b := range c.blocks {
		if b.pending != nil {
			panic(b.pending)
		}
		b.joinAll()
		b.tell(c.releases, released{fenced: fenced{time: b.base, base: b.base, acquired: b.acquired}, block: uint32(b.number) + 1})
	}
	for _, b := range c.blocks {
		b.acquire([]seen{{at: c.releases, n: len(c.releases.log)}})
	}
}

// mapAddress compiles mapa: the address of the same place in another block of the cluster.
func (c *compiler) mapAddress() op {
	o, f := c.in.Operands, c.in.Form
	t := f.Type()
	d, a, rank := c.target(o[0]), c.source(o[1], t), c.source(o[2], ptx.U32)
	plain := f.Space() != ptx.Generic
	return func(x *exec, m uint32) {
		for ; m != 0; m &= m - 1 {
			i := firstLane(m)
			v, k := x.s[a][i], uint64(uint32(x.s[rank][i]))
			if !plain && v&^inWindow != inShared {
				x.fail(OutOfBounds, i, "mapa of the address %#x, which is not in shared memory", v)
			}
			if k >= uint64(len(x.block.cluster.blocks)) {
				x.fail(OutOfBounds, i, "mapa to block %d of the cluster, which has %d", k, len(x.block.cluster.blocks))
			}
			x.s[d][i] = v&^(mostRanks<<rankShift) | (k+1)<<rankShift
		}
	}
}

// rankOf compiles getctarank: the rank of the block that a shared address belongs to.
func (c *compiler) rankOf() op {
	o := c.in.Operands
	d, a := c.target(o[0]), c.source(o[1], c.in.Form.Type())
	return func(x *exec, m uint32) {
		for ; m != 0; m &= m - 1 {
			i := firstLane(m)
			rank := x.s[a][i] & inWindow >> rankShift
			if rank == 0 {
				rank = uint64(x.block.rank) + 1
			}
			x.s[d][i] = rank - 1
		}
	}
}
