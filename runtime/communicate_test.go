// Programs of several ranks in one process, on the CPU device: how far communication is, and one decision for all ranks.

package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/cudart/world"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

const twoSums = `version: 1
name: sums
buffers:
  x: {place: host, dtype: f32, shape: [64], init: {expr: i + rank}}
  d: {place: device, dtype: f32, shape: [64]}
  out: {place: host, dtype: f32, shape: [64], expect: {expr: 2*(2*i + 1)}}
nodes:
  - {name: up, memcpy: {from: x, to: d}}
  - {name: first, allreduce: {inout: d, op: sum}}
  - {name: second, allreduce: {inout: d, op: sum}}
  - {name: down, memcpy: {from: d, to: out}}
`

// onRanks runs a pipeline as two ranks of this process.
func onRanks(t *testing.T, options runtime.Options, run func(rank int, p *runtime.Program, w *world.World) error) {
	t.Helper()
	require.Equal(t, []error{nil, nil}, endsOfRanks(t, options, false, run))
}

// endsOfRanks returns how each rank ended. Ranks that are alone cannot exchange what they learn.
func endsOfRanks(t *testing.T, options runtime.Options, alone bool, run func(rank int, p *runtime.Program, w *world.World) error) []error {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	at := l.Addr().String()
	require.NoError(t, l.Close())
	one := func(rank int) error {
		g, err := dag.Parse([]byte(twoSums), dag.Options{Library: kernels.Library(), Rank: rank, Ranks: 2})
		if err != nil {
			return err
		}
		w, _, err := world.Join(t.Context(), world.JoinOptions{Place: world.Place{Rank: rank, Ranks: 2, Rendezvous: at}, Secret: "s", Mesh: true, Arrive: 10 * time.Minute, Hash: "h",
			Expected: func(int) (world.Expected, error) { return world.Expected{Hash: "h"}, nil }})
		if err != nil {
			return err
		}
		platform, err := host.Open(host.Options{CheckOrder: true})
		if err != nil {
			return err
		}
		defer platform.Close()
		if err := platform.Connect(t.Context(), w, nil); err != nil {
			return err
		}
		plan, err := planner.New(t.Context(), g, planner.Options{})
		if err != nil {
			return err
		}
		own := options
		own.Agree = func(ctx context.Context, text string) (string, error) {
			texts, err := w.Barrier(ctx, "agree", text)
			if err != nil {
				return "", err
			}
			return texts[0], nil
		}
		if !alone {
			own.Exchange = func(ctx context.Context, text string) ([]string, error) { return w.Barrier(ctx, "learn", text) }
		}
		p, err := runtime.New(t.Context(), g, plan, platform, own)
		if err != nil {
			return w.Leave(err)
		}
		defer p.Close()
		if err := run(rank, p, w); err != nil {
			return err
		}
		results, err := p.Finish(t.Context())
		if err == nil && len(results.Failed()) > 0 {
			err = fmt.Errorf("rank %d: %v", rank, results.Failed())
		}
		if other := w.Leave(err); err == nil {
			err = other
		}
		return err
	}
	errs := make([]error, 2)
	var all sync.WaitGroup
	for rank := range errs {
		all.Go(func() { errs[rank] = one(rank) })
	}
	all.Wait()
	return errs
}

// A rank whose device waits for another rank can say in which node.
func TestCommunicatingNamesTheNode(t *testing.T) {
	seen := make(chan struct{})
	onRanks(t, runtime.Options{FollowCommunication: true}, func(rank int, p *runtime.Program, _ *world.World) error {
		name := func() string {
			now, last := p.Communicating()
			return fmt.Sprintf("%d %d", now, last)
		}
		if before := name(); before != "-1 -1" {
			return fmt.Errorf("%s before the first replay", before)
		}
		if rank == 1 {
			<-seen // rank 0 waits for this rank until then
		} else {
			if err := p.Replay(t.Context()); err != nil {
				return err
			}
			for name() != "1 -1" {
				time.Sleep(time.Millisecond)
			}
			close(seen)
		}
		if err := p.Run(t.Context(), rank); err != nil { // rank 0 has submitted its replay
			return err
		}
		if err := p.Synchronize(t.Context()); err != nil {
			return err
		}
		if after := name(); after != "-1 2" {
			return fmt.Errorf("%s after the replay", after)
		}
		return nil
	})
}

// Auto measures replays, as many as rank 0 says, and all ranks take what rank 0 found faster.
func TestAutoIsOneDecisionForAllRanks(t *testing.T) {
	var mu sync.Mutex
	var modes []runtime.Mode
	var replays []uint64
	onRanks(t, runtime.Options{Mode: runtime.Auto}, func(rank int, p *runtime.Program, _ *world.World) error {
		mu.Lock()
		modes, replays = append(modes, p.Mode()), append(replays, p.Replays())
		mu.Unlock()
		return p.Run(t.Context(), 2)
	})
	require.Equal(t, modes[0], modes[1])
	require.Equal(t, replays[0], replays[1])
}

// sharing is a platform on which ranks reach each other's memory. It lets no program be made.
type sharing struct {
	*host.Platform
	memory cudart.Ptr
	bytes  int64
	calls  int
}

var errShared = errors.New("shared")

func (s *sharing) Share(_ context.Context, memory cudart.Ptr, bytes int64) error {
	s.memory, s.bytes = memory, bytes
	s.calls++
	return errShared
}

func TestRanksShareTheMemoryOfDeviceBuffers(t *testing.T) {
	for _, c := range []struct {
		ranks  int
		memory runtime.MemoryMode
		calls  int
		bytes  int64
	}{
		{ranks: 2, memory: runtime.Arena, calls: 1, bytes: 256},
		{ranks: 2, memory: runtime.Separate, calls: 1}, // all ranks ask, also those that have nothing to share
		{ranks: 1, memory: runtime.Arena},
	} {
		g, err := dag.Parse([]byte(twoSums), dag.Options{Library: kernels.Library(), Ranks: c.ranks})
		require.NoError(t, err)
		plan, err := planner.New(t.Context(), g, planner.Options{})
		require.NoError(t, err)
		inner, err := host.Open(host.Options{})
		require.NoError(t, err)
		p := &sharing{Platform: inner}
		program, err := runtime.New(t.Context(), g, plan, p, runtime.Options{Memory: c.memory})
		if c.calls > 0 {
			require.ErrorIs(t, err, errShared)
		} else {
			require.NoError(t, err)
		}
		require.NoError(t, program.Close())
		require.Equal(t, c.calls, p.calls)
		require.Equal(t, c.bytes, p.bytes)
		require.Equal(t, c.bytes > 0, p.memory != 0)
		require.NoError(t, inner.Close())
	}
}
