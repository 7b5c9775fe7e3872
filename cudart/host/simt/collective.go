// Operations among the lanes of a warp: shuffles, votes, matches and reductions.

package simt

import (
	"math/bits"

	"github.com/dagrun/dagrun/internal/ptx"
)

// shuffle is shfl: d gets the value of another lane; p (a predicate, or -1) gets whether that lane is in range.
func shuffle(mode ptx.Mod, d, p, a, b, c int) op {
	return func(x *exec, m uint32) {
		from := *x.s[a] // a copy, because the target may be the source
		var inRange uint32
		for left := m; left != 0; left &= left - 1 {
			lane := bits.TrailingZeros32(left) & 31
			delta := int(x.s[b][lane] & 31)
			control := x.s[c][lane]
			clamp, segment := int(control&31), int(control>>8&31)
			last := lane&segment | clamp&^segment
			first := lane & segment
			source, ok := lane, false
			switch mode {
			case ptx.ModUp:
				source = lane - delta
				ok = source >= last
			case ptx.ModDown:
				source = lane + delta
				ok = source <= last
			case ptx.ModBfly:
				source = lane ^ delta
				ok = source <= last
			default:
				source = first | delta&^segment
				ok = source <= last
			}
			if !ok {
				source = lane
			} else {
				inRange |= 1 << lane
			}
			x.s[d][lane] = uint64(uint32(from[source&31]))
		}
		if p >= 0 {
			x.p[p] = x.p[p]&^m | inRange&m
		}
	}
}

// vote is vote.all, .any, .uni and .ballot.
func vote(mode ptx.Mod, d, p int, source func(x *exec) uint32) op {
	return func(x *exec, m uint32) {
		yes := source(x) & m
		switch mode {
		case ptx.ModBallot:
			for left := m; left != 0; left &= left - 1 {
				x.s[d][bits.TrailingZeros32(left)&31] = uint64(yes)
			}
			return
		}
		var result bool
		switch mode {
		case ptx.ModAll:
			result = yes == m
		case ptx.ModAny:
			result = yes != 0
		default: // uni
			result = yes == m || yes == 0
		}
		x.p[p] &^= m
		if result {
			x.p[p] |= m
		}
	}
}

// match is match.any and .all.
func match(all bool, d, p, a, n int) op {
	return func(x *exec, m uint32) {
		values := *x.s[a]
		same := func(lane int) (set uint32) {
			for left := m; left != 0; left &= left - 1 {
				if i := bits.TrailingZeros32(left) & 31; truncate(values[i], n) == truncate(values[lane], n) {
					set |= 1 << i
				}
			}
			return set
		}
		if all {
			set := same(bits.TrailingZeros32(m) & 31)
			if set != m {
				set = 0
			}
			for left := m; left != 0; left &= left - 1 {
				x.s[d][bits.TrailingZeros32(left)&31] = uint64(set)
			}
			if p >= 0 {
				x.p[p] = x.p[p]&^m | set
			}
			return
		}
		for left := m; left != 0; left &= left - 1 {
			lane := bits.TrailingZeros32(left) & 31
			x.s[d][lane] = uint64(same(lane))
		}
	}
}

// reduce is redux: every lane gets the combination of all values. start gives what it starts with, from the value of one lane.
func reduce(f combine, d, a int, start func(uint64) uint64) op {
	return func(x *exec, m uint32) {
		first := bits.TrailingZeros32(m) & 31
		v := start(x.s[a][first])
		for left := m & (m - 1); left != 0; left &= left - 1 {
			v = uint64(uint32(f(v, x.s[a][bits.TrailingZeros32(left)&31], 0)))
		}
		for left := m; left != 0; left &= left - 1 {
			x.s[d][bits.TrailingZeros32(left)&31] = v
		}
	}
}

// elect chooses the first lane.
func elect(d, p int) op {
	return func(x *exec, m uint32) {
		first := bits.TrailingZeros32(m) & 31
		if d >= 0 {
			for left := m; left != 0; left &= left - 1 {
				x.s[d][bits.TrailingZeros32(left)&31] = uint64(first)
			}
		}
		if p >= 0 {
			x.p[p] = x.p[p]&^m | 1<<first
		}
	}
}
