// Tests of which way a run takes after others have taken it, or another one that was close.

package runtime_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
	"github.com/dagrun/dagrun/runtime/cache"
	"github.com/dagrun/dagrun/runtime/learn"
)

// known is what a run recalls of ways that took so long when they were compared.
func known(us ...float64) *learn.Recalled {
	r := &learn.Recalled{}
	for _, us := range us {
		r.Ways = append(r.Ways, learn.Way{Mode: runtime.Captured, Each: runtime.Series{Median: us}})
	}
	return r
}

// taken returns which way a run takes, and notes how long it took then.
func taken(r *learn.Recalled, took func(way int) float64) int {
	best := r.Best(200)
	for k := range r.Ways {
		if &r.Ways[k] == best {
			best.Took = append(best.Took, took(k))
			return k
		}
	}
	return -1
}

func TestRunsTakeCloseWaysUntilItIsKnownWhichIsFastest(t *testing.T) {
	real := []float64{61, 58, 64, 90}
	r := known(56.8, 57.9, 62, 80)
	require.Equal(t, []int{0, 1, 1, 1, 1, 1}, order(r, 6, func(way int) float64 { return real[way] }))

	r = known(50, 51, 52, 53)
	all := order(r, 20, func(way int) float64 { return 54 - float64(way) })
	require.Equal(t, 0, all[0])
	require.Equal(t, 3, all[19], "it is the fastest, although it was the slowest when they were compared")

	r = known(50, 50.2)
	require.Equal(t, []int{0, 1, 0, 0, 0}, order(r, 5, func(way int) float64 { return []float64{45, 46}[way] }), "all are faster in runs of their own")
	r = known(50, 53)
	require.Equal(t, []int{0, 0, 0, 0, 0}, order(r, 5, func(int) float64 { return 45 }), "the other was not close")
}

// order returns which ways so many runs take.
func order(r *learn.Recalled, runs int, took func(way int) float64) []int {
	var all []int
	for range runs {
		all = append(all, taken(r, took))
	}
	return all
}

// Something else may slow down the run of the best way. It is taken again when the others are well known.
func TestOneSlowRunDoesNotCountForEver(t *testing.T) {
	runs := 0
	require.Equal(t, []int{0, 1, 1, 0, 0, 0, 0, 0}, order(known(50, 51), 8, func(way int) float64 {
		if runs++; runs == 1 {
			return 75
		}
		return []float64{50, 53}[way]
	}))
}

// However times vary from run to run, and however much faster they are than when ways were compared, the way that most runs take in the end is hardly
// slower than the best.
func TestTheWayThatRunsSettleOnIsCloseToTheBest(t *testing.T) {
	const cases = 1000
	random := rand.New(rand.NewPCG(7, 8))
	noise := func(part float64) float64 { return math.Exp(part * random.NormFloat64()) }
	var learned, settled float64
	for range cases {
		real, compared, slower := make([]float64, 4), make([]float64, 4), noise(0.04)
		for k := range real {
			real[k] = 50 * (1 + 0.1*random.Float64())
			compared[k] = real[k] * slower * noise(0.03)
		}
		all := order(known(compared...), 12, func(way int) float64 { return real[way] * noise(0.01) })
		learned += real[all[0]] / slices.Min(real)
		settled += real[all[len(all)-1]] / slices.Min(real)
	}
	require.Greater(t, learned/cases, 1.008)
	require.Less(t, settled/cases, 1.004)
}

func TestWhatRunsTookIsKept(t *testing.T) {
	ctx := context.Background()
	folder, recall := learnedBefore(t)
	r := recall()
	require.Greater(t, len(r.Ways), 1)
	first := r.Best(1_000_000)
	require.False(t, r.Tries(first), "no other way was taken")
	require.NoError(t, r.NoteRun(ctx, first, 7))

	known := slices.IndexFunc(r.Ways, func(w learn.Way) bool { return w.Plan == first.Plan && w.Mode == first.Mode })
	other := (known + 1) % len(r.Ways)
	r = recall()
	for k := range r.Ways {
		if k == known {
			require.Equal(t, []float64{7}, r.Ways[k].Took)
			require.False(t, r.Tries(&r.Ways[k]))
		} else {
			require.Empty(t, r.Ways[k].Took)
			require.True(t, r.Tries(&r.Ways[k]))
		}
	}
	second := &r.Ways[other]
	for k := range cache.MostTook + 2 { // several processes may have recalled the same
		require.NoError(t, r.NoteRun(ctx, second, 1+float64(k)))
	}
	require.Equal(t, []float64{1, 2, 3, 4, 5}, recall().Ways[other].Took)
	require.False(t, recall().Tries(&recall().Ways[other]))

	require.NoError(t, r.NoteRun(ctx, &learn.Way{Plan: &planner.Plan{}}, 1), "a way that nobody kept")
	require.NoError(t, folder.Clear())
	require.NoError(t, r.NoteRun(ctx, second, 1))
	require.Empty(t, recall().Ways, "a choice that was removed stays so")
}
