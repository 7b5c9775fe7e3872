// A packing problem: buffers with sizes, which pairs exclude each other, and sets of buffers that all exclude each other.

package pack

import (
	"cmp"
	"math/bits"
	"slices"
)

// Problem tells which buffers may share bytes. Buffers are numbered from 0. A table holds a bit for each pair, so problems of more than a
// few thousand buffers take much memory.
type Problem struct {
	size  []int64
	first []int32 // by buffer, the place from which it is alive
	last  []int32 // by buffer, the last such place
	grain int64   // divides all sizes, and so the ends of all pushed-down layouts

	words int
	clash []uint64 // by buffer, a bit for each buffer that it excludes; rows of words
	start []int32  // by buffer, into other
	other []int32  // the same as lists, ascending

	sections [][]int32 // sets of buffers that all exclude each other
	within   [][]int32 // by buffer, the sections it is in
	load     []int64   // by section, the bytes of its buffers
	heaviest int32     // the section with the most bytes, -1 if there is none yet
	more     func()    // adds sections that take long to find; nil if there are none
}

// Intervals returns the problem of buffers that are alive from the first to the last place of some order, both included. Sizes are
// positive.
func Intervals(size []int64, first, last []int32) *Problem {
	p := newProblem(size, first, last)
	p.cuts()
	p.list()
	p.fill()
	return p
}

// gatherLimit is the most buffers for which sections are gathered across streams. In larger problems they take longer to check than they
// save.
const gatherLimit = 400

// Crossed returns the problem of buffers whose accesses are only partly ordered, as in a plan on several streams. Buffers whose spans of
// places overlap exclude each other, and so do the pairs for which cross calls exclude.
func Crossed(size []int64, first, last []int32, cross func(exclude func(a, b int32))) *Problem {
	p := newProblem(size, first, last)
	crossed := false
	cross(func(a, b int32) {
		p.exclude(a, b)
		crossed = true
	})
	p.cuts()
	p.list()
	p.fill()
	if crossed && len(size) <= gatherLimit {
		p.more = func() {
			p.widen()
			p.gather()
		}
	}
	return p
}

// complete adds the sections that take long to find, once.
func (p *Problem) complete() {
	if p.more != nil {
		p.more()
		p.more = nil
		p.fill()
	}
}

func newProblem(size []int64, first, last []int32) *Problem {
	n := len(size)
	p := &Problem{size: size, first: first, last: last, words: (n + 63) / 64, heaviest: -1}
	p.clash = make([]uint64, n*p.words)
	for _, bytes := range size {
		p.grain = gcd(p.grain, bytes)
	}
	return p
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// Bound returns the bytes of the heaviest known section: every layout needs at least as many.
func (p *Problem) Bound() int64 {
	if p.heaviest < 0 {
		return 0
	}
	return p.load[p.heaviest]
}

// floor returns the highest end of a pushed-down layout that is not above a capacity.
func (p *Problem) floor(capacity int64) int64 {
	if p.grain == 0 {
		return capacity
	}
	return capacity - capacity%p.grain
}

// dive returns about how many steps it takes to place all buffers once.
func (p *Problem) dive() int64 { return int64(len(p.other) + 8*len(p.size)) }

// ranked returns the buffers in an order, ties by number.
func (p *Problem) ranked(compare func(a, b int32) int) []int32 {
	order := make([]int32, len(p.size))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, compare)
	return order
}

func (p *Problem) exclude(a, b int32) {
	p.clash[int(a)*p.words+int(b>>6)] |= 1 << (b & 63)
	p.clash[int(b)*p.words+int(a>>6)] |= 1 << (a & 63)
}

func (p *Problem) excludes(a, b int32) bool {
	return p.clash[int(a)*p.words+int(b>>6)]&(1<<(b&63)) != 0
}

func (p *Problem) row(k int32) []uint64 { return p.clash[int(k)*p.words:][:p.words] }

func (p *Problem) others(k int32) []int32 { return p.other[p.start[k]:p.start[k+1]] }

// cuts adds the sections that are alive at one place, at the last place before some of their buffers end, and their exclusions.
func (p *Problem) cuts() {
	first, last := p.first, p.last
	byFirst := p.ranked(func(a, b int32) int { return cmp.Compare(first[a], first[b]) })
	byLast := p.ranked(func(a, b int32) int { return cmp.Compare(last[a], last[b]) })
	var alive []int32
	grown := false // since the last section
	for _, k := range byFirst {
		for ; last[byLast[0]] < first[k]; byLast = byLast[1:] {
			if grown {
				p.sections = append(p.sections, slices.Clone(alive))
				grown = false
			}
			i := slices.Index(alive, byLast[0])
			alive = slices.Delete(alive, i, i+1)
		}
		for _, q := range alive {
			p.exclude(k, q)
		}
		alive = append(alive, k)
		grown = true
	}
	if grown {
		p.sections = append(p.sections, alive)
	}
}

// list makes the lists from the table.
func (p *Problem) list() {
	total := 0
	p.start = make([]int32, len(p.size)+1)
	for k := range p.size {
		for _, w := range p.row(int32(k)) {
			total += bits.OnesCount64(w)
		}
		p.start[k+1] = int32(total)
	}
	p.other = make([]int32, 0, total)
	for k := range p.size {
		p.other = appendBits(p.other, p.row(int32(k)))
	}
}

func appendBits(to []int32, set []uint64) []int32 {
	for i, w := range set {
		for ; w != 0; w &= w - 1 {
			to = append(to, int32(i*64+bits.TrailingZeros64(w)))
		}
	}
	return to
}

// widen adds to each section the buffers that all of its buffers exclude, the largest first.
func (p *Problem) widen() {
	common := make([]uint64, p.words)
	for i := range p.sections {
		copy(common, p.row(p.sections[i][0]))
		for _, k := range p.sections[i][1:] {
			for x, w := range p.row(k) {
				common[x] &= w
			}
		}
		p.sections[i] = p.grow(p.sections[i], common)
	}
}

// gather adds a section around each buffer, so that exclusions across streams, which no cut contains, count too.
func (p *Problem) gather() {
	common := make([]uint64, p.words)
	for k := range p.size {
		copy(common, p.row(int32(k)))
		s := p.grow([]int32{int32(k)}, common)
		slices.Sort(s)
		p.sections = append(p.sections, s)
	}
	// Drop duplicates.
	for _, s := range p.sections {
		slices.Sort(s)
	}
	slices.SortStableFunc(p.sections, slices.Compare)
	p.sections = slices.CompactFunc(p.sections, slices.Equal)
}

// grow adds buffers of a set that all buffers of a section exclude, the largest first, and empties the set.
func (p *Problem) grow(s []int32, common []uint64) []int32 {
	for {
		most := int32(-1)
		for i, w := range common {
			for ; w != 0; w &= w - 1 {
				if k := int32(i*64 + bits.TrailingZeros64(w)); most < 0 || p.size[k] > p.size[most] {
					most = k
				}
			}
		}
		if most < 0 {
			return s
		}
		s = append(s, most)
		for x, w := range p.row(most) {
			common[x] &= w
		}
	}
}

// Section sets a function that finds a section when the first quick tries have failed, for a bound and for the search.
func (p *Problem) Section(find func() []int32) {
	before := p.more
	p.more = func() {
		if before != nil {
			before()
		}
		p.sections = append(p.sections, find())
	}
}

// fill computes the lists and loads of the sections.
func (p *Problem) fill() {
	p.within = make([][]int32, len(p.size))
	p.load = make([]int64, len(p.sections))
	p.heaviest = -1
	for i, s := range p.sections {
		for _, k := range s {
			p.load[i] += p.size[k]
			p.within[k] = append(p.within[k], int32(i))
		}
		if p.heaviest < 0 || p.load[i] > p.load[p.heaviest] {
			p.heaviest = int32(i)
		}
	}
}

// peakOf returns the end of a layout.
func peakOf(size, offsets []int64) int64 {
	peak := int64(0)
	for k, lo := range offsets {
		peak = max(peak, lo+size[k])
	}
	return peak
}

// Verdict is the outcome of a search.
type Verdict uint8

const (
	// Unknown: nothing was found within the steps, and nothing was proved.
	Unknown Verdict = iota
	// Found: a layout within the capacity was found.
	Found
	// Impossible: no layout fits the capacity.
	Impossible
)

// Result is what a search found.
type Result struct {
	Verdict Verdict
	Offsets []int64 // by buffer; nil if Fit found none
	Peak    int64   // the end of the layout
	Bound   int64   // proved: every layout ends here or higher
	Steps   int64   // taken
}

// take keeps a layout that ends lower than the one so far.
func (r *Result) take(offsets []int64, peak int64) {
	if peak < r.Peak {
		r.Offsets, r.Peak = offsets, peak
	}
}
