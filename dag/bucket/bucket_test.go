// Tests of buckets: what goes into one, that nothing changes what a node reads, and what cannot be bucketed.

package bucket_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/bucket"
	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/dag/outline"
	"github.com/stretchr/testify/require"
)

const bucketHead = `version: 1
name: p
buffers:
  a: {place: device, dtype: f32, shape: [16], init: 1}
  b: {place: device, dtype: f32, shape: [16], init: 1}
  c: {place: device, dtype: f32, shape: [16], init: 1}
  h: {place: device, dtype: f64, shape: [16], init: 1}
  out: {place: host, dtype: f32, shape: [16]}
nodes:
`

// pairsOf are the pairs of all all-reduces of a bucket.
func pairsOf(c *dag.Communication) []dag.Pair {
	return append([]dag.Pair{{From: c.From, To: c.To}}, c.More...)
}

// bucketsIn lists the nodes of a bucketed graph, those of a bucket with what is in it.
func bucketsIn(t *testing.T, nodes string, bytes int64) []string {
	t.Helper()
	g, err := file.Parse([]byte(bucketHead+nodes), file.Options{Rank: 1, Ranks: 4})
	require.NoError(t, err)
	made, err := bucket.AllReduces(g, bytes)
	require.NoError(t, err)
	var list []string
	for i := range made.Nodes {
		n := &made.Nodes[i]
		text := n.Name
		if n.Communication != nil && len(n.Communication.More) > 0 {
			var parts []string
			for _, pair := range pairsOf(n.Communication) {
				part := made.RangeText(pair.From)
				if pair.From != pair.To {
					part += "->" + made.RangeText(pair.To)
				}
				parts = append(parts, part)
			}
			text += "[" + strings.Join(parts, " ") + "]"
		}
		list = append(list, text)
	}
	return list
}

func TestBuckets(t *testing.T) {
	const a, b, c = "  - {name: sa, allreduce: {inout: a, op: sum}}\n", "  - {name: sb, allreduce: {inout: b, op: sum}}\n", "  - {name: sc, allreduce: {inout: c, op: sum}}\n"
	for _, test := range []struct {
		name, nodes string
		bytes       int64
		want        []string
	}{
		{"three", a + b + c, 192, []string{"sa..sc[a b c]"}},
		{"as many as fit", a + b + c, 191, []string{"sa..sb[a b]", "sc"}},
		{"one is too large", a + b + c, 63, []string{"sa", "sb", "sc"}},
		{"each alone", a + b + c, 64, []string{"sa", "sb", "sc"}},
		{"a result is used in between", a + "  - {name: down, memcpy: {from: a, to: out}}\n" + b, 1024, []string{"sa..sb[a b]", "down"}},
		{"a result leads to the next", a + "  - {name: copy, memcpy: {from: a, to: b}}\n" + b + c, 1024, []string{"sa", "copy", "sb..sc[b c]"}},
		{"the next writes what is read of the first", a + "  - {name: copy, memcpy: {from: a, to: c}}\n  - {name: into, allreduce: {from: b, to: c, op: sum}}\n", 1024, []string{"sa", "copy", "into"}},
		{"the same twice", a + a2("again"), 1024, []string{"sa", "again"}},
		{"halves of a buffer", "  - {name: x, allreduce: {inout: a(0..8), op: sum}}\n  - {name: y, allreduce: {inout: a(8..16), op: sum}}\n", 1024, []string{"x..y[a(0..8) a(8..16)]"}},
		{"from one to another", "  - {name: x, allreduce: {from: a, to: b, op: sum}}\n" + c, 1024, []string{"x..sc[a->b c]"}},
		{"another operation", a + "  - {name: m, allreduce: {inout: b, op: max}}\n" + c, 1024, []string{"sa", "m", "sc"}},
		{"another type", a + "  - {name: m, allreduce: {inout: h, op: sum}}\n" + c, 1024, []string{"sa", "m", "sc"}},
		{"another collective between", a + "  - {name: m, broadcast: {inout: b, root: 0}}\n" + c, 1024, []string{"sa", "m", "sc"}},
		{"a group of ranks", a + "  - {name: m, allreduce: {inout: b, op: sum, among: [1, 2, 2]}}\n", 1024, []string{"sa", "m"}},
		{"with a cost", a + "  - {name: m, allreduce: {inout: b, op: sum}, cost: {us: 3}}\n", 1024, []string{"sa", "m"}},
		{"a name that is taken", "  - {name: sa..sb, memset: {to: h, value: 1}}\n" + a + b, 1024, []string{"sa..sb", "sa..sb #2[a b]"}},
	} {
		t.Run(test.name, func(t *testing.T) { require.Equal(t, test.want, bucketsIn(t, test.nodes, test.bytes)) })
	}
}

func a2(name string) string { return "  - {name: " + name + ", allreduce: {inout: a, op: sum}}\n" }

// Each body has buckets of its own, and a loop or branch that communicates ends the bucket before it.
func TestBucketsInBodies(t *testing.T) {
	g, err := file.Parse([]byte(bucketHead+`  - {name: sa, allreduce: {inout: a, op: sum}}
  - name: solve
    repeat: {until: "h(0..1) < 1", most: 5}
    nodes:
      - {name: sb, allreduce: {inout: b, op: sum}}
      - name: large
        if: h(1..2) > 1
        nodes: [{name: x, allreduce: {inout: b, op: max}}, {name: set, memset: {to: h, value: 0}}, {name: y, allreduce: {inout: c, op: max}}]
        else: [{name: sa..sb, memset: {to: h, value: 0}}]
      - {name: sc, allreduce: {inout: c, op: sum}}
      - {name: sd, allreduce: {inout: a, op: sum}}
  - name: quiet
    repeat: {times: 3}
    nodes: [{name: clear, memset: {to: h, value: 0}}]
  - {name: ta, allreduce: {inout: a, op: sum}}
  - name: quieter
    repeat: {times: 3}
    nodes: [{name: clear.again, memset: {to: h, value: 0}}]
  - {name: tb, allreduce: {inout: b, op: sum}}
`), file.Options{Rank: 1, Ranks: 4})
	require.NoError(t, err)
	made, err := bucket.AllReduces(g, 1024)
	require.NoError(t, err)
	var all []string
	made.EachGraph(func(g *dag.Graph, path []string) {
		text := strings.Join(path, "/") + ":"
		for i := range g.Nodes {
			text += " " + g.Nodes[i].Name
		}
		all = append(all, text)
	})
	require.Equal(t, []string{": sa solve quiet quieter ta..tb", "solve: sb large sc..sd", "solve/large: set x..y", "solve/large: sa..sb", "quiet: clear", "quieter: clear.again"}, all)
	require.Equal(t, g.Nodes[1].Control.Condition.Operands, made.Nodes[1].Control.Condition.Operands)
	require.Equal(t, g.Warnings(), made.Warnings())

	same, err := bucket.AllReduces(g, 64)
	require.NoError(t, err)
	require.Same(t, g, same)
}

func TestBucketOfAGraph(t *testing.T) {
	nodes := "  - {name: sa, allreduce: {inout: a, op: sum}}\n  - {name: sb, allreduce: {inout: b, op: sum}}\n"
	g, err := file.Parse([]byte(bucketHead+nodes), file.Options{Rank: 1, Ranks: 4})
	require.NoError(t, err)
	made, err := bucket.AllReduces(g, 1<<20)
	require.NoError(t, err)
	require.Equal(t, g.Warnings(), made.Warnings())
	require.NotEqual(t, g.Hash(), made.Hash())
	require.NotEqual(t, g.WorkHash(), made.WorkHash())
	require.Contains(t, outline.Parts(made, 0), "bucket=2")
	require.EqualValues(t, 256, made.Nodes[0].Work.Bytes)
	require.Equal(t, g.Nodes[0].Pos, made.Nodes[0].Pos)
	require.Equal(t, dag.High, made.Nodes[0].Priority)
	again, err := bucket.AllReduces(made, 1<<20)
	require.NoError(t, err)
	require.Same(t, made, again, "a bucket is not bucketed again")
	require.ErrorContains(t, file.Write(io.Discard, made.Pipeline), "it is a bucket of all-reduces, which files cannot declare")

	alone, err := file.Parse([]byte(bucketHead+nodes), file.Options{})
	require.NoError(t, err)
	same, err := bucket.AllReduces(alone, 1<<20)
	require.NoError(t, err)
	require.Same(t, alone, same)

	_, err = bucket.AllReduces(g, 0)
	require.EqualError(t, err, "a bucket of 0 bytes: want at least 1")
	_, err = bucket.AllReduces(nil, 1)
	require.Error(t, err)
	explicit, err := file.Parse([]byte("sync: explicit\n"+bucketHead+nodes), file.Options{Ranks: 2})
	require.NoError(t, err)
	_, err = bucket.AllReduces(explicit, 1)
	require.EqualError(t, err, "all-reduces cannot be bucketed: the file orders its nodes itself (sync: explicit)")
	require.ErrorIs(t, err, bucket.ErrImpossible)

	// What a program puts together by hand is checked.
	for _, c := range []struct {
		c    dag.Communication
		want string
	}{
		{dag.Communication{Verb: dag.Broadcast, More: []dag.Pair{{}}}, "a bucket of broadcast; only all-reduces are bucketed"},
		{dag.Communication{Verb: dag.AllReduce, Reduction: dag.Sum, From: dag.Range{Buffer: 0, Pitch: 0, Lo: 0, Hi: 32}, To: dag.Range{Buffer: 0, Pitch: 0, Lo: 0, Hi: 32}, More: []dag.Pair{{From: dag.Range{Buffer: 0, Pitch: 0, Lo: 16, Hi: 48}, To: dag.Range{Buffer: 0, Pitch: 0, Lo: 16, Hi: 48}}}}, "a(0..8) and a(4..12) overlap in one bucket"},
		{dag.Communication{Verb: dag.AllReduce, Reduction: dag.Sum, From: dag.Range{Buffer: 0, Pitch: 0, Lo: 0, Hi: 32}, To: dag.Range{Buffer: 0, Pitch: 0, Lo: 0, Hi: 32}, More: []dag.Pair{{From: dag.Range{Buffer: 1, Pitch: 0, Lo: 0, Hi: 16}, To: dag.Range{Buffer: 1, Pitch: 0, Lo: 0, Hi: 32}}}}, "allreduce: b(0..4) has 4 elements and b(0..8) has 8 elements"},
	} {
		b := dag.New("by hand")
		b.Ranks(0, 2)
		b.Device("a", dag.F32, 16)
		b.Device("b", dag.F32, 16)
		b.Communicate("sum", c.c)
		_, err := b.Graph()
		require.ErrorContains(t, err, c.want)
	}
}

// readsOf says for each node by name and each element that it reads which node has written it, "" for none.
func readsOf(g *dag.Graph) map[string]string {
	writer := map[dag.BufferID]map[int64]string{}
	all := map[string]string{}
	note := func(name string, accesses []dag.Access) {
		for _, pass := range []dag.Mode{dag.Read, dag.Write} {
			for _, a := range accesses {
				if a.Mode&pass == 0 {
					continue
				}
				if writer[a.Buffer] == nil {
					writer[a.Buffer] = map[int64]string{}
				}
				for at := a.Lo; at < a.Hi; at += 4 {
					if pass == dag.Read {
						all[fmt.Sprintf("%s %d %d", name, a.Buffer, at)] = writer[a.Buffer][at]
					} else {
						writer[a.Buffer][at] = name
					}
				}
			}
		}
	}
	for i := range g.Nodes {
		c := g.Nodes[i].Communication
		if c == nil {
			note(g.Nodes[i].Name, g.Accesses(dag.NodeID(i)))
			continue
		}
		for _, pair := range pairsOf(c) {
			note("allreduce of "+g.RangeText(pair.From)+" to "+g.RangeText(pair.To), []dag.Access{pair.From.In(), pair.To.Out()})
		}
	}
	for b, list := range writer {
		for at, name := range list {
			all[fmt.Sprintf("end %d %d", b, at)] = name
		}
	}
	return all
}

// In random graphs, every node and every all-reduce reads what it read before, and all that is left at the end is the same.
func TestBucketsChangeNothing(t *testing.T) {
	formed := 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 1))
		b := dag.New("random")
		b.Ranks(0, 3)
		var buffers []dag.BufferID
		for k := range 4 {
			buffers = append(buffers, b.Device(fmt.Sprintf("x%d", k), dag.F32, 8))
		}
		part := func(id dag.BufferID, n int64) dag.Range {
			lo := rng.Int64N(9 - n)
			return b.Slice(id, lo, lo+n)
		}
		number := 0
		var some func(int)
		some = func(depth int) {
			var ids []dag.NodeID
			for range 4 + rng.IntN(14-4*depth) {
				name, n := fmt.Sprintf("n%d", number), 1+rng.Int64N(8)
				number++
				from, to := part(buffers[rng.IntN(4)], n), part(buffers[rng.IntN(4)], n)
				var id dag.NodeID
				switch kind := rng.IntN(7); {
				case kind < 3 && (from.Buffer != to.Buffer || from == to || from.Hi <= to.Lo || to.Hi <= from.Lo):
					id = b.Communicate(name, dag.Communication{Verb: dag.AllReduce, Reduction: dag.Sum, From: from, To: to})
				case kind == 3:
					id = b.Communicate(name, dag.Communication{Verb: dag.Broadcast, From: from, To: from})
				case kind == 4:
					id = b.Task(name, from.In(), to.InOut())
				case kind == 5 && depth < 2:
					id = b.Repeat(name, dag.Loop{Times: 3}, func() { some(depth + 1) })
				default:
					id = b.Task(name, from.In(), b.Slice(to.Buffer, 0, 1).Out())
				}
				if len(ids) > 0 && rng.IntN(4) == 0 {
					b.After(id, ids[rng.IntN(len(ids))])
				}
				ids = append(ids, id)
			}
		}
		some(0)
		g, err := b.Graph()
		require.NoError(t, err, "seed %d", seed)
		bytes := 8 + rng.Int64N(120)
		made, err := bucket.AllReduces(g, bytes)
		require.NoError(t, err, "seed %d", seed)
		if made != g {
			formed++
		}
		bodies := map[string]*dag.Graph{}
		made.EachGraph(func(g *dag.Graph, path []string) { bodies[strings.Join(path, "/")] = g })
		g.EachGraph(func(g *dag.Graph, path []string) {
			bucketsChangeNothing(t, seed, g, bodies[strings.Join(path, "/")], bytes)
		})
	}
	require.Greater(t, formed, 100, "many of the graphs have buckets")
}

func bucketsChangeNothing(t *testing.T, seed uint64, g, made *dag.Graph, bytes int64) {
	t.Helper()
	require.Equal(t, readsOf(g), readsOf(made), "seed %d", seed)
	at := map[string]int{}
	for i := range made.Nodes {
		at[made.Nodes[i].Name] = i
	}
	for _, list := range bucket.BucketsOf(g, bytes) {
		for _, i := range list {
			at[g.Nodes[i].Name] = at[g.Nodes[list[0]].Name+".."+g.Nodes[list[len(list)-1]].Name]
		}
	}
	for i := range g.Nodes {
		for _, before := range g.Nodes[i].After {
			was, is := at[g.Nodes[before].Name], at[g.Nodes[i].Name]
			if g.Nodes[i].Communication == nil || g.Nodes[before].Communication == nil {
				require.Less(t, was, is, "seed %d: %s after %s", seed, g.Nodes[i].Name, g.Nodes[before].Name)
			}
		}
	}
}
