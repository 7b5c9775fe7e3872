// Tests of the estimate of how long a way to spill takes, on graphs whose times are easy to calculate by hand.

package placement

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/crowd"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
)

// roundSpill is round with hosts: 256 bytes take 12 us to a device, 16 us from it, and 24 us within host memory.
func roundSpill() *model.Machine {
	m := round()
	m.HostToDevice, m.DeviceToHost, m.HostToHost = 64, 32, 16
	return m
}

// spilledUS runs residencies through the estimate. Each is of all bytes of a unit: buffer, first byte, first node, last node and offset.
func spilledUS(t *testing.T, g *dag.Graph, m *model.Machine, times []float64, share float64, residencies ...[5]int) float64 {
	t.Helper()
	p, err := NewSpillProblem(g, 4*grain, nil, nil)
	require.NoError(t, err)
	var list []plan.Residency
	for _, r := range residencies {
		list = append(list, plan.Residency{Buffer: dag.BufferID(r[0]), Lo: int64(r[1]), Hi: int64(r[1] + grain), First: dag.NodeID(r[2]), Last: dag.NodeID(r[3]),
			Offset: int64(r[4])})
	}
	walked, err := p.steps(list)
	require.NoError(t, err)
	s := &spillSearch{p: p, m: m, times: times, engine: make([]plan.Engine, g.Len()), finish: make([]float64, g.Vertices())}
	for i := range times {
		s.engine[i], s.shares = plan.EngineOf(g, dag.NodeID(i)), append(s.shares, share)
	}
	us := s.estimate(walked)
	require.Equal(t, us, s.estimate(walked), "nothing is left of the way before")
	return us
}

// What leaves is copied out when it is written, and memory is used again when that is over. What comes back waits for both.
func TestSpillsAreTimedByWhatTheyMove(t *testing.T) {
	b := dag.New("moved")
	x, y := b.Device("x", dag.U8, grain), b.Device("y", dag.U8, grain)
	b.Task("a", b.Out(x))
	b.Task("b", b.Out(y))
	b.Task("c", b.In(x))
	g, err := b.Graph()
	require.NoError(t, err)
	times := []float64{100, 50, 30}
	for _, c := range []struct {
		name  string
		m     *model.Machine
		share float64
		list  [][5]int
		us    float64
	}{
		{"both fit: one kernel after the other", roundSpill(), 1, [][5]int{{0, 0, 0, 2, 0}, {1, 0, 1, 1, grain}}, 180},
		{"both fit: c begins when a has ended", roundSpill(), 0, [][5]int{{0, 0, 0, 2, 0}, {1, 0, 1, 1, grain}}, 131},
		{"both fit: b begins when half of the device is free", roundSpill(), 0.5, [][5]int{{0, 0, 0, 2, 0}, {1, 0, 1, 1, grain}}, 131},
		{"x goes at 101 and is out at 121, y is done at 171, x is back at 187", roundSpill(), 1, [][5]int{{0, 0, 0, 0, 0}, {1, 0, 1, 1, 0}, {0, 0, 2, 2, 0}}, 217},
		{"x is back at 137 in other memory, while b runs", roundSpill(), 1, [][5]int{{0, 0, 0, 0, 0}, {0, 0, 1, 2, grain}, {1, 0, 1, 1, 0}}, 201},
		{"x is back at 137, and b has never waited", roundSpill(), 1, [][5]int{{0, 0, 0, 0, 0}, {0, 0, 1, 2, grain}, {1, 0, 1, 1, 2 * grain}}, 180},
		{"every copy takes 1", model.Unit(), 1, [][5]int{{0, 0, 0, 0, 0}, {1, 0, 1, 1, 0}, {0, 0, 2, 2, 0}}, 182},
	} {
		require.Equal(t, c.us, spilledUS(t, g, c.m, times, c.share, c.list...), c.name)
	}
}

// Contents from outside are in host memory before the first node and after the last one. What stays on the device is never copied.
func TestSpillsAreTimedWithTheirState(t *testing.T) {
	b := dag.New("state")
	x := b.Device("x", dag.U8, grain)
	b.Init(x, dag.Init{Kind: dag.InitRamp})
	b.Save(x, "x.npy")
	b.Task("a", b.InOut(x))
	b.Task("b", b.InOut(x))
	g, err := b.Graph()
	require.NoError(t, err)
	times := []float64{100, 50}
	require.Equal(t, 184.0, spilledUS(t, g, roundSpill(), times, 1, [5]int{0, 0, 0, 1, 0}), "in until 16, a until 116, b until 167, out from 168")
	require.Equal(t, 220.0, spilledUS(t, g, roundSpill(), times, 1, [5]int{0, 0, 0, 0, 0}, [5]int{0, 0, 1, 1, grain}),
		"out until 137, in until 153, b until 203, out from 204")
	p, err := NewSpillProblem(g, grain, nil, nil)
	require.NoError(t, err)
	walked, err := p.steps([]plan.Residency{{Buffer: x, Hi: grain, Last: 1, Stays: true}})
	require.NoError(t, err)
	s := &spillSearch{p: p, m: roundSpill(), times: times, shares: []float64{1, 1}, engine: make([]plan.Engine, 2), finish: make([]float64, g.Vertices())}
	require.Equal(t, 151.0, s.estimate(walked))
}

// A copy of the pipeline whose device side is in host memory is made there, while the host submits nothing. A copy of several units, too.
func TestSpillsAreTimedByCopiesWithinHostMemory(t *testing.T) {
	b := dag.New("copies")
	h, x := b.Host("h", dag.U8, grain), b.Device("x", dag.U8, grain)
	b.Copy("up", b.Whole(x), b.Whole(h))
	b.Task("use", b.InOut(x))
	b.Copy("down", b.Whole(h), b.Whole(x))
	g, err := b.Graph()
	require.NoError(t, err)
	cores := roundSpill()
	cores.Cores = 8
	times := []float64{12, 10, 16}
	for _, c := range []struct {
		name string
		m    *model.Machine
		list [][5]int
		us   float64
	}{
		{"all on the device: each waits a gap for the one before", roundSpill(), [][5]int{{0, 0, 0, 2, 0}}, 12 + 1 + 10 + 1 + 16},
		{"up within host memory, and then to the device", roundSpill(), [][5]int{{0, 0, 1, 2, 0}}, 24 + 1 + 16 + 10 + 1 + 16 + 24},
		{"down within host memory, after a copy from the device", roundSpill(), [][5]int{{0, 0, 0, 1, 0}}, 12 + 1 + 10 + 1 + 20 + 24 + 24},
		{"cores make copies beside what the host does", cores, [][5]int{{0, 0, 0, 1, 0}}, 12 + 1 + 10 + 1 + 20 + 24},
	} {
		for k := range c.list {
			c.list[k][0] = int(x)
		}
		require.Equal(t, c.us, spilledUS(t, g, c.m, times, 1, c.list...), c.name)
	}

	b = dag.New("across")
	h, x = b.Host("h", dag.U8, 2*grain), b.Device("x", dag.U8, 2*grain)
	b.Task("left", b.Slice(x, 0, grain).Out())
	b.Task("right", b.Slice(x, grain, 2*grain).Out())
	b.Copy("down", b.Whole(h), b.Whole(x))
	b.Task("again", b.Slice(x, 0, grain).In())
	g, err = b.Graph()
	require.NoError(t, err)
	times = []float64{10, 20, 30, 40}
	left, right := [5]int{int(x), 0, 0, 0, 0}, [5]int{int(x), grain, 1, 1, 0}
	again := [5]int{int(x), 0, 3, 3, 0}
	require.Equal(t, 128.0+40, spilledUS(t, g, roundSpill(), times, 1, left, right, again),
		"out until 31, right until 51, out until 72, down until 112, in until 88 and again until 128")
	left[3], right[3], right[4] = 2, 2, grain
	require.Equal(t, 91.0+40, spilledUS(t, g, roundSpill(), times, 1, left, right, again),
		"out until 31 and 51, down until 91, in until 47 and again until 87")
}

// A join takes no time, and is over when the last of what it stands for is.
func TestSpillsAreTimedThroughJoins(t *testing.T) {
	defer crowd.Early(false)()
	b := dag.New("crowd")
	x := b.Device("x", dag.U8, grain)
	times := []float64{20, 40, 10, 5, 7}
	for k := range 3 {
		b.Task(fmt.Sprint("read", k), b.In(x))
	}
	b.Task("left", b.Slice(x, 0, 64).Out())
	b.Task("right", b.Slice(x, 64, 128).Out())
	g, err := b.Graph()
	require.NoError(t, err)
	require.NotEmpty(t, g.Joins())
	require.Equal(t, 87.0, spilledUS(t, g, roundSpill(), times, 0, [5]int{0, 0, 0, 4, 0}),
		"in until 16, read until 56, left until 62, right until 70, out from 71")
}
