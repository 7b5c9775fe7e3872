// Tests of nodes that run host functions: as declared by Go calls and in files, and what is wrong with them.

package dag_test

import (
	"bytes"
	"testing"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/file"
	"github.com/stretchr/testify/require"
)

const hostFile = `version: 1
buffers:
  d_x: {place: device, dtype: f32, shape: [8], init: zeros}
  x: {place: host, dtype: f32, shape: [8]}
  sums: {place: host, dtype: f32, shape: [4], init: zeros}
nodes:
  - {name: down, memcpy: {from: d_x, to: x}}
  - {name: sum.0, host: sum of parts, args: [{in: x(0 of 2)}, {out: sums(0..1)}]}
  - {name: sum.1, host: sum of parts, args: [{in: x(1 of 2)}, {out: sums(1..2)}]}
  - {name: log, host: log, args: [{inout: sums}], after: [down], cost: {us: 50}}
  - {name: tick, host: tick}
`

func TestHostFunctionsOfAFile(t *testing.T) {
	g, err := file.Parse([]byte(hostFile), file.Options{Name: "p.yaml"})
	require.NoError(t, err)
	require.Empty(t, g.Warnings().List, "what a host function does with what it reads is its own business")
	require.Empty(t, g.Unread())
	require.Equal(t, []string{"sum of parts", "log", "tick"}, g.Functions())
	var edges []string
	for _, e := range g.Edges() {
		edges = append(edges, g.NameOf(e.From)+" -> "+g.NameOf(e.To)+" "+g.EdgeText(e))
	}
	require.Equal(t, []string{"down -> sum.0 RAW x(0..4)", "down -> sum.1 RAW x(4..8)", "down -> log after",
		"sum.0 -> log RAW sums(0..1)", "sum.1 -> log RAW sums(1..2)"}, edges)
	require.Equal(t, dag.HostFunction, g.Nodes[1].Kind)
	require.Equal(t, int64(20), g.Nodes[1].Work.Bytes)

	var text bytes.Buffer
	require.NoError(t, file.Write(&text, g.Pipeline))
	again, err := file.Parse(text.Bytes(), file.Options{Name: "p.yaml"})
	require.NoError(t, err)
	require.Equal(t, g.Hash(), again.Hash())
	require.Equal(t, g.WorkHash(), again.WorkHash())
}

func TestHostFunctionsByGoCalls(t *testing.T) {
	b := dag.New("hosts")
	x := b.Host("x", dag.F32, 8)
	d := b.Device("d", dag.F32, 8)
	b.HostFunction("fill", "fill", b.Out(x))
	b.Copy("up", b.Whole(d), b.Whole(x))
	b.Repeat("loop", dag.Loop{Times: 2}, func() { b.HostFunction("again", "fill", b.InOut(x)) })
	g, err := b.Graph()
	require.NoError(t, err)
	require.Equal(t, []string{"fill"}, g.Functions())
	require.NotEqual(t, g.WorkHash(), func() string {
		b := g.Empty()
		b.Host("x", dag.F32, 8)
		b.Device("d", dag.F32, 8)
		b.HostFunction("fill", "other", dag.Access{Range: dag.Range{Buffer: 0, Hi: 32}, Mode: dag.Write})
		other, err := b.Graph()
		require.NoError(t, err)
		return other.WorkHash()
	}())

	b = dag.New("wrong")
	x, d = b.Host("x", dag.F32, 4, 8), b.Device("d", dag.F32, 8)
	b.HostFunction("a", "", b.In(x))
	b.HostFunction("b", "f", b.In(d))
	b.HostFunction("c", "f", dag.Range{Buffer: x, Lo: 4, Hi: 40, Pitch: 32}.Out())
	b.Node(dag.Node{Name: "d", Kind: dag.HostFunction})
	b.Node(dag.Node{Name: "e", Kind: dag.Task, Function: "f"})
	_, err = b.Graph()
	require.EqualError(t, err, `node "a": the host function has no name; name it as in runtime.Options.Functions
node "b": a host function cannot access "d", which is in device memory; copy it to a host buffer before, and back after
node "c": a host function cannot access the tile x(0..2)(1..2); slice whole rows
node "d": a node has a Function if, and only if, it is a HostFunction
node "e": a node has a Function if, and only if, it is a HostFunction`)
}

// A host function in a body is on the body's device.
func TestHostFunctionsFollowTheDeviceOfABody(t *testing.T) {
	b := dag.New("body")
	x, d := b.Host("x", dag.F32, 8), b.Device("d", dag.F32, 8)
	b.OnDevice(d, 1)
	b.Repeat("loop", dag.Loop{Times: 2}, func() {
		b.HostFunction("fill", "fill", b.InOut(x))
		b.Copy("up", b.Whole(d), b.Whole(x))
	})
	g, err := b.Graph()
	require.NoError(t, err)
	require.Equal(t, int32(1), g.Nodes[0].Device)
	require.Equal(t, int32(1), g.Nodes[0].Control.Bodies[0].Nodes[0].Device)
}

// Every loop that cannot be a conditional graph node is named, with the first node that is why.
func TestLoopsThatCannotBeInAGraphAreNamed(t *testing.T) {
	b := dag.New("loops")
	x, y, d := b.Host("x", dag.F32, 8), b.Host("y", dag.F32, 8), b.Device("d", dag.F32, 8)
	b.Pageable(y)
	b.Repeat("fills", dag.Loop{Times: 2}, func() { b.HostFunction("fill", "fill", b.InOut(x)) })
	b.Repeat("sets", dag.Loop{Times: 2}, func() { b.Memset("set", b.Whole(d), 0) })
	b.Repeat("loads", dag.Loop{Times: 2}, func() {
		b.Copy("up", b.Whole(d), b.Whole(y))
		b.Copy("beside", b.Whole(x), b.Whole(y))
		b.Repeat("inner", dag.Loop{Times: 2}, func() { b.HostFunction("again", "fill", b.InOut(x)) })
	})
	g, err := b.Graph()
	require.NoError(t, err)
	require.Equal(t, `"fill" in "fills" runs a host function, "up" in "loads" copies pageable host memory and "again" in "inner" runs a host function, which the body of a conditional graph node cannot`, g.NotInGraph())
	var fixes []string
	for _, f := range g.Fallbacks() {
		fixes = append(fixes, f.Control.Name+": "+f.Because.Name+": "+f.Fix)
	}
	require.Equal(t, []string{"fills: fill: move it out of the body", `loads: up: let "y" be pinned, or move the copy out of the body`, "inner: again: move it out of the body"}, fixes)
}
