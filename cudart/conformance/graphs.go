// Tests of graphs: captured and built, launched one after the other, changed and replaced; and the rules of capture.

package conformance

import (
	"context"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
)

func captured(r *rig) {
	e, f := r.event(false), r.event(false)
	half := int64(words / 2)
	at := cudart.Ptr(4 * half)
	l := r.list(r.s[0],
		r.up(0, r.d, r.h), r.record(0, e), r.wait(1, e),
		r.mixWords(0, r.d, r.d, half, 1), r.mixWords(1, r.d+at, r.d+at, half, 2),
		r.record(1, f), r.wait(0, f), r.down(0, r.g, r.d))
	for _, priorities := range []bool{false, true} {
		g := r.graph(l.Capture(cudart.GraphOptions{Priorities: priorities}))
		require.Equal(r, 4, g.Nodes(), "records and waits are edges")
		require.NoError(r, g.Upload(r.s[2]))
		for round := range uint32(5) {
			for i := range r.host {
				r.host[i] = uint32(i) + round
			}
			require.NoError(r, g.Launch(r.s[2]), "on any stream")
			require.NoError(r, r.s[2].Synchronize(context.Background()))
			for i := range r.back {
				x := uint32(i) + round
				require.Equal(r, mixed(x, x, 1+uint32(int64(i)/half)), r.back[i])
			}
		}
	}
	// Nothing of the capture ran, and the same list runs as it is, the events standing for real records again.
	clear(r.back)
	require.NoError(r, l.Submit())
	require.NoError(r, f.Synchronize(context.Background()))
	require.NoError(r, r.s[0].Synchronize(context.Background()))
	require.Equal(r, mixed(r.host[0], r.host[0], 1), r.back[0])
}

func captureRules(r *rig) {
	e, f, outside := r.event(false), r.event(false), r.event(false)
	r.submit(r.record(3, outside))
	r.sync()
	for _, c := range []struct {
		name     string
		commands []cudart.Command
		want     string
	}{
		{"a fork that is not joined", []cudart.Command{r.record(0, e), r.wait(1, e), r.mix(1, r.d, r.d, 1)},
			"CUDA_ERROR_STREAM_CAPTURE_UNJOINED"},
		{"joined too early", []cudart.Command{r.record(0, e), r.wait(1, e), r.mix(1, r.d, r.d, 1), r.record(1, f), r.mix(1, r.d, r.d, 2), r.wait(0, f)},
			"CUDA_ERROR_STREAM_CAPTURE_UNJOINED"},
		{"a wait for what was not captured", []cudart.Command{r.mix(0, r.d, r.d, 1), r.wait(0, outside)},
			"CUDA_ERROR_STREAM_CAPTURE_ISOLATION"},
	} {
		l := r.list(r.s[0], c.commands...)
		_, err := l.Capture(cudart.GraphOptions{})
		require.Error(r, err, c.name)
		r.named(err, c.want)
		for _, s := range r.s {
			require.NoError(r, s.Synchronize(context.Background()), "%s: no stream is left capturing", c.name)
		}
	}
	// An event that was last recorded in a capture cannot be waited for.
	l := r.list(r.s[0], r.mix(0, r.d, r.d, 1), r.record(0, e))
	g := r.graph(l.Capture(cudart.GraphOptions{}))
	require.Equal(r, 1, g.Nodes())
	r.named(e.Synchronize(context.Background()), "CUDA_ERROR_INVALID_VALUE")
	_, err := e.Query()
	r.named(err, "CUDA_ERROR_INVALID_VALUE")
	require.NoError(r, l.Submit())
	require.NoError(r, e.Synchronize(context.Background()), "recorded anew")
}

func graphTimes(r *rig) {
	from, to := r.event(true), r.event(true)
	l := r.list(r.s[0], r.record(0, from), r.mix(0, r.d, r.d, 1), r.record(0, to))
	g := r.graph(l.Capture(cudart.GraphOptions{}))
	b := r.graph(r.p.BuildGraph([]cudart.Command{r.record(0, from), r.mix(0, r.d, r.d, 1), r.record(0, to)},
		[][]int32{nil, {0}, {1}}, cudart.GraphOptions{Origin: r.s[0]}))
	for _, graph := range []cudart.Graph{g, b} {
		require.Equal(r, 3, graph.Nodes(), "time stamps are nodes")
		for range 3 {
			require.NoError(r, graph.Launch(r.s[0]))
			require.NoError(r, r.s[0].Synchronize(context.Background()))
			us, err := to.Since(from)
			require.NoError(r, err)
			require.Positive(r, us)
		}
	}
}

// chain returns the nodes up, mix and down.
func (r *rig) chain(k uint32) ([]cudart.Command, [][]int32) {
	return []cudart.Command{r.up(0, r.d, r.h), r.mix(0, r.d, r.d, k), r.down(0, r.g, r.d)}, [][]int32{nil, {0}, {1}}
}

func builtGraph(r *rig) {
	nothing := r.mix(0, r.d, r.d, 99)
	nothing.Grid = [3]uint32{}
	commands := []cudart.Command{
		{Kind: cudart.Empty, Label: "root"}, r.up(0, r.d, r.h), r.mix(0, r.d, r.d, 1), nothing,
		r.mix(0, r.d, r.d, 2), r.down(0, r.g, r.d), r.set(0, r.e, 4),
	}
	commands[2].Priority, commands[4].Priority = dag.High, dag.Low
	g := r.graph(r.p.BuildGraph(commands, [][]int32{nil, {0}, {1}, {2}, {2, 3}, {4}, {0}}, cudart.GraphOptions{Origin: r.s[0], Priorities: true}))
	require.Equal(r, len(commands), g.Nodes())
	require.NoError(r, g.Upload(r.s[1]))
	for round := range uint32(10) {
		for i := range r.host {
			r.host[i] = uint32(i) * round
		}
		require.NoError(r, g.Launch(r.s[1]))
		require.NoError(r, r.s[1].Synchronize(context.Background()))
		for i := range r.back {
			x := uint32(i) * round
			y := mixed(x, x, 1)
			require.Equal(r, mixed(y, y, 2), r.back[i])
		}
	}
}

func graphChanges(r *rig) {
	r.host[0] = 3
	other, there := r.pinned()
	commands, deps := r.chain(1)
	g := r.graph(r.p.BuildGraph(commands, deps, cudart.GraphOptions{Origin: r.s[0]}))
	hold := r.list(nil, r.hold(0))
	require.NoError(r, g.Launch(r.s[0]))
	r.sync()
	require.NoError(r, hold.Submit())
	require.NoError(r, g.Launch(r.s[0]))
	changed := r.mix(0, r.d, r.d, 2)
	require.NoError(r, g.SetArgs(1, changed.Grid, changed.Args))
	require.NoError(r, g.SetCopy(2, other, r.d))
	r.back[0] = 0
	r.release()
	r.sync()
	require.Equal(r, mixed(3, 3, 1), r.back[0], "a launch that was submitted keeps its arguments")
	require.NoError(r, g.Launch(r.s[0]))
	r.sync()
	require.Equal(r, mixed(3, 3, 2), there[0])
	require.Equal(r, mixed(3, 3, 1), r.back[0], "left alone")
	require.NoError(r, g.SetCopy(2, r.g, r.d))

	require.NoError(r, g.SetArgs(1, [3]uint32{}, changed.Args), "a launch of nothing")
	require.NoError(r, g.Launch(r.s[0]))
	r.sync()
	require.Equal(r, uint32(3), r.back[0])
	require.NoError(r, g.SetArgs(1, changed.Grid, changed.Args))
	require.NoError(r, g.Launch(r.s[0]))
	r.sync()
	require.Equal(r, mixed(3, 3, 2), r.back[0])

	require.Error(r, g.SetArgs(0, one, nil), "a copy has no arguments")
	require.Error(r, g.SetCopy(1, r.d, r.d), "a launch has no addresses")
	require.Error(r, g.SetArgs(3, one, nil))
	require.Error(r, g.SetArgs(1, changed.Grid, changed.Args[:2]))
}

func graphUpdate(r *rig) {
	r.host[0] = 4
	commands, _ := r.chain(1)
	l := r.list(r.s[0], commands...)
	g := r.graph(l.Capture(cudart.GraphOptions{}))
	require.ErrorIs(r, g.SetArgs(1, one, nil), cudart.ErrUnsupported, "its nodes have no numbers")
	require.ErrorIs(r, g.SetCopy(0, 0, 0), cudart.ErrUnsupported)
	next := r.mix(0, r.d, r.d, 2)
	require.NoError(r, l.SetArgs(1, next.Grid, next.Args))
	require.NoError(r, g.Launch(r.s[0]))
	r.sync()
	require.Equal(r, mixed(4, 4, 1), r.back[0], "the graph keeps what was captured")
	require.NoError(r, g.Update(l))
	require.NoError(r, g.Launch(r.s[1]))
	r.sync()
	require.Equal(r, mixed(4, 4, 2), r.back[0])
	for _, other := range [][]cudart.Command{commands[:2], {commands[0], r.set(0, r.d, 4), commands[2]}, append(commands[:3:3], commands[1])} {
		r.named(g.Update(r.list(r.s[0], other...)), "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE")
	}
	require.NoError(r, g.Launch(r.s[0]))
	r.sync()
	require.Equal(r, mixed(4, 4, 2), r.back[0], "an update that failed changed nothing")
}

func graphAgainstItself(r *rig) {
	// Each launch adds a step to a chain; launches on several streams at once must not lose one.
	g := r.graph(r.p.BuildGraph([]cudart.Command{r.mix(0, r.d, r.d, 1), r.mix(0, r.d, r.d, 2)}, [][]int32{nil, {0}}, cudart.GraphOptions{Origin: r.s[0]}))
	hold := r.list(nil, r.hold(1))
	r.submit(r.set(0, r.d, 4))
	require.NoError(r, g.Launch(r.s[0]))
	r.sync()
	require.NoError(r, hold.Submit())
	require.NoError(r, g.Launch(r.s[1]))
	require.NoError(r, g.Launch(r.s[2]))
	yield()
	require.False(r, r.idle(r.s[2]), "its launch comes after the one behind the held kernel")
	r.release()
	for i := range 20 {
		require.NoError(r, g.Launch(r.s[i%4]))
	}
	r.sync()
	r.submit(r.down(0, r.g, r.d))
	r.sync()
	want := uint32(0)
	for range 23 {
		want = mixed(want, want, 1)
		want = mixed(want, want, 2)
	}
	require.Equal(r, want, r.back[0])
	require.Equal(r, want, r.back[words-1])
}

func misusedGraphs(r *rig) {
	commands, _ := r.chain(1)
	for _, deps := range [][][]int32{{nil, {0}}, {nil, {2}, {1}}, {nil, {-1}, nil}, {nil, {1}, nil}, {nil, nil, {3}}} {
		_, err := r.p.BuildGraph(commands, deps, cudart.GraphOptions{Origin: r.s[0]})
		require.Error(r, err, "%v", deps)
	}
	tooMuch := r.launch(0, "noop", one)
	tooMuch.Block = [3]uint32{1, 1, 65}
	_, err := r.p.BuildGraph([]cudart.Command{tooMuch}, [][]int32{nil}, cudart.GraphOptions{})
	require.Error(r, err)
	g, err := r.p.BuildGraph(commands[:1], [][]int32{nil}, cudart.GraphOptions{})
	require.NoError(r, err)
	require.Error(r, g.Launch(nil))
	require.NoError(r, g.Close())
	require.NoError(r, g.Close(), "a second time does nothing")
	require.Error(r, g.Launch(r.s[0]))
	r.sync()
}
