package replan

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/planner"
)

// network reads what `python -m dagrun.replan_table --only vit,nasnet` recorded on an H100, and the graph as it was there, every node of which takes 4 us.
func recorded(t *testing.T, name string) (*recording.Process, recording.NoteInfo, *Graph) {
	t.Helper()
	r, err := recording.ReadFile("testdata/" + name + ".rec")
	require.NoError(t, err)
	for _, p := range r.Processes {
		for _, note := range p.Notes {
			if note.Code == recording.NoteGraph {
				g, err := DecodeGraph([]byte(note.Text))
				require.NoError(t, err)
				g.US, g.Chain = make([]float64, len(g.Nodes)), 4*float64(len(g.Nodes))
				for k := range g.US {
					g.US[k] = 4
				}
				return p, note, g
			}
		}
	}
	t.Fatal("the recording has no graph")
	return nil, recording.NoteInfo{}, nil
}

func learned(t *testing.T, name string) (*Known, *Graph) {
	t.Helper()
	p, note, g := recorded(t, name)
	known, err := Learn(p, note)
	require.NoError(t, err)
	return known, g
}

func made(t *testing.T, known *Known, g *Graph, o Options) *Plans {
	t.Helper()
	plans, err := Make(t.Context(), known, g, o)
	require.NoError(t, err)
	return plans
}

func TestWhatRecordingsTellOfGraphs(t *testing.T) {
	vit, _ := learned(t, "vit")
	require.Equal(t, "a graph of 13 nodes, 12 of them kernels, and 14 values in its own memory, of which 14 can be moved\n", vit.Text())
	cells, _ := learned(t, "nasnet")
	require.Equal(t, "a graph of 110 nodes, 110 of them kernels, and 133 values in its own memory, of which 133 can be moved\n", cells.Text())
	// cuBLAS's workspace is not the graph's own. A memset clears its counters, and the kernel behind that adds to them.
	workspace := vit.Nodes[8].Uses[0].Value
	require.Equal(t, Value{Bytes: 1 << 20, At: vit.Values[workspace].At, Born: vit.Values[workspace].Born, Pinned: notOwn}, vit.Values[workspace])
	require.Contains(t, vit.Nodes[10].Uses, Use{Value: workspace, Read: true, Write: true, Atomic: true})
	for k, n := range cells.Nodes {
		require.Empty(t, n.Opaque, "node %d", k)
		for _, w := range n.Words {
			require.Equal(t, binary.LittleEndian.Uint64(n.Bytes[w.Offset:]), cells.Values[w.Value].At+uint64(w.Delta))
		}
	}
}

// Two cells have five branches each: what can run at once takes a third of the time of the chain that torch captured. The plans were proved; here the words that
// the new graph gets are followed back to values.
func TestPlansOfCells(t *testing.T) {
	known, g := learned(t, "nasnet")
	plans := made(t, known, g, Options{})
	require.Equal(t, 132, plans.Moved)
	require.Equal(t, map[string]int{held: 1}, plans.Pinned)
	require.Empty(t, plans.Try, "the graph is the one that was recorded")
	require.Len(t, plans.Outputs, 1, "what the program holds")
	best := slices.MinFunc(plans.Plans, func(a, b Plan) int { return int(a.US - b.US) })
	require.Less(t, best.US, plans.Chain/3)
	for _, plan := range plans.Plans {
		at := map[int]int64{}
		for _, word := range plan.Words {
			k := slices.IndexFunc(known.Nodes[word[0]].Words, func(w Word) bool { return int64(w.Offset) == word[1] })
			w := known.Nodes[word[0]].Words[k]
			place := word[2] - w.Delta + word[3]<<62
			before, met := at[w.Value]
			require.True(t, !met || before == place, "all words of a value lead to one place")
			at[w.Value] = place
			require.False(t, word[3] == 0 && !slices.ContainsFunc(g.Pool, func(e Extent) bool { return e.holds(uint64(word[2])) }), "an address is one of the graph's own")
			require.LessOrEqual(t, word[3]*(word[2]-w.Delta+int64(known.Values[w.Value].Bytes)), plan.Memory)
		}
		require.Len(t, at, plans.Moved)
	}
}

func TestNothingIsMovedIfAsked(t *testing.T) {
	known, g := learned(t, "nasnet")
	plans := made(t, known, g, Options{Stay: true})
	require.Zero(t, plans.Moved)
	for _, plan := range plans.Plans {
		require.Empty(t, plan.Words)
		require.Zero(t, plan.Memory)
	}
}

func TestAGraphThatIsNotTheOneRecorded(t *testing.T) {
	known, _ := learned(t, "nasnet")
	for wrong, change := range map[string]func(g *Graph){
		"the graph is not as it was recorded: 109 nodes instead of 110; record the program again": func(g *Graph) {
			g.Nodes, g.US = g.Nodes[:109], g.US[:109]
			g.Edges = slices.DeleteFunc(g.Edges, func(e [3]int) bool { return e[0] == 109 || e[1] == 109 })
		},
		"node 3 of the graph is not as it was recorded: it launches other instead of " + known.Nodes[3].Function + "; record the program again": func(g *Graph) {
			g.Nodes[3].Function = "other"
		},
		"node 3 of the graph is not as it was recorded: its code is another version; record the program again": func(g *Graph) {
			g.Nodes[3].Attributes = map[string]int{"registers": 1}
		},
		"the graph is not as it was recorded: torch 3 instead of " + known.Torch + "; record the program again":  func(g *Graph) { g.Torch = "3" },
		"the graph is not as it was recorded: another instead of " + known.Device + "; record the program again": func(g *Graph) { g.Device = "another" },
		"node 0 of the graph is not as it was recorded: it takes other parameters; record the program again":     func(g *Graph) { g.Nodes[0].Parameters = nil },
		"node 3 of the graph is not as it was recorded: type 5 instead of 0; record the program again":           func(g *Graph) { g.Nodes[3].Type = emptyNode },
	} {
		_, _, g := recorded(t, "nasnet")
		change(g)
		_, err := Make(t.Context(), known, g, Options{})
		var other *ErrOther
		require.ErrorAs(t, err, &other)
		require.EqualError(t, err, wrong)
	}
	_, _, g := recorded(t, "nasnet")
	word := known.Nodes[5].Words[slices.IndexFunc(known.Nodes[5].Words, func(w Word) bool { return w.Touched })]
	binary.LittleEndian.PutUint64(g.Nodes[5].Bytes[word.Offset:], g.Pool[0][0])
	_, err := Make(t.Context(), known, g, Options{})
	require.ErrorContains(t, err, "points to another tensor; record the program again")
}

// In another process everything lies elsewhere; bytes that may matter and differ make the node one that is to be tried.
func TestTheSameGraphInAnotherProcess(t *testing.T) {
	known, g := learned(t, "nasnet")
	usual := made(t, known, g, Options{})
	const away = 1 << 21
	for k := range g.Pool {
		g.Pool[k][0] += away
	}
	for k := range g.Active {
		g.Active[k][0] += away
	}
	for k := range g.Nodes {
		for _, w := range known.Nodes[k].Words {
			b := g.Nodes[k].Bytes[w.Offset:]
			binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)+away)
		}
	}
	node := slices.IndexFunc(known.Nodes, func(s Seen) bool { return len(s.Words) > 0 && s.Words[0].Offset == 0 && len(s.Bytes) > 8 })
	free := 0
	for slices.ContainsFunc(known.Nodes[node].Words, func(w Word) bool { return w.Offset <= free && free < w.Offset+8 }) {
		free++
	}
	g.Nodes[node].Bytes[free]++
	there := made(t, known, g, Options{})
	require.Len(t, there.Try, 1)
	require.Equal(t, node, there.Try[0].Node)
	require.Equal(t, usual.Moved, there.Moved)
	for k, plan := range there.Plans {
		require.Equal(t, usual.Plans[k].Edges, plan.Edges)
		require.Equal(t, usual.Plans[k].Memory, plan.Memory)
		for n, word := range plan.Words {
			was := usual.Plans[k].Words[n]
			require.Equal(t, [4]int64{was[0], was[1], was[2] + away*(1-was[3]), was[3]}, word)
		}
	}
}

// What the program holds when it asks for a plan stays where it is.
func TestTensorsThatTheProgramHoldsStay(t *testing.T) {
	known, g := learned(t, "nasnet")
	value := known.Nodes[60].Uses[0].Value
	v := &known.Values[value]
	g.Active = append(g.Active, Extent{v.At, v.Bytes})
	for other := range known.Values { // another value that lay there later is the one that the program holds
		if o := &known.Values[other]; o.Pool && o.Born > v.Born && (Extent{o.At, o.Bytes}).overlaps(Extent{v.At, v.Bytes}) {
			value, v = other, o
		}
	}
	plans := made(t, known, g, Options{})
	require.Equal(t, 2, plans.Pinned[held])
	for _, plan := range plans.Plans {
		for _, word := range plan.Words {
			require.False(t, slices.ContainsFunc(known.Nodes[word[0]].Words, func(w Word) bool { return int64(w.Offset) == word[1] && w.Value == value }))
		}
	}
}

func TestRecordingsThatDoNotHoldATrial(t *testing.T) {
	p, note, g := recorded(t, "vit")
	cut := &recording.Process{Functions: p.Functions, Accesses: p.Accesses, Tensors: p.Tensors,
		Calls: slices.DeleteFunc(slices.Clone(p.Calls), func(c recording.Call) bool { return c.Kind == recording.Launch && c.Args[0] == g.Stream })}
	_, err := Learn(cut, note)
	require.EqualError(t, err, "the recording has 0 of the 99 launches by which a graph of 13 nodes was tried: it was cut, or the program was killed")
	var about map[string]any
	require.NoError(t, json.Unmarshal([]byte(note.Text), &about))
	again := func(change func()) error {
		t.Helper()
		change()
		text, err := json.Marshal(about)
		require.NoError(t, err)
		_, err = Learn(p, recording.NoteInfo{Code: note.Code, Value: note.Value, Text: string(text)})
		return err
	}
	require.EqualError(t, again(func() { about["tried"].([]any)[0].([]any)[0] = 99 }), "a graph's description: a trial of node 99 of 13")
	require.ErrorContains(t, again(func() { about["tried"].([]any)[0].([]any)[0] = 9 }), "launch 0 of the trial of a graph is of ")
	require.EqualError(t, again(func() { about["tried"].([]any)[0].([]any)[1] = []any{1 << 40} }), "a graph's description: a trial of the word at 1099511627776 in 72 bytes of node 9")
	about["tried"].([]any)[0].([]any)[1] = []any{}
	require.EqualError(t, again(func() { about["edges"] = []any{[]any{0, 1, 0}, []any{1, 0, 0}} }), "a graph's description: its edges go in a circle")
	require.EqualError(t, again(func() { about["version"] = 2 }), "a graph's description of version 2, where this program knows 1: the Python package and the command must be of one version")
	_, err = Learn(p, recording.NoteInfo{Text: "{"})
	require.EqualError(t, err, "a graph's description: unexpected end of JSON input")
}

// A description may be anything that the version is right for.
func TestDescriptionsThatWereChanged(t *testing.T) {
	p, note, live := recorded(t, "vit")
	known, err := Learn(p, note)
	require.NoError(t, err)
	digits := []byte("0123456789")
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(note.Text)
		for range rapid.IntRange(1, 20).Draw(t, "changes") {
			if at := rapid.IntRange(12, len(text)-1).Draw(t, "at"); slices.Contains(digits, text[at]) {
				text[at] = rapid.SampledFrom(digits).Draw(t, "digit")
			}
		}
		if _, err := Learn(p, recording.NoteInfo{Code: note.Code, Value: note.Value, Text: string(text)}); err != nil {
			require.NotEmpty(t, err.Error())
		}
		if g, err := DecodeGraph(text); err == nil {
			g.US, g.Chain = live.US, live.Chain
			if _, err := Make(context.Background(), known, g, Options{}); err != nil {
				require.NotEmpty(t, err.Error())
			}
		}
	})
}

// Under a cap, all values that move lie in new memory of that size; nothing is left in the graph's own but what the program holds.
func TestPlansUnderACap(t *testing.T) {
	known, g := learned(t, "nasnet")
	free := made(t, known, g, Options{Cap: 1 << 40})
	require.False(t, free.Stays)
	require.True(t, made(t, known, g, Options{}).Stays)
	least := int64(1 << 40)
	for _, plan := range free.Plans {
		require.Positive(t, plan.Memory)
		least = min(least, plan.Memory)
		for _, word := range plan.Words {
			require.EqualValues(t, 1, word[3], "everything that moves is in new memory")
		}
	}
	tight := made(t, known, g, Options{Cap: least})
	require.NotEmpty(t, tight.Plans)
	require.Less(t, len(tight.Plans), len(free.Plans))
	for _, plan := range tight.Plans {
		require.LessOrEqual(t, plan.Memory, least)
	}
	_, err := Make(t.Context(), known, g, Options{Cap: least - 1})
	wanted := fmt.Sprintf("its values take %s, as they are laid out here, more than the %s that --memory-cap allows", words.Bytes(least), words.Bytes(least-1))
	require.EqualError(t, err, wanted)
	n, err := NewCapturedGraph(known, g, Options{Cap: 256})
	require.NoError(t, err)
	_, err = n.Plan(t.Context(), planner.Options{Machine: planner.H200(), Profile: n.Durations()})
	var large *ErrMemory
	require.ErrorAs(t, err, &large)
	require.Equal(t, least, large.Needs)
}

// Where it matters what lies in a value before the graph, a cap makes its contents move too, to a place in new memory that nothing else shares.
func TestContentsThatAreCarried(t *testing.T) {
	known, g := learned(t, "nasnet")
	const node, read = 20, 0
	use := &known.Nodes[node].Uses[slices.IndexFunc(known.Nodes[node].Uses, func(u Use) bool { return u.Read && known.Values[u.Value].Pool })]
	use.Old = []Extent{{read, 64}}
	value := known.Values[use.Value]
	stays := made(t, known, g, Options{Keep: []int{node}})
	require.Equal(t, map[string]int{held: 1, oldMatters: 1}, stays.Pinned)
	require.Empty(t, stays.Carried)
	tried := made(t, known, g, Options{Cap: 1 << 40})
	require.Equal(t, []int{node}, []int{tried.Try[0].Node}, "it is tried whether it matters")
	plans := made(t, known, g, Options{Cap: 1 << 40, Keep: []int{node}})
	require.Empty(t, plans.Try)
	require.False(t, plans.Stays)
	require.Equal(t, map[string]int{held: 1}, plans.Pinned)
	require.Equal(t, [][3]uint64{{value.At, value.Bytes, 0}}, plans.Carried)
	for _, plan := range plans.Plans {
		there := 0
		for _, w := range plan.Words {
			word := known.Nodes[w[0]].Words[slices.IndexFunc(known.Nodes[w[0]].Words, func(word Word) bool { return word.Offset == int(w[1]) })]
			if word.Value == use.Value {
				there++
				require.Equal(t, word.Delta, w[2])
			} else {
				require.GreaterOrEqual(t, w[2]-word.Delta, int64(value.Bytes), "nothing else lies there")
			}
		}
		require.Positive(t, there)
	}
	kept := chosen(t, g, plans)
	_, _, there := recorded(t, "nasnet")
	away(there, known)
	found, err := kept.In(there)
	require.NoError(t, err)
	require.Equal(t, [][3]uint64{{value.At + 1<<32, value.Bytes, 0}}, found.Carried)

	// What the program holds is not carried: it would not see what the new graph leaves there.
	last := len(known.Nodes) - 1
	for k := range known.Nodes[last].Uses {
		known.Nodes[last].Uses[k].Old = []Extent{{0, 64}}
	}
	plans = made(t, known, g, Options{Cap: 1 << 40, Keep: []int{last}})
	require.Equal(t, map[string]int{held: 1}, plans.Pinned)
	require.False(t, plans.Stays)
	for _, c := range plans.Carried {
		require.False(t, slices.ContainsFunc(g.Active, Extent{c[0], c[1]}.overlaps))
	}
}

// A kernel whose accesses cannot be measured keeps its tensors where they are, unless its results showed that each may lie elsewhere.
func TestTensorsOfKernelsThatCannotBeMeasured(t *testing.T) {
	const node = 4
	learn := func(results int) *Known {
		t.Helper()
		p, note, g := recorded(t, "vit")
		var own []int // calls that tried the graph
		for i := range p.Calls {
			if c := &p.Calls[i]; c.Kind == recording.Launch && c.Args[0] == g.Stream {
				own = append(own, i)
			}
		}
		own = own[len(own)-len(g.Tried):]
		about := map[string]any{}
		require.NoError(t, json.Unmarshal([]byte(note.Text), &about))
		tried, last, offsets := about["tried"].([]any), 0, []any{}
		for k, try := range g.Tried {
			if try.Node == node {
				last = k
				p.Accesses[p.Calls[own[k]].Args[3]].Opaque = true
				if len(try.Offsets) > 0 {
					offsets = append(offsets, tried[k].([]any)[1].([]any)...)
				}
			}
		}
		if results > 0 {
			about["tried"] = slices.Insert(tried, last+1, any([]any{node, offsets, 0, results}))
			p.Calls = slices.Insert(p.Calls, own[last]+1, p.Calls[own[last]])
		}
		text, err := json.Marshal(about)
		require.NoError(t, err)
		known, err := Learn(p, recording.NoteInfo{Code: note.Code, Value: note.Value, Text: string(text)})
		require.NoError(t, err)
		require.Equal(t, "its code has accesses that cannot be measured", known.Nodes[node].Opaque)
		return known
	}
	stay := func(known *Known) (n int) {
		for _, u := range known.Nodes[node].Uses {
			if v := known.Values[u.Value]; v.Pool && v.Pinned == known.Nodes[node].Opaque {
				n++
			}
		}
		return n
	}
	_, _, g := recorded(t, "vit")
	require.Positive(t, stay(learn(0)))
	require.Equal(t, stay(learn(0)), stay(learn(otherResults)))
	moving := learn(sameResults)
	require.Zero(t, stay(moving))
	plans := made(t, moving, g, Options{})
	require.Equal(t, 1, plans.Opaque)
	require.Greater(t, plans.Moved, made(t, learn(0), g, Options{}).Moved)
	changed := 0
	for _, word := range plans.Plans[0].Words {
		if word[0] == node {
			changed++
		}
	}
	require.Positive(t, changed, "its words are changed")
}
