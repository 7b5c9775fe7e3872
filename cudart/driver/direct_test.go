// Direct all-reduces on the fake driver: which ranks share memory, what is launched, and what is left to NCCL.

//go:build linux && (amd64 || arm64)

package driver

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/driver/internal/nccl"
	"github.com/dagrun/dagrun/dag"
)

// offers is what the other ranks say in an exchange of memory.
type offers struct {
	memory func(rank int) directOffer
	shared string // whether they could open what was offered
}

func willing(rank int) directOffer {
	return directOffer{Machine: machine(), Handle: hex.EncodeToString([]byte(strings.Repeat(string(rune('0'+rank)), handleBytes)))}
}

// during lets the other ranks take part in an exchange of memory while this one does something.
func (x *pair) during(t *testing.T, o offers, do func() error) {
	t.Helper()
	var all sync.WaitGroup
	for k, w := range x.others {
		all.Go(func() {
			text, _ := json.Marshal(o.memory(k + 1))
			if _, err := w.Barrier(t.Context(), "share memory", string(text)); err == nil {
				_, _ = w.Barrier(t.Context(), "memory is shared", o.shared)
			}
		})
	}
	require.NoError(t, do())
	all.Wait()
}

func (x *pair) openDirect(t *testing.T, o offers) {
	t.Helper()
	x.during(t, o, func() error { return x.p.comms.openDirect(t.Context()) })
}

func TestDirectAllReducesAreLaunched(t *testing.T) {
	n := newFakeNCCL()
	x := connectedPair(t, n, []dag.Among{{First: 0, Count: 2, Step: 1}})
	d := fakeNow.Load()
	x.openDirect(t, offers{willing, "true"})
	require.NotNil(t, x.p.comms.direct)
	require.Equal(t, []string{"1", "2", "3"}, d.opened)
	const bytes = 4 << 20
	memory, err := x.p.Alloc(0, bytes)
	require.NoError(t, err)
	other, err := x.p.Alloc(0, bytes)
	require.NoError(t, err)
	x.during(t, offers{willing, "true"}, func() error { return x.p.Share(t.Context(), memory, bytes) })
	all := dag.Among{First: 0, Count: 4, Step: 1}
	of := func(src, dst cudart.Ptr, bytes int64, op dag.Reduction) *cudart.Communication {
		return &cudart.Communication{Verb: dag.AllReduce, Reduction: op, DType: dag.F32, Group: all, Src: src, Dst: dst, SrcBytes: bytes, DstBytes: bytes}
	}
	const count = 262145 // elements: not a whole number for each of four ranks
	n.calls()
	type launch struct{ shape, arguments []uintptr }
	encode := func(of *cudart.Communication) []launch {
		t.Helper()
		list, err := x.p.Encode([]cudart.Command{communicate(x, "sum", of)}, cudart.ListOptions{Origin: x.stream})
		require.NoError(t, err)
		before := d.mark()
		require.NoError(t, list.Submit())
		d.mu.Lock()
		calls := d.log[before:]
		d.mu.Unlock()
		var launches []launch
		for _, c := range calls {
			if c.f != cuLaunchKernel {
				continue
			}
			one := launch{shape: c.args[1:9]}
			for k := range uintptr(9) { // as many as the kernel with the fewest has
				one.arguments = append(one.arguments, peek[uintptr](peek[uintptr](c.args[9]+8*k)))
			}
			launches = append(launches, one)
		}
		require.NoError(t, list.Close())
		return launches
	}
	own := x.p.comms.direct
	large := encode(of(memory+1024, memory+2<<20, 4*count, dag.Sum))
	require.Len(t, large, 1)
	require.Equal(t, []uintptr{directBlocks, 1, 1, directThreads, 1, 1, 0, x.stream.Handle()}, large[0].shape)
	require.Equal(t, []uintptr{1024, 2 << 20, 0, 65536, own.rounds, uintptr(own.stop), uintptr(memory), own.control[0], own.shared[0].of[1]}, large[0].arguments,
		"rank 0 combines the first part, of whole vectors; the last rank has what is left")
	require.Empty(t, n.calls())

	// Small ones need no memory that ranks share.
	const most = directSmall / 3 / 4 * 4
	for bytes, blocks := range map[int64]uintptr{4: 1, 4096: 1, 4100: 2, 4096 * 20: 20, most: smallBlocks} {
		small := encode(of(other+4, memory+8, bytes, dag.Avg))
		require.Len(t, small, 1)
		require.Equal(t, []uintptr{blocks, 1, 1, directThreads, 1, 1, 0, x.stream.Handle()}, small[0].shape)
		c := own.control
		require.Equal(t, []uintptr{uintptr(other) + 4, uintptr(memory) + 8, uintptr(bytes / 4), own.rounds + 4*directBlocks, uintptr(own.stop),
			c[0] + directControl, c[1] + directControl, c[2] + directControl, c[3] + directControl}, small[0].arguments)
	}
	require.Empty(t, n.calls())

	// What NCCL does.
	small := of(memory, memory, directLeast-4, dag.Sum)
	nothing := of(memory, memory, 0, dag.Sum)
	elsewhere, half := of(other, other, bytes, dag.Sum), of(memory, other, bytes, dag.Sum)
	beyond := of(memory+bytes-directLeast, memory+bytes-directLeast, directLeast+4, dag.Sum)
	largest := of(memory, memory, bytes, dag.Max)
	some := of(memory, memory, bytes, dag.Sum)
	some.Group = dag.Among{First: 0, Count: 2, Step: 1}
	bucket := of(memory, memory, directLeast, dag.Sum)
	bucket.More = []cudart.Pair{{Src: other, Dst: other, Bytes: 8}}
	broadcast := of(memory, memory, bytes, dag.NoReduction)
	broadcast.Verb = dag.Broadcast
	for k, c := range []*cudart.Communication{small, nothing, elsewhere, half, beyond, largest, some, bucket, broadcast} {
		require.Empty(t, encode(c), "%d", k)
		require.NotEmpty(t, n.calls(), "%d", k)
	}
	require.Len(t, encode(of(memory, memory, directLeast, dag.Avg)), 1)
	require.Empty(t, n.calls())

	// Memory that one rank does not share.
	x.during(t, offers{func(rank int) directOffer {
		if rank == 2 {
			return directOffer{Machine: machine()}
		}
		return willing(rank)
	}, "false"}, func() error { return x.p.Share(t.Context(), other, bytes) })
	require.Empty(t, encode(elsewhere))
	require.NoError(t, x.p.Free(other))
	require.Len(t, x.p.comms.direct.shared, 1)
	require.NoError(t, x.p.Free(memory))
	require.Empty(t, x.p.comms.direct.shared, "other memory may come to be where this was")
	x.end(t)
	d.clean(t)
}

func TestRanksThatDoNotReachEachOther(t *testing.T) {
	for name, c := range map[string]struct {
		of   offers
		fail function
		set  [2]string
	}{
		"one has no such memory": {of: offers{func(rank int) directOffer {
			if rank == 3 {
				return directOffer{Machine: machine()}
			}
			return willing(rank)
		}, "false"}},
		"another machine": {of: offers{func(rank int) directOffer {
			offer := willing(rank)
			offer.Machine += fmt.Sprint(rank)
			return offer
		}, "false"}},
		"nonsense":                   {of: offers{func(rank int) directOffer { return directOffer{machine(), strings.Repeat("zz", handleBytes)} }, "true"}},
		"another cannot open memory": {of: offers{willing, "false"}},
		"this one cannot":            {of: offers{willing, "true"}, fail: cuIpcOpenMemHandle},
		"this one cannot offer":      {of: offers{willing, "false"}, fail: cuIpcGetMemHandle},
		"no memory for it":           {of: offers{willing, "false"}, fail: cuMemsetD8Async},
		"the user does not want it":  {of: offers{willing, "false"}, set: [2]string{directVariable, "off"}},
		"NCCL may not":               {of: offers{willing, "false"}, set: [2]string{"NCCL_P2P_DISABLE", "1"}},
		"NCCL may not by distance":   {of: offers{willing, "false"}, set: [2]string{"NCCL_P2P_LEVEL", "LOC"}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.set[0] != "" {
				t.Setenv(c.set[0], c.set[1])
			}
			n := newFakeNCCL()
			x := connectedPair(t, n, nil)
			d := fakeNow.Load()
			if c.fail != 0 {
				d.failOn[c.fail] = 205
			}
			x.openDirect(t, c.of)
			delete(d.failOn, c.fail)
			require.Nil(t, x.p.comms.direct)
			require.NoError(t, x.p.Share(t.Context(), 0x1000, 1<<30), "no rank asks")
			n.calls()
			list, err := x.p.Encode([]cudart.Command{communicate(x, "sum", &cudart.Communication{Verb: dag.AllReduce, Reduction: dag.Sum, DType: dag.F32,
				Group: dag.Among{First: 0, Count: 4, Step: 1}, Src: 0x1000, Dst: 0x1000, SrcBytes: 4 << 20, DstBytes: 4 << 20})}, cudart.ListOptions{Origin: x.stream})
			require.NoError(t, err)
			require.NoError(t, list.Submit())
			require.Len(t, n.calls(), 1)
			require.NoError(t, list.Close())
			x.end(t)
			d.clean(t)
		})
	}
}

// A kernel that waits for a rank that has failed must end.
func TestDirectAllReducesEndWhenARankFails(t *testing.T) {
	n := newFakeNCCL()
	x := connectedPair(t, n, nil)
	x.openDirect(t, offers{willing, "true"})
	stop := x.p.comms.direct.word()
	require.Zero(t, *stop)
	x.others[1].Leave(fmt.Errorf("no memory"))
	n.await(t, nccl.CommAbort)
	require.Equal(t, uint32(1), *stop)
	require.NoError(t, x.stream.Close())
	require.NoError(t, x.p.Close())
	x.leave(x.w.Cause())
}
