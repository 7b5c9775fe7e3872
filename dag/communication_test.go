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

// What ranks cannot do together is refused, and what they can do accesses what it reads and writes on this rank.
func TestCommunicationsThatFit(t *testing.T) {
	all := func(c dag.Communication, from, to dag.Range) dag.Communication {
		c.From, c.To = from, to
		return c
	}
	exchange := func(transfers ...dag.Transfer) dag.Communication {
		return dag.Communication{Verb: dag.Exchange, Transfers: transfers}
	}
	sum := dag.Communication{Verb: dag.AllReduce, Reduction: dag.Sum}
	bucket := func(more ...dag.Pair) dag.Communication {
		return dag.Communication{Verb: dag.AllReduce, Reduction: dag.Sum, From: dag.Range{Buffer: 0, Hi: 16}, To: dag.Range{Buffer: 0, Hi: 16}, More: more}
	}
	x := func(lo, hi int64) dag.Range { return dag.Range{Buffer: 0, Lo: 4 * lo, Hi: 4 * hi} }
	y := func(lo, hi int64) dag.Range { return dag.Range{Buffer: 1, Lo: 4 * lo, Hi: 4 * hi} }
	for _, c := range []struct {
		c    dag.Communication
		want string // the accesses, or what is wrong
	}{
		{all(sum, x(0, 8), x(0, 8)), "inout x"},
		{all(sum, x(0, 8), y(0, 8)), "in x, out y(0..8)"},
		{all(sum, x(0, 4), x(4, 8)), "in x(0..4), out x(4..8)"},
		{all(sum, x(0, 4), x(3, 7)), "allreduce: x(0..4) and x(3..7) overlap; use two buffers"},
		{all(sum, x(0, 4), y(0, 5)), "allreduce: x(0..4) has 4 elements and y(0..5) has 5 elements"},
		{all(dag.Communication{Verb: dag.AllReduce}, x(0, 8), x(0, 8)), "allreduce with op none; only allreduce, reduce and reducescatter have an op"},
		{all(dag.Communication{Verb: dag.AllGather, Reduction: dag.Sum}, x(0, 8), y(0, 16)), "allgather with op sum; only allreduce, reduce and reducescatter have an op"},
		{all(dag.Communication{Verb: 7}, x(0, 8), x(0, 8)), "unknown communication: Verb(7) of f32, none"},
		{all(dag.Communication{Reduction: 6}, x(0, 8), x(0, 8)), "unknown communication: allreduce of f32, Reduction(6)"},
		{all(dag.Communication{Verb: dag.Reduce, Reduction: dag.Avg, Root: 1}, x(0, 8), y(0, 8)), "in x, out y(0..8)"},
		{all(dag.Communication{Verb: dag.Reduce, Reduction: dag.Max, Root: 0}, x(0, 8), y(0, 8)), "in x"},
		{all(dag.Communication{Verb: dag.Reduce, Reduction: dag.Max, Root: 2}, x(0, 8), y(0, 8)), "root 2 is not one of the ranks that take part"},
		{all(dag.Communication{Verb: dag.Broadcast, Root: 1}, x(0, 8), x(0, 8)), "in x"},
		{all(dag.Communication{Verb: dag.Broadcast, Root: 0}, x(0, 8), x(0, 8)), "out x"},
		{all(dag.Communication{Verb: dag.Broadcast, Root: -1}, x(0, 8), x(0, 8)), "root -1 is not one of the ranks that take part"},
		{all(dag.Communication{Verb: dag.Broadcast, Root: 0}, x(0, 8), y(0, 8)), "a broadcast works in place: write inout"},
		{all(dag.Communication{Verb: dag.AllGather}, x(0, 8), y(0, 16)), "in x, out y"},
		{all(dag.Communication{Verb: dag.AllGather}, x(0, 8), y(0, 8)), "allgather: y(0..8) has 8 elements, and 2 ranks with 8 elements each need 16 elements in y(0..8)"},
		{all(dag.Communication{Verb: dag.AllGather}, y(4, 8), y(0, 8)), "in y(4..8), out y(0..8)"},
		{all(dag.Communication{Verb: dag.AllGather}, y(0, 4), y(0, 8)), "allgather: y(0..4) and y(0..8) overlap; use two buffers"},
		{all(dag.Communication{Verb: dag.ReduceScatter, Reduction: dag.Min}, y(0, 16), x(0, 8)), "in y, out x"},
		{all(dag.Communication{Verb: dag.ReduceScatter, Reduction: dag.Min}, y(0, 15), x(0, 8)), "reducescatter: y(0..15) has 15 elements, and 2 ranks with 8 elements each need 16 elements in y(0..15)"},
		{all(dag.Communication{Verb: dag.ReduceScatter, Reduction: dag.Min}, y(0, 8), y(4, 8)), "in y(0..8), out y(4..8)"},
		{all(dag.Communication{Verb: dag.ReduceScatter, Reduction: dag.Min}, y(0, 8), y(0, 4)), "reducescatter: y(0..8) and y(0..4) overlap; use two buffers"},
		{all(dag.Communication{Verb: dag.AllToAll}, x(0, 8), y(8, 16)), "in x, out y(8..16)"},
		{all(dag.Communication{Verb: dag.AllToAll}, x(0, 8), x(0, 8)), "alltoall: x and x overlap; use two buffers"},
		{all(dag.Communication{Verb: dag.AllToAll}, x(0, 8), y(0, 7)), "alltoall: x has 8 elements and y(0..7) has 7 elements; both need the same number, a multiple of 2"},
		{all(dag.Communication{Verb: dag.AllToAll}, x(0, 7), y(0, 7)), "alltoall: x(0..7) has 7 elements and y(0..7) has 7 elements; both need the same number, a multiple of 2"},
		{all(dag.Communication{Reduction: dag.Sum, Among: dag.Among{First: 1, Count: 1, Step: 1}}, x(0, 8), x(0, 8)), "inout x"},
		{all(dag.Communication{Reduction: dag.Sum, Among: dag.Among{First: 0, Count: 2, Step: 1}}, x(0, 8), x(0, 8)), "inout x"},
		{all(dag.Communication{Reduction: dag.Sum, Among: dag.Among{First: 0, Count: 3, Step: 1}}, x(0, 8), x(0, 8)), "among [0, 3, 1] is no group of ranks 0 to 1; write among: [first, count, step]"},
		{all(dag.Communication{Reduction: dag.Sum, Among: dag.Among{First: -1, Count: 2, Step: 1}}, x(0, 8), x(0, 8)), "among [-1, 2, 1] is no group of ranks 0 to 1; write among: [first, count, step]"},
		{all(dag.Communication{Reduction: dag.Sum, Among: dag.Among{First: 0, Count: 0, Step: 1}}, x(0, 8), x(0, 8)), "among [0, 0, 1] is no group of ranks 0 to 1; write among: [first, count, step]"},
		{all(dag.Communication{Reduction: dag.Sum, Among: dag.Among{First: 0, Count: 1, Step: 0}}, x(0, 8), x(0, 8)), "among [0, 1, 0] is no group of ranks 0 to 1; write among: [first, count, step]"},
		{all(dag.Communication{Reduction: dag.Sum, Among: dag.Among{First: 0, Count: 1, Step: 1}}, x(0, 8), x(0, 8)), "rank 1 is not in among [0, 1, 1]"},
		{all(sum, dag.Range{Buffer: 2, Hi: 32}, dag.Range{Buffer: 2, Hi: 32}), `"h" is in host memory; ranks exchange device memory; copy it to a device buffer first`},
		{all(sum, x(0, 8), dag.Range{Buffer: 3, Hi: 32}), `"x" and "far" are on two devices; one rank has one device`},
		{all(sum, x(0, 8), dag.Range{Buffer: 4, Hi: 32}), `"x" is of type f32 and "i" of type i32`},
		{all(sum, dag.Range{Buffer: 5, Lo: 4, Hi: 44, Pitch: 32}, dag.Range{Buffer: 5, Lo: 4, Hi: 44, Pitch: 32}), "ranks exchange elements that follow each other, t(0..2)(1..3) is a tile; copy the tile to a buffer of its own"},
		{all(sum, dag.Range{Buffer: 6, Hi: 2}, dag.Range{Buffer: 6, Hi: 2}), "allreduce cannot combine elements of type u16; it combines f16, bf16, f32, f64, i8, i32, i64, u8, u32 and u64"},
		{all(dag.Communication{Reduction: dag.Avg}, dag.Range{Buffer: 4, Hi: 32}, dag.Range{Buffer: 4, Hi: 32}), "op avg needs a floating-point type, not i32; use op: sum"},
		{all(sum, x(0, 8), x(0, 9)), `bytes 0 to 36 of "x" go past its end (32 bytes)`},
		{all(sum, x(0, 9), x(0, 8)), `bytes 0 to 36 of "x" go past its end (32 bytes)`},

		{exchange(), "an exchange needs at least one send or recv"},
		{exchange(dag.Transfer{Range: x(0, 4), Rank: 0}), "in x(0..4)"},
		{exchange(dag.Transfer{Range: x(0, 4), Rank: 0}, dag.Transfer{Range: x(4, 8), Rank: 0, Receive: true}), "in x(0..4), out x(4..8)"},
		{exchange(dag.Transfer{Range: x(0, 4), Rank: 0}, dag.Transfer{Range: x(0, 4), Rank: 1}), "in x(0..4), in x(0..4)"},
		{exchange(dag.Transfer{Range: x(0, 4), Rank: 2}, dag.Transfer{Range: x(0, 4), Rank: -1}), ""},
		{exchange(dag.Transfer{Range: x(0, 4), Rank: 2}, dag.Transfer{Range: x(0, 4), Rank: 0, Receive: true}), "out x(0..4)"},
		{exchange(dag.Transfer{Range: x(0, 4), Rank: 0}, dag.Transfer{Range: x(3, 8), Rank: 0, Receive: true}), "x(0..4) and x(3..8) overlap in one exchange, and what is received into them would be mixed up"},
		{exchange(dag.Transfer{Range: x(3, 8), Rank: 0, Receive: true}, dag.Transfer{Range: x(0, 4), Rank: 0}), "x(3..8) and x(0..4) overlap in one exchange, and what is received into them would be mixed up"},
		{exchange(dag.Transfer{Range: dag.Range{Buffer: 3, Hi: 32}}), "in far"},
		{exchange(dag.Transfer{Range: dag.Range{Buffer: 9, Hi: 32}}), "there is no buffer with id 9"},
		{exchange(dag.Transfer{Range: x(0, 8)}, dag.Transfer{Range: dag.Range{Buffer: 4, Hi: 32}, Receive: true}), "in x, out i"},
		{dag.Communication{Verb: dag.Exchange, Among: dag.Among{Count: 1, Step: 1}, Transfers: []dag.Transfer{{Range: x(0, 8)}}}, "sends and receives name ranks of the whole pipeline and take no among"},

		{bucket(dag.Pair{From: x(4, 8), To: x(4, 8)}, dag.Pair{From: y(0, 2), To: y(2, 4)}), "inout x(0..4), inout x(4..8), in y(0..2), out y(2..4)"},
		{bucket(dag.Pair{From: x(3, 5), To: x(3, 5)}), "x(0..4) and x(3..5) overlap in one bucket"},
		{bucket(dag.Pair{From: x(3, 5), To: y(3, 5)}), "x(0..4) and x(3..5) overlap in one bucket"},
		{bucket(dag.Pair{From: y(0, 2), To: y(2, 4)}, dag.Pair{From: y(0, 2), To: y(4, 6)}), "inout x(0..4), in y(0..2), out y(2..4), in y(0..2), out y(4..6)"},
		{bucket(dag.Pair{From: y(0, 2), To: y(1, 3)}), "allreduce: y(0..2) and y(1..3) overlap"},
		{bucket(dag.Pair{From: y(0, 2), To: y(2, 5)}), "allreduce: y(0..2) has 2 elements and y(2..5) has 3 elements"},
		{dag.Communication{Verb: dag.Broadcast, Root: 1, From: x(0, 4), To: x(0, 4), More: []dag.Pair{{From: y(0, 2), To: y(0, 2)}}}, "a bucket of broadcast; only all-reduces are bucketed"},
	} {
		b := dag.New("p")
		b.Ranks(1, 2)
		b.Device("x", dag.F32, 8)
		b.Device("y", dag.F32, 16)
		b.Host("h", dag.F32, 8)
		b.OnDevice(b.Device("far", dag.F32, 8), 1)
		b.Device("i", dag.I32, 8)
		b.Device("t", dag.F32, 4, 8)
		b.Device("u", dag.U16, 1)
		node := b.Communicate("talk", c.c)
		g, err := b.Graph()
		if err != nil {
			problem := strings.TrimPrefix(err.Error(), `node "talk": `)
			require.Equal(t, c.want, problem, "%+v", c.c)
			continue
		}
		var accesses []string
		bytes := int64(0)
		for _, a := range g.Accesses(node) {
			accesses = append(accesses, a.Mode.String()+" "+g.RangeText(a.Range))
			if bytes += a.Bytes(); a.Mode == dag.ReadWrite {
				bytes += a.Bytes()
			}
		}
		require.Equal(t, c.want, strings.Join(accesses, ", "), "%+v", c.c)
		require.Equal(t, dag.Work{Bytes: bytes}, g.Nodes[node].Work)
		first := c.c.From
		if c.c.Verb == dag.Exchange {
			first = c.c.Transfers[0].Range
		}
		require.Equal(t, g.Buffers[first.Buffer].Device, g.Nodes[node].Device)
	}
}

// The place of a rank in a group is its number among the members, and -1 outside.
func TestPlacesInGroups(t *testing.T) {
	for _, group := range []dag.Among{{First: 0, Count: 3, Step: 1}, {First: 2, Count: 2, Step: 3}, {First: 1, Count: 1, Step: 4}, {First: 3, Count: 0, Step: 1}, {First: 3, Count: 2, Step: 0}, {First: 3, Count: 2, Step: -1}} {
		members := map[int32]int32{}
		for k := range max(group.Count, 0) {
			if group.Step > 0 {
				members[group.First+k*group.Step] = k
			}
		}
		for rank := int32(-4); rank < 12; rank++ {
			place, inside := members[rank]
			if !inside {
				place = -1
			}
			require.Equal(t, place, group.Index(rank), "%+v, %d", group, rank)
		}
	}
	require.Equal(t, dag.Among{First: 0, Count: 5, Step: 1}, dag.Among{}.Members(5))
	require.Equal(t, dag.Among{First: 1, Count: 2, Step: 2}, dag.Among{First: 1, Count: 2, Step: 2}.Members(5))
	for _, c := range []struct {
		rank, local, ranks int
		fine               bool
	}{{0, 0, 0, true}, {0, 0, 1, true}, {1, 0, 1, false}, {0, 1, 1, false}, {-1, 0, 2, false}, {0, -1, 2, false}, {1, 1, 2, true}, {0, 0, -1, false}, {0, 0, dag.MaxRanks, true}, {0, 0, dag.MaxRanks + 1, false}} {
		require.Equal(t, c.fine, dag.CheckRank(c.rank, c.local, c.ranks) == nil, "%+v", c)
	}
}
