// Tests of how long layouts are searched for, of layouts that are given, and of what a few clocks leave open.

package layout

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/effort"
	"github.com/dagrun/dagrun/planner/internal/order"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/internal/plantest/planned"
	"github.com/dagrun/dagrun/planner/plan"
)

// The steps of a search as they were reviewed: they decide how long a plan takes to make, and how low its layout is.
func TestSearchesTakeAsManyStepsAsWereReviewed(t *testing.T) {
	var text strings.Builder
	for _, hard := range []effort.Effort{effort.Quick, effort.Normal, effort.Thorough} {
		for _, crossed := range []bool{false, true} {
			for _, n := range []int{2, 100, 400, 1000, 6000} {
				b := budget(hard, n, crossed)
				fmt.Fprintf(&text, "effort %d, crossed %v, %d buffers: %d orders, %d to eject, %d searched, %d at once\n", hard, crossed, n, b.Orders, b.Eject, b.Search, b.Searches)
			}
		}
	}
	require.Equal(t, `effort 0, crossed false, 2 buffers: 316000 orders, 14000 to eject, 41200 searched, 0 at once
effort 0, crossed false, 100 buffers: 1100000 orders, 700000 to eject, 100000 searched, 0 at once
effort 0, crossed false, 400 buffers: 3500000 orders, 2600000 to eject, 280000 searched, 0 at once
effort 0, crossed false, 1000 buffers: 4000000 orders, 2600000 to eject, 400000 searched, 0 at once
effort 0, crossed false, 6000 buffers: 4000000 orders, 2600000 to eject, 400000 searched, 0 at once
effort 0, crossed true, 2 buffers: 316000 orders, 14000 to eject, 99000 searched, 0 at once
effort 0, crossed true, 100 buffers: 1100000 orders, 700000 to eject, 50000 searched, 0 at once
effort 0, crossed true, 400 buffers: 3500000 orders, 2600000 to eject, 0 searched, 0 at once
effort 0, crossed true, 1000 buffers: 4000000 orders, 2600000 to eject, 0 searched, 0 at once
effort 0, crossed true, 6000 buffers: 4000000 orders, 2600000 to eject, 0 searched, 0 at once
effort 1, crossed false, 2 buffers: 4000 orders, 64000 to eject, 32000 searched, 0 at once
effort 1, crossed false, 100 buffers: 200000 orders, 3200000 to eject, 1600000 searched, 0 at once
effort 1, crossed false, 400 buffers: 800000 orders, 12000000 to eject, 6400000 searched, 0 at once
effort 1, crossed false, 1000 buffers: 2000000 orders, 12000000 to eject, 9000000 searched, 0 at once
effort 1, crossed false, 6000 buffers: 12000000 orders, 12000000 to eject, 9000000 searched, 0 at once
effort 1, crossed true, 2 buffers: 4000 orders, 5000000 to eject, 990000 searched, 2 at once
effort 1, crossed true, 100 buffers: 200000 orders, 5000000 to eject, 500000 searched, 2 at once
effort 1, crossed true, 400 buffers: 800000 orders, 24800000 to eject, 0 searched, 2 at once
effort 1, crossed true, 1000 buffers: 2000000 orders, 150000000 to eject, 0 searched, 2 at once
effort 1, crossed true, 6000 buffers: 12000000 orders, 150000000 to eject, 0 searched, 2 at once
effort 2, crossed false, 2 buffers: 316000 orders, 100000000 to eject, 700000000 searched, 0 at once
effort 2, crossed false, 100 buffers: 1100000 orders, 100000000 to eject, 700000000 searched, 0 at once
effort 2, crossed false, 400 buffers: 3500000 orders, 100000000 to eject, 700000000 searched, 0 at once
effort 2, crossed false, 1000 buffers: 4000000 orders, 100000000 to eject, 700000000 searched, 0 at once
effort 2, crossed false, 6000 buffers: 4000000 orders, 100000000 to eject, 700000000 searched, 0 at once
effort 2, crossed true, 2 buffers: 316000 orders, 1200000000 to eject, 300000000 searched, 0 at once
effort 2, crossed true, 100 buffers: 1100000 orders, 1200000000 to eject, 300000000 searched, 0 at once
effort 2, crossed true, 400 buffers: 3500000 orders, 1200000000 to eject, 300000000 searched, 0 at once
effort 2, crossed true, 1000 buffers: 4000000 orders, 1200000000 to eject, 300000000 searched, 0 at once
effort 2, crossed true, 6000 buffers: 4000000 orders, 1200000000 to eject, 300000000 searched, 0 at once
`, text.String())
}

// A layout that is given is the plan's, with the bytes that it takes, whatever the plan had before.
func TestLayoutsThatAreGiven(t *testing.T) {
	for seed := range uint64(3) {
		g := plantest.MixedGraph(t, seed, 40, false)
		p := planned.ListPlan(t, g, 3)
		kept := Kept(g)
		require.NoError(t, Memory(context.Background(), g, p, kept, effort.Quick))
		want := plantest.ClonePlan(p)
		offsets := make([]int64, len(g.Buffers))
		for _, m := range p.Memory {
			offsets[m.Buffer] = m.Offset
		}
		p.Stats.SumDeviceBytes = 1
		require.NoError(t, At(g, p, kept, offsets))
		require.Equal(t, []any{want.Memory, want.Kept, want.Stats}, []any{p.Memory, p.Kept, p.Stats})
	}
}

// Devices come in the order of their numbers, whichever has the first buffer, and each needs what its own buffers take.
func TestDevicesOfALayout(t *testing.T) {
	b := dag.New("devices")
	for k, device := range []int32{3, 0, 2, 0} {
		b.OnDevice(b.Device(fmt.Sprint("x", k), dag.U8, 1000), device)
	}
	g, err := b.Graph()
	require.NoError(t, err)
	devices, sum, err := arenaSizes(g)
	require.NoError(t, err)
	require.Equal(t, []int32{0, 2, 3}, devices)
	require.EqualValues(t, 4*plan.AlignUp(1000), sum)
}

// With fewer clocks than streams, buffers of the others count as never finished: no proof rests on such lifetimes.
func TestLifetimesOfFewClocks(t *testing.T) {
	g := plantest.RandomShape(0, 40, 1).Graph(t)
	p := planned.ListPlan(t, g, 3)
	all := readSharing(t, g, p, 1<<20)
	require.True(t, all.complete())
	require.False(t, all.inLine())
	one := readSharing(t, g, p, len(all.buffers))
	require.Equal(t, 1, one.columns)
	require.False(t, one.complete())
	require.False(t, one.inLine())
	bytes := make([]float64, len(p.Streams)) // by stream, of the buffers that are used there
	s := readSteps(g, p)
	for k, buffer := range one.buffers {
		on := map[int32]bool{}
		for i := range int32(g.Len()) {
			for _, a := range g.Accesses(dag.NodeID(i)) {
				if int32(a.Buffer) == buffer {
					on[s.order.Spots[i].Stream] = true
				}
			}
		}
		for stream := range on {
			bytes[stream] += float64(one.bytes[k])
		}
	}
	most := 0
	for stream := range bytes {
		if bytes[stream] > bytes[most] {
			most = stream
		}
	}
	for k, buffer := range one.buffers {
		elsewhere := false
		for i := range int32(g.Len()) {
			for _, a := range g.Accesses(dag.NodeID(i)) {
				elsewhere = elsewhere || int32(a.Buffer) == buffer && int(s.order.Spots[i].Stream) != most
			}
		}
		require.Equal(t, elsewhere, one.endless[k], "buffer %d", buffer)
	}
	serial := readSharing(t, g, planned.ListPlan(t, g, 1), 1<<20)
	require.True(t, serial.inLine())
}

// The busiest place of an order is the first at which the most bytes are alive.
func TestTheBusiestPlaceIsTheFirst(t *testing.T) {
	l := &lifetimes{buffers: []int32{0, 1, 2, 3}, bytes: []int64{2, 3, 1, 5}, first: []int32{0, 1, 3, 5}, last: []int32{1, 2, 4, 5}}
	for _, c := range []struct {
		bytes []int64
		most  int64
		at    int32
	}{{[]int64{2, 3, 1, 5}, 5, 1}, {[]int64{2, 3, 1, 6}, 6, 5}, {[]int64{2, 2, 9, 9}, 9, 3}, {[]int64{0, 0, 0, 0}, 0, 0}} {
		l.bytes = c.bytes
		most, at := l.busiest(6)
		require.Equal(t, []any{c.most, c.at}, []any{most, at}, "%v", c.bytes)
	}
	for at, want := range map[int64]int64{0: 0, 1: 512, 511: 512, 512: 512, 513: 1024} {
		require.Equal(t, want, alignedTo(at, 512))
	}
}

// A graph whose buffers together have as many bytes as a number can count has an arena, and one more has none.
func TestArenasThatCannotBeCounted(t *testing.T) {
	const most = math.MaxInt64 - plan.ArenaAlign
	for _, c := range []struct {
		bytes []int64
		fine  bool
	}{{[]int64{most}, true}, {[]int64{most + 1}, false}, {[]int64{1, most - plan.ArenaAlign}, true}, {[]int64{1, most - plan.ArenaAlign + 1}, false}, {[]int64{most, 1}, false}} {
		g := &dag.Graph{Pipeline: &dag.Pipeline{}}
		for k, bytes := range c.bytes {
			g.Buffers = append(g.Buffers, dag.Buffer{Name: fmt.Sprint("b", k), Place: dag.Device, DType: dag.U8, Bytes: bytes})
		}
		devices, sum, err := arenaSizes(g)
		if c.fine {
			require.NoError(t, err, "%v", c.bytes)
			require.Equal(t, []int32{0}, devices)
			continue
		}
		require.ErrorIs(t, err, plan.ErrMemory)
		require.EqualError(t, err, fmt.Sprintf(`the device buffers up to "b%d" together need more than 2^63 - 1 bytes: %v`, len(c.bytes)-1, plan.ErrMemory))
		require.Empty(t, devices)
		require.Zero(t, sum)
	}
}

// What each size of parts makes of many buffers, as it was reviewed.
func TestLayoutsInPartsAreThoseThatWereReviewed(t *testing.T) {
	g := plantest.RandomShape(0, 1300, 1).Graph(t)
	p := planned.ListPlan(t, g, 4)
	l := readSharing(t, g, p, order.Entries)
	least, _ := l.busiest(g.Len())
	sweep := sweepLayout(l, g.Len())
	var text strings.Builder
	fmt.Fprintf(&text, "%d buffers, %d bytes at least, %d by a sweep\n", len(l.buffers), least, peakOf(l, sweep))
	for hard := range partTries {
		tries := &partTries[hard]
		for _, n := range []int64{1000, 1 << 20} {
			fmt.Fprintf(&text, "effort %d: at most %d steps for %d buffers\n", hard, min(tries.most, tries.each*n), n)
		}
		for _, size := range tries.sizes {
			offsets, taken := layoutInParts(context.Background(), l, g.Len(), size, math.MaxInt64, tries.most)
			fmt.Fprintf(&text, "  parts of %d: %d bytes in %d steps\n", size, peakOf(l, offsets), taken)
		}
	}
	require.Equal(t, `1300 buffers, 2937344 bytes at least, 3451136 by a sweep
effort 0: at most 8000000 steps for 1000 buffers
effort 0: at most 120000000 steps for 1048576 buffers
  parts of 128: 3252224 bytes in 462258 steps
effort 1: at most 24000000 steps for 1000 buffers
effort 1: at most 400000000 steps for 1048576 buffers
  parts of 128: 3252224 bytes in 462258 steps
  parts of 64: 3307008 bytes in 438770 steps
  parts of 256: 3297024 bytes in 502450 steps
  parts of 512: 3231744 bytes in 555842 steps
effort 2: at most 400000000 steps for 1000 buffers
effort 2: at most 4000000000 steps for 1048576 buffers
  parts of 128: 3252224 bytes in 462258 steps
  parts of 64: 3307008 bytes in 438770 steps
  parts of 256: 3297024 bytes in 502450 steps
  parts of 512: 3231744 bytes in 555842 steps
  parts of 96: 3262720 bytes in 453050 steps
  parts of 192: 3230976 bytes in 479346 steps
  parts of 384: 3282176 bytes in 542322 steps
  parts of 32: 3341312 bytes in 426194 steps
  parts of 768: 3264256 bytes in 635274 steps
  parts of 1024: 3214592 bytes in 688962 steps
  parts of 2048: 3194112 bytes in 844350 steps
  parts of 4096: 3194112 bytes in 844350 steps
`, text.String())
}

// Without a layout to find or steps to take, what is given stays; the lowest of the others is taken.
func TestTheLowestLayoutInPartsIsTaken(t *testing.T) {
	g := plantest.RandomShape(0, 1300, 1).Graph(t)
	l := readSharing(t, g, planned.ListPlan(t, g, 4), order.Entries)
	least, _ := l.busiest(g.Len())
	apart := make([]int64, len(l.buffers))
	for k := 1; k < len(apart); k++ {
		apart[k] = apart[k-1] + l.bytes[k-1]
	}
	lower := func(ctx context.Context, least int64, hard effort.Effort) int64 {
		return peakOf(l, lowerInParts(ctx, l, g.Len(), apart, least, hard))
	}
	all := peakOf(l, apart)
	require.Equal(t, all, lower(context.Background(), all, effort.Normal), "it is as low as can be")
	ended, end := context.WithCancel(context.Background())
	end()
	require.Equal(t, all, lower(ended, least, effort.Normal))
	quick, normal := lower(context.Background(), least, effort.Quick), lower(context.Background(), least, effort.Normal)
	require.Less(t, quick, all/2)
	require.LessOrEqual(t, normal, quick)
	want := int64(math.MaxInt64)
	for _, size := range partTries[effort.Normal].sizes {
		offsets, _ := layoutInParts(context.Background(), l, g.Len(), size, math.MaxInt64, partTries[effort.Normal].most)
		want = min(want, peakOf(l, offsets))
	}
	require.Equal(t, want, normal)
}
