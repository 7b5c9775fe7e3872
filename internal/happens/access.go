// Accesses: stretches of bytes, and the ways in which two of them conflict.

package happens

import (
	"cmp"
	"slices"
)

// Mode is a set of ways of accessing bytes.
type Mode uint8

// The ways of accessing bytes. Those that are only possible, where it is not known whether the step does it, are conflicts that are only possible.
const (
	Read Mode = 1 << iota
	Write
	Atomic
	PossibleRead
	PossibleWrite
	PossibleAtomic

	certain = Read | Write | Atomic
)

// All returns the ways of a mode, the possible ones as certain ones.
func (m Mode) All() Mode { return m&certain | m>>3 }

func (m Mode) writes() bool { return m.All()&(Write|Atomic) != 0 }

// covers says whether whatever conflicts with an earlier access of mode other also conflicts with this one, in the same way.
func (m Mode) covers(other Mode) bool {
	return coversAll(m&certain, other&certain) && coversAll(m.All(), other.All())
}

func coversAll(m, other Mode) bool { return m&Write != 0 || other&^m == 0 }

// Conflict says how two accesses of the same bytes conflict.
type Conflict uint8

// The kinds of conflict.
const (
	NoConflict     Conflict = iota
	OrderDependent          // both are atomic: the result may depend on the order, but no byte is lost
	Possible                // one of them may not happen
	Race
)

func conflictOf(a, b Mode) Conflict {
	switch {
	case races(a&certain, b&certain):
		return Race
	case races(a.All(), b.All()):
		return Possible
	case a.All()&b.All()&Atomic != 0:
		return OrderDependent
	}
	return NoConflict
}

func races(a, b Mode) bool {
	const writes = Write | Atomic
	return a != 0 && b != 0 && (a|b)&writes != 0 && (a|b != Atomic)
}

// Access is a stretch of bytes, from Low to before High, and how it is accessed.
type Access struct {
	Low, High uint64
	Mode      Mode
}

// normalizer makes a step's accesses disjoint and sorts them, each byte once, with all the ways in which it is accessed.
type normalizer struct {
	sorted []Access
	cuts   []uint64
}

func (n *normalizer) normalize(into, accesses []Access) []Access {
	n.sorted = n.sorted[:0]
	tidy := true
	for _, access := range accesses {
		if access.Low >= access.High || access.Mode == 0 {
			continue
		}
		tidy = tidy && (len(n.sorted) == 0 || n.sorted[len(n.sorted)-1].High <= access.Low)
		n.sorted = append(n.sorted, access)
	}
	if tidy {
		return join(into, n.sorted)
	}
	slices.SortFunc(n.sorted, func(a, b Access) int { return cmp.Or(cmp.Compare(a.Low, b.Low), cmp.Compare(a.High, b.High)) })
	n.cuts = n.cuts[:0]
	for _, access := range n.sorted {
		n.cuts = append(n.cuts, access.Low, access.High)
	}
	slices.Sort(n.cuts)
	n.cuts = slices.Compact(n.cuts)
	pieces := make([]Access, 0, len(n.cuts))
	for i, low := range n.cuts[:len(n.cuts)-1] {
		pieces = append(pieces, Access{Low: low, High: n.cuts[i+1]})
	}
	first := 0
	for _, access := range n.sorted {
		for pieces[first].High <= access.Low {
			first++
		}
		for i := first; i < len(pieces) && pieces[i].Low < access.High; i++ {
			pieces[i].Mode |= access.Mode
		}
	}
	return join(into, pieces)
}

// join appends accesses that are sorted and disjoint, those that touch as one.
func join(into, accesses []Access) []Access {
	for _, access := range accesses {
		if access.Mode == 0 {
			continue
		}
		if last := len(into) - 1; last >= 0 && into[last].High == access.Low && into[last].Mode == access.Mode {
			into[last].High = access.High
			continue
		}
		into = append(into, access)
	}
	return into
}
