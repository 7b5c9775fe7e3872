// Tests of where a unit is put on a device: at the place that costs least to free, found by trying every place.

package placement

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
)

const grain = 256

// crowded makes a device whose memory is full of units, with gaps, each of which costs something to take off; math.Inf(1): it must stay.
func crowded(rooms []int64, gaps []int64, costs []float64, base, limit int64) (*choosing, []room) {
	c := &choosing{p: &SpillProblem{}, r: &rule{limit: limit}, base: []int64{base}, turn: []int64{0}, when: make([]float64, 10)}
	c.dirty, c.lock, c.soon = make([]bool, len(rooms)), make([]int32, len(rooms)), make([]soon, len(rooms))
	var list []room
	at := base
	for u := range rooms {
		at += gaps[u]
		list = append(list, room{at, at + rooms[u], int32(u)})
		at += rooms[u]
		c.lock[u], c.soon[u] = -1, soon{at: 1000, load: costs[u]}
		if math.IsInf(costs[u], 1) {
			c.lock[u] = 5
		}
	}
	return c, list
}

func TestASpotIsTheCheapestPlace(t *testing.T) {
	found, none, free := 0, 0, 0
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 6))
		n := rng.IntN(9)
		rooms, gaps, costs := make([]int64, n), make([]int64, n), make([]float64, n)
		base := grain * rng.Int64N(3)
		end := base
		for u := range n {
			rooms[u], gaps[u], costs[u] = grain*(1+rng.Int64N(4)), grain*max(0, rng.Int64N(5)-2), float64(rng.IntN(6))
			if rng.IntN(4) == 0 {
				costs[u] = math.Inf(1)
			}
			end += rooms[u] + gaps[u]
		}
		limit := end + grain*rng.Int64N(3)
		c, list := crowded(rooms, gaps, costs, base, limit)
		c.r.around = rng.IntN(2) == 0
		c.turn[0] = grain * rng.Int64N(limit/grain+1)
		size := &unit{room: grain * (1 + rng.Int64N(6))}
		least, lowest := math.Inf(1), int64(-1)
		cost := func(at int64) (sum float64) {
			for u, r := range list {
				if r.lo < at+size.room && at < r.hi {
					sum += costs[u]
				}
			}
			return sum
		}
		for at := base; at+size.room <= limit; at += grain {
			if v := cost(at); v < least {
				least, lowest = v, at
			}
		}
		s := spot{at: -1, cost: math.Inf(1)}
		c.look(&s, size, list, 5, 6)
		if lowest < 0 {
			require.Equal(t, int64(-1), s.at, "seed %d", seed)
			none++
			continue
		}
		found++
		require.Equal(t, least, s.cost, "seed %d", seed)
		require.Equal(t, least, cost(s.at), "seed %d", seed)
		require.True(t, s.at >= base && s.at+size.room <= limit)
		if least == 0 {
			free++
		}
		if !c.r.around {
			require.Equal(t, lowest, s.at, "seed %d: the lowest of those", seed)
		}
		for k, r := range list {
			require.Equal(t, k >= s.from && k < s.to, r.hi > s.at && r.lo < s.at+size.room, "seed %d: entry %d of %d to %d", seed, k, s.from, s.to)
		}
	}
	require.Greater(t, found, 1000)
	require.Greater(t, none, 50)
	require.Greater(t, free, 100)
}

// A long list is looked at from where the last unit was put, until something is found that is free, or thousands of entries have been.
func TestLongListsAreLookedAtUntilThereIsASpot(t *testing.T) {
	const n = 3*lookedAt + 100
	for name, c := range map[string]struct {
		usual, other float64 // what the entries cost, and one of them
		ahead        int     // how far that one is from where the last unit was put
		cost         float64
		most         int // entries that are looked at
	}{
		"the only one that may leave, at the end": {math.Inf(1), 1, n - 1, 1, n + 1},
		"the only one that may leave, before":     {math.Inf(1), 1, 2*lookedAt + 5, 1, 2*lookedAt + 5 + lookedAtOnce},
		"one that is free":                        {3, 0, 10, 0, lookedAtOnce},
		"one that is free, later":                 {3, 0, lookedAtOnce + 10, 0, 2 * lookedAtOnce},
		"the cheapest of the first":               {3, 1, lookedAt - 1, 1, lookedAt},
		"a cheaper one too far away":              {3, 1, lookedAt + lookedAtOnce, 3, lookedAt},
		"none that may leave":                     {math.Inf(1), math.Inf(1), 0, math.Inf(1), n + 1},
	} {
		t.Run(name, func(t *testing.T) {
			for _, start := range []int{0, 17, n - 1} {
				rooms, gaps, costs := make([]int64, n), make([]int64, n), make([]float64, n)
				for u := range n {
					rooms[u], costs[u] = grain, c.usual
				}
				other := (start + c.ahead) % n
				costs[other] = c.other
				choice, list := crowded(rooms, gaps, costs, 0, n*grain)
				choice.turn[0] = int64(start) * grain
				s := spot{at: -1, cost: math.Inf(1)}
				choice.look(&s, &unit{room: grain}, list, 5, 6)
				require.Equal(t, c.cost, s.cost)
				if c.cost == c.other && !math.IsInf(c.cost, 1) {
					require.Equal(t, int64(other)*grain, s.at)
				}
				require.LessOrEqual(t, choice.seen, c.most+lookedAtOnce)
			}
		})
	}
}

// The unit of a range has all of it; an empty range belongs to what begins there, and at the very end to what ends there.
func TestUnitsOfRanges(t *testing.T) {
	p := &SpillProblem{first: []int32{0, 1, 3, 3}}
	for _, u := range [][3]int64{{0, 0, 8}, {1, 0, 8}, {1, 8, 16}} {
		p.units = append(p.units, unit{buffer: dag.BufferID(u[0]), lo: u[1], hi: u[2]})
	}
	for _, c := range []struct {
		buffer dag.BufferID
		lo, hi int64
		want   int32
	}{{0, 0, 8, 0}, {0, 2, 4, 0}, {1, 0, 8, 1}, {1, 8, 16, 2}, {1, 15, 16, 2}, {1, 7, 9, -1}, {1, 16, 17, -1}, {1, 8, 17, -1}, {1, 0, 0, 1}, {1, 3, 3, 1}, {1, 8, 8, 2}, {1, 16, 16, 2}, {0, 8, 8, 0}, {2, 0, 0, -1}, {2, 0, 1, -1}} {
		require.Equal(t, c.want, p.unitOf(dag.Range{Buffer: c.buffer, Lo: c.lo, Hi: c.hi}), "%+v", c)
	}
}
