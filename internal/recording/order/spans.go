// Spans: what lies at an address, for allocations and tensors that come and go.

package order

import (
	"slices"
	"sort"
)

// span is a stretch of memory and what lies there.
type span[T any] struct {
	low, high uint64
	is        T
}

// spans holds disjoint stretches by address, in pages so that inserting moves little.
type spans[T any] struct {
	pages [][]span[T]
	full  int // spans of a page
}

// at returns what lies at an address, or T's zero.
func (s *spans[T]) at(address uint64) (is T) {
	page := sort.Search(len(s.pages), func(i int) bool { return s.pages[i][0].low > address }) - 1
	if page < 0 {
		return is
	}
	in := s.pages[page]
	one := in[sort.Search(len(in), func(i int) bool { return in[i].low > address })-1]
	if address >= one.high {
		return is
	}
	return one.is
}

// put makes something lie between two addresses, in place of all that it overlaps.
func (s *spans[T]) put(low, high uint64, is T) { s.replace(low, high, span[T]{low, high, is}) }

// drop makes nothing lie between two addresses, nor what reaches into there.
func (s *spans[T]) drop(low, high uint64) { s.replace(low, high) }

func (s *spans[T]) replace(low, high uint64, with ...span[T]) {
	page := max(sort.Search(len(s.pages), func(i int) bool { return s.pages[i][0].low > low })-1, 0)
	if page == len(s.pages) {
		if len(with) > 0 {
			s.pages = append(s.pages, with)
		}
		return
	}
	in := s.pages[page]
	at := sort.Search(len(in), func(i int) bool { return in[i].high > low })
	end := at
	for end < len(in) && in[end].low < high {
		end++
	}
	last := end == len(in) // what it replaces may go on, on the next pages
	in = slices.Replace(in, at, end, with...)
	s.pages[page] = in
	if end = page + 1; last {
		for end < len(s.pages) && s.pages[end][0].low < high {
			next := s.pages[end]
			keep := sort.Search(len(next), func(i int) bool { return next[i].low >= high })
			if keep < len(next) {
				s.pages[end] = next[keep:]
				break
			}
			end++
		}
		s.pages = slices.Delete(s.pages, page+1, end)
	}
	switch {
	case len(in) == 0:
		s.pages = slices.Delete(s.pages, page, page+1)
	case len(in) > s.full:
		half := len(in) / 2
		s.pages = slices.Insert(s.pages, page+1, slices.Clone(in[half:]))
		s.pages[page] = in[:half:half]
	}
}

// all returns what lies anywhere.
func (s *spans[T]) all() []T {
	var found []T
	for _, in := range s.pages {
		for _, one := range in {
			found = append(found, one.is)
		}
	}
	return found
}

// overlapping returns what lies between two addresses.
func (s *spans[T]) overlapping(low, high uint64) []T {
	var found []T
	for page := max(sort.Search(len(s.pages), func(i int) bool { return s.pages[i][0].low > low })-1, 0); page < len(s.pages); page++ {
		for _, one := range s.pages[page] {
			if one.low >= high {
				return found
			}
			if one.high > low {
				found = append(found, one.is)
			}
		}
	}
	return found
}
