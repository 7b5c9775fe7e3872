// Layout in parts: takes buffers by first use, so many at a time, and places those of one part by best fit. Needs no table of pairs, so it
// works for more buffers than a search does, as long as few are alive at a time.

package layout

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/dagrun/dagrun/planner/effort"
	"github.com/dagrun/dagrun/planner/internal/scratch"
)

// fewestInParts is the least number of buffers that are placed in parts. Of fewer, a search soon finds lower layouts.
const fewestInParts = 1000

// partTries are the sizes of parts that each effort tries, and how many steps that may take: some for each buffer, and at most so many. A step
// takes one to three nanoseconds. No size is best for all graphs, but these are never far from the best.
var partTries = [...]struct {
	sizes      []int
	each, most int64
}{
	effort.Quick:    {[]int{128}, 8_000, 120_000_000},
	effort.Normal:   {[]int{128, 64, 256, 512}, 24_000, 400_000_000},
	effort.Thorough: {[]int{128, 64, 256, 512, 96, 192, 384, 32, 768, 1024, 2048, 4096}, 400_000, 4_000_000_000},
}

// lowerInParts returns the lowest of a layout and those in parts. It stops at one that ends at the least possible peak, and if the context
// ends.
func lowerInParts(ctx context.Context, l *lifetimes, nodes int, given []int64, least int64, hard effort.Effort) []int64 {
	n := len(l.buffers)
	if n < fewestInParts {
		return given
	}
	tries := &partTries[hard]
	best, peak := given, peakOf(l, given)
	left := min(tries.most, tries.each*int64(n))
	for _, size := range tries.sizes {
		if peak == least || left <= 0 {
			break
		}
		offsets, taken := layoutInParts(ctx, l, nodes, size, peak, left)
		if offsets != nil {
			best, peak = offsets, peakOf(l, offsets)
		}
		left -= taken
	}
	return best
}

// partLayout is a layout that grows by one part at a time.
type partLayout struct {
	l      *lifetimes
	offset []int64
	placed []int32 // what later buffers may exclude, by offset
	steps  int64   // looks at one placed buffer while another is being placed
}

// layoutInParts places buffers in parts of the given size, and says how many steps that took. It returns nil if the layout would not end
// below the peak, as soon as it is unlikely that the steps suffice, or if the context ends.
func layoutInParts(ctx context.Context, l *lifetimes, nodes, size int, peak, steps int64) (offsets []int64, taken int64) {
	n := len(l.buffers)
	p := &partLayout{l: l, offset: make([]int64, n)}
	byFirst := scratch.CountingSort(n, nodes, nil, func(k int32) int32 { return l.first[k] })
	area := make([]float64, n)
	for k, bytes := range l.bytes {
		area[k] = float64(l.last[k]-l.first[k]+1) * float64(bytes)
	}
	parts := (n + size - 1) / size
	member := func(part int) []int32 { return byFirst[part*size : min(n, (part+1)*size)] }
	// By part and column, the least start from there on.
	start := make([]int32, (parts+1)*l.columns)
	for c := range l.columns {
		start[parts*l.columns+c] = math.MaxInt32
	}
	for part := parts - 1; part >= 0; part-- {
		least := start[part*l.columns:][:l.columns]
		copy(least, start[(part+1)*l.columns:])
		for _, k := range member(part) {
			for c, pos := range l.start[int(k)*l.columns:][:l.columns] {
				least[c] = min(least[c], pos)
			}
		}
	}
	for part := range parts {
		p.settle(start[part*l.columns:][:l.columns])
		members := member(part)
		slices.SortFunc(members, func(a, b int32) int {
			return cmp.Or(cmp.Compare(area[b], area[a]), cmp.Compare(l.bytes[b], l.bytes[a]), cmp.Compare(a, b))
		})
		for _, k := range members {
			if !p.place(k, peak) {
				return nil, p.steps
			}
		}
		// A quarter of the steps is for what is not spread evenly.
		if p.steps > steps/4+steps/4*3/int64(parts)*int64(part+1) || ctx.Err() != nil {
			return nil, p.steps
		}
	}
	return p.offset, p.steps
}

// settle drops what all buffers that are not placed yet come after.
func (p *partLayout) settle(start []int32) {
	l := p.l
	p.placed = slices.DeleteFunc(p.placed, func(k int32) bool {
		if l.endless[k] {
			return false
		}
		for _, m := range l.ends[l.endStart[k]:l.endStart[k+1]] {
			if start[m.column] < m.pos {
				return false
			}
		}
		return true
	})
}

// place puts a buffer into the tightest gap, or on top of what it excludes, and reports whether it ends below the peak.
func (p *partLayout) place(k int32, peak int64) bool {
	l := p.l
	p.steps += int64(len(p.placed))
	bytes := l.bytes[k]
	at, gap, end := int64(-1), int64(math.MaxInt64), int64(0)
	for _, q := range p.placed {
		lo := p.offset[q]
		if lo+l.bytes[q] <= end || l.apart(k, q) {
			continue
		}
		if room := lo - end; room >= bytes && room < gap {
			if at, gap = end, room; room == bytes {
				break
			}
		}
		end = lo + l.bytes[q]
	}
	if at < 0 {
		at = end
	}
	if at+bytes >= peak {
		return false
	}
	p.offset[k] = at
	i, _ := slices.BinarySearchFunc(p.placed, at, func(q int32, at int64) int { return cmp.Compare(p.offset[q], at) })
	p.placed = slices.Insert(p.placed, i, k)
	return true
}
