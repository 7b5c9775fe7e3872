// Tests of the rule that says what leaves a device: whatever its settings, what it says can be done.

package placement

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
)

// drawSpillable makes a random graph of kernels and copies on parts of buffers, some with contents from outside.
func drawSpillable(t *testing.T, rng *rand.Rand) *SpillProblem {
	t.Helper()
	b := dag.New("spill")
	host := b.Host("h", dag.U8, 4*grain)
	var ids []dag.BufferID
	for k := range 2 + rng.IntN(4) {
		buffer := dag.Buffer{Name: fmt.Sprint("x", k), Place: dag.Device, DType: dag.U8, Shape: []int64{4 * grain}}
		switch rng.IntN(4) {
		case 0:
			buffer.Init = &dag.Init{Kind: dag.InitRamp}
		case 1:
			buffer.Save = fmt.Sprintf("x%d.npy", k)
		}
		ids = append(ids, b.Buffer(buffer))
	}
	part := func() dag.Range {
		lo := grain * rng.Int64N(4)
		return b.Slice(ids[rng.IntN(len(ids))], lo, lo+grain*(1+rng.Int64N(min(2, 4-lo/grain))))
	}
	for k := range 4 + rng.IntN(12) {
		name, r := fmt.Sprint("n", k), part()
		if rng.IntN(3) == 0 {
			r = b.Whole(r.Buffer)
		}
		switch rng.IntN(5) {
		case 0:
			b.Copy(name, r, b.Slice(host, 0, r.Bytes()))
		case 1:
			b.Copy(name, b.Slice(host, 0, r.Bytes()), r)
		default:
			r = part()
			b.Task(name, dag.Access{Range: r, Mode: dag.Mode(1 + rng.IntN(3))}, part().In())
		}
	}
	g, err := b.Graph()
	require.NoError(t, err)
	p, err := NewSpillProblem(g, 1<<20, nil, nil)
	require.NoError(t, err)
	return p
}

// What the rule chooses are residencies that can be made into a graph: each node finds on the device what it needs, and nothing lies where
// something else is. Within what the largest node needs, the rule always finds a way, unless it keeps buffers on the device for good.
func TestChoicesCanBeMade(t *testing.T) {
	none, moved, across := 0, 0, 0
	var c choosing // its memory is used again
	for seed := range uint64(1500) {
		rng := rand.New(rand.NewPCG(seed, 14))
		p := drawSpillable(t, rng)
		times := make([]float64, p.Graph.Len())
		when := make([]float64, len(times)+1)
		for i := range times {
			times[i] = float64(1 + rng.IntN(9))
			when[i+1] = when[i] + times[i]
		}
		p.Limit = max(p.Least(), grain*rng.Int64N(12))
		r := &rule{limit: p.Limit, ahead: rng.IntN(6), power: rng.IntN(5), around: rng.IntN(2) == 0, stays: make([]bool, len(p.Graph.Buffers))}
		keeps := rng.IntN(3) == 0
		for b := range r.stays {
			r.stays[b] = keeps && p.Graph.Buffers[b].InArena() && rng.IntN(2) == 0
		}
		if rng.IntN(2) == 0 {
			for range p.count {
				r.bias = append(r.bias, 4*rng.Float64())
			}
		}
		if p.across {
			across++
		}
		list := c.choose(p, r, when)
		if list == nil && keeps {
			none++
			continue
		}
		require.NotNil(t, list, "seed %d", seed)
		for _, a := range list {
			require.Equal(t, r.stays[a.Buffer], a.Stays, "seed %d", seed)
			require.LessOrEqual(t, a.Offset+a.Hi-a.Lo, r.limit)
		}
		s, err := Spill(p, list)
		require.NoError(t, err, "seed %d", seed)
		if s.Stats.Reloads+s.Stats.Spills > 0 {
			moved++
		}
	}
	t.Logf("%d with copies, %d across units, %d ways not found with buffers that stay", moved, across, none)
	require.Greater(t, moved, 500)
	require.Greater(t, across, 300)
	require.Greater(t, none, 20)
}

// Contents from outside that are used most often for their size stay on the device first, in a part of what the largest node leaves.
func TestWhatIsUsedMostStays(t *testing.T) {
	b := dag.New("stays")
	names := map[string]dag.BufferID{}
	for _, name := range []string{"once", "thrice", "never", "made"} {
		names[name] = b.Device(name, dag.U8, grain)
		if name != "made" {
			b.Init(names[name], dag.Init{Kind: dag.InitRamp})
		}
	}
	halves := b.Device("halves", dag.U8, 2*grain)
	b.Save(halves, "halves.npy")
	b.Task("a", b.In(names["once"]), b.In(names["thrice"]))
	b.Task("b", b.In(names["thrice"]), b.Slice(halves, 0, grain).InOut())
	b.Task("c", b.In(names["thrice"]), b.Slice(halves, grain, 2*grain).InOut())
	b.Task("d", b.Out(names["made"]), b.Slice(halves, 0, grain).InOut())
	b.Task("e", b.InOut(names["made"]), b.Slice(halves, grain, 2*grain).InOut())
	b.Task("f", b.In(names["made"]))
	b.Task("g", b.In(names["made"]))
	g, err := b.Graph()
	require.NoError(t, err)
	for _, c := range []struct {
		blocks   int64 // that fit beside the largest node
		fraction float64
		stays    []string
	}{
		{4, 0, nil}, {4, 0.25, []string{"thrice"}}, {4, 0.5, []string{"once", "thrice"}}, {4, 0.75, []string{"thrice", "halves"}},
		{4, 1, []string{"once", "thrice", "halves"}}, {0, 1, nil}, {1, 1, []string{"thrice"}}, {3, 1, []string{"thrice", "halves"}},
		{8, 0.5, []string{"once", "thrice", "halves"}},
	} {
		p, err := NewSpillProblem(g, grain*(2+c.blocks), nil, nil)
		require.NoError(t, err)
		stays, some := (&spillSearch{p: p}).staying(c.fraction)
		var got []string
		for b, is := range stays {
			if is {
				got = append(got, g.Buffers[b].Name)
			}
		}
		require.Equal(t, c.stays, got, "%g of %d blocks", c.fraction, c.blocks)
		require.Equal(t, len(got) > 0, some)
	}
}
