// Tests in which every device call of a program fails in turn: the error names the call, and nothing is left behind.

package runtime_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/fault"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

// silent is a recorder that never returns a record, so that a trace first replays for it and then falls back to events.
type silent struct{}

func (silent) Enable() error                        { return nil }
func (silent) Disable() error                       { return nil }
func (silent) Flush(int) ([]cudart.Activity, error) { return nil, nil }

// life makes a program, runs it, traces it, reads its results and closes it.
func life(t *testing.T, platform cudart.Platform, mode runtime.Mode) (err error) {
	ctx := context.Background()
	g := saxpy(t, 64)
	plan, err := planner.New(ctx, g, planner.Options{Strategy: "roundrobin", Streams: 2})
	require.NoError(t, err)
	program, err := runtime.New(ctx, g, plan, platform, runtime.Options{Mode: mode, Recorder: silent{}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, program.Close()) }()
	if err := program.Run(ctx, 1); err != nil {
		return err
	}
	if _, err := program.Trace(ctx, 1); err != nil {
		return err
	}
	if err := program.Run(ctx, 1); err != nil {
		return err
	}
	_, err = program.Finish(ctx)
	return err
}

func TestEveryDeviceCallFailsInTurn(t *testing.T) {
	for _, mode := range []runtime.Mode{runtime.Streams, runtime.Captured, runtime.Built} {
		t.Run(mode.String(), func(t *testing.T) {
			open := func(plan fault.Plan) (*fault.Platform, *host.Platform) {
				device, err := host.Open(host.Options{})
				require.NoError(t, err)
				return fault.Wrap(device, plan), device
			}
			platform, _ := open(fault.Plan{})
			require.NoError(t, life(t, platform, mode))
			calls := platform.Calls()
			require.NoError(t, platform.Close())
			require.Greater(t, len(calls), 20)
			for k := 1; k <= len(calls); k++ {
				platform, device := open(fault.Plan{Call: k})
				err := life(t, platform, mode)
				require.Error(t, err, "call %d, %s", k, calls[k-1])
				var failed *cudart.Error
				require.ErrorAs(t, err, &failed, "call %d, %s", k, calls[k-1])
				require.Equal(t, cudart.Live{}, device.Live(), "call %d, %s: %v", k, calls[k-1], err)
				require.NoError(t, platform.Close())
			}
		})
	}
}

func TestOutOfMemorySaysWhatWasNeeded(t *testing.T) {
	ctx := context.Background()
	g := saxpy(t, 1<<20)
	plan, err := planner.New(ctx, g, planner.Options{})
	require.NoError(t, err)
	platform, err := host.Open(host.Options{Memory: 4 << 20})
	require.NoError(t, err)
	defer platform.Close()
	_, err = runtime.New(ctx, g, plan, platform, runtime.Options{Inflight: 2})
	require.ErrorIs(t, err, cudart.ErrOutOfMemory)
	require.EqualError(t, err, "device 0 is out of memory: the program needs 16 MiB, 4 MiB are free; largest buffers: d_x 4 MiB, d_y 4 MiB")
}
