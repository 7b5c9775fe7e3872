// Tests of the search for placements: laws of what it returns, on random graphs.

package placement

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/effort"
)

// drawPlaceable makes a random graph of kernels and copies, some of which have to be on a device.
func drawPlaceable(t *testing.T, rng *rand.Rand, devices int) (*Problem, []float64) {
	t.Helper()
	b := dag.New("search")
	host := b.Host("h", dag.U8, 64<<10)
	var ids []dag.BufferID
	for k := range 5 {
		ids = append(ids, b.Device(fmt.Sprint("x", k), dag.U8, 1<<(10+rng.IntN(7))))
		if rng.IntN(3) == 0 {
			b.Save(ids[k], fmt.Sprintf("x%d.npy", k))
		}
	}
	n := 3 + rng.IntN(12)
	times := make([]float64, n)
	for k := range n {
		times[k] = float64(1 + rng.IntN(30))
		x, name := ids[rng.IntN(len(ids))], fmt.Sprint("n", k)
		bytes := b.BufferAt(x).Bytes
		switch rng.IntN(6) {
		case 0:
			b.Copy(name, b.Whole(x), b.Slice(host, 0, bytes))
		case 1:
			b.Copy(name, b.Slice(host, 0, bytes), b.Whole(x))
		case 2:
			fixedTask(b, name, int32(rng.IntN(devices)), b.InOut(x))
		default:
			b.Task(name, b.In(ids[rng.IntN(len(ids))]), b.InOut(x))
		}
	}
	g, err := b.Graph()
	require.NoError(t, err)
	p, err := NewProblem(g, devices, nil)
	require.NoError(t, err)
	return p, times
}

// The candidates are in the order of their estimates, no two alike, with what every policy makes among them, and keep fixed nodes in their places.
// The first is no slower than any policy.
func TestCandidatesAreSortedAndDiffer(t *testing.T) {
	better := 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 12))
		p, times := drawPlaceable(t, rng, 1+rng.IntN(3))
		candidates := func(policy string, how effort.Effort) []Candidate {
			list, err := Candidates(context.Background(), p, round(), times, 1, policy, how)
			require.NoError(t, err)
			return list
		}
		list := candidates(Auto, effort.Quick)
		require.Equal(t, list, candidates(Auto, effort.Quick), "the same every time")
		d := newDispatcher(newEstimator(p, round(), times, 1))
		for k, c := range list {
			require.Equal(t, d.makespan(c.At), c.US, "seed %d", seed)
			require.True(t, k == 0 || list[k-1].US <= c.US, "seed %d", seed)
			for _, o := range list[:k] {
				require.NotEqual(t, o.At, c.At, "seed %d", seed)
			}
			for i, device := range c.At {
				require.True(t, device >= 0 && int(device) < p.Devices)
				require.True(t, p.Fixed[i] == Free || p.Fixed[i] == device, "seed %d, node %d", seed, i)
			}
		}
		for _, policy := range Names()[1:] {
			named := candidates(policy, effort.Quick)
			require.Len(t, named, 1)
			require.Equal(t, policy, named[0].Policy)
			require.True(t, slices.ContainsFunc(list, func(c Candidate) bool { return slices.Equal(c.At, named[0].At) }), "seed %d: %s", seed, policy)
			require.LessOrEqual(t, list[0].US, d.makespan(named[0].At), "seed %d: %s", seed, policy)
		}
		if list[0].Policy == Auto {
			better++
		}
		one := slices.IndexFunc(list, func(c Candidate) bool { return c.Policy == One })
		require.GreaterOrEqual(t, one, 0, "what several policies make has the name of the plainest")
	}
	require.Greater(t, better, 5)
	p, times := drawPlaceable(t, rand.New(rand.NewPCG(0, 12)), 2)
	_, err := Candidates(context.Background(), p, round(), times, 1, "other", effort.Quick)
	require.EqualError(t, err, `there is no policy "other"`)
}

// Changes leave alone what is fixed, or follows another node, and are the same every time. Each node that is free moves at some time.
func TestChangesMoveWhatIsFree(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 13))
		p, times := drawPlaceable(t, rng, 2+rng.IntN(2))
		e := newEstimator(p, round(), times, 1)
		c, again := NewChanger(p, round(), times, 1), NewChanger(p, round(), times, 1)
		at := roundRobin(e)
		same, was := slices.Clone(at), slices.Clone(at)
		moved, any := make([]bool, len(at)), false
		for i := range at {
			any = any || e.free(int32(i))
		}
		for k := range 40 * len(at) {
			critical := []int32{int32(k % len(at))}
			require.Equal(t, any, c.Change(at, critical))
			again.Change(same, critical)
			require.Equal(t, same, at)
			settled := slices.Clone(at)
			e.flows.settle(settled)
			require.Equal(t, settled, at, "what follows others is where they are")
			for i := range at {
				require.True(t, p.Fixed[i] == Free || at[i] == p.Fixed[i], "seed %d: node %d is fixed", seed, i)
				moved[i] = moved[i] || at[i] != was[i]
			}
			copy(was, at)
		}
		for i := range at {
			require.True(t, moved[i] || !e.free(int32(i)), "seed %d: node %d has never moved", seed, i)
		}
	}
	p, times := drawPlaceable(t, rand.New(rand.NewPCG(0, 13)), 1)
	require.False(t, NewChanger(p, round(), times, 1).Change(make([]int32, len(times)), nil), "there is only one device")
}

// More effort allows more steps, and so does a larger graph, except one that is too large for any.
func TestStepsOfTheSearch(t *testing.T) {
	before := 0
	for _, how := range []effort.Effort{effort.Quick, effort.Normal, effort.Thorough} {
		require.Zero(t, steps(how, 0))
		require.Greater(t, steps(how, 10), 10*before, "%v", how)
		require.Equal(t, 2*steps(how, 10), steps(how, 20), "as many changes")
		require.Equal(t, steps(how, 10_000), steps(how, 20_000), "there is a limit")
		require.GreaterOrEqual(t, steps(how, 20_000), 5*20_000, "all that is estimated can be changed a few times")
		require.Zero(t, steps(how, 20_001))
		before = steps(how, 10) / 10
	}
}
