// Launches: a grid of blocks, run by any number of workers. A block that runs for long yields to the others.

package simt

import (
	"cmp"
	"fmt"
	"slices"
	"time"
	"unsafe"
)

const (
	residentThreads = 132 * 2048
	blockTurn       = 64      // turns of a block before another block runs
	graceTurns      = 1000    // turns of a block after a later one has failed
	mostShared      = 1 << 20 // bytes of a block
)

// Start checks and prepares a launch.
func (k *Kernel) Start(l Launch) (*Run, error) {
	r := &Run{kernel: k, Launch: l, grid: l.Grid, block: l.Block, params: make([]byte, k.bytes)}
	threads := uint64(l.Block[0]) * uint64(l.Block[1]) * uint64(l.Block[2])
	if threads == 0 || threads > 1024 {
		return nil, fmt.Errorf("kernel %q: a block of %d threads; 1 to 1024 are possible", k.entry.f.Name, threads)
	}
	if most := k.MaxThreads(); most > 0 && threads > uint64(most) {
		return nil, fmt.Errorf("kernel %q: a block of %d threads; its directives allow at most %d", k.entry.f.Name, threads, most)
	}
	r.threads = int(threads)
	r.blocks = uint64(l.Grid[0]) * uint64(l.Grid[1]) * uint64(l.Grid[2])
	var err error
	if r.cluster, err = k.clusterSize(&l); err != nil {
		return nil, err
	}
	r.clusters = r.blocks / uint64(r.cluster[0]*r.cluster[1]*r.cluster[2])
	if r.Check != CheckNothing {
		r.told = &told{}
	}
	own := len(l.Args)
	for own > 0 && l.Args[own-1].Within != 0 {
		own--
	}
	if own != len(k.params) {
		return nil, fmt.Errorf("kernel %q takes %d arguments, but %d are given", k.entry.f.Name, len(k.params), own)
	}
	for i, a := range l.Args {
		at := i
		if i >= own {
			at = a.Within - 1
		}
		if at < 0 || at >= own || i >= own && (a.Offset < 0 || a.Offset > k.params[at].size-8) {
			return nil, fmt.Errorf("kernel %q: value %d is no member of a structure among the arguments", k.entry.f.Name, i)
		}
		p := k.params[at]
		if i >= own {
			p.offset, p.size = p.offset+a.Offset, 8
		}
		to := r.params[p.offset : p.offset+p.size]
		if a.Struct != nil {
			if int64(len(a.Struct)) != p.size {
				return nil, fmt.Errorf("kernel %q: argument %d has %d bytes, but its parameter has %d", k.entry.f.Name, i, len(a.Struct), p.size)
			}
			copy(to, a.Struct)
			continue
		}
		passed := a.Bits
		if a.Texture != nil {
			if !a.Pointer || p.size != 8 {
				return nil, fmt.Errorf("kernel %q: argument %s cannot be a texture", k.entry.f.Name, parameterName(k, i))
			}
			var err error
			if passed, err = r.addTexture(&a, i); err != nil {
				return nil, fmt.Errorf("kernel %q: the texture of argument %s: %v", k.entry.f.Name, parameterName(k, i), err)
			}
		} else if a.Unused {
			passed = nowhere + uint64(i)*nowhereRoom
		} else if l.Check != CheckNothing && a.Pointer && a.Bytes > 0 && a.Bits <= plainMask {
			passed = r.number(a.memory())
		}
		if a.Pointer && a.Texture == nil {
			passed += uint64(a.Start)
		}
		for j := range min(len(to), 8) {
			to[j] = byte(passed >> (8 * j))
		}
		if a.Pointer && a.Bytes > 0 {
			r.ranges = append(r.ranges, span{a.Bits, a.Bits + uint64(a.Bytes)})
			if a.ReadOnly {
				r.readOnly = append(r.readOnly, a.memory())
			}
		}
	}
	if l.Cooperative {
		r.meeting = make([]uint64, 8)
		lo := uint64(uintptr(unsafe.Pointer(&r.meeting[0])))
		r.ranges = append(r.ranges, span{lo, lo + uint64(8*len(r.meeting))})
	}
	r.ranges = append(r.ranges, k.program.ranges...)
	slices.SortStableFunc(r.ranges, func(a, b span) int { return cmp.Compare(a.lo, b.lo) })
	r.sharedBytes = max(k.shared, k.open+int64(l.Shared))
	if r.sharedBytes > mostShared {
		return nil, fmt.Errorf("kernel %q: a block needs %d bytes of shared memory; at most %d are possible", k.entry.f.Name, r.sharedBytes, mostShared)
	}
	return r, nil
}

// number is the address of an argument with its number; arguments that begin at the same place share one, so that they compare equal.
func (r *Run) number(s memory) uint64 {
	for i, other := range r.numbered {
		if other.lo == s.lo {
			if other.row != s.row || other.pitch != s.pitch {
				r.numbered[i].row = 0 // the rows of neither hold the other
			}
			r.numbered[i].hi = max(other.hi, s.hi)
			return s.lo | uint64(i+1)<<numberShift
		}
	}
	if len(r.numbered) >= mostNumbers {
		return s.lo
	}
	r.numbered = append(r.numbered, s)
	return s.lo | uint64(len(r.numbered))<<numberShift
}

// Blocks returns how many blocks the launch has.
func (r *Run) Blocks() uint64 { return r.blocks }

// Steps is how many instructions the lanes have run so far.
func (r *Run) Steps() uint64 { return r.steps.Load() }

// Fault is what ended the launch early, or nil.
func (r *Run) Fault() *Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fault
}

// Work runs blocks until none is left for this worker.
func (r *Run) Work() { r.work(func() bool { return true }) }

// WorkFor is like Work, but starts no further blocks after some time.
func (r *Run) WorkFor(d time.Duration) {
	start := time.Now()
	r.work(func() bool { return time.Since(start) < d })
}

func (r *Run) work(more func() bool) {
	var spare []*cluster
	defer func() { r.keep(spare) }()
	for more() {
		c := r.take(&spare)
		if c == nil {
			return
		}
		ended, fault := c.runTurns(r)
		switch {
		case fault != nil:
			r.failed(c.running, fault)
		case ended:
			spare = append(spare, c)
		default:
			r.mu.Lock()
			r.suspended = append(r.suspended, c)
			r.mu.Unlock()
		}
	}
}

// failed records a fault. The fault of the first block counts, however the workers share the blocks: those before it run on for a while.
func (r *Run) failed(b *block, fault *Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fault == nil || b.number < r.faulty {
		r.fault, r.faulty = fault, b.number
	}
	r.broken.Store(r.faulty + 1)
}

// over reports whether a block need not go on because of another's fault.
func (b *block) over() bool {
	broken := b.run.broken.Load()
	if broken == 0 {
		return false
	}
	b.grace--
	return b.number >= broken-1 || b.grace < 0
}

// take chooses the next cluster: a new one, or, if there is none or a GPU could not hold more blocks at once, the one that has waited longest.
func (r *Run) take(spare *[]*cluster) *cluster {
	n := uint64(0)
	for r.broken.Load() == 0 && !r.crowded() {
		n = r.next.Load()
		if n >= r.clusters {
			break
		}
		if r.next.CompareAndSwap(n, n+1) {
			var c *cluster
			if k := len(*spare); k > 0 {
				c = (*spare)[k-1]
				*spare = (*spare)[:k-1]
			} else if c = r.reuse(); c == nil {
				c = r.newCluster()
			}
			c.begin(r, n)
			return c
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.suspended) == 0 {
		return nil
	}
	c := r.suspended[0]
	r.suspended = r.suspended[1:]
	return c
}

// MostTogether is how many blocks of a size can run at once, as on a large GPU.
func MostTogether(block [3]uint32) uint64 {
	threads := uint64(block[0]) * uint64(block[1]) * uint64(block[2])
	return residentThreads / max((threads+warpSize-1)/warpSize*warpSize, warpSize)
}

// crowded reports whether as many blocks are running as a large GPU holds at once. A kernel cannot rely on more.
func (r *Run) crowded() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return uint64(len(r.suspended)) >= MostTogether(r.block)/max(r.blocks/max(r.clusters, 1), 1)
}

// newBlock makes a block, which is reused for later blocks.
func (r *Run) newBlock() *block {
	b := &block{run: r, threads: r.threads, shared: make([]byte, r.sharedBytes)}
	if r.Check != CheckNothing {
		words := (r.sharedBytes + 3) / 4
		b.history = &blockHistory{words: make([]cell, words), parts: make([]uint64, (words+63)/64), valid: make([]byte, r.sharedBytes)}
	}
	for range (r.threads + warpSize - 1) / warpSize {
		b.warps = append(b.warps, &warp{})
	}
	return b
}

// begin prepares the block for place n of the grid.
func (b *block) begin(n uint64) {
	b.index, b.number, b.grace = b.run.blockIndex(n), n, graceTurns
	for axis := range 3 {
		for i := range warpSize {
			b.ctaid[axis][i] = uint64(b.index[axis])
			b.clusterid[axis][i] = uint64(b.cluster.index[axis])
		}
	}
	b.alive = b.threads
	b.bars = [barriers]barrier{}
	clear(b.shared)
	if b.history != nil {
		clear(b.history.valid)
		clear(b.met)
		clear(b.came)
		b.base, b.pairs, b.acquired, b.heard, b.pending = b.tick(), nil, nil, heard{}, nil
		b.board.clear()
	}
	for i, w := range b.warps {
		w.begin(b, i, b.threads)
	}
}

// runTurns runs the cluster for a while.
func (c *cluster) runTurns(r *Run) (ended bool, fault *Fault) {
	defer func() {
		if v := recover(); v != nil {
			f, ok := v.(*Fault)
			if !ok {
				panic(v)
			}
			fault = f
		}
	}()
	for range blockTurn {
		ended := c.turn()
		c.countSteps(r)
		if ended {
			return true, c.pending()
		}
		if c.blocks[0].over() {
			return true, nil // also where it polls: what it waits for may be a block that has failed
		}
		if c.polling() {
			return false, nil
		}
	}
	return false, nil
}

// pending is the first fault that was kept until the blocks end.
func (c *cluster) pending() *Fault {
	for _, b := range c.blocks {
		if b.pending != nil {
			c.running = b
			return b.pending
		}
	}
	return nil
}

// countSteps hands what the warps have counted to the launch.
func (c *cluster) countSteps(r *Run) {
	total := uint64(0)
	for _, b := range c.blocks {
		for _, w := range b.warps {
			total += w.x.steps
			w.x.steps = 0
		}
	}
	if r.steps.Add(total) > r.MaxSteps && r.MaxSteps > 0 {
		for _, b := range c.blocks {
			c.running = b
			b.endless()
		}
		w := c.blocks[0].warps[0]
		c.running, w.x.frame, w.x.at = c.blocks[0], w.top, w.top.fn.blocks[len(w.top.fn.blocks)-1].last
		w.x.fail(Endless, 0, "the launch has run more than %d instructions, which is its limit", r.MaxSteps)
	}
}

// endless reports a launch that has run too many instructions, at a thread that goes on.
func (b *block) endless() {
	for _, w := range b.warps {
		for i := range w.groups {
			if g := &w.groups[i]; g.mask != 0 {
				x := &w.x
				bb := &g.frame.fn.blocks[g.pc]
				x.frame, x.at = g.frame, bb.last
				if len(bb.at) > 0 {
					x.at = bb.at[0]
				}
				x.fail(Endless, firstLane(g.mask), "the launch has run more than %d instructions, which is its limit, and this thread goes on", b.run.MaxSteps)
			}
		}
	}
}

// newCluster makes a cluster, which is reused for later ones.
func (r *Run) newCluster() *cluster {
	c := &cluster{size: r.cluster}
	for range c.size[0] * c.size[1] * c.size[2] {
		b := r.newBlock()
		b.cluster, b.rank = c, len(c.blocks)
		c.blocks = append(c.blocks, b)
	}
	return c
}

// begin prepares the blocks of cluster n of the launch.
func (c *cluster) begin(r *Run, n uint64) {
	across := [2]uint64{uint64(r.grid[0] / c.size[0]), uint64(r.grid[1] / c.size[1])}
	c.index = [3]uint32{uint32(n % across[0]), uint32(n / across[0] % across[1]), uint32(n / across[0] / across[1])}
	c.arrived = 0
	c.releases = nil
	for _, b := range c.blocks {
		at := b.place()
		x, y, z := c.index[0]*c.size[0]+at[0], c.index[1]*c.size[1]+at[1], c.index[2]*c.size[2]+at[2]
		b.begin((uint64(z)*uint64(r.grid[1])+uint64(y))*uint64(r.grid[0]) + uint64(x))
	}
}

// turn runs each block for a while, and reports whether all have ended.
func (c *cluster) turn() (ended bool) {
	ended = true
	ran := false
	for _, b := range c.blocks {
		if b.alive == 0 {
			continue
		}
		c.running = b
		over, moved := b.turn()
		ended, ran = ended && over, ran || moved
	}
	if !ended && !ran {
		for _, b := range c.blocks {
			c.running = b
			b.stuck()
		}
	}
	return ended
}
