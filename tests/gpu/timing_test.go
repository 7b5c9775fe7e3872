// Measures the wrong ways to time a GPU beside the right one. Prints figures; no figure makes a test fail.

package gpu

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

// TestWrongWaysOfTiming times a replay of 50 kernels of 20 us, 1 ms of work, in five ways; docs/timing.md explains them.
func TestWrongWaysOfTiming(t *testing.T) {
	p := open(t)
	ctx := context.Background()
	b := dag.New("timing")
	b.Use(kernels.Library())
	d := b.Device("d", dag.F32, 1<<20)
	before := b.Kernel("scale", "scale", dag.Args{1 << 10, 2, b.Whole(d)})
	for i := range 50 {
		spin := b.Kernel(fmt.Sprintf("spin%d", i), "spin", dag.Args{20.0})
		b.After(spin, before)
		before = spin
	}
	g, err := b.Graph()
	require.NoError(t, err)
	plan, err := planner.New(ctx, g, planner.Options{})
	require.NoError(t, err)
	fresh := func() *runtime.Program {
		program, err := runtime.New(ctx, g, plan, p, runtime.Options{})
		require.NoError(t, err)
		return program
	}
	program := fresh()
	replay := func() { require.NoError(t, program.Replay(ctx)) }
	wait := func() { require.NoError(t, program.Synchronize(ctx)) }
	us := func(since time.Time) float64 { return float64(time.Since(since).Nanoseconds()) / 1e3 }
	first := time.Now()
	replay()
	wait()
	cold := us(first) // nothing has run before: modules load lazily, clocks are low
	ways := map[string]func() float64{
		"right": func() float64 {
			wait()
			start := time.Now()
			replay()
			wait()
			return us(start)
		},
		"no-wait-after": func() float64 {
			wait()
			start := time.Now()
			replay()
			return us(start)
		},
		"no-wait-before": func() float64 {
			wait()
			replay() // work that another program left running
			start := time.Now()
			replay()
			wait()
			return us(start)
		},
		"no-wait-at-all": func() float64 {
			wait()
			replay()
			start := time.Now()
			replay()
			return us(start)
		},
	}
	fmt.Printf("REPORT timing no-warm-up-us %.1f\n", cold)
	for _, way := range []string{"right", "no-wait-after", "no-wait-before", "no-wait-at-all"} {
		samples := make([]float64, 50)
		for i := range samples {
			samples[i] = ways[way]()
		}
		s := runtime.Summarize(samples)
		t.Logf("%-15s median %8.1f us, min %8.1f, p99 %8.1f", way, s.Median, s.Min, s.P99)
		fmt.Printf("REPORT timing %s-us %.1f\n", way, s.Median)
	}
	wait()
	require.NoError(t, program.Close())
	program = fresh()
	defer program.Close()
	again, err := program.Measure(ctx, 5, 50)
	require.NoError(t, err)
	t.Logf("Measure: submission %.1f us, device %.1f us, wall %.1f us a replay (medians)", again.Submit.Median, again.Device.Median, again.Wall)
}
