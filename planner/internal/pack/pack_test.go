// Tests of the search: against all layouts of small problems, and on problems with a known least capacity.

package pack

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// optimum returns the least peak of all layouts. In an optimal layout, taken in order of offsets, each buffer is either at the bottom
// or directly on top of an earlier buffer that it may not share bytes with, so trying every order is enough.
func optimum(v *lives) int64 {
	n := len(v.size)
	best := int64(1) << 62
	offset := make([]int64, n)
	var extend func(used uint, low, peak int64)
	extend = func(used uint, low, peak int64) {
		if used == 1<<n-1 {
			best = min(best, peak)
			return
		}
		for k := range n {
			if used>>k&1 == 1 {
				continue
			}
			at := int64(0)
			for q := range n {
				if used>>q&1 == 1 && !v.apart(int32(k), int32(q)) {
					at = max(at, offset[q]+v.size[q])
				}
			}
			if at < low || max(peak, at+v.size[k]) >= best {
				continue
			}
			offset[k] = at
			extend(used|1<<k, at, max(peak, at+v.size[k]))
		}
	}
	extend(0, 0, 0)
	return best
}

// side returns the layout in which no buffers share bytes.
func side(size []int64) []int64 {
	offsets := make([]int64, len(size))
	for k := 1; k < len(size); k++ {
		offsets[k] = offsets[k-1] + size[k-1]
	}
	return offsets
}

// requireLayout checks a layout against the lifetimes.
func requireLayout(t testing.TB, v *lives, offsets []int64, peak int64) {
	t.Helper()
	require.Len(t, offsets, len(v.size))
	end := int64(0)
	for a := range int32(len(offsets)) {
		require.GreaterOrEqual(t, offsets[a], int64(0))
		end = max(end, offsets[a]+v.size[a])
		for b := range a {
			if !v.apart(a, b) && offsets[a] < offsets[b]+v.size[b] && offsets[b] < offsets[a]+v.size[a] {
				require.Fail(t, "two buffers share bytes that may not", "%d at %d, %d at %d", a, offsets[a], b, offsets[b])
			}
		}
	}
	require.Equal(t, end, peak)
}

const plenty = 1 << 40

var ctx = context.Background()

func smallProblem(rng *rand.Rand, seed int) *lives {
	buffers := 1 + rng.IntN(7)
	most := []int64{2, 6, 40}[rng.IntN(3)]
	switch seed % 3 {
	case 0:
		return randomIntervals(rng, buffers, 2+rng.IntN(7), most)
	case 1:
		return randomStreams(rng, buffers, 2+rng.IntN(3), most)
	default:
		return randomTangle(rng, buffers, most)
	}
}

func TestSmallProblemsAgainstAllLayouts(t *testing.T) {
	above := 0 // problems whose optimum is above the heaviest section, so that only a search can prove it
	for seed := range 20_000 {
		rng := rand.New(rand.NewPCG(uint64(seed), 1))
		v := smallProblem(rng, seed)
		p := v.problem()
		p.complete()
		best := optimum(v)
		require.LessOrEqual(t, p.Bound(), best, "seed %d", seed)
		if p.Bound() < best {
			above++
		}
		r := Fit(ctx, p, best, plenty)
		require.Equal(t, Found, r.Verdict, "seed %d", seed)
		requireLayout(t, v, r.Offsets, r.Peak)
		require.LessOrEqual(t, r.Peak, best)
		if best > 1 {
			r = Fit(ctx, p, best-1, plenty)
			require.Equal(t, Impossible, r.Verdict, "seed %d", seed)
			require.Nil(t, r.Offsets)
			require.LessOrEqual(t, r.Bound, best, "seed %d", seed)
			require.GreaterOrEqual(t, r.Bound, best, "seed %d", seed)
		}
		r = Lower(ctx, p, side(v.size), 0, Budget{Orders: 1000, Search: plenty})
		require.Equal(t, Found, r.Verdict, "seed %d", seed)
		require.Equal(t, best, r.Peak, "seed %d", seed)
		require.Equal(t, best, r.Bound, "seed %d", seed)
		requireLayout(t, v, r.Offsets, r.Peak)
	}
	t.Logf("%d optima above the heaviest section", above)
	require.Greater(t, above, 20)
}

// In few small problems the optimum is above the heaviest section, so that only a search can prove it. These are compared with all layouts.
func TestProofsAgainstAllLayouts(t *testing.T) {
	above := 0
	for seed := range 20_000 {
		rng := rand.New(rand.NewPCG(uint64(seed), 8))
		v := randomStreams(rng, 9, 3, 6)
		p := v.problem()
		r := Lower(ctx, p, side(v.size), 0, Budget{Search: plenty})
		require.Equal(t, Found, r.Verdict, "seed %d", seed)
		if r.Peak == p.Bound() {
			continue
		}
		above++
		require.Equal(t, optimum(v), r.Peak, "seed %d", seed)
		require.Equal(t, r.Peak, r.Bound)
		require.Equal(t, Impossible, Fit(ctx, p, r.Peak-1, plenty).Verdict, "seed %d", seed)
		requireLayout(t, v, r.Offsets, r.Peak)
	}
	t.Logf("%d optima above the heaviest section", above)
	require.Greater(t, above, 10)
}

// Problems near their optimum that are too large for trying all layouts: whether they fit must not depend on the numbering of their
// buffers, which changes every order that is tried.
func TestVerdictsDoNotDependOnNumbers(t *testing.T) {
	impossible := 0
	for seed := range 2000 {
		rng := rand.New(rand.NewPCG(uint64(seed), 2))
		var v *lives
		if seed%2 == 0 {
			v = randomIntervals(rng, 10, 6, 9)
		} else {
			v = randomStreams(rng, 10, 3, 9)
		}
		p := v.problem()
		r := Lower(ctx, p, side(v.size), 0, Budget{Search: plenty})
		require.Equal(t, Found, r.Verdict)
		requireLayout(t, v, r.Offsets, r.Peak)
		perm := rng.Perm(len(v.size))
		w := &lives{size: make([]int64, len(perm)), first: make([]int32, len(perm)), last: make([]int32, len(perm))}
		back := make([]int32, len(perm))
		for k, to := range perm {
			w.size[to], w.first[to], w.last[to] = v.size[k], v.first[k], v.last[k]
			back[to] = int32(k)
		}
		if v.before != nil {
			w.before = func(a, b int32) bool { return v.before(back[a], back[b]) }
		}
		require.Equal(t, Found, Fit(ctx, w.problem(), r.Peak, plenty).Verdict)
		if r.Peak > p.Bound() {
			impossible++
			require.Equal(t, Impossible, Fit(ctx, w.problem(), r.Peak-1, plenty).Verdict)
		}
	}
	require.Greater(t, impossible, 2)
}

func TestCutRectanglesFitTheirHeight(t *testing.T) {
	const height = 1 << 20
	for _, buffers := range []int{20, 40, 80, 150} {
		for seed := range uint64(3) {
			rng := rand.New(rand.NewPCG(seed, uint64(buffers)))
			v := cutRectangle(rng, buffers, 200, height, 1024)
			p := v.problem()
			require.Equal(t, int64(height), p.Bound())
			r := Fit(ctx, p, height, 400_000_000)
			require.Equal(t, Found, r.Verdict, "%d buffers, seed %d", buffers, seed)
			requireLayout(t, v, r.Offsets, r.Peak)
			require.Equal(t, Impossible, Fit(ctx, p, height-1, 0).Verdict)
		}
	}
}

func TestLowerIsContentWithEnough(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	v := cutRectangle(rng, 60, 100, 1<<20, 1024)
	p := v.problem()
	full := Lower(ctx, p, side(v.size), 0, Budget{Orders: 100_000, Search: 400_000_000})
	require.Equal(t, Found, full.Verdict)
	require.Equal(t, int64(1<<20), full.Peak)
	some := Lower(ctx, p, side(v.size), 3<<19, Budget{Orders: 100_000, Search: 400_000_000})
	require.Equal(t, Found, some.Verdict)
	require.LessOrEqual(t, some.Peak, int64(3<<19))
	require.Less(t, some.Steps, full.Steps)
	requireLayout(t, v, some.Offsets, some.Peak)
}

func TestEjectionLowersLayouts(t *testing.T) {
	lowered := 0
	for seed := range 60 {
		rng := rand.New(rand.NewPCG(uint64(seed), 10))
		var v *lives
		switch seed % 3 {
		case 0:
			v = cutRectangle(rng, 60, 60, 1<<20, 1024)
		case 1:
			v = randomStreams(rng, 80, 4, 1<<12)
		default:
			v = randomTangle(rng, 40, 50)
		}
		p := v.problem()
		given := Lower(ctx, p, side(v.size), 0, Budget{Orders: 10_000})
		r := Lower(ctx, p, side(v.size), 0, Budget{Orders: 10_000, Eject: 2_000_000})
		requireLayout(t, v, r.Offsets, r.Peak)
		require.LessOrEqual(t, r.Peak, given.Peak, "seed %d", seed)
		require.LessOrEqual(t, r.Bound, r.Peak)
		if r.Peak < given.Peak {
			lowered++
		}
		require.Equal(t, r, Lower(ctx, v.problem(), side(v.size), 0, Budget{Orders: 10_000, Eject: 2_000_000}), "the same every time")
	}
	t.Logf("%d of 60 layouts lowered", lowered)
	require.Greater(t, lowered, 40)
}

// freely puts a random half of a problem's buffers in places, below a capacity that has room for all.
func freely(rng *rand.Rand, v *lives) *ejector {
	n := len(v.size)
	e := newEjector(v.problem(), make([]bool, n), nil, 0)
	for k := range e.hard {
		e.hard[k] = 1 + rng.Int64N(4)
		e.weigh(int32(k))
	}
	offsets := side(v.size)
	peak := offsets[n-1] + v.size[n-1]
	e.begin(offsets, peak, 0)
	e.start(offsets, peak)
	for _, k := range rng.Perm(n) {
		if rng.IntN(2) == 0 {
			e.remove(int32(k))
			e.update()
		}
	}
	return e
}

// The search sums up along edges how much is in the way; this test compares that with a sum buffer by buffer, at every offset.
func TestTheEasiestPlaceHasTheLeastInTheWay(t *testing.T) {
	crossed := 0
	for seed := range 1000 {
		rng := rand.New(rand.NewPCG(uint64(seed), 11))
		v := randomTangle(rng, 14, 9)
		v.size[0] = 1 // so that offsets are bytes
		e := freely(rng, v)
		k := int32(rng.IntN(len(v.size)))
		if e.span[k].low != nowhere {
			e.remove(k)
			e.update()
		}
		// Lower the capacity as far as what is placed fits.
		e.capacity = 0
		for _, x := range e.tops {
			e.capacity = max(e.capacity, x.at())
		}
		e.capacity = max(e.capacity, v.size[k])
		e.anew()
		e.lows, e.highs = e.inTheWay(k, e.order, e.lows), e.inTheWay(k, e.tops, e.highs)
		cost := func(at int64) int64 {
			sum := int64(0)
			for q := range int32(len(v.size)) {
				if s := e.span[q]; q != k && s.low != nowhere && !v.apart(k, q) && s.low < at+v.size[k] && at < s.top {
					sum += e.weight[q]
				}
			}
			return sum
		}
		least, free := int64(1<<30), int64(-1)
		for at := range e.capacity - v.size[k] + 1 {
			least = min(least, cost(at))
			if cost(at) == 0 && free < 0 {
				free = at
			}
		}
		require.Equal(t, free, e.gap(k), "seed %d", seed)
		at := e.easiest(k)
		require.Equal(t, least, cost(at), "seed %d", seed)
		require.LessOrEqual(t, at+v.size[k], e.capacity)
		if least > 0 {
			crossed++
		}
	}
	require.Greater(t, crossed, 100)
}

// Begins and ends are computed anew only where they may have changed; this test compares them with those computed from nothing, and checks
// that both are layouts.
func TestPlacesStayLayoutsWhilePutAndEjected(t *testing.T) {
	for seed := range 60 {
		rng := rand.New(rand.NewPCG(uint64(seed), 12))
		v := randomStreams(rng, 30, 3, 20)
		if seed%2 == 0 {
			v = randomTangle(rng, 70, 20)
		}
		n := len(v.size)
		p := v.problem()
		given := Lower(ctx, p, side(v.size), 0, Budget{Orders: 10_000})
		require.Equal(t, int64(1), p.grain)
		easy := make([]bool, n) // every third, which waits
		var waiting []int32
		for k := 0; k < n && seed%3 == 0; k += 3 {
			easy[k] = true
			waiting = append(waiting, int32(k))
		}
		e := newEjector(p, easy, waiting, 0)
		e.begin(given.Offsets, given.Peak, 0)
		e.start(given.Offsets, given.Peak-given.Peak/10)
		for range 60 {
			if e.place(e.steps + 1) {
				break
			}
			require.Len(t, e.order, n-len(e.out)-len(e.waiting))
			spans := slices.Clone(e.span)
			e.anew()
			require.Len(t, e.tops, len(e.order))
			for i, edge := range e.order {
				a := edge.buffer()
				at := e.span[a]
				require.Equal(t, spans[a], at, "seed %d", seed)
				require.LessOrEqual(t, at.top-v.size[a], at.low)
				require.LessOrEqual(t, at.low+v.size[a], e.capacity)
				for _, edge := range e.order[:i] { // what is not apart lies below
					b := edge.buffer()
					if under := e.span[b]; !v.apart(a, b) && (under.low+v.size[b] > at.low || under.top > at.top-v.size[a]) {
						require.Fail(t, "two buffers overlap", "seed %d: %d and %d", seed, a, b)
					}
				}
			}
		}
	}
}

func TestBudgetIsKeptAndLayoutsAreTheSame(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	v := randomStreams(rng, 150, 4, 1<<20)
	p := v.problem()
	one := Lower(ctx, p, side(v.size), 0, Budget{Orders: 200_000, Search: 2_000_000})
	two := Lower(ctx, v.problem(), side(v.size), 0, Budget{Orders: 200_000, Search: 2_000_000})
	require.Equal(t, one, two)
	require.Less(t, one.Steps, int64(2_100_000))
	requireLayout(t, v, one.Offsets, one.Peak)
	r := Fit(ctx, p, p.Bound(), 100)
	require.Contains(t, []Verdict{Unknown, Found}, r.Verdict)
	require.Less(t, r.Steps, int64(100_000))
}

func TestSectionsExcludeEachOther(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 7))
		v := randomStreams(rng, 25, 4, 50)
		p := v.problem()
		p.complete()
		for _, s := range p.sections {
			for i, a := range s {
				for _, b := range s[:i] {
					require.False(t, v.apart(a, b))
				}
			}
		}
		for a := range int32(25) {
			for b := range a {
				require.Equal(t, !v.apart(a, b), p.excludes(a, b))
			}
			require.NotContains(t, p.others(a), a)
			require.True(t, slices.IsSorted(p.others(a)))
		}
	}
}

func TestEmptyProblem(t *testing.T) {
	p := Intervals(nil, nil, nil)
	require.Equal(t, Result{Verdict: Found, Offsets: []int64{}, Steps: 0}, Fit(ctx, p, 0, 10))
	require.Equal(t, int64(0), p.Bound())
}

func TestSearchEndsWithItsContext(t *testing.T) {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	rng := rand.New(rand.NewPCG(9, 9))
	v := cutRectangle(rng, 300, 300, 1<<20, 1024)
	p := v.problem()
	r := Fit(ended, p, p.Bound(), plenty)
	require.Equal(t, Unknown, r.Verdict)
	require.Less(t, r.Steps, int64(1_000_000))
	r = Lower(ended, p, side(v.size), 0, Budget{Eject: plenty, Search: plenty})
	require.Equal(t, Unknown, r.Verdict)
	requireLayout(t, v, r.Offsets, r.Peak)
}

func TestLuby(t *testing.T) {
	var got []int64
	for i := 1; i <= 15; i++ {
		got = append(got, luby(i))
	}
	require.Equal(t, []int64{1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8}, got)
}
