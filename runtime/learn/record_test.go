// Tests of learning from CUPTI's records: durations are those of the records, and whatever goes wrong with them costs no replay.

package learn

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime/internal/engine"
	"github.com/dagrun/dagrun/runtime/internal/played"
)

// counting is a graph whose result is the number of its replays, with a copy in each and a launch that does nothing.
func counting(t *testing.T) (*dag.Graph, dag.BufferID) {
	b := dag.New("counting")
	b.Use(kernels.Library())
	const n = 64
	one, sum := b.Host("one", dag.F32, n), b.Host("sum", dag.F32, n)
	b.Init(one, dag.Init{Kind: dag.InitRamp, A: 1})
	d, total := b.Device("d", dag.F32, n), b.Device("total", dag.F32, n)
	b.Copy("up", b.Whole(d), b.Whole(one))
	b.Kernel("add", "add", dag.Args{n, b.Whole(total), b.Whole(d), b.Whole(total)})
	b.Kernel("nothing", "scale", dag.Args{0, 2, b.Part(d, 0, 1)})
	b.Copy("down", b.Whole(sum), b.Whole(total))
	g, err := b.Graph()
	require.NoError(t, err)
	return g, sum
}

// recordedLearning learns from 6 replays of counting on a device with a GPU's name, and returns what it learned and how often it replayed.
func recordedLearning(t *testing.T, ctx context.Context, r *played.Recorder) (learned *Learned, total float32, p *engine.Program, err error) {
	t.Helper()
	g, sum := counting(t)
	cpu, err := host.Open(host.Options{CheckOrder: true})
	require.NoError(t, err)
	platform := timed{cpu}
	plan, err := planner.New(context.Background(), g, planner.Options{Streams: 3, Machine: planner.H200()})
	require.NoError(t, err)
	p, err = engine.New(context.Background(), g, plan, platform, planner.GraphEdges, engine.Options{Recorder: r})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, p.Close())
		require.NoError(t, cpu.Close())
	})
	r.Graph, r.Now = g, func() (*planner.Plan, bool) { return p.Plan(), p.Mode() != engine.Streams }
	learned, err = From(ctx, p, Options{Replays: 6, Thorough: true, Plan: planner.Options{Machine: planner.H200()}})
	require.False(t, r.Enabled, "recording is off again")
	if err != nil {
		return nil, 0, p, err
	}
	require.Equal(t, 6, learned.Replays)
	require.NoError(t, p.Synchronize(context.Background()))
	bytes := make([]byte, g.Buffers[sum].Bytes)
	require.NoError(t, p.Read(context.Background(), sum, bytes))
	return learned, math.Float32frombits(binary.LittleEndian.Uint32(bytes)), p, nil
}

// lasting makes each record last 20 us.
func lasting(records []cudart.Activity) []cudart.Activity {
	for i := range records {
		records[i].Start = records[0].Start + uint64(i)*30_000
		records[i].End = records[i].Start + 20_000
	}
	return records
}

func TestDurationsAreLearnedFromRecords(t *testing.T) {
	r := &played.Recorder{Spoil: lasting}
	learned, total, _, err := recordedLearning(t, context.Background(), r)
	require.NoError(t, err)
	require.EqualValues(t, 6, total, "replays that are recorded count")
	same := func(us float64) []float64 { return []float64{us, us, us, us, us} }
	require.Equal(t, [][]float64{same(20), same(20 - recordedLaunchUS), same(0), same(20)}, learned.Samples)
	require.Len(t, learned.First, 4, "the first replay is measured with events, which tell what hangs")
	require.True(t, r.Plain)
}

func TestLearningGoesOnWithoutRecords(t *testing.T) {
	later := func(after int, spoil func([]cudart.Activity) []cudart.Activity) func([]cudart.Activity) []cudart.Activity {
		seen := 0
		return func(records []cudart.Activity) []cudart.Activity {
			if seen++; seen > after {
				return spoil(lasting(records))
			}
			return lasting(records)
		}
	}
	lost := func(r []cudart.Activity) []cudart.Activity { return r[1:] }
	foreign := func(r []cudart.Activity) []cudart.Activity { r[1].Name = "theirs"; return r }
	for _, c := range []struct {
		name     string
		recorder *played.Recorder
		recorded int // samples
	}{
		{"no CUPTI", &played.Recorder{Fails: "enable"}, 0},
		{"no buffers", &played.Recorder{Fails: "flush"}, 0},
		{"records are lost", &played.Recorder{Spoil: later(0, lost)}, 0},
		{"records are lost later", &played.Recorder{Spoil: later(2, lost)}, 2},
		{"another's kernel", &played.Recorder{Spoil: later(3, foreign)}, 3},
		{"another's kernel at last", &played.Recorder{Spoil: later(4, foreign)}, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			learned, total, _, err := recordedLearning(t, context.Background(), c.recorder)
			require.NoError(t, err)
			require.EqualValues(t, 6, total, "no replay is made twice or left out")
			for i, samples := range learned.Samples {
				recorded := 0
				for _, us := range samples {
					require.GreaterOrEqual(t, us, 0.0)
					if us == 20 {
						recorded++
					}
				}
				if i == 0 {
					require.Equal(t, c.recorded, recorded)
				}
			}
		})
	}
}

func TestLearningStopsWhileItRecords(t *testing.T) {
	for stop := range 4 { // of five replays that are recorded
		t.Run(fmt.Sprint(stop), func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(context.Background())
			enough := errors.New("enough")
			seen := 0
			r := &played.Recorder{Spoil: func(records []cudart.Activity) []cudart.Activity {
				if seen++; seen == stop+1 {
					cancel(enough)
				}
				return lasting(records)
			}}
			_, _, p, err := recordedLearning(t, ctx, r)
			require.ErrorIs(t, err, enough)
			require.NoError(t, p.Run(context.Background(), 1), "the program can be used")
		})
	}
}
