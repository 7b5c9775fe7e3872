// Tests of fitting figures of the machine to replays: they are found from some plans and predict others.

package learn

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime/internal/engine"
)

// lattice is a graph of kernels in which each waits for two of the step before, and plans of it on several numbers of streams.
func lattice(t *testing.T) (*dag.Graph, []*planner.Plan) {
	b := dag.New("lattice")
	b.Use(kernels.Library())
	const width, steps = 4, 8
	var before [width]dag.NodeID
	for i := range steps {
		var now [width]dag.NodeID
		for k := range width {
			x := b.Device(fmt.Sprintf("x%d.%d", i, k), dag.F32, 64)
			now[k] = b.Kernel(fmt.Sprintf("k%d.%d", i, k), "square", dag.Args{64, b.Whole(x), b.Whole(x)})
			if i > 0 {
				b.After(now[k], before[k], before[(k+1)%width])
			}
		}
		before = now
	}
	g, err := b.Graph()
	require.NoError(t, err)
	var plans []*planner.Plan
	for streams := 1; streams <= width; streams++ {
		plan, err := planner.New(t.Context(), g, planner.Options{Strategy: "list", Streams: streams})
		require.NoError(t, err)
		plans = append(plans, plan)
	}
	return g, plans
}

func TestTheFitFindsFiguresOfTheMachine(t *testing.T) {
	g, plans := lattice(t)
	platform, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer platform.Close()
	given := planner.H200()
	measured := func(l *learner, machine *planner.Machine, w engine.Way) float64 {
		us, err := predictEach(g, w, machine, l.learned.Profile)
		require.NoError(t, err)
		return us
	}
	for _, c := range []struct {
		name   string
		change func(m *planner.Machine)
	}{
		{"as given", func(*planner.Machine) {}},
		{"waits in graphs take longer", func(m *planner.Machine) { m.GraphEdgeUS *= 2 }},
		{"the host is slower", func(m *planner.Machine) { m.LaunchUS *= 1.5 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			truth := *given
			c.change(&truth)
			l := &learner{graph: g, platform: timed{platform}, o: Options{Plan: planner.Options{Machine: given}}}
			l.learned.Samples = make([][]float64, g.Len())
			var held []engine.Way
			for k, plan := range plans {
				for _, mode := range []engine.Mode{engine.Captured, engine.Streams} {
					w := engine.Way{Plan: plan, Mode: mode, Threads: 1}
					if k == 2 {
						held = append(held, w)
						continue
					}
					l.learned.Ways = append(l.learned.Ways, Way{Plan: plan, Mode: mode, Threads: 1, Each: engine.Series{Count: 3, Median: measured(l, &truth, w)}})
				}
			}
			l.learned.Ways = append(l.learned.Ways, Way{Plan: plans[3], Mode: engine.Streams, Threads: 4, Each: engine.Series{Count: 3, Median: 1e4}})
			require.NoError(t, l.fit())
			require.NoError(t, l.learned.Machine.Validate())
			require.Equal(t, planner.H200(), given, "the machine that was given is left alone")
			off := 0.0 // of the machine that was given
			for _, w := range held {
				require.InEpsilon(t, measured(l, &truth, w), measured(l, l.learned.Machine, w), 0.1, "%s on 3 streams, from plans on 1, 2 and 4", w.Mode)
				off = max(off, math.Abs(measured(l, given, w)/measured(l, &truth, w)-1))
			}
			if off == 0 {
				require.Equal(t, given, l.learned.Machine)
			} else {
				require.Greater(t, off, 0.2)
			}
		})
	}
}

// The fit changes a figure only where predictions depend on it: those of replays as a graph, as streams, or both.
func TestFiguresSayWhichReplaysDependOnThem(t *testing.T) {
	type planned struct {
		g    *dag.Graph
		plan *planner.Plan
	}
	small, plans := lattice(t)
	cases := []planned{{small, plans[0]}, {small, plans[3]}}
	for _, n := range []int64{64, 1 << 20} { // the host, or the engines, decide how long copies take
		b := dag.New("chunks")
		b.Use(kernels.Library())
		in, out := b.Host("in", dag.F32, 4*n), b.Host("out", dag.F32, 4*n)
		for k := range int64(4) {
			x, y := b.Device(fmt.Sprint("x", k), dag.F32, n), b.Device(fmt.Sprint("y", k), dag.F32, n)
			b.Copy(fmt.Sprint("up", k), b.Whole(x), b.Part(in, k, 4))
			b.Kernel(fmt.Sprint("square", k), "square", dag.Args{n, b.Whole(x), b.Whole(y)})
			b.Copy(fmt.Sprint("down", k), b.Part(out, k, 4), b.Whole(y))
		}
		g, err := b.Graph()
		require.NoError(t, err)
		for _, streams := range []int{1, 2, 4} {
			plan, err := planner.New(t.Context(), g, planner.Options{Strategy: "list", Streams: streams})
			require.NoError(t, err)
			cases = append(cases, planned{g, plan})
		}
	}
	given := func() *planner.Machine {
		m := planner.H200()
		m.CopyLaunchUS, m.GraphLaunchUS = m.LaunchUS, 1 // not 0, which no factor changes
		return m
	}
	for k := range fittedFigures {
		f := &fittedFigures[k]
		changed := map[engine.Mode]bool{}
		for _, c := range cases {
			for _, mode := range []engine.Mode{engine.Captured, engine.Streams} {
				w := engine.Way{Plan: c.plan, Mode: mode, Threads: 1}
				was, err := predictEach(c.g, w, given(), nil)
				require.NoError(t, err)
				for _, factor := range []float64{0.25, 8} {
					other := given()
					if *f.of(other) *= factor; other.Validate() != nil {
						continue
					}
					us, err := predictEach(c.g, w, other, nil)
					require.NoError(t, err)
					changed[mode] = changed[mode] || us != was
				}
			}
		}
		require.Equal(t, map[engine.Mode]bool{engine.Captured: f.graph, engine.Streams: f.streams}, changed, "figure %d", k)
	}
}

// Each figure that is fitted changes predictions of those replays that it is said to change, and of no others.
func TestFittedFiguresChangeTheReplaysThatTheyAreSaidTo(t *testing.T) {
	everything := func(n int64) *dag.Graph { // copies both ways, kernels and memsets of so many elements, side by side
		b := dag.New("everything")
		b.Use(kernels.Library())
		var before [3]dag.NodeID
		for step := range 4 {
			var now [3]dag.NodeID
			for k := range 3 {
				name := fmt.Sprintf("%d.%d", step, k)
				in, out, x := b.Host("in"+name, dag.F32, n), b.Host("out"+name, dag.F32, n), b.Device("x"+name, dag.F32, n)
				switch up := b.Copy("up"+name, b.Whole(x), b.Whole(in)); k {
				case 0:
					b.Kernel("k"+name, "square", dag.Args{n, b.Whole(x), b.Whole(x)})
				case 1:
					b.Memset("set"+name, b.Whole(x), 1)
				default:
					b.After(up, before[0], before[1])
				}
				if now[k] = b.Copy("down"+name, b.Whole(out), b.Whole(x)); step > 0 {
					b.After(now[k], before[(k+1)%3])
				}
			}
			before = now
		}
		for k := range 8 {
			b.After(b.Kernel(fmt.Sprintf("short%d", k), "noop", nil), before[0], before[1], before[2])
		}
		g, err := b.Graph()
		require.NoError(t, err)
		return g
	}
	type of struct {
		g    *dag.Graph
		plan *planner.Plan
	}
	var plans []of
	for _, n := range []int64{16, 1 << 16} { // the host takes the time, or the device
		for _, streams := range []int{1, 2, 4} {
			g := everything(n)
			plan, err := planner.New(t.Context(), g, planner.Options{Strategy: "roundrobin", Streams: streams, Machine: planner.H200()})
			require.NoError(t, err)
			plans = append(plans, of{g, plan})
		}
	}
	machine := func() *planner.Machine {
		m := planner.H200()
		m.CopyLaunchUS, m.GraphLaunchUS = 1.3, 1
		return m
	}
	for k, f := range fittedFigures {
		changed := map[engine.Mode]bool{}
		for _, factor := range []float64{50, 0.02} {
			m := machine()
			if *f.of(m) *= factor; m.Validate() != nil {
				continue // it is a part of something
			}
			for _, of := range plans {
				for _, mode := range []engine.Mode{engine.Streams, engine.Captured} {
					w := engine.Way{Plan: of.plan, Mode: mode, Threads: 1}
					was, err := predictEach(of.g, w, machine(), nil)
					require.NoError(t, err)
					is, err := predictEach(of.g, w, m, nil)
					require.NoError(t, err)
					changed[mode] = changed[mode] || was != is
				}
			}
		}
		require.Equal(t, map[engine.Mode]bool{engine.Captured: f.graph, engine.Streams: f.streams}, changed, "figure %d", k)
	}
}

// No figure is changed by more than three times, however long replays took: something else takes the time then.
func TestNoFigureIsChangedByMuch(t *testing.T) {
	g, plans := lattice(t)
	cpu, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer cpu.Close()
	for _, factor := range []float64{4, 6} {
		truth := *planner.H200()
		truth.GraphEdgeUS *= factor
		l := &learner{graph: g, platform: timed{cpu}, o: Options{For: 1, Plan: planner.Options{Machine: planner.H200()}}}
		l.learned.Samples = make([][]float64, g.Len())
		for _, plan := range plans {
			for _, mode := range []engine.Mode{engine.Captured, engine.Streams} {
				us, err := predictEach(g, engine.Way{Plan: plan, Mode: mode, Threads: 1}, &truth, nil)
				require.NoError(t, err)
				l.learned.Ways = append(l.learned.Ways, Way{Plan: plan, Mode: mode, Threads: 1, Each: engine.Series{Count: 3, Median: us}})
			}
		}
		require.NoError(t, l.fit())
		most := 1.0
		for k := range fittedFigures {
			if was, is := *fittedFigures[k].of(planner.H200()), *fittedFigures[k].of(l.learned.Machine); was > 0 {
				most = max(most, was/is, is/was)
			}
		}
		require.LessOrEqual(t, most, mostChanged+1e-9)
		require.Greater(t, most, 1.5, "but it is changed")
	}
}

// The factors that the fit tries begin with no change and ascend.
func TestFactorsThatTheFitTries(t *testing.T) {
	require.Zero(t, stamps[0])
	require.True(t, slices.IsSorted(stamps))
	require.Equal(t, 1.0, slowdowns[0])
	require.True(t, slices.IsSorted(slowdowns))
	require.Equal(t, 2.0, slices.Max(slowdowns), "two cores are at least as fast as one")
	for k := 0; k < len(fitSteps); k += 2 { // down and up, by less and less
		require.InEpsilon(t, 1, fitSteps[k]*fitSteps[k+1], 0.05)
		require.Less(t, fitSteps[k], 1.0)
		require.True(t, k == 0 || fitSteps[k] > fitSteps[k-2])
	}
}
