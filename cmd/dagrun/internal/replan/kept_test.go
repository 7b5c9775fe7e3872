package replan

import (
	"encoding/binary"
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// away moves a graph to where it lies in another process: its own memory and that of others by different distances, which no word shows.
func away(g *Graph, known *Known) {
	move := func(address uint64) uint64 {
		for _, e := range g.Pool {
			if e.holds(address) {
				return address + 1<<32
			}
		}
		for _, e := range g.Active {
			if e.holds(address) {
				return address + 3<<33
			}
		}
		return address
	}
	for k := range g.Nodes {
		n := &g.Nodes[k]
		for _, w := range known.Nodes[k].Words {
			b := n.Bytes[w.Offset:]
			binary.LittleEndian.PutUint64(b, move(binary.LittleEndian.Uint64(b)))
		}
		if n.Set != nil {
			n.Set.Address = move(n.Set.Address)
		}
	}
	for k := range g.Active {
		g.Active[k][0] = move(g.Active[k][0])
	}
	for k := range g.Pool {
		g.Pool[k][0] += 1 << 32
	}
}

func chosen(t *testing.T, g *Graph, plans *Plans) *Kept {
	t.Helper()
	g.Chosen = &Chosen{Plans: plans, Best: 1, US: make([]float64, len(plans.Plans)+1), Report: "faster"}
	kept, err := g.Keep(Environment{Driver: 13000, Device: g.Device, Torch: g.Torch})
	require.NoError(t, err)
	text, err := json.Marshal(kept)
	require.NoError(t, err)
	kept, err = DecodeKept(text)
	require.NoError(t, err)
	return kept
}

// A kept plan, in a process where everything lies elsewhere, is the plan that the planner would make there.
func TestAKeptPlanIsThatOfTheProcess(t *testing.T) {
	for _, name := range []string{"vit", "nasnet"} {
		known, g := learned(t, name)
		plans := made(t, known, g, Options{})
		kept := chosen(t, g, plans)
		_, _, there := recorded(t, name)
		away(there, known)
		require.NotEqual(t, g.Pool, there.Pool)
		require.Equal(t, g.Signature(), there.Signature())
		found, err := kept.In(there)
		require.NoError(t, err)
		wanted := made(t, known, there, Options{})
		require.Equal(t, wanted.Plans[1].Words, found.Plans[0].Words)
		require.Equal(t, wanted.Plans[1].Sets, found.Plans[0].Sets)
		require.Equal(t, wanted.Plans[1].Edges, found.Plans[0].Edges)
		require.Equal(t, wanted.Outputs, found.Outputs)
		require.Equal(t, wanted.State, found.State)
		require.Empty(t, found.Try, "no parameter differs")
	}
}

// Words that nobody wrote point to something else in every process.
func TestStalePointersChangeNothing(t *testing.T) {
	known, g := learned(t, "nasnet")
	kept := chosen(t, g, made(t, known, g, Options{}))
	_, _, other := recorded(t, "nasnet")
	node, at := 0, 0
	unused := func(k int) bool {
		for _, p := range other.Nodes[k].Parameters {
			for at = (p[0] + 7) &^ 7; at+8 <= p[0]+p[1]; at += 8 {
				if !slices.ContainsFunc(known.Nodes[k].Words, func(w Word) bool { return w.Offset == at }) {
					return true
				}
			}
		}
		return false
	}
	for !unused(node) {
		node++
	}
	last := other.Active[len(other.Active)-1]
	binary.LittleEndian.PutUint64(other.Nodes[node].Bytes[at:], last[0])
	require.Equal(t, g.Signature(), other.Signature())
	found, err := kept.In(other)
	require.NoError(t, err)
	require.Len(t, found.Try, 1)
	require.Equal(t, node, found.Try[0].Node)
	without := *kept
	without.Words = append(slices.Clone(kept.Words), keptWord{node, at, 7, false}) // and it pointed elsewhere before, where the plan would have moved it
	words := &without.Plans.Plans[0].Words
	word := [4]int64{int64(node), int64(at), (*words)[0][2], (*words)[0][3]}
	*words = append(*words, word)
	found, err = without.In(other)
	require.NoError(t, err)
	require.NotContains(t, found.Plans[0].Words, word)
	require.Len(t, found.Plans[0].Words, len(*words)-1)
}

// A graph that is another has another name, or is told from the one that was planned.
func TestKeptPlansOfOtherGraphs(t *testing.T) {
	known, g := learned(t, "nasnet")
	kept := chosen(t, g, made(t, known, g, Options{}))
	signature := g.Signature()
	word := known.Nodes[5].Words[0].Offset
	for what, change := range map[string]func(g *Graph){
		"a launch shape":    func(g *Graph) { g.Nodes[7].Grid[0]++ },
		"a version of code": func(g *Graph) { g.Nodes[7].Attributes = map[string]int{"binary": 100} },
		"an edge":           func(g *Graph) { g.Edges = g.Edges[1:] },
		"a segment":         func(g *Graph) { g.Pool[0][1] -= 1 << 20 },
		"where a word points": func(g *Graph) {
			b := g.Nodes[5].Bytes[word:]
			binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)+512)
		},
		"what the program holds": func(g *Graph) { g.Active = append(g.Active, Extent{g.Pool[0][0], 512}) },
	} {
		_, _, other := recorded(t, "nasnet")
		require.Equal(t, signature, other.Signature())
		change(other)
		if _, err := kept.In(other); other.Signature() == signature {
			require.EqualError(t, err, "the graph's memory is another", what)
		}
	}
	// Bytes that are no pointers are not in the name.
	_, _, other := recorded(t, "nasnet")
	at := 0
	for other.Nodes[5].Bytes[at] != 0 || at/8 == word/8 {
		at++
	}
	other.Nodes[5].Bytes[at] = 1
	found, err := kept.In(other)
	require.NoError(t, err)
	require.Len(t, found.Try, 1, "they may be bytes that nobody wrote")
	require.Equal(t, 5, found.Try[0].Node)
}

func TestKeptPlansThatWereChanged(t *testing.T) {
	known, g := learned(t, "vit")
	for wrong, change := range map[string]func(k *Kept){
		"it changes a word that the graph does not have":        func(k *Kept) { k.Plans.Plans[0].Words[0][1] = 1 << 20 },
		"it changes a memset that the graph does not have":      func(k *Kept) { k.Plans.Plans[0].Sets = [][3]int64{{0, 0, 1}} },
		"it changes a copy that the graph does not have":        func(k *Kept) { k.Plans.Plans[0].Copies = [][4]int64{{-1, 0, 0, 1}} },
		"it has an edge of a node that the graph does not have": func(k *Kept) { k.Plans.Plans[0].Edges[0][1] = 13 },
		"a graph's description: its edges go in a circle":       func(k *Kept) { k.Plans.Plans[0].Edges[0] = [2]int{3, 3} },
		"the graph's memory is another":                         func(k *Kept) { k.Plans.Plans[0].Words[0][2] = 1 << 60 },
		"it is of 12 nodes, and the graph has 13":               func(k *Kept) { k.Bytes = k.Bytes[:12] },
		"node 0 of the graph takes other parameters":            func(k *Kept) { k.Bytes[0] = nil },
		"it carries contents beyond its memory":                 func(k *Kept) { k.Plans.Carried = [][3]uint64{{0, 512, 1 << 63}} },
	} {
		kept := chosen(t, g, made(t, known, g, Options{}))
		change(kept)
		_, err := kept.In(g)
		require.EqualError(t, err, wrong)
	}
	e := Environment{Driver: 13000, Device: "H100", Torch: "2", Dagrun: "1", Recording: "r"}
	require.NoError(t, e.Same(&e))
	for wrong, is := range map[string]Environment{
		"it was made with driver 13000, and this is 12080": {12080, "H100", "2", "1", "r"},
		"it was made on H100, and this is H200":            {13000, "H200", "2", "1", "r"},
		"it was made with torch 2, and this is 3":          {13000, "H100", "3", "1", "r"},
		"it was made by dagrun 1, and this is 2":           {13000, "H100", "2", "2", "r"},
		"the recording has been made again since":          {13000, "H100", "2", "1", "s"},
	} {
		require.EqualError(t, e.Same(&is), wrong)
	}
}
