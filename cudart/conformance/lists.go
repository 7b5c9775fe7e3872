// Tests of lists: changes between submissions, several threads, and refusals before anything runs.

package conformance

import (
	"context"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
)

func listChanges(r *rig) {
	for i := range r.host {
		r.host[i] = uint32(i)
	}
	l := r.list(nil, r.hold(0), r.up(0, r.d, r.h), r.mix(0, r.d, r.d, 1), r.down(0, r.g, r.d))
	require.Equal(r, 4, l.Len())
	require.NoError(r, l.Submit())
	args := r.mix(0, r.d, r.d, 2).Args
	require.NoError(r, l.SetArgs(2, [3]uint32{words / 128, 1, 1}, args))
	require.NoError(r, l.SetCopy(3, r.h, r.e))
	r.release()
	r.sync()
	require.Equal(r, mixed(5, 5, 1), r.back[5], "what was submitted keeps its arguments")
	require.Equal(r, mixed(0, 0, 1), r.back[0])
	shorter := r.list(nil, r.up(0, r.d, r.h), r.mix(0, r.d, r.d, 1), cudart.Command{
		Kind: cudart.CopyMemory, Stream: r.s[0], Dst: r.g, DstDevice: -1, Src: r.d, Bytes: 4})
	require.NoError(r, shorter.SetArgs(1, [3]uint32{words / 128, 1, 1}, args))
	require.NoError(r, shorter.SetCopy(2, r.g+40, r.d+20))
	require.NoError(r, shorter.Submit())
	r.sync()
	require.Equal(r, mixed(5, 5, 2), r.back[10])
	require.Equal(r, mixed(0, 0, 1), r.back[0], "left alone")

	require.Error(r, l.SetArgs(1, one, nil), "a copy has no arguments")
	require.Error(r, l.SetCopy(2, r.d, r.d), "a launch has no addresses")
	require.Error(r, l.SetArgs(4, one, nil))
	require.Error(r, l.SetArgs(-1, one, nil))
	require.Error(r, l.SetArgs(2, one, args[:3]), "too few arguments")
	require.Error(r, l.SetArgs(2, [3]uint32{1, 1 << 20, 1}, args))
}

func threads(r *rig) {
	e := make([]cudart.Event, 8)
	for i := range e {
		e[i] = r.event(false)
	}
	// A diamond over four streams: 0 forks, 1 and 2 work on halves, 3 joins.
	half := int64(words / 2)
	at := cudart.Ptr(4 * half)
	commands := []cudart.Command{
		r.up(0, r.d, r.h), r.record(0, e[0]), r.wait(1, e[0]), r.wait(2, e[0]),
		r.mixWords(1, r.d, r.d, half, 1), r.record(1, e[1]), r.mixWords(2, r.d+at, r.d+at, half, 2), r.record(2, e[2]),
		r.wait(3, e[1]), r.wait(3, e[2]), r.mix(3, r.d, r.d, 3), r.down(3, r.g, r.d), r.record(3, e[3]), r.wait(0, e[3]),
	}
	for n := range 5 {
		l, err := r.p.Encode(commands, cudart.ListOptions{Origin: r.s[0], Threads: n})
		require.NoError(r, err)
		for round := range uint32(20) {
			for i := range r.host {
				r.host[i] = uint32(i) ^ round
			}
			require.NoError(r, l.Submit())
			require.NoError(r, r.s[0].Synchronize(context.Background()))
			for i := range r.back {
				x := uint32(i) ^ round
				y := mixed(x, x, 1+uint32(int64(i)/half))
				require.Equal(r, mixed(y, y, 3), r.back[i], "%d threads, word %d", n, i)
			}
		}
		require.NoError(r, l.Close())
	}
}

func nothingToDo(r *rig) {
	r.submit()
	nothing, none := r.mix(0, r.d, r.d, 1), r.up(0, r.d, r.h)
	nothing.Grid = [3]uint32{0, 1, 1}
	none.Bytes = 0
	empty := r.set(0, r.d, 4)
	empty.Bytes = 0
	r.submit(nothing, none, empty, cudart.Command{Kind: cudart.RangePush, Label: "range"}, cudart.Command{Kind: cudart.RangePop})
	r.sync()
	l := r.list(r.s[0], nothing, none, r.mix(0, r.d, r.d, 1))
	g := r.graph(l.Capture(cudart.GraphOptions{}))
	require.Equal(r, 1, g.Nodes())
	require.NoError(r, g.Launch(r.s[0]))
	r.sync()
}

func misusedLists(r *rig) {
	l, err := r.p.Encode([]cudart.Command{r.launch(0, "noop", one)}, cudart.ListOptions{})
	require.NoError(r, err)
	_, err = l.Capture(cudart.GraphOptions{})
	require.Error(r, err, "no origin")
	require.NoError(r, l.Close())
	require.NoError(r, l.Close(), "a second time does nothing")
	require.Error(r, l.Submit())
	_, err = l.Capture(cudart.GraphOptions{Origin: r.s[0]})
	require.Error(r, err)

	foreign := r.launch(0, "noop", one)
	foreign.Stream = nil
	require.Error(r, r.try(foreign))
	foreign = r.launch(0, "noop", one)
	foreign.Kernel = nil
	require.Error(r, r.try(foreign))
	require.Error(r, r.try(r.record(0, nil)))
	bad := r.set(0, r.d, 3)
	require.Error(r, r.try(bad), "three bytes wide")
	bad = r.set(0, r.d, 4)
	bad.Bytes = 6
	require.Error(r, r.try(bad), "one and a half words")
	bad = r.up(0, r.d, r.h)
	bad.Bytes = -4
	require.Error(r, r.try(bad))
	r.sync()
}

func launchLimits(r *rig) {
	info := r.p.Devices()[0]
	for _, c := range []struct {
		grid, block [3]uint32
		shared      uint32
	}{
		{one, [3]uint32{uint32(info.MaxThreadsPerBlock) + 1, 1, 1}, 0},
		{one, [3]uint32{64, 32, 1}, 0},
		{one, [3]uint32{1, 1, 65}, 0},
		{one, [3]uint32{1, 0, 1}, 0},
		{[3]uint32{1 << 31, 1, 1}, one, 0},
		{[3]uint32{1, 1 << 16, 1}, one, 0},
		{[3]uint32{1, 1, 1 << 16}, one, 0},
		{one, one, uint32(info.SharedPerBlockMax) + 1},
	} {
		bad := r.launch(0, "noop", c.grid)
		bad.Block, bad.Shared, bad.Label = c.block, c.shared, "too much"
		_, err := r.p.Encode([]cudart.Command{bad}, cudart.ListOptions{})
		require.ErrorContains(r, err, `node "too much"`, "grid %v, block %v, %d shared", c.grid, c.block, c.shared)
	}
	fits := r.launch(0, "noop", one)
	fits.Block, fits.Shared = [3]uint32{uint32(info.MaxThreadsPerBlock), 1, 1}, uint32(info.SharedPerBlockMax)
	require.NoError(r, r.try(fits))
	k := r.kernels["noop"]
	require.Error(r, k.SetMaxShared(uint32(info.SharedPerBlockMax)+1))
	require.Equal(r, info.MaxThreadsPerBlock, k.Attributes().MaxThreads)
	block, blocks, err := k.Occupancy(0)
	require.NoError(r, err)
	require.Positive(r, block)
	require.Positive(r, blocks)
	_, err = r.module.Kernel("absent")
	require.ErrorContains(r, err, `"absent"`)
	r.sync()
}
