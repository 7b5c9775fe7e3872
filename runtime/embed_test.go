// Tests of embedding: the caller's memory and stream are used directly, without a copy and without a wait.

package runtime_test

import (
	"context"
	"encoding/binary"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/proof"
	"github.com/dagrun/dagrun/runtime"
)

func TestBoundMemoryIsUsedItself(t *testing.T) {
	for _, mode := range []runtime.Mode{runtime.Streams, runtime.Captured, runtime.Built} {
		t.Run(mode.String(), func(t *testing.T) {
			ctx := context.Background()
			g, in, out := doubler(t)
			plan, err := planner.New(ctx, g, planner.Options{})
			require.NoError(t, err)
			input, result := make([]byte, 128), make([]byte, 128)
			program, err := runtime.New(ctx, g, plan, cpu(t), runtime.Options{Mode: mode, Bind: map[string][]byte{"in": input, "out": result}})
			require.NoError(t, err)
			defer program.Close()
			require.Same(t, &input[0], &program.Host(in)[0])
			require.Same(t, &result[0], &program.Host(out)[0])
			require.Zero(t, program.Memory().Host, "nothing was taken for them")
			for i := range uint32(3) {
				binary.LittleEndian.PutUint32(input, 100+i)
				require.NoError(t, program.Replay(ctx))
				require.NoError(t, program.Synchronize(ctx))
				require.Equal(t, 200+2*i, binary.LittleEndian.Uint32(result))
			}
		})
	}
}

// accumulator adds one to a host buffer whose contents carry over between replays, and has a second buffer with an init.
func accumulator(t *testing.T) *dag.Graph {
	t.Helper()
	b := dag.New("accumulator")
	b.Use(kernels.Library())
	total, ones := b.Host("total", dag.I32, 4), b.Host("ones", dag.I32, 4)
	b.Init(ones, dag.Init{Kind: dag.InitRamp, A: 50})
	dt, do := b.Device("d_total", dag.I32, 4), b.Device("d_ones", dag.I32, 4)
	b.Copy("up", b.Whole(dt), b.Whole(total))
	b.Copy("up_ones", b.Whole(do), b.Whole(ones))
	b.Kernel("add", "add", dag.Args{4, b.Whole(dt), b.Whole(do), b.Whole(dt)})
	b.Copy("down", b.Whole(total), b.Whole(dt))
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

func TestBoundMemoryKeepsWhatTheCallerPutThere(t *testing.T) {
	ctx := context.Background()
	g := accumulator(t)
	plan, err := planner.New(ctx, g, planner.Options{})
	require.NoError(t, err)
	total, ones := make([]byte, 16), make([]byte, 16)
	total[0], ones[0] = 10, 1
	program, err := runtime.New(ctx, g, plan, cpu(t), runtime.Options{Mode: runtime.Auto, Bind: map[string][]byte{"total": total, "ones": ones}})
	require.NoError(t, err)
	defer program.Close()
	require.EqualValues(t, 10, total[0], "probing left it as it was")
	require.EqualValues(t, 1, ones[0], "the buffer's init does not overwrite the caller's")
	_, err = program.Measure(ctx, 1, 3)
	require.NoError(t, err)
	_, err = program.Trace(ctx, 2)
	require.NoError(t, err)
	require.EqualValues(t, 10, total[0])
	require.NoError(t, program.Run(ctx, 5))
	require.EqualValues(t, 15, total[0])
}

func TestBindingsThatDoNotFitAreRefused(t *testing.T) {
	ctx := context.Background()
	g, _, _ := doubler(t)
	plan, err := planner.New(ctx, g, planner.Options{})
	require.NoError(t, err)
	for _, c := range []struct {
		bind     map[string][]byte
		inflight int
		want     string
	}{
		{map[string][]byte{"inn": nil}, 1, `bind "inn": the pipeline has no such buffer`},
		{map[string][]byte{"d": make([]byte, 128)}, 1, `bind "d": only host buffers can be bound`},
		{map[string][]byte{"in": make([]byte, 127)}, 1, `bind "in": the memory has 127 bytes, but the buffer has 128`},
		{map[string][]byte{"in": make([]byte, 128)}, 2, `buffers bound to the caller's memory cannot be given to several replays in flight`},
	} {
		_, err := runtime.New(ctx, g, plan, cpu(t), runtime.Options{Bind: c.bind, Inflight: c.inflight})
		require.EqualError(t, err, c.want)
	}
}

// The caller's work before and after a replay is on the same stream, and the host does not wait in between.
func TestAReplayJoinsTheCallersStream(t *testing.T) {
	for _, mode := range []runtime.Mode{runtime.Streams, runtime.Captured, runtime.Built} {
		t.Run(mode.String(), func(t *testing.T) {
			ctx := context.Background()
			g, in, out := doubler(t)
			plan, err := planner.New(ctx, g, planner.Options{})
			require.NoError(t, err)
			platform, err := host.Open(host.Options{CheckOrder: true, Perturb: 3})
			require.NoError(t, err)
			defer func() { require.NoError(t, platform.Close()) }()
			own, err := platform.NewStream(0, dag.Normal)
			require.NoError(t, err)
			adopted, err := platform.AdoptStream(own.Handle())
			require.NoError(t, err)
			program, err := runtime.New(ctx, g, plan, platform, runtime.Options{Mode: mode, Origin: adopted})
			require.NoError(t, err)
			source, err := platform.AllocHost(128, false)
			require.NoError(t, err)
			result, err := platform.AllocHost(128, false)
			require.NoError(t, err)
			binary.LittleEndian.PutUint32(platform.HostBytes(source, 4), 21)
			copies := []cudart.Command{
				{Kind: cudart.CopyMemory, Stream: own, Label: "mine before", Node: -1, Dst: program.Address(in), DstDevice: -1, Src: source, SrcDevice: -1, Bytes: 128},
				{Kind: cudart.CopyMemory, Stream: own, Label: "mine after", Node: -1, Dst: result, DstDevice: -1, Src: program.Address(out), SrcDevice: -1, Bytes: 128},
			}
			for _, i := range []int{0, 1} {
				list, err := platform.Encode(copies[i:i+1], cudart.ListOptions{Origin: own})
				require.NoError(t, err)
				require.NoError(t, list.Submit())
				if i == 0 {
					require.NoError(t, program.Replay(ctx))
				}
				defer func() { require.NoError(t, list.Close()) }()
			}
			require.NoError(t, own.Synchronize(ctx))
			require.EqualValues(t, 42, binary.LittleEndian.Uint32(platform.HostBytes(result, 4)))
			require.NoError(t, program.Close())
			done, err := own.Query()
			require.NoError(t, err, "the caller's stream lives on")
			require.True(t, done)
			require.NoError(t, platform.Free(source))
			require.NoError(t, platform.Free(result))
			require.NoError(t, adopted.Close())
			require.NoError(t, own.Close())
		})
	}
}

func TestACallersStreamTakesOneReplayAtATime(t *testing.T) {
	ctx := context.Background()
	g, _, _ := doubler(t)
	plan, err := planner.New(ctx, g, planner.Options{})
	require.NoError(t, err)
	platform := cpu(t)
	own, err := platform.NewStream(0, dag.Normal)
	require.NoError(t, err)
	defer own.Close()
	_, err = runtime.New(ctx, g, plan, platform, runtime.Options{Origin: own, Inflight: 2})
	require.EqualError(t, err, "several replays in flight cannot share the caller's stream")
}

func TestProgramsRunSideBySideOnOneDevice(t *testing.T) {
	ctx := context.Background()
	platform := cpu(t)
	errs := make(chan error)
	for k := range 4 {
		g, in, out := doubler(t)
		plan, err := planner.New(ctx, g, planner.Options{})
		require.NoError(t, err)
		program, err := runtime.New(ctx, g, plan, platform, runtime.Options{Inflight: 1 + k%2})
		require.NoError(t, err)
		defer program.Close()
		go func() {
			var err error
			for i := range uint32(40) {
				binary.LittleEndian.PutUint32(program.Host(in), i<<4+uint32(k))
				next := program.Host(out)
				if err = program.Run(ctx, 1); err != nil {
					break
				}
				if got := binary.LittleEndian.Uint32(next); got != 2*(i<<4+uint32(k)) {
					t.Errorf("program %d, replay %d: %d", k, i, got)
				}
			}
			errs <- err
		}()
	}
	for range 4 {
		require.NoError(t, <-errs)
	}
}

func TestOnDoneSeesWhatCameBefore(t *testing.T) {
	ctx := context.Background()
	g, in, out := doubler(t)
	plan, err := planner.New(ctx, g, planner.Options{})
	require.NoError(t, err)
	program, err := runtime.New(ctx, g, plan, cpu(t), runtime.Options{})
	require.NoError(t, err)
	binary.LittleEndian.PutUint32(program.Host(in), 4)
	result := program.Host(out)
	require.NoError(t, program.Replay(ctx))
	got := uint32(0)
	require.NoError(t, program.OnDone(func(err error) {
		if err == nil {
			got = binary.LittleEndian.Uint32(result)
		}
	}))
	require.NoError(t, program.Close())
	require.EqualValues(t, 8, got)
}

func TestRacesAloneAreTolerated(t *testing.T) {
	ctx := context.Background()
	b := dag.New("race")
	b.Use(kernels.Library())
	b.Sync(dag.SyncExplicit)
	d, e := b.Device("d", dag.I32, 8), b.Device("e", dag.I32, 8)
	x := b.Memset("x", b.Whole(d), 1)
	y := b.Memset("y", b.Whole(d), 2)
	z := b.Memset("z", b.Whole(e), 3)
	b.Stream(x, 0)
	b.Stream(y, 1)
	b.Stream(z, 1)
	g, err := b.Graph()
	require.NoError(t, err)
	plan, err := planner.New(ctx, g, planner.Options{})
	require.NoError(t, err)
	for _, mode := range []runtime.Mode{runtime.Streams, runtime.Captured, runtime.Built} {
		_, err = runtime.New(ctx, g, plan, cpuUnchecked(t), runtime.Options{Mode: mode})
		require.ErrorIs(t, err, proof.ErrRace)
		program, err := runtime.New(ctx, g, plan, cpuUnchecked(t), runtime.Options{Mode: mode, Unsafe: true})
		require.NoError(t, err)
		require.NoError(t, program.Run(ctx, 1))
		require.NoError(t, program.Close())
	}
	plan.Streams[1].Ops = plan.Streams[1].Ops[:1] // nothing launches z
	plan.Order = plan.Order[:len(plan.Order)-1]
	_, err = runtime.New(ctx, g, plan, cpuUnchecked(t), runtime.Options{Unsafe: true})
	require.Error(t, err)
	require.NotErrorIs(t, err, proof.ErrRace)
}

func TestDecisionsAreLogged(t *testing.T) {
	ctx := context.Background()
	g, _, _ := doubler(t)
	plan, err := planner.New(ctx, g, planner.Options{})
	require.NoError(t, err)
	var text strings.Builder
	program, err := runtime.New(ctx, g, plan, cpu(t), runtime.Options{Mode: runtime.Auto, Logger: slog.New(slog.NewTextHandler(&text, nil))})
	require.NoError(t, err)
	defer program.Close()
	require.Contains(t, text.String(), `msg="chose how to replay" mode=`+program.Mode().String())
}
