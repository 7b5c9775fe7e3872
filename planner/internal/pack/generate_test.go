// Makes problems for tests: small random ones, rectangles cut into buffers, and lifetimes on several streams.

package pack

import (
	"math/rand/v2"
)

// lives describes buffers from which a problem is made.
type lives struct {
	size        []int64
	first, last []int32
	before      func(a, b int32) bool // nil: lifetimes are intervals
}

func (v *lives) problem() *Problem {
	if v.before == nil {
		return Intervals(v.size, v.first, v.last)
	}
	return Crossed(v.size, v.first, v.last, func(exclude func(a, b int32)) {
		for a := range int32(len(v.size)) {
			for b := range a {
				if !v.apart(a, b) {
					exclude(a, b)
				}
			}
		}
	})
}

// apart reports whether two buffers may share bytes, judged only by their lifetimes.
func (v *lives) apart(a, b int32) bool {
	if v.first[a] > v.first[b] || v.first[a] == v.first[b] && a > b {
		a, b = b, a
	}
	return v.last[a] < v.first[b] && (v.before == nil || v.before(a, b))
}

// randomIntervals are buffers with random sizes and lifetimes.
func randomIntervals(rng *rand.Rand, buffers, places int, most int64) *lives {
	v := &lives{}
	for range buffers {
		a, b := int32(rng.IntN(places)), int32(rng.IntN(places))
		v.size = append(v.size, 1+rng.Int64N(most))
		v.first = append(v.first, min(a, b))
		v.last = append(v.last, max(a, b))
	}
	return v
}

// randomStreams are buffers that nodes on several streams write and read. Nodes sometimes wait for a node of another stream.
func randomStreams(rng *rand.Rand, buffers, streams int, most int64) *lives {
	v := &lives{}
	nodes := 2 * buffers
	stream, pos := make([]int, nodes), make([]int, nodes)
	clock := make([][]int, nodes) // by node and stream, how many nodes of the stream come before it
	count := make([]int, streams)
	latest := make([]int, streams)
	for s := range latest {
		latest[s] = -1
	}
	for i := range nodes {
		s := rng.IntN(streams)
		stream[i], pos[i] = s, count[s]
		clock[i] = make([]int, streams)
		merge := func(q int) {
			if q < 0 {
				return
			}
			for k, n := range clock[q] {
				clock[i][k] = max(clock[i][k], n)
			}
			clock[i][stream[q]] = max(clock[i][stream[q]], pos[q]+1)
		}
		merge(latest[s])
		if rng.IntN(3) == 0 {
			merge(latest[rng.IntN(streams)])
		}
		latest[s] = i
		count[s]++
	}
	users := make([][]int, buffers)
	for k := range users {
		i := rng.IntN(nodes)
		users[k] = append(users[k], i)
		for range 1 + rng.IntN(2) {
			users[k] = append(users[k], min(nodes-1, i+rng.IntN(nodes/3+1)))
		}
		low, high := nodes, 0
		for _, u := range users[k] {
			low, high = min(low, u), max(high, u)
		}
		v.size = append(v.size, 1+rng.Int64N(most))
		v.first = append(v.first, int32(low))
		v.last = append(v.last, int32(high))
	}
	v.before = func(a, b int32) bool {
		for _, x := range users[a] {
			for _, y := range users[b] {
				if clock[y][stream[x]] <= pos[x] {
					return false
				}
			}
		}
		return true
	}
	return v
}

// randomTangle are buffers for which it is random whether any two may share bytes, unlike with lifetimes.
func randomTangle(rng *rand.Rand, buffers int, most int64) *lives {
	v := &lives{}
	share := make([]bool, buffers*buffers)
	for k := range buffers {
		v.size = append(v.size, 1+rng.Int64N(most))
		v.first = append(v.first, int32(k))
		v.last = append(v.last, int32(k))
		for q := range buffers {
			share[k*buffers+q] = rng.IntN(2) == 0
		}
	}
	v.before = func(a, b int32) bool { return share[int(a)*buffers+int(b)] }
	return v
}

// cutRectangle cuts a rectangle of the given places and bytes into buffers without gaps, so that the least capacity is known: its
// height. Some cuts are pinwheels, which no sequence of straight cuts makes.
func cutRectangle(rng *rand.Rand, buffers int, places int32, height, grain int64) *lives {
	type part struct {
		x, wide int32
		high    int64
	}
	v := &lives{}
	parts := []part{{0, places, height / grain}}
	area := func(p part) int64 { return int64(p.wide) * p.high }
	for len(parts) < buffers {
		// Cut one of the larger parts.
		k := rng.IntN(len(parts))
		for range 3 {
			if other := rng.IntN(len(parts)); area(parts[other]) > area(parts[k]) {
				k = other
			}
		}
		p := parts[k]
		at := func(n int64) int64 { return 1 + rng.Int64N(n-1) }
		switch {
		case p.wide >= 3 && p.high >= 3 && rng.IntN(4) == 0:
			// Four arms around a middle.
			x1 := int32(at(int64(p.wide) - 1))
			x2 := x1 + int32(at(int64(p.wide-x1)))
			y1 := at(p.high - 1)
			y2 := y1 + at(p.high-y1)
			parts[k] = part{p.x, x2, y1}
			parts = append(parts, part{p.x + x2, p.wide - x2, y2}, part{p.x + x1, p.wide - x1, p.high - y2},
				part{p.x, x1, p.high - y1}, part{p.x + x1, x2 - x1, y2 - y1})
		case p.wide >= 2 && rng.IntN(2) == 0:
			x := int32(at(int64(p.wide)))
			parts[k] = part{p.x, x, p.high}
			parts = append(parts, part{p.x + x, p.wide - x, p.high})
		case p.high >= 2:
			y := at(p.high)
			parts[k].high = y
			parts = append(parts, part{p.x, p.wide, p.high - y})
		}
	}
	rng.Shuffle(len(parts), func(a, b int) { parts[a], parts[b] = parts[b], parts[a] })
	for _, p := range parts {
		v.size = append(v.size, p.high*grain)
		v.first = append(v.first, p.x)
		v.last = append(v.last, p.x+p.wide-1)
	}
	return v
}
