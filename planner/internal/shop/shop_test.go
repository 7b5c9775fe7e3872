// Tests of orders, jobs and bounds on shops that are small enough to try everything.

package shop

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/planner/internal/plantest/instances"
)

// everyOrder calls f with each permutation of n jobs.
func everyOrder(n int, f func([]int32)) {
	order := make([]int32, n)
	for j := range order {
		order[j] = int32(j)
	}
	var permute func(k int)
	permute = func(k int) {
		if k == n {
			f(order)
			return
		}
		for at := k; at < n; at++ {
			order[k], order[at] = order[at], order[k]
			permute(k + 1)
			order[k], order[at] = order[at], order[k]
		}
	}
	permute(0)
}

func TestJohnsonIsOptimal(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		n := 1 + rng.IntN(6)
		first, second := make([]float64, n), make([]float64, n)
		for j := range n {
			first[j], second[j] = float64(rng.IntN(10)), float64(rng.IntN(10))
		}
		least := Flow(first, second, Johnson(first, second))
		everyOrder(n, func(order []int32) {
			require.LessOrEqual(t, least, Flow(first, second, order), "seed %d: %v %v by %v", seed, first, second, order)
		})
	}
}

// randomWork makes operations with random dependencies on a few machines.
func randomWork(rng *rand.Rand, n, machines int) *Work {
	b := newBuilder(0, 0)
	for range machines {
		b.w.Room = append(b.w.Room, int32(1+rng.IntN(3)))
	}
	for i := range n {
		var preds []int32
		for q := range i {
			if rng.IntN(n) < 2 {
				preds = append(preds, int32(q))
			}
		}
		b.add(float64(rng.IntN(10)), rng.IntN(machines), preds...)
	}
	return &b.w
}

func TestNoScheduleBeatsTheBound(t *testing.T) {
	tight := 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 2))
		w := randomWork(rng, 4+rng.IntN(6), 1+rng.IntN(3))
		if seed%2 == 0 {
			w = workOf(instances.Random("upload-kernel-download", 3, 1+rng.IntN(3), seed))
		}
		bound := LowerBound(w, w.Ways(declaredOrder(w)), Jobs(w))
		least, proved := solve(w, 1e9, 200_000)
		require.True(t, proved)
		require.LessOrEqual(t, bound.US, least*(1+near), "seed %d: %+v", seed, bound)
		if bound.US > least*(1-near) {
			tight++
		}
	}
	require.Greater(t, tight, 100)
}

// If all chunks are alike, the pipeline reaches the bound, wherever its bottleneck is.
func TestTheBoundOfEvenChunksIsTight(t *testing.T) {
	for _, us := range [][]float64{{40, 40, 40}, {40, 25, 10}, {10, 40, 10}, {10, 25, 40}, {30, 20, 35}} {
		for _, count := range []int{2, 8, 9, 32} {
			for _, streams := range []int{1, 2, 4} {
				b := newBuilder(1, streams)
				for range count {
					b.chain(instances.Routes["upload-kernel-download"], us)
				}
				w := &b.w
				order := declaredOrder(w)
				bound := LowerBound(w, w.Ways(order), Jobs(w))
				reached := newSearch(w, 0).offer(order)
				require.LessOrEqual(t, bound.US, reached*(1+near))
				require.LessOrEqual(t, reached, 1.02*bound.US, "%d chunks of %v on %d streams: %+v", count, us, streams, bound)
			}
		}
	}
}

func TestSmallGraphsAreSolved(t *testing.T) {
	const count = 60
	optimal, worst := 0, 1.0
	for seed := range uint64(count) {
		rng := rand.New(rand.NewPCG(seed, 3))
		n := 8 + rng.IntN(7)
		w := randomWork(rng, n, 1)
		w.Room[0] = int32(2 + rng.IntN(3))
		order := declaredOrder(w)
		s, err := Best(context.Background(), w, [][]int32{order}, LowerBound(w, w.Ways(order), Jobs(w)).US, 100_000)
		require.NoError(t, err)
		requireSchedule(t, w, s)
		least, _ := solve(w, s.Makespan, 20_000)
		if least > s.Makespan*(1-near) {
			optimal++
		}
		worst = max(worst, s.Makespan/least)
	}
	t.Logf("%d of %d optimal, worst %.2f%%", optimal, count, 100*(worst-1))
	require.GreaterOrEqual(t, optimal, count*99/100)
	require.LessOrEqual(t, worst, 1.03)
}

// Operations that all jobs share belong to no job: the upload of the weights, the sum of the results.
func TestJobsAreWhatIsLeftWithoutWhatIsShared(t *testing.T) {
	b := newBuilder(1, 1)
	weights := b.add(5, upload)
	var ends []int32
	for range 5 {
		x, y := b.add(1, upload), b.add(2, upload)
		k := b.add(3, compute, weights, x, y)
		k = b.add(3, compute, k)
		ends = append(ends, b.add(1, download, k))
	}
	b.add(4, compute, ends...)
	jobs := Jobs(&b.w)
	require.Equal(t, 5, jobs.Count)
	want := []int32{-1}
	for j := range int32(5) {
		want = append(want, j, j, j, j, j)
	}
	require.Equal(t, append(want, -1), jobs.Of)
}

func TestOneConnectedGraphHasOneJob(t *testing.T) {
	b := newBuilder(1, 1)
	b.chain([]int{upload, compute, compute, download}, []float64{1, 2, 3, 4})
	require.Equal(t, Grouping{1, []int32{0, 0, 0, 0}}, Jobs(&b.w))
	b = newBuilder(1, 1)
	b.chain([]int{compute, compute}, []float64{1, 2})
	require.Equal(t, Grouping{}, Jobs(&b.w), "one machine needs no order of jobs")
}

// Jobs of several uploads, kernels and downloads, with shared operations around them, are ordered no worse than declared and, if
// there are few, optimally.
func TestJobsOfSeveralOperationsAreOrdered(t *testing.T) {
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 4))
		b := newBuilder(1, 2)
		us := func() float64 { return float64(1 + rng.IntN(20)) }
		weights := b.add(us(), upload)
		var ends []int32
		for range 3 {
			x := b.add(us(), upload)
			k := b.add(us(), compute, weights, x)
			ends = append(ends, b.add(us(), download, k))
			if rng.IntN(2) == 0 {
				k = b.add(us(), compute, k, b.add(us(), upload))
				ends = append(ends, b.add(us(), download, k))
			}
		}
		b.add(us(), compute, ends...)
		w := &b.w
		order := declaredOrder(w)
		s, err := Best(context.Background(), w, [][]int32{order}, 0, 100_000)
		require.NoError(t, err)
		requireSchedule(t, w, s)
		least, proved := solve(w, s.Makespan, 300_000)
		require.True(t, proved)
		require.Equal(t, least, s.Makespan, "seed %d", seed)
	}
}

func TestTheSameWorkGivesTheSameSchedule(t *testing.T) {
	w := workOf(instances.Random("two devices", 15, 2, 1))
	order := declaredOrder(w)
	first, err := Best(context.Background(), w, [][]int32{order}, 0, 200_000)
	require.NoError(t, err)
	second, err := Best(context.Background(), w, [][]int32{order}, 0, 200_000)
	require.NoError(t, err)
	require.Equal(t, first, second)
}

func TestSearchesEndWithTheirContext(t *testing.T) {
	w := workOf(instances.Random("two devices", 20, 4, 1))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := Best(ctx, w, [][]int32{declaredOrder(w)}, 0, 1<<40)
	require.ErrorIs(t, err, context.Canceled)
}

// Schedules count the time that the host needs for each operation and the lag of dependencies between lanes.
func TestLagAndIssueCount(t *testing.T) {
	b := newBuilder(1, 1)
	b.chain([]int{upload, compute}, []float64{3, 4})
	b.w.Lag, b.w.Issue = 0.5, 1
	s, err := Best(context.Background(), &b.w, [][]int32{{0, 1}}, 0, 1000)
	require.NoError(t, err)
	require.Equal(t, 1+3+0.5+4, s.Makespan)
	require.Equal(t, []int32{0, 1}, s.Order)
	require.True(t, slices.Equal(s.Lane, []int32{0, 0}))
}
