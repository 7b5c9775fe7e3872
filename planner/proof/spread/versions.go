// Versions of bytes: which node wrote what a range of bytes holds.

package spread

import (
	"slices"
	"sort"
	"strconv"
)

// index finds the run of a byte.
func (v *byteVersions) index(at int64) int {
	return sort.Search(len(v.runs), func(k int) bool { return v.runs[k].hi > at })
}

// at returns the version of a byte, and where its run ends.
func (v *byteVersions) at(byte int64) (version int32, end int64) {
	r := v.runs[v.index(byte)]
	return r.version, r.hi
}

// set gives lo..hi a version.
func (v *byteVersions) set(lo, hi int64, version int32) {
	if lo >= hi {
		return
	}
	first := v.index(lo)
	end := first
	fresh := make([]versionRun, 0, 3)
	if first < len(v.runs) && v.runs[first].lo < lo {
		left := v.runs[first]
		left.hi = lo
		fresh = append(fresh, left)
	}
	fresh = append(fresh, versionRun{lo, hi, version})
	for end < len(v.runs) && v.runs[end].hi <= hi {
		end++
	}
	if end < len(v.runs) && v.runs[end].lo < hi {
		right := v.runs[end]
		right.lo = hi
		fresh = append(fresh, right)
		end++
	}
	v.runs = slices.Replace(v.runs, first, end, fresh...)
}

// take copies the versions of an extent from another piece of the same buffer.
func (v *byteVersions) take(other *byteVersions, e extent) {
	var moved []versionRun
	for at := e.lo; at < e.hi; {
		version, end := other.at(at)
		end = min(end, e.hi)
		moved = append(moved, versionRun{at, end, version})
		at = end
	}
	for _, r := range moved {
		v.set(r.lo, r.hi, r.version)
	}
}

// sameVersions returns the places of a piece that hold the buffer's versions.
func sameVersions(buffer, piece *byteVersions, all extent) []extent {
	var same []extent
	for at := all.lo; at < all.hi; {
		want, wantEnd := buffer.at(at)
		has, hasEnd := piece.at(at)
		end := min(all.hi, wantEnd, hasEnd)
		if want == has {
			if last := len(same) - 1; last >= 0 && same[last].hi == at {
				same[last].hi = end
			} else {
				same = append(same, extent{at, end})
			}
		}
		at = end
	}
	return same
}

func number(n int32) string { return strconv.Itoa(int(n)) }
