// Tests of the estimate of how long a placement takes, on graphs whose times are easy to calculate by hand.

package placement

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/model"
)

// round is a machine whose figures are powers of two, so that each shows in a sum.
func round() *model.Machine {
	m := model.H200()
	m.Cores, m.GapUS, m.LaunchUS, m.SyncUS, m.CopyUS, m.PeerToPeer = 0, 1, 2, 4, 8, 16
	return m
}

// timed runs a placement through the estimate.
func timed(t *testing.T, g *dag.Graph, m *model.Machine, devices int, times, shares []float64, slots int, at []int32) (makespan float64, critical []int32) {
	t.Helper()
	p, err := NewProblem(g, devices, nil)
	require.NoError(t, err)
	e := newEstimator(p, m, times, slots)
	copy(e.shares, shares)
	d := newDispatcher(e)
	makespan = d.makespan(at)
	require.Equal(t, makespan, d.makespan(at), "nothing is left of the placement before")
	return makespan, d.critical(nil)
}

// A node waits for what it reads: on its own device a gap, and from another a copy, which the host submits like a node.
func TestPlacementsAreTimedByWhatTheyMove(t *testing.T) {
	b := dag.New("read")
	x, y := b.Device("x", dag.U8, 64), b.Device("y", dag.U8, 64)
	b.Task("a", b.Out(x))
	b.Task("b", b.In(x), b.Out(y))
	b.Task("c", b.In(x))
	b.After(b.Task("d"), 1)
	g, err := b.Graph()
	require.NoError(t, err)
	times := []float64{100, 50, 30, 20}
	for _, c := range []struct {
		at       []int32
		slots    int
		makespan float64
		critical []int32
	}{
		{[]int32{0, 0, 0, 0}, 2, 174, []int32{3, 1, 0}},
		{[]int32{0, 0, 0, 0}, 1, 203, []int32{3, 2, 1, 0}},
		{[]int32{0, 1, 0, 1}, 2, 190, []int32{3, 1, 0}},
		{[]int32{0, 1, 1, 0}, 1, 199, []int32{2, 1, 0}},
		{[]int32{1, 0, 2, 2}, 1, 190, []int32{3, 1, 0}},
	} {
		makespan, critical := timed(t, g, round(), 3, times, make([]float64, 4), c.slots, c.at)
		require.Equal(t, c.makespan, makespan, "%v, %d at once", c.at, c.slots)
		require.Equal(t, c.critical, critical, "%v, %d at once", c.at, c.slots)
	}
}

// Kernels that take shares of a device leave room for others, those of unknown shares take none, and on a machine with cores all devices are one.
func TestPlacementsAreTimedByTheSharesOfKernels(t *testing.T) {
	b := dag.New("shares")
	for _, name := range []string{"a", "b", "c"} {
		b.Task(name)
	}
	g, err := b.Graph()
	require.NoError(t, err)
	cores := round()
	cores.Cores = 8
	for _, c := range []struct {
		m        *model.Machine
		shares   []float64
		at       []int32
		makespan float64
	}{
		{round(), []float64{0.5, 0.75, 0}, []int32{0, 0, 0}, 44},
		{round(), []float64{0.5, 0.75, 0.5}, []int32{0, 0, 0}, 64},
		{round(), []float64{1, 1, 1}, []int32{0, 1, 0}, 52},
		{cores, []float64{1, 1, 1}, []int32{0, 1, 0}, 72},
	} {
		makespan, _ := timed(t, g, c.m, 2, []float64{10, 20, 40}, c.shares, 3, c.at)
		require.Equal(t, c.makespan, makespan, "%v at %v", c.shares, c.at)
	}
}

// Copies wait for the copiers of their device, each direction for its own.
func TestPlacementsAreTimedByTheCopiersOfDevices(t *testing.T) {
	b := dag.New("copies")
	h, x, y, z := b.Host("h", dag.U8, 64), b.Device("x", dag.U8, 64), b.Device("y", dag.U8, 64), b.Device("z", dag.U8, 64)
	b.Copy("up", b.Whole(x), b.Whole(h))
	b.Copy("up too", b.Whole(y), b.Whole(h))
	b.Copy("within", b.Whole(z), b.Whole(y))
	b.Copy("down", b.Whole(b.Host("i", dag.U8, 64)), b.Whole(x))
	b.Copy("down too", b.Whole(b.Host("j", dag.U8, 64)), b.Whole(z))
	b.Copy("on the host", b.Whole(b.Host("k", dag.U8, 64)), b.Whole(h))
	g, err := b.Graph()
	require.NoError(t, err)
	for _, c := range []struct {
		m        *model.Machine
		at       []int32
		makespan float64
	}{
		{round(), []int32{0, 0, 0, 0, 0, 0}, 354},
		{model.Unit(), []int32{0, 0, 0, 0, 0, 0}, 250},
		{round(), []int32{0, 1, 1, 0, 0, 0}, 303},
		{model.Unit(), []int32{0, 1, 1, 0, 0, 0}, 251},
	} {
		makespan, critical := timed(t, g, c.m, 2, []float64{100, 100, 50, 100, 100, 10}, make([]float64, 6), 1, c.at)
		require.Equal(t, c.makespan, makespan, "%s at %v", c.m.Name, c.at)
		require.Equal(t, []int32{4, 2, 1}, critical)
	}
}

// A kernel of unknown share takes nothing of its device from those that begin before it.
func TestKernelsOfUnknownSharesTakeNone(t *testing.T) {
	b := dag.New("late")
	x := b.Device("x", dag.U8, 64)
	b.Task("first", b.Out(x))
	b.Task("then", b.In(x))
	b.Task("beside")
	g, err := b.Graph()
	require.NoError(t, err)
	makespan, _ := timed(t, g, round(), 1, []float64{100, 50, 10}, []float64{0, 0, 1}, 3, []int32{0, 0, 0})
	require.Equal(t, 153.0, makespan)
}

// What is saved is brought home in the end: to the device that has the most of it.
func TestPlacementsAreTimedUntilEverythingIsHome(t *testing.T) {
	b := dag.New("saved")
	x := b.Device("x", dag.U8, 64)
	b.Save(x, "x.npy")
	b.Task("most", b.Slice(x, 0, 48).Out())
	b.Task("rest", b.Slice(x, 48, 64).Out())
	g, err := b.Graph()
	require.NoError(t, err)
	for _, c := range []struct {
		at       []int32
		makespan float64
		critical []int32
	}{{[]int32{0, 0}, 22, []int32{1, 0}}, {[]int32{0, 1}, 23, []int32{1}}, {[]int32{1, 0}, 23, []int32{1}}} {
		makespan, critical := timed(t, g, round(), 2, []float64{10, 10}, make([]float64, 2), 1, c.at)
		require.Equal(t, c.makespan, makespan, "%v", c.at)
		require.Equal(t, c.critical, critical, "%v", c.at)
	}
}

// A device sends one piece after the other, the next to the most urgent of those that wait.
func TestPlacementsAreTimedByWhatDevicesSend(t *testing.T) {
	b := dag.New("sends")
	x, y, z := b.Device("x", dag.U8, 64), b.Device("y", dag.U8, 64), b.Device("z", dag.U8, 64)
	b.Task("a", b.Out(x), b.Out(y), b.Out(z))
	b.Task("first", b.In(x))
	b.Task("last", b.In(y))
	b.Task("next", b.In(z))
	g, err := b.Graph()
	require.NoError(t, err)
	for _, c := range []struct {
		at       []int32
		makespan float64
	}{
		{[]int32{0, 1, 2, 3}, 241}, // x from 12 to 24, z from 24 to 36, y from 36 to 48; each is used 5 later
		{[]int32{0, 0, 2, 3}, 241}, // y from 12 to 24, because nothing waits yet, then z
		{[]int32{0, 0, 0, 3}, 229}, // z from 12 to 24
		{[]int32{3, 3, 3, 3}, 323}, // nothing is sent, and a device runs the most urgent first
	} {
		makespan, _ := timed(t, g, round(), 4, []float64{10, 10, 100, 200}, make([]float64, 4), 1, c.at)
		require.Equal(t, c.makespan, makespan, "%v", c.at)
	}
}

// What several devices read is sent on by those that have it: a copy takes 12, and what has come is used 5 later.
func TestPlacementsAreTimedByWhatIsSentOn(t *testing.T) {
	for _, c := range []struct {
		at       []int32
		makespan float64
	}{
		{[]int32{0, 1}, 39},                   // from 12 to 24
		{[]int32{0, 1, 2}, 51},                // 0 sends to 2 after 1
		{[]int32{0, 1, 2, 3}, 51},             // 1 sends to 3 beside that
		{[]int32{0, 1, 2, 3, 4}, 63},          // 0 sends to 4 when it has sent to 2
		{[]int32{0, 1, 2, 3, 4, 5, 6, 7}, 63}, // 8 have it after three rounds
		{[]int32{3, 1, 2, 0}, 51},             // the first of two that are as free sends: 1 to 2, and 3 to 0
		{[]int32{0, 1, 1, 1, 0}, 59},          // it is sent once, and used by one after the other
	} {
		b := dag.New("broadcast")
		x := b.Device("x", dag.U8, 64)
		b.Task("a", b.Out(x))
		for k := range c.at[1:] {
			b.Task(fmt.Sprint("read", k), b.In(x))
		}
		g, err := b.Graph()
		require.NoError(t, err)
		times := slices.Repeat([]float64{10}, len(c.at))
		makespan, _ := timed(t, g, round(), 8, times, make([]float64, len(c.at)), 1, c.at)
		require.Equal(t, c.makespan, makespan, "%v", c.at)
	}
}

// Names that are made are as long as names may be, cut between characters, and like no other.
func TestMadeNamesAreNames(t *testing.T) {
	m := &making{names: map[string]bool{"taken": true}}
	seen := map[string]bool{}
	for _, name := range []string{"x", "x", "x", "taken", strings.Repeat("y", 300), strings.Repeat("y", 301), strings.Repeat("é", 200), strings.Repeat("é", 199) + "z", strings.Repeat("漢", 100)} {
		made := m.unique(name)
		require.NoError(t, dag.CheckName(made))
		require.False(t, seen[made] || made == "taken", "%q", made)
		seen[made] = true
		require.True(t, strings.HasPrefix(made, name[:min(len(name), dag.MaxName-20)]) || len(name) > dag.MaxName, "%q", made)
		require.GreaterOrEqual(t, len(made), min(len(name), dag.MaxName-20))
	}
	require.True(t, seen["x"] && seen["x #2"] && seen["x #3"] && seen["taken #2"])
}
