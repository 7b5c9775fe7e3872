// Tests of what a communication says of itself.

package dag_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/dag/outline"
	"github.com/stretchr/testify/require"
)

func TestPartners(t *testing.T) {
	for _, c := range []struct {
		among dag.Among
		ranks int32
		want  []int32
	}{
		{dag.Among{}, 4, []int32{0, 1, 2, 3}},
		{dag.Among{First: 1, Count: 2, Step: 2}, 4, []int32{1, 3}},
		{dag.Among{First: 1, Count: 3, Step: 2}, 4, []int32{1, 3}},
		{dag.Among{First: 0, Count: math.MaxInt32, Step: math.MaxInt32}, 2, []int32{0}},
		{dag.Among{First: -1, Count: 3, Step: 1}, 4, nil},
		{dag.Among{First: 1, Count: 3, Step: -1}, 4, nil},
		{dag.Among{First: 1, Count: -3, Step: 1}, 4, nil},
	} {
		require.Equal(t, c.want, (&dag.Communication{Verb: dag.AllReduce, Among: c.among}).Partners(c.ranks), "%+v of %d", c.among, c.ranks)
	}
	// A billion ranks, or members, would not fit into memory.
	require.Len(t, (&dag.Communication{Verb: dag.AllReduce, Among: dag.Among{Count: math.MaxInt32, Step: 1}}).Partners(math.MaxInt32), dag.MaxRanks)
	require.Equal(t, []int32{0, 2}, (&dag.Communication{Verb: dag.Exchange, Transfers: []dag.Transfer{{Rank: 2}, {Rank: 7}, {Rank: 0}, {Rank: 2}, {Rank: -1}}}).Partners(4))
}

// A pipeline that is declared in Go has one order of communication too, also where no data orders it.
func TestCommunicationDeclaredInGoHasOneOrder(t *testing.T) {
	b := dag.New("p")
	b.Ranks(0, 2)
	for _, name := range []string{"x", "y"} {
		whole := b.Whole(b.Buffer(dag.Buffer{Name: name, Place: dag.Device, DType: dag.F32, Shape: []int64{4}}))
		b.Communicate("sum_"+name, dag.Communication{Verb: dag.AllReduce, Reduction: dag.Sum, From: whole, To: whole})
	}
	g, err := b.Graph()
	require.NoError(t, err)
	require.Equal(t, []dag.NodeID{0}, g.Nodes[1].After)
}

const loopsThatCommunicate = `version: 1
buffers:
  x: {place: device, dtype: f32, shape: [4], init: 1}
  y: {place: device, dtype: f32, shape: [4], init: 1}
  z: {place: device, dtype: f32, shape: [4], init: 1}
nodes:
  - {name: before, allreduce: {inout: x, op: sum}}
  - name: solve
    repeat: {times: 2}
    nodes:
      - {name: first, allreduce: {inout: y, op: sum}}
      - name: maybe
        if: z(0..1) > 0
        nodes:
          - {name: inner, exchange: [{send: z, rank: rank + 1}, {recv: y, rank: rank - 1}]}
      - {name: last, allreduce: {inout: x(0..1), op: sum}}
  - name: alone
    repeat: {times: 2}
    nodes:
      - {name: fill, memset: {to: z, value: 2}}
  - {name: after, allreduce: {inout: x, op: sum}}
`

// after lists what the nodes of a list come after because the file or the order of communication says so.
func after(g *dag.Graph) map[string][]string {
	found := map[string][]string{}
	for i := range g.Nodes {
		for _, from := range g.Nodes[i].After {
			found[g.Nodes[i].Name] = append(found[g.Nodes[i].Name], g.Nodes[from].Name)
		}
	}
	return found
}

// All communication of a list is in one order, with the loops and branches that communicate; bodies have an order of their own.
func TestLoopsAreInTheOrderOfCommunication(t *testing.T) {
	for _, ranks := range []int{1, 3} {
		g, err := file.Parse([]byte(loopsThatCommunicate), file.Options{Ranks: ranks})
		require.NoError(t, err)
		require.Equal(t, map[string][]string{"solve": {"before"}, "after": {"solve"}}, after(g))
		body := g.Nodes[1].Control.Bodies[0]
		require.Equal(t, map[string][]string{"maybe": {"first"}, "last": {"maybe"}}, after(body))
		require.Equal(t, []dag.Priority{dag.High, dag.Normal, dag.Normal, dag.High}, []dag.Priority{g.Nodes[0].Priority, body.Nodes[0].Priority, g.Nodes[2].Priority, g.Nodes[3].Priority})
		want := []bool{true, true, false, true}
		for i := range g.Nodes {
			require.Equal(t, want[i], g.Nodes[i].Communicates(), g.Nodes[i].Name)
		}
		if ranks == 1 { // with nobody to talk to, these are copies at most
			require.Empty(t, g.NotInGraph())
			continue
		}
		require.Equal(t, `"first" in "solve" communicates with other ranks and "inner" in "maybe" communicates with other ranks, which the body of a conditional graph node cannot`, g.NotInGraph())
	}
}

func TestLoopsThatCommunicateAreDeclaredInGo(t *testing.T) {
	b := dag.New("p")
	b.Ranks(1, 2)
	x := b.Buffer(dag.Buffer{Name: "x", Place: dag.Device, DType: dag.F32, Shape: []int64{4}})
	sum := func(name string) func() {
		return func() {
			b.Communicate(name, dag.Communication{Verb: dag.AllReduce, Reduction: dag.Sum, From: b.Whole(x), To: b.Whole(x)})
		}
	}
	y := b.Buffer(dag.Buffer{Name: "y", Place: dag.Device, DType: dag.F32, Shape: []int64{8}})
	b.Repeat("solve", dag.Loop{Times: 3}, func() {
		sum("inside")()
		b.Communicate("all", dag.Communication{Verb: dag.AllGather, From: b.Whole(x), To: b.Whole(y)})
		b.Communicate("last", dag.Communication{Verb: dag.Broadcast, Root: 1, From: b.Whole(x), To: b.Whole(x)})
	})
	sum("outside")()
	g, err := b.Graph()
	require.NoError(t, err)
	require.Equal(t, map[string][]string{"outside": {"solve"}}, after(g))
	require.True(t, slices.ContainsFunc(g.Nodes, func(n dag.Node) bool { return n.Kind == dag.Repeat && n.Communicates() }))
}

// What ranks say to each other is work: what, with whom, and how much of it.
func TestCommunicationIsWork(t *testing.T) {
	parts := func(c dag.Communication) string {
		b := dag.New("p")
		b.Ranks(0, 4)
		x, y := b.Device("x", dag.F32, 8), b.Device("y", dag.F32, 8)
		b.Memset("x", b.Whole(x), 0)
		b.Memset("y", b.Whole(y), 0)
		if c.Verb == dag.Exchange {
			c.Transfers = []dag.Transfer{{Range: b.Slice(x, 0, 2), Rank: 1}, {Range: b.Slice(y, 0, 4), Rank: 3, Receive: true}}
		} else {
			if c.From, c.To = b.Whole(x), b.Whole(y); c.Verb == dag.Broadcast {
				c.To = c.From
			}
		}
		node := b.Communicate("talk", c)
		g, err := b.Graph()
		require.NoError(t, err)
		return strings.Join(outline.Parts(g, node), ", ")
	}
	require.Contains(t, parts(dag.Communication{Verb: dag.AllReduce, Reduction: dag.Sum}), "communication=allreduce, op=sum")
	require.NotContains(t, parts(dag.Communication{Verb: dag.AllReduce, Reduction: dag.Sum}), "root")
	require.Contains(t, parts(dag.Communication{Verb: dag.Reduce, Reduction: dag.Max, Root: 2}), "communication=reduce, op=max, root=2")
	require.Contains(t, parts(dag.Communication{Verb: dag.Broadcast, Root: 0}), "communication=broadcast, root=0")
	require.Contains(t, parts(dag.Communication{Verb: dag.AllReduce, Reduction: dag.Sum, Among: dag.Among{First: 0, Count: 2, Step: 2}}), "op=sum, among=[0, 2, 2]")
	require.Contains(t, parts(dag.Communication{Verb: dag.Exchange}), "communication=exchange, transfer 1=8 bytes to rank 1, transfer 2=16 bytes from rank 3")
}
