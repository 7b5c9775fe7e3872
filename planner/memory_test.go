// Memory layouts: sound, as small as they can be made on small graphs, and near the heaviest antichain on large ones.

package planner

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/dagrun/dagrun/dag"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// sharingBuffers are the device buffers that may share bytes.
func sharingBuffers(g *dag.Graph) []int32 {
	kept, used := keptBuffers(g), usedBuffers(g)
	var sharing []int32
	for i := range g.Buffers {
		if b := &g.Buffers[i]; b.Place == dag.Device && !kept[i] && used[i] && b.Bytes > 0 {
			sharing = append(sharing, int32(i))
		}
	}
	return sharing
}

func readSharing(t require.TestingT, g *dag.Graph, p *Plan, entries int) *lifetimes {
	require.NoError(t, checkOps(g, p))
	return readLifetimes(g, p, readOrd(p, g.Len()), sharingBuffers(g), entries)
}

func TestLifetimesAgreeWithBruteForce(t *testing.T) {
	apart, together, unsure := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		for range 3 {
			g := drawGraph(t, 14, false)
			p := drawDullPlan(t, g, 4)
			before := bruteBefore(g, p)
			few := rapid.SampledFrom([]int{ordClockEntries, 5, 2, 1}).Draw(t, "entries")
			if few < ordClockEntries || rapid.Bool().Draw(t, "wide") {
				p = spread(p)
			}
			l := readSharing(t, g, p, few)
			for a := range l.buffers {
				for b := range a {
					free := l.apart(int32(a), int32(b))
					want := !bruteAlive(g, before, l.buffers[a], l.buffers[b])
					switch {
					case free != want && (free || few == ordClockEntries):
						t.Fatalf("buffers %d and %d: apart %v, brute force %v", l.buffers[a], l.buffers[b], free, want)
					case free:
						apart++
					case want:
						unsure++
					default:
						together++
					}
				}
			}
		}
	})
	require.Positive(t, apart)
	require.Positive(t, together)
	require.Positive(t, unsure, "too few columns must show")
}

func TestLayoutIsSound(t *testing.T) {
	saved := false
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t, 16, false)
		for i := range g.Buffers {
			if rapid.IntRange(0, 9).Draw(t, "init") == 0 {
				g.Buffers[i].Init = &dag.Init{}
			}
		}
		p := drawDullPlan(t, g, 4)
		o := Options{KeepAll: rapid.IntRange(0, 9).Draw(t, "keep all") == 9}
		if rapid.Bool().Draw(t, "keep") {
			o.Keep = []int32{0}
		}
		require.NoError(t, LayoutMemory(g, p, o))
		require.NoError(t, Verify(g, p))
		require.True(t, bruteRight(g, p))
		require.LessOrEqual(t, p.Stats.PeakDeviceBytes, p.Stats.SumDeviceBytes)
		saved = saved || p.Stats.PeakDeviceBytes < p.Stats.SumDeviceBytes
		for k, m := range p.Memory {
			for _, q := range p.Memory[:k] {
				if m.Offset < q.Offset+q.Bytes && q.Offset < m.Offset+m.Bytes {
					require.False(t, o.KeepAll)
					require.False(t, slices.Contains(o.Keep, q.Buffer) || slices.Contains(o.Keep, m.Buffer))
				}
			}
		}
		again := clonePlan(p)
		require.NoError(t, LayoutMemory(g, again, o))
		require.Equal(t, p, again)
	})
	require.True(t, saved)
}

func TestLayoutOfDevices(t *testing.T) {
	b := dag.New("devices")
	for d := range int32(2) {
		for i := range 2 {
			b.Buffer(dag.Buffer{Name: fmt.Sprintf("d%d_%d", d, i), Place: dag.Device, Device: d, DType: dag.U8, Shape: []int64{1000}})
		}
	}
	b.Host("h", dag.U8, 1000)
	for i := range int32(4) {
		b.At(b.Task(fmt.Sprintf("make%d", i), b.Out(i))).Device = i / 2
		b.At(b.Task(fmt.Sprintf("use%d", i), b.In(i))).Device = i / 2
	}
	g, err := b.Graph()
	require.NoError(t, err)
	p := &Plan{Streams: []Stream{{Device: 0}, {Device: 1}}}
	for i := range int32(8) {
		p.Streams[i/4].Ops = append(p.Streams[i/4].Ops, Op{Launch, i, -1})
		p.Order = append(p.Order, i/4)
	}
	require.NoError(t, LayoutMemory(g, p, Options{}))
	require.Equal(t, []Placement{{0, 0, 0, 1000}, {1, 0, 0, 1000}, {2, 1, 0, 1000}, {3, 1, 0, 1000}}, p.Memory)
	require.Equal(t, int64(2048), p.Stats.PeakDeviceBytes)
	require.Equal(t, int64(4096), p.Stats.SumDeviceBytes)
	require.NoError(t, Verify(g, p))
	require.ErrorIs(t, LayoutMemory(g, p, Options{Keep: []int32{9}}), ErrBadOption)

	p.Streams[1].Device = 0
	require.ErrorIs(t, LayoutMemory(g, p, Options{}), ErrWrongStream)
}

// bruteOptimum tries every order, each buffer on top of those before it that it may not share with.
func bruteOptimum(l *lifetimes) int64 {
	n := len(l.buffers)
	best := int64(1 << 62)
	order := make([]int, 0, n)
	offset := make([]int64, n)
	var extend func(peak int64)
	extend = func(peak int64) {
		if len(order) == n {
			best = min(best, peak)
			return
		}
		for k := range n {
			if slices.Contains(order, k) {
				continue
			}
			offset[k] = 0
			for _, q := range order {
				if !l.apart(int32(k), int32(q)) {
					offset[k] = max(offset[k], offset[q]+l.bytes[q])
				}
			}
			order = append(order, k)
			extend(max(peak, offset[k]+l.bytes[k]))
			order = order[:len(order)-1]
		}
	}
	extend(0)
	return best
}

// layoutSample is a graph with a plan, drawn from the random families.
func layoutSample(tb testing.TB, family, nodes, streams int, seed uint64) (*dag.Graph, *Plan) {
	tb.Helper()
	g := randomShape(family, nodes, seed).graph(tb)
	p, err := New(context.Background(), g, Options{Strategy: "list", Streams: streams})
	require.NoError(tb, err)
	return g, p
}

func TestLayoutOfSmallGraphsIsOptimal(t *testing.T) {
	equal, all, onePass := 0, 0, 0
	for seed := range uint64(6) {
		for family := range families {
			for _, streams := range []int{1, 2, 4} {
				g, p := layoutSample(t, family, 6, streams, seed)
				l := readSharing(t, g, p, ordClockEntries)
				if len(l.buffers) > 8 {
					continue
				}
				all++
				want := bruteOptimum(l)
				got := peakOf(l, placeSharing(l, g.Len()))
				require.GreaterOrEqual(t, got, want)
				if got == want {
					equal++
				}
				if peakOf(l, sweepLayout(l, g.Len())) == want {
					onePass++
				}
			}
		}
	}
	t.Logf("%d of %d small graphs at the optimum, %d with the sweep alone", equal, all, onePass)
	require.Greater(t, all, 100)
	require.GreaterOrEqual(t, float64(equal), 0.9*float64(all))
}

func TestHeaviestAntichain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t, 14, false)
		p := drawDullPlan(t, g, 4)
		l := readSharing(t, g, p, ordClockEntries)
		want := int64(0)
		for set := range 1 << len(l.buffers) {
			bytes := int64(0)
			for a := range l.buffers {
				if set>>a&1 == 0 {
					continue
				}
				bytes += l.bytes[a]
				for b := range a {
					if set>>b&1 == 1 && l.apart(int32(a), int32(b)) {
						bytes = -1 << 40
					}
				}
			}
			want = max(want, bytes)
		}
		got := int64(0)
		set := heaviestAntichain(l)
		for _, a := range set {
			got += l.bytes[a]
			for _, b := range set {
				require.True(t, a == b || !l.apart(a, b))
			}
		}
		require.Equal(t, want, got)
		least, _ := l.busiest(g.Len())
		require.LessOrEqual(t, least, want)
	})
}

// layoutRatios are the peaks of layouts over the bytes of the heaviest antichain.
func layoutRatios(tb testing.TB, family int, sizes, streams []int, seeds uint64, place func(l *lifetimes, nodes int) []int64) []float64 {
	tb.Helper()
	var ratios []float64
	for _, nodes := range sizes {
		for _, most := range streams {
			for seed := range seeds {
				g, p := layoutSample(tb, family, nodes, most, seed)
				l := readSharing(tb, g, p, ordClockEntries)
				heaviest := int64(0)
				for _, k := range heaviestAntichain(l) {
					heaviest += l.bytes[k]
				}
				peak := peakOf(l, place(l, g.Len()))
				require.GreaterOrEqual(tb, peak, heaviest)
				ratios = append(ratios, float64(peak)/float64(heaviest))
			}
		}
	}
	return ratios
}

// meanAnd95th sums ratios up.
func meanAnd95th(ratios []float64) (mean, p95 float64) {
	ratios = slices.Sorted(slices.Values(ratios))
	for _, r := range ratios {
		mean += r / float64(len(ratios))
	}
	return mean, ratios[(len(ratios)*95+99)/100-1]
}

func TestLayoutIsNearTheHeaviestAntichain(t *testing.T) {
	var all []float64
	for family := range families {
		all = append(all, layoutRatios(t, family, []int{40, 160}, []int{2, 8}, 1, placeSharing)...)
	}
	mean, p95 := meanAnd95th(all)
	t.Logf("%d layouts: mean %.3f, p95 %.3f of the heaviest antichain", len(all), mean, p95)
	require.LessOrEqual(t, mean, 1.10)
	require.LessOrEqual(t, p95, 1.25)
}

// The sweep is what graphs with thousands of buffers get.
func TestSweepOfManyBuffers(t *testing.T) {
	for family := range families {
		g, p := layoutSample(t, family, 3000, 8, 1)
		l := readSharing(t, g, p, ordClockEntries)
		least, _ := l.busiest(g.Len())
		sum := int64(0)
		for _, b := range l.bytes {
			sum += b
		}
		swept := sweepLayout(l, g.Len())
		t.Logf("%-16s %5d buffers: %.3f of the most alive in submission order, which is %.3f of all", families[family].name, len(l.buffers),
			float64(peakOf(l, swept))/float64(least), float64(least)/float64(sum))
		require.NoError(t, LayoutMemory(g, p, Options{}))
		require.NoError(t, Verify(g, p))
	}
}
