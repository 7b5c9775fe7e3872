// Sets of bytes with the ways in which they were accessed.

package replan

import (
	"cmp"
	"slices"

	"github.com/dagrun/dagrun/internal/recording"
)

// stretch is a half-open range of bytes.
type stretch struct{ low, high uint64 }

// byMode splits runs into one sorted list of stretches for each way of access.
type byMode [3][]stretch

var modes = [3]uint32{recording.Read, recording.Write, recording.Atomic}

func split(runs []recording.Run) byMode {
	var out byMode
	for k, mode := range modes {
		for _, r := range runs {
			if r.Modes&mode != 0 {
				out[k] = extend(out[k], stretch{r.Address, r.Address + uint64(r.Bytes)})
			}
		}
	}
	return out
}

// extend appends a stretch that begins at or behind the last one.
func extend(list []stretch, s stretch) []stretch {
	if n := len(list); n > 0 && list[n-1].high >= s.low {
		list[n-1].high = max(list[n-1].high, s.high)
		return list
	}
	return append(list, s)
}

// without returns the bytes of a that are not in b.
func without(a, b []stretch) []stretch {
	var out []stretch
	k := 0
	for _, s := range a {
		for k < len(b) && b[k].high <= s.low {
			k++
		}
		for at := k; at < len(b) && b[at].low < s.high; at++ {
			if b[at].low > s.low {
				out = append(out, stretch{s.low, b[at].low})
			}
			s.low = min(s.high, b[at].high)
		}
		if s.low < s.high {
			out = append(out, s)
		}
	}
	return out
}

// union returns the bytes of both.
func union(a, b []stretch) []stretch {
	all := append(slices.Clone(a), b...)
	slices.SortFunc(all, func(x, y stretch) int { return cmp.Compare(x.low, y.low) })
	var out []stretch
	for _, s := range all {
		out = extend(out, s)
	}
	return out
}

// common returns the bytes that are in both.
func common(a, b []stretch) []stretch { return without(a, without(a, b)) }

// within returns the part of a in a stretch, counted from the stretch's beginning.
func within(a []stretch, s stretch) []stretch {
	at, _ := slices.BinarySearchFunc(a, s.low, func(x stretch, low uint64) int {
		if x.high <= low {
			return -1
		}
		return 1
	})
	var out []stretch
	for ; at < len(a) && a[at].low < s.high; at++ {
		out = append(out, stretch{max(a[at].low, s.low) - s.low, min(a[at].high, s.high) - s.low})
	}
	return out
}

func moved(a []stretch, distance int64) []stretch {
	out := slices.Clone(a)
	for k := range out {
		out[k].low += uint64(distance)
		out[k].high += uint64(distance)
	}
	return out
}

func (m *byMode) empty() bool { return len(m[0])+len(m[1])+len(m[2]) == 0 }

// followed returns the accesses of a launch that follow a word: those that it makes elsewhere, exactly as far away, when the word is moved by a distance.
// ok is false if the launch did anything else differently.
func followed(usual, away *byMode, distance int64) (follow byMode, ok bool) {
	for k := range usual {
		follow[k] = without(usual[k], away[k])
		if !slices.Equal(without(away[k], usual[k]), moved(follow[k], distance)) {
			return byMode{}, false
		}
	}
	return follow, true
}
