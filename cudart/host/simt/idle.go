// What a launch makes for its blocks, kept for later launches of the same shape. A small launch would spend most of its time making it.

package simt

// mostIdle is how many bytes of registers and memory a kernel keeps between launches.
const mostIdle = 1 << 20

func (r *Run) shape() shape { return shape{r.grid, r.block, r.cluster, r.Shared} }

// keeps says whether other launches may use what this one makes. What is checked keeps more, and cooperative launches meet in memory of
// their own.
func (r *Run) keeps() bool { return r.Check == CheckNothing && !r.Cooperative }

// clusterBytes is about how many bytes a cluster of the launch has.
func (r *Run) clusterBytes() int64 {
	warps := int64(r.threads+warpSize-1) / warpSize
	registers := int64(r.kernel.entry.slots) * 8 * warpSize
	blocks := int64(r.cluster[0] * r.cluster[1] * r.cluster[2])
	return blocks * (warps*(registers+warpSize*r.kernel.stack) + r.sharedBytes)
}

// reuse returns a cluster that an earlier launch has left, or nil.
func (r *Run) reuse() *cluster {
	if !r.keeps() {
		return nil
	}
	k := &r.kernel.idle
	k.mu.Lock()
	defer k.mu.Unlock()
	last := len(k.clusters) - 1
	if last < 0 || k.shape != r.shape() {
		return nil
	}
	c := k.clusters[last]
	k.clusters[last] = nil
	k.clusters = k.clusters[:last]
	k.bytes -= r.clusterBytes()
	for _, b := range c.blocks {
		b.run = r
	}
	return c
}

// keep leaves clusters to later launches, in place of those of another shape.
func (r *Run) keep(spare []*cluster) {
	if !r.keeps() || len(spare) == 0 || r.broken.Load() != 0 {
		return
	}
	k := &r.kernel.idle
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := r.shape(); k.shape != s {
		k.shape, k.clusters, k.bytes = s, nil, 0
	}
	for _, c := range spare {
		if k.bytes+r.clusterBytes() > mostIdle {
			return
		}
		for _, b := range c.blocks {
			b.run = nil // its arguments and their memory
			for _, w := range b.warps {
				w.x.near, w.x.argument, w.prepared = [nearby]span{}, 0, false
			}
		}
		k.clusters = append(k.clusters, c)
		k.bytes += r.clusterBytes()
	}
}
