// Tests of host functions in lists and graphs: when they run, and what they see.

package conformance

import (
	"context"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/kernels/conditions"
)

// runs is a command that runs a function of the host.
func (r *rig) runs(s int, function func()) cudart.Command {
	return cudart.Command{Kind: cudart.RunHost, Label: "host", Node: -1, Stream: r.s[s], Host: function}
}

// hostFunctions has the device compute on a stream, the host on what came back, and the device again on another stream.
func hostFunctions(r *rig) {
	for i := range r.host {
		r.host[i] = uint32(i)
	}
	calls := 0
	work := func() {
		calls++
		for i := range r.back {
			r.back[i] += 7
		}
	}
	want := func(i int) uint32 {
		once := mixed(uint32(i), uint32(i), 1) + 7
		return mixed(once, once, 2)
	}
	check := func(n int) {
		r.sync()
		require.Equal(r, n, calls)
		for i := range r.back {
			require.Equal(r, want(i), r.back[i], "word %d", i)
		}
	}
	before, after := r.event(false), r.event(false)
	commands := []cudart.Command{r.up(0, r.d, r.h), r.mix(0, r.d, r.d, 1), r.down(0, r.g, r.d), r.record(0, before),
		r.wait(1, before), r.runs(1, work), r.record(1, after), r.wait(0, after),
		r.up(0, r.d, r.g), r.mix(0, r.d, r.d, 2), r.down(0, r.g, r.d)}
	for n := range 3 {
		l, err := r.p.Encode(commands, cudart.ListOptions{Origin: r.s[0], Threads: n})
		require.NoError(r, err)
		require.NoError(r, l.Submit())
		check(n + 1)
		require.NoError(r, l.Close())
	}
	l := r.list(r.s[0], commands...)
	g := r.graph(l.Capture(cudart.GraphOptions{Origin: r.s[0]}))
	for n := range 2 {
		require.NoError(r, g.Launch(r.s[2]))
		check(n + 4)
	}
	require.NoError(r, g.Update(l))
	require.NoError(r, g.Launch(r.s[2]))
	check(6)
	built := r.graph(r.p.BuildGraph([]cudart.Command{commands[0], commands[1], commands[2], commands[5], commands[8], commands[9], commands[10]},
		[][]int32{nil, {0}, {1}, {2}, {3}, {4}, {5}}, cudart.GraphOptions{Origin: r.s[0]}))
	for n := range 2 {
		require.NoError(r, built.Launch(r.s[2]))
		check(n + 7)
	}
}

// hostFunctionWaits shows that a host function does not run before its turn, and that what comes after it waits.
func hostFunctionWaits(r *rig) {
	seen := uint32(1)
	r.submit(r.hold(0), r.up(0, r.d, r.h), r.down(0, r.g, r.d), r.runs(0, func() { seen = r.back[0]; r.host[0] = 5 }), r.up(0, r.e, r.h), r.down(0, r.g, r.e))
	r.host[0] = 3 // the copy up waits for the hold, and host functions for the copy
	r.release()
	require.NoError(r, r.s[0].Synchronize(context.Background()))
	require.Equal(r, uint32(3), seen)
	require.Equal(r, uint32(5), r.back[0])
}

func misusedHostFunctions(r *rig) {
	require.Error(r, r.try(r.runs(0, nil)), "no function")
	_, err := r.p.BuildGraph([]cudart.Command{r.runs(0, nil)}, [][]int32{nil}, cudart.GraphOptions{Origin: r.s[0]})
	require.Error(r, err, "no function")
	loop := cudart.Command{Kind: cudart.RunBodies, Stream: r.s[0], Label: "loop", Node: -1, Conditional: &cudart.Conditional{
		Test: conditions.Test{Times: 2, Every: 1}, Counts: r.alloc(8 * conditions.CountWords), Clear: 1,
		Bodies: []cudart.Body{{Commands: []cudart.Command{r.runs(0, func() {})}, Deps: [][]int32{nil}}}}}
	r.decide(loop.Conditional)
	_, err = r.p.BuildGraph([]cudart.Command{loop}, [][]int32{nil}, cudart.GraphOptions{Origin: r.s[0]})
	require.ErrorIs(r, err, cudart.ErrUnsupported, "in the body of a loop")
}
