// Tests of searches by ejection that run at a time, of the buffers that wait for others, and of the sizes that they have room for.

package pack

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Which of the searches ends a round first must not matter: the layout is that of searches one after the other, and no search alone is better
// for having ended first.
func TestSearchesAtATimeGoOnFromTheLowestOfTheirLayouts(t *testing.T) {
	const searches, steps = 3, 60_000
	first, later, followed := 0, 0, 0
	for seed := range 20 {
		rng := rand.New(rand.NewPCG(uint64(seed), 13))
		v := randomStreams(rng, 60, 4, 200)
		p := v.problem()
		given := Lower(ctx, p, side(v.size), 0, Budget{Orders: 10_000})
		easy, bySize, heaviest := p.easy(steps)
		least := max(given.Bound, heaviest)
		var all []*ejector
		for i := range searches {
			e := newEjector(p, easy, bySize, i)
			e.begin(given.Offsets, given.Peak, least)
			all = append(all, e)
		}
		want := given
		for round := int64(1); round <= rounds && want.Peak > least; round++ {
			lowest := -1
			for i, e := range all {
				e.run(ctx, steps*round/rounds)
				requireLayout(t, v, e.best, e.peak)
				if e.peak < want.Peak {
					want.Offsets, want.Peak, lowest = slices.Clone(e.best), e.peak, i
				}
			}
			for _, e := range all {
				if e.peak > want.Peak {
					followed++
				}
				e.follow(&want)
				require.Equal(t, want.Peak, e.peak)
			}
			switch {
			case lowest > 0:
				later++
			case lowest == 0:
				first++
			}
		}
		for range 3 {
			r := given
			p.eject(ctx, &r, given.Bound, steps, searches)
			require.Equal(t, want.Peak, r.Peak, "seed %d", seed)
			require.Equal(t, want.Offsets, r.Offsets, "seed %d", seed)
			require.Equal(t, least, r.Bound)
		}
	}
	t.Logf("the lowest from the first search in %d rounds, from a later one in %d; %d times one went on from another's", first, later, followed)
	require.Positive(t, first)
	require.Positive(t, later)
	require.Positive(t, followed)
}

// A search for a lower layout starts from the lowest one without a band of it: what was in the band has no place, and all else fits below the
// capacity. That the bands differ, and are not all at the top, is what keeps a search from starting the same way each time.
func TestASearchStartsFromALayoutWithoutABand(t *testing.T) {
	out, atTop, below := 0, 0, 0
	for seed := range 40 {
		rng := rand.New(rand.NewPCG(uint64(seed), 16))
		v := randomStreams(rng, 50, 3, 100)
		v.size[0] = 1 // so that offsets are grains
		p := v.problem()
		given := Lower(ctx, p, side(v.size), 0, Budget{Orders: 10_000})
		easy, bySize, _ := p.easy(plenty)
		e := newEjector(p, easy, bySize, 0)
		e.begin(given.Offsets, given.Peak, 0)
		height := given.Peak/20 + 1
		sets := map[string]bool{}
		for range 10 {
			e.start(given.Offsets, given.Peak-height)
			require.Equal(t, len(v.size), len(e.order)+len(e.out)+len(e.waiting))
			from, to, top := int64(0), given.Peak-height, true
			for _, x := range e.order {
				k := x.buffer()
				require.LessOrEqual(t, e.span[k].top-v.size[k], e.span[k].low)
				require.LessOrEqual(t, e.span[k].low+v.size[k], given.Peak-height)
			}
			for _, k := range e.out { // where a band can begin that meets them all
				lo, hi := given.Offsets[k], given.Offsets[k]+v.size[k]
				require.False(t, easy[k])
				from, to = max(from, lo-height+1), min(to, hi-1)
				top = top && hi > given.Peak-height
			}
			out += len(e.out)
			if len(e.out) > 0 {
				if top {
					atTop++
				} else {
					below++
				}
			}
			require.LessOrEqual(t, from, to, "seed %d: no band that high meets all that has no place", seed)
			sets[fmt.Sprint(e.out)] = true
		}
		require.Greater(t, len(sets), 1, "seed %d", seed)
	}
	t.Logf("%d buffers without places; %d bands at the top, %d below", out, atTop, below)
	require.Positive(t, atTop)
	require.Positive(t, below)
}

// Crowds are gathered by sets of bits; this test gathers them pair by pair.
func TestEasyBuffersAreOnlyInLightCrowds(t *testing.T) {
	some := 0
	for seed := range 50 {
		rng := rand.New(rand.NewPCG(uint64(seed), 14))
		v := randomStreams(rng, 50, 3, 100)
		n := int32(len(v.size))
		largest := make([]int32, n)
		for k := range n {
			largest[k] = k
		}
		slices.SortStableFunc(largest, func(a, b int32) int { return int(v.size[b] - v.size[a]) })
		load := make([]int64, n)
		for k := range n {
			crowd, bytes := []int32{k}, v.size[k]
			for _, q := range largest {
				if !slices.ContainsFunc(crowd, func(other int32) bool { return other == q || v.apart(other, q) }) {
					crowd, bytes = append(crowd, q), bytes+v.size[q]
				}
			}
			for _, q := range crowd {
				load[q] = max(load[q], bytes)
			}
		}
		p := v.problem()
		easy, bySize, heaviest := p.easy(plenty)
		require.Equal(t, slices.Max(load), heaviest)
		require.True(t, slices.IsSortedFunc(bySize, func(a, b int32) int { return int(v.size[a] - v.size[b]) }))
		for k := range n {
			require.Equal(t, load[k] < slices.Max(load)/100*crowded, easy[k], "seed %d", seed)
			require.Equal(t, easy[k], slices.Contains(bySize, k))
		}
		some += len(bySize)
		none, _, unknown := p.easy(0)
		require.NotContains(t, none, true, "looking for crowds takes longer than a search of so few steps")
		require.Zero(t, unknown)
	}
	require.Greater(t, some, 100)
}

// Offsets and numbers share 62 bits. A problem that needs more keeps the layout it has.
func TestHugeArenasAreNotEjected(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 15))
	v := randomStreams(rng, 20, 3, 40)
	p := v.problem()
	require.Equal(t, int64(1), p.grain)
	require.True(t, p.ejectable(nowhere-1))
	require.False(t, p.ejectable(nowhere))
	v.size[0], v.size[1] = nowhere, nowhere+1
	p = v.problem()
	r := Lower(ctx, p, side(v.size), 0, Budget{Eject: 1_000_000, Searches: 2})
	requireLayout(t, v, r.Offsets, r.Peak)
	require.GreaterOrEqual(t, r.Peak, int64(nowhere))
}
