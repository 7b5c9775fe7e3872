// Tests of searches by ejection that run at a time, of the buffers that wait for others, and of the sizes that they have room for.

package pack

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Which of the searches ends first must not matter: the result is the lowest layout, from the first search that found one as low.
func TestSearchesAtATimeGiveTheLowestOfTheirLayouts(t *testing.T) {
	const searches, steps = 3, 60_000
	first, later, stopped := 0, 0, 0
	for seed := range 20 {
		rng := rand.New(rand.NewPCG(uint64(seed), 13))
		v := randomStreams(rng, 60, 4, 200)
		p := v.problem()
		given := Lower(ctx, p, side(v.size), 0, Budget{Orders: 10_000})
		easy, bySize := p.easy(steps)
		var alone []Result
		for i := range searches {
			r := given
			newEjector(p, easy, bySize, i).lower(ctx, &r, given.Bound, steps)
			requireLayout(t, v, r.Offsets, r.Peak)
			alone = append(alone, r)
		}
		lowest := 0
		for i, r := range alone {
			if r.Peak < alone[lowest].Peak {
				lowest = i
			}
		}
		for range 3 {
			r := given
			p.eject(ctx, &r, given.Bound, steps, searches)
			require.Equal(t, alone[lowest].Peak, r.Peak, "seed %d", seed)
			require.Equal(t, alone[lowest].Offsets, r.Offsets, "seed %d", seed)
		}
		switch {
		case alone[lowest].Peak == given.Bound:
			stopped++
		case lowest > 0:
			later++
		default:
			first++
		}
	}
	t.Logf("the lowest from the first search %d times, from a later one %d times, at the bound %d times", first, later, stopped)
	require.Positive(t, later)
	require.Positive(t, first+stopped)
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
		easy, bySize := p.easy(plenty)
		require.True(t, slices.IsSortedFunc(bySize, func(a, b int32) int { return int(v.size[a] - v.size[b]) }))
		for k := range n {
			require.Equal(t, load[k] < slices.Max(load)/100*crowded, easy[k], "seed %d", seed)
			require.Equal(t, easy[k], slices.Contains(bySize, k))
		}
		some += len(bySize)
		none, _ := p.easy(0)
		require.NotContains(t, none, true, "looking for crowds takes longer than a search of so few steps")
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
