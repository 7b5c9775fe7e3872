// Tests of communication between ranks of this process, each on a platform of its own.

package host

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/world"
	"github.com/dagrun/dagrun/dag"
)

// joined is some ranks with a platform and a stream each.
type joined struct {
	*bench
	world  *world.World
	stream *stream
}

func joinRanks(t *testing.T, ranks int) []joined {
	t.Helper()
	at, err := world.FreeAddress()
	require.NoError(t, err)
	all, errs := make([]joined, ranks), make([]error, ranks)
	var joining sync.WaitGroup
	for rank := range ranks {
		joining.Go(func() {
			all[rank].world, _, errs[rank] = world.Join(t.Context(), world.JoinOptions{Place: world.Place{Rank: rank, Ranks: ranks, Rendezvous: at}, Secret: "s", Arrive: 10 * time.Minute, Mesh: true, Hash: "h",
				Expected: func(world.Member) (world.Expected, error) { return world.Expected{Hash: "h"}, nil }})
		})
	}
	joining.Wait()
	require.NoError(t, errors.Join(errs...))
	for rank := range all {
		x := &all[rank]
		x.bench = newBench(t, Options{})
		require.NoError(t, x.Connect(t.Context(), x.world, nil))
		x.stream = x.bench.stream()
	}
	return all
}

// together lets each rank communicate, and leave.
func together(t *testing.T, all []joined, talk func(x joined, rank int32) *cudart.Communication) {
	t.Helper()
	var done sync.WaitGroup
	ended := make([]error, len(all))
	for rank, x := range all {
		c := talk(x, int32(rank))
		c.Rank, c.Group = int32(rank), dag.Among{Count: int32(len(all)), Step: 1}
		l := x.list(cudart.Command{Kind: cudart.Communicate, Label: "talk", Stream: x.stream, Communication: c})
		done.Go(func() { ended[rank] = errors.Join(l.Submit(), x.stream.Synchronize(t.Context())) })
	}
	done.Wait()
	require.NoError(t, errors.Join(ended...))
}

// Ranks sum up several pieces in one command, hand pieces around a ring, and skip what is empty.
func TestCommunication(t *testing.T) {
	const ranks = 3
	all := joinRanks(t, ranks)
	memory := make([][]float32, ranks)
	at := make([]cudart.Ptr, ranks)
	for rank, x := range all {
		at[rank], memory[rank] = x.host(64)
		for i := range memory[rank] {
			memory[rank][i] = float32(100*rank + i)
		}
	}
	together(t, all, func(_ joined, rank int32) *cudart.Communication {
		p := at[rank]
		return &cudart.Communication{Verb: dag.AllReduce, Reduction: dag.Sum, DType: dag.F32, Src: p, Dst: p + 32, SrcBytes: 8, DstBytes: 8,
			More: []cudart.Pair{{Src: p + 8, Dst: p + 40, Bytes: 4}, {Src: p + 12, Dst: p + 12, Bytes: 0}, {Src: p + 16, Dst: p + 44, Bytes: 4}}}
	})
	for rank := range ranks {
		require.Equal(t, []float32{300, 303, 306, 312}, memory[rank][8:12], "rank %d", rank)
	}
	together(t, all, func(_ joined, rank int32) *cudart.Communication {
		p, next, last := at[rank], (rank+1)%ranks, (rank+ranks-1)%ranks
		return &cudart.Communication{Verb: dag.Exchange, DType: dag.F32, Transfers: []cudart.Transfer{
			{Receive: true, Rank: last, Ptr: p + 48, Bytes: 8}, {Rank: last, Ptr: p, Bytes: 0}, {Rank: next, Ptr: p + 4, Bytes: 8}, {Receive: true, Rank: next, Ptr: p, Bytes: 0},
			{Rank: last, Ptr: p + 16, Bytes: 4}, {Receive: true, Rank: next, Ptr: p + 56, Bytes: 4},
		}}
	})
	for rank := range ranks {
		last, next := float32(100*((rank+2)%ranks)), float32(100*((rank+1)%ranks))
		require.Equal(t, []float32{last + 1, last + 2, next + 4}, memory[rank][12:15], "rank %d", rank)
	}
	var leaving errgroup.Group
	for _, x := range all {
		leaving.Go(func() error { return x.world.Leave(nil) })
	}
	require.NoError(t, leaving.Wait())
}

// What is wrong with a communication is said before it runs, or names its memory when it does.
func TestCommunicationThatIsWrong(t *testing.T) {
	b := newBench(t, Options{})
	require.ErrorContains(t, b.submit(cudart.Command{Kind: cudart.Communicate, Label: "talk", Stream: b.stream()}), "the command says nothing about what to communicate")
	all := joinRanks(t, 1)
	x := all[0]
	p := x.alloc(16)
	l := x.list(cudart.Command{Kind: cudart.Communicate, Label: "talk", Stream: x.stream, Communication: &cudart.Communication{Verb: dag.Exchange, DType: dag.F32, Group: dag.Among{Count: 1, Step: 1},
		Transfers: []cudart.Transfer{{Ptr: p, Bytes: 16}, {Receive: true, Ptr: p + 8, Bytes: 16}}}})
	require.NoError(t, l.Submit())
	require.ErrorContains(t, x.stream.Synchronize(t.Context()), "destination")
	require.NoError(t, x.world.Leave(nil))
}
