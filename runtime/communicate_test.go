// Programs of several ranks in one process, on the CPU device: how far communication is, and one decision for all ranks.

package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/cudart/world"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/file"
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
	return endsOf(t, twoSums, options, alone, run)
}

func endsOf(t *testing.T, source string, options runtime.Options, alone bool, run func(rank int, p *runtime.Program, w *world.World) error) []error {
	t.Helper()
	at, err := world.FreeAddress()
	require.NoError(t, err)
	one := func(rank int) error {
		g, err := file.Parse([]byte(source), file.Options{Library: kernels.Library(), Rank: rank, Ranks: 2})
		if err != nil {
			return err
		}
		w, _, err := world.Join(t.Context(), world.JoinOptions{Place: world.Place{Rank: rank, Ranks: 2, Rendezvous: at}, Secret: "s", Mesh: true, Arrive: 10 * time.Minute, Hash: "h",
			Expected: func(world.Member) (world.Expected, error) { return world.Expected{Hash: "h"}, nil }})
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
		name := func() string { return communicating(p) }
		if before := name(); before != "- -" {
			return fmt.Errorf("%s before the first replay", before)
		}
		if rank == 1 {
			<-seen // rank 0 waits for this rank until then
		} else {
			if err := p.Replay(t.Context()); err != nil {
				return err
			}
			for name() != "first -" {
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
		if after := name(); after != "- second" {
			return fmt.Errorf("%s after the replay", after)
		}
		return nil
	})
}

// communicating is the node that communicates now, and the one before it.
func communicating(p *runtime.Program) string {
	now, last := p.Communicating()
	name := func(n *dag.Node) string {
		if n == nil {
			return "-"
		}
		return n.Name
	}
	return name(now) + " " + name(last)
}

// decided has a loop and a branch whose conditions differ between ranks: rank 0 needs three passes, and takes the branch in the second and
// the third of them; rank 1 alone would need five, and take it in the last two.
const decided = `version: 1
name: decided
buffers:
  d_left: {place: device, dtype: i32, shape: [1]}
  d_sum: {place: device, dtype: i64, shape: [1]}
  d_other: {place: device, dtype: i64, shape: [1]}
  left: {place: host, dtype: i32, shape: [1], expect: {expr: 2*rank}}
  sum: {place: host, dtype: i64, shape: [1], expect: {value: 36}}
  other: {place: host, dtype: i64, shape: [1], expect: {value: 1}}
nodes:
  - {name: set, memset: {to: d_left, value: 3 + 2*rank}}
  - {name: clear, memset: {to: d_sum, value: 0}}
  - {name: clear_other, memset: {to: d_other, value: 1}}
  - {name: before, allreduce: {inout: d_other, op: max}}
  - name: solve
    repeat: {until: d_left < 1, most: 10, expect: {passes: 3}}
    nodes:
      - {name: count, map: left = left - 1, with: {left: d_left}}
      - {name: add, map: sum = sum + 1, with: {sum: d_sum}}
      - name: maybe
        if: d_left < 2
        nodes:
          - name: twice
            repeat: {times: 2}
            nodes:
              - {name: total, allreduce: {inout: d_sum, op: sum}}
        else:
          - {name: same, allreduce: {inout: d_other, op: max}}
  - {name: down_left, memcpy: {from: d_left, to: left}}
  - {name: down, memcpy: {from: d_sum, to: sum}}
  - {name: down_other, memcpy: {from: d_other, to: other}}
`

func TestRankZeroDecidesForAll(t *testing.T) {
	for _, mode := range []runtime.Mode{runtime.Streams, runtime.Captured, runtime.Auto} {
		for _, followed := range []bool{false, true} {
			options := runtime.Options{Mode: mode, FollowCommunication: followed}
			require.Equal(t, []error{nil, nil}, endsOf(t, decided, options, false, func(_ int, p *runtime.Program, _ *world.World) error {
				if err := p.Run(t.Context(), 3); err != nil {
					return err
				}
				if p.Mode() != runtime.Streams || (p.NoGraph() == "") != (mode == runtime.Streams) {
					return fmt.Errorf("%s, because %s", p.Mode(), p.NoGraph())
				}
				if after := communicating(p); followed && after != "- solve" {
					return fmt.Errorf("%s after the replays", after)
				}
				loops, err := p.Loops(t.Context())
				if err != nil {
					return err
				}
				for _, l := range loops {
					if !l.OK {
						return fmt.Errorf("%s: %d passes", l.Node, l.Passes)
					}
				}
				return nil
			}))
		}
	}
}

// A rank can also say that it waits in a body, or for rank 0 to decide.
func TestCommunicatingNamesTheNodeOfABody(t *testing.T) {
	const file = `version: 1
buffers:
  x: {place: device, dtype: f32, shape: [4], init: 1}
nodes:
  - name: solve
    repeat: {while: x(0..1) < 3, most: 4}
    nodes:
      - {name: sum, allreduce: {inout: x, op: sum}}
`
	seen := make(chan struct{})
	require.Equal(t, []error{nil, nil}, endsOf(t, file, runtime.Options{FollowCommunication: true}, false, func(rank int, p *runtime.Program, _ *world.World) error {
		if rank == 1 {
			<-seen // rank 0 waits for this rank until then
			return p.Run(t.Context(), 1)
		}
		run := make(chan error)
		go func() { run <- p.Run(t.Context(), 1) }()
		for now := ""; now != "sum -"; now = communicating(p) { // rank 0 does not wait for others to know what it decides
			time.Sleep(time.Millisecond)
		}
		close(seen)
		return <-run
	}))
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
	memory  cudart.Ptr
	bytes   int64
	calls   int
	encoded bool // before memory was shared, so that what is encoded cannot use it
}

func (s *sharing) Encode(commands []cudart.Command, options cudart.ListOptions) (cudart.List, error) {
	s.encoded = s.encoded || s.calls == 0
	return s.Platform.Encode(commands, options)
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
		g, err := file.Parse([]byte(twoSums), file.Options{Library: kernels.Library(), Ranks: c.ranks})
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
		require.Equal(t, c.ranks == 1, p.encoded)
		require.Equal(t, c.bytes, p.bytes)
		require.Equal(t, c.bytes > 0, p.memory != 0)
		require.NoError(t, inner.Close())
	}
}

// With one rank, what all ranks have is what it has: communication is a copy, or nothing where it works in place.
func TestARankAloneCommunicatesWithItself(t *testing.T) {
	for name, declare := range map[string]func(b *dag.Builder, x, y dag.BufferID){
		"allreduce": func(b *dag.Builder, x, y dag.BufferID) {
			b.Communicate("c", dag.Communication{Verb: dag.AllReduce, Reduction: dag.Sum, From: b.Whole(x), To: b.Whole(y)})
		},
		"in place": func(b *dag.Builder, x, y dag.BufferID) {
			b.Copy("copy", b.Whole(y), b.Whole(x))
			b.Communicate("c", dag.Communication{Verb: dag.AllReduce, Reduction: dag.Max, From: b.Whole(y), To: b.Whole(y)})
		},
		"a bucket": func(b *dag.Builder, x, y dag.BufferID) {
			b.Communicate("c", dag.Communication{Verb: dag.AllReduce, Reduction: dag.Sum, From: b.Slice(x, 0, 2), To: b.Slice(y, 0, 2),
				More: []dag.Pair{{From: b.Slice(x, 2, 3), To: b.Slice(y, 2, 3)}, {From: b.Slice(x, 3, 4), To: b.Slice(y, 3, 4)}}})
		},
		"a bucket of which one is not in place": func(b *dag.Builder, x, y dag.BufferID) {
			b.Copy("copy", b.Slice(y, 0, 2), b.Slice(x, 0, 2))
			b.Communicate("c", dag.Communication{Verb: dag.AllReduce, Reduction: dag.Sum, From: b.Slice(y, 0, 2), To: b.Slice(y, 0, 2),
				More: []dag.Pair{{From: b.Slice(x, 2, 4), To: b.Slice(y, 2, 4)}}})
		},
		"a bucket in place": func(b *dag.Builder, x, y dag.BufferID) {
			b.Copy("copy", b.Whole(y), b.Whole(x))
			b.Communicate("c", dag.Communication{Verb: dag.AllReduce, Reduction: dag.Sum, From: b.Slice(y, 0, 2), To: b.Slice(y, 0, 2),
				More: []dag.Pair{{From: b.Slice(y, 2, 4), To: b.Slice(y, 2, 4)}}})
		},
		"an exchange": func(b *dag.Builder, x, y dag.BufferID) {
			b.Communicate("c", dag.Communication{Verb: dag.Exchange, Transfers: []dag.Transfer{{Range: b.Whole(x)}, {Receive: true, Range: b.Whole(y)}}})
		},
		"an exchange of two": func(b *dag.Builder, x, y dag.BufferID) {
			b.Communicate("c", dag.Communication{Verb: dag.Exchange, Transfers: []dag.Transfer{{Range: b.Slice(x, 0, 2)}, {Range: b.Slice(x, 2, 4)},
				{Receive: true, Range: b.Slice(y, 0, 2)}, {Receive: true, Range: b.Slice(y, 2, 4)}, {Rank: 1, Range: b.Whole(x)}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := dag.New("alone")
			b.Ranks(0, 1)
			x, y := b.Device("x", dag.F32, 4), b.Device("y", dag.F32, 4)
			b.Init(x, dag.Init{Kind: dag.InitRamp, A: 5, B: 1})
			declare(b, x, y)
			g, err := b.Graph()
			require.NoError(t, err)
			plan, err := planner.New(t.Context(), g, planner.Options{KeepAll: true})
			require.NoError(t, err)
			seen := &encoding{Platform: cpu(t)}
			program, err := runtime.New(t.Context(), g, plan, seen, runtime.Options{Mode: runtime.Streams})
			require.NoError(t, err)
			defer program.Close()
			require.NoError(t, program.Run(t.Context(), 1))
			several := slices.ContainsFunc(seen.lists[0], func(c cudart.Command) bool { return c.Kind == cudart.Communicate })
			require.Equal(t, name == "a bucket" || name == "an exchange of two", several, "one copy is a copy, which graphs can have")
			want, got := make([]byte, 16), make([]byte, 16)
			require.NoError(t, program.Read(t.Context(), x, want))
			require.NoError(t, program.Read(t.Context(), y, got))
			require.Equal(t, want, got)
			require.NotZero(t, got[3])
		})
	}
}
