// The serial strategy: one stream for each device and priority, since those cannot share. Uses no machine model.

package place

func Serial(p *Problem) (*Assignment, error) {
	s := &Assignment{stream: make([]int32, p.len()), order: p.order}
	for k := range p.bindings {
		s.streams = append(s.streams, draftStream{pool: p.bindings[k].pool, binding: int32(k)})
	}
	home := make([]int32, len(p.pools))
	for q := range p.pools {
		home[q] = -1
		if p.explicit {
			continue
		}
		for k := range p.bindings {
			if p.bindings[k].pool == int32(q) {
				home[q] = int32(k)
				break
			}
		}
	}
	for _, i := range p.order {
		if b := p.boundOf(i); b >= 0 {
			s.stream[i] = b
			continue
		}
		q := p.poolOf(i)
		if home[q] < 0 {
			home[q] = int32(len(s.streams))
			s.streams = append(s.streams, draftStream{pool: q, binding: -1})
		}
		s.stream[i] = home[q]
	}
	return s, p.ctx.Err()
}
