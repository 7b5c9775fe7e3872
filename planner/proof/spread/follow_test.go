// Tests of what the proof of a spread follows: branches and loops that may not run, and nodes that come in another order than declared. In each,
// node "use" reads x on device 1, and copies bring x there.

package spread

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// builder declares a pipeline or a spread of it.
type builder struct {
	*dag.Builder
	x, there, y dag.BufferID // x, its piece on device 1, and what is made of it there
	copies      int
	nodes       []dag.NodeID   // of the level that is declared, for the spread
	bodies      [][]dag.NodeID // of the spread
	next        dag.NodeID
}

// bring declares copies of x to device 1.
func (b *builder) bring(copies int) {
	for range copies {
		b.copies++
		b.Copy(fmt.Sprintf("bring %d", b.copies), b.Whole(b.there), b.Whole(b.x))
		b.nodes = append(b.nodes, plan.Inserted)
	}
}

// node notes that the next node of the pipeline was declared.
func (b *builder) node(dag.NodeID) {
	b.nodes = append(b.nodes, b.next)
	b.next++
}

// inside declares a body.
func (b *builder) inside(declare func()) func() {
	return func() {
		nodes, next := b.nodes, b.next
		b.nodes, b.next = nil, 0
		declare()
		b.bodies = append(b.bodies, b.nodes)
		b.nodes, b.next = nodes, next
	}
}

// use reads x, on device 1 in a spread.
func (b *builder) use() {
	node := b.Task("use", b.In(b.there), b.Out(b.y))
	b.At(node).Device = b.BufferAt(b.there).Device
	b.node(node)
}

// verify proves a spread. declare is called for the pipeline, without copies, and for the spread.
func verify(t *testing.T, declare func(b *builder, copies ...int), copies ...int) error {
	t.Helper()
	start := func() *builder {
		b := &builder{Builder: dag.New("follow")}
		b.x, b.y = b.Device("x", dag.F32, 8), b.Device("y", dag.F32, 8)
		b.there = b.x
		return b
	}
	original := start()
	declare(original, make([]int, len(copies))...)
	g, err := original.Graph()
	require.NoError(t, err)
	made := start()
	made.there = made.Device("x on 1", dag.F32, 8)
	made.OnDevice(made.there, 1)
	made.OnDevice(made.y, 1)
	declare(made, copies...)
	s := &plan.Spread{Devices: 2, Buffers: []plan.Piece{{Buffer: original.x}, {Buffer: original.y}, {Buffer: original.x}}, Nodes: made.nodes, Bodies: made.bodies}
	s.Graph, err = made.Graph()
	require.NoError(t, err)
	return Verify(g, s)
}

const (
	stale   = `"use" reads x on device 1 and finds what "make" wrote, but in the pipeline it reads what "choose" wrote`
	missing = `"use" reads x on device 1 and finds bytes that nothing brought there, but in the pipeline it reads what "choose" wrote`
)

// After a branch, x must be right on device 1 whichever body ran, or none.
func TestBytesAreRightWhicheverBodyRan(t *testing.T) {
	branch := func(b *builder, copies ...int) {
		b.node(b.Task("make", b.Out(b.x)))
		b.bring(copies[0])
		b.node(b.If("choose", "x(0..1) > 0", b.inside(func() {
			b.node(b.Task("change", b.InOut(b.x)))
			b.bring(copies[1])
		}), nil))
		b.bring(copies[2])
		b.use()
	}
	both := func(b *builder, copies ...int) {
		b.node(b.Task("make", b.Out(b.x)))
		b.bring(copies[0])
		b.node(b.If("choose", "x(0..1) > 0", b.inside(func() {
			b.node(b.Task("change", b.InOut(b.x)))
			b.bring(copies[1])
		}), b.inside(func() {
			b.node(b.Task("change otherwise", b.InOut(b.x)))
			b.bring(copies[2])
		})))
		b.use()
	}
	for _, c := range []struct {
		name    string
		declare func(b *builder, copies ...int)
		copies  [3]int
		want    string
	}{
		{"brought after it", branch, [3]int{0, 0, 1}, ""},
		{"brought before it and in it", branch, [3]int{1, 1, 0}, ""},
		{"brought before it only", branch, [3]int{1, 0, 0}, stale},
		{"brought in it only", branch, [3]int{0, 1, 0}, missing},
		{"brought in both bodies", both, [3]int{0, 1, 1}, ""},
		{"brought in the first only", both, [3]int{0, 1, 0}, missing},
		{"brought in the second only", both, [3]int{0, 0, 1}, missing},
		{"brought before it and in the first", both, [3]int{1, 1, 0}, missing},
		{"brought before it and in the second", both, [3]int{1, 0, 1}, missing},
	} {
		t.Run(c.name, func(t *testing.T) { requireError(t, c.want, verify(t, c.declare, c.copies[:]...)) })
	}
}

func requireError(t *testing.T, want string, err error) {
	t.Helper()
	if want == "" {
		require.NoError(t, err)
		return
	}
	require.EqualError(t, err, want)
	require.ErrorIs(t, err, ErrWrong)
}

// After a loop, x must be right on device 1 even if no pass ran, where that can be.
func TestBytesAreRightHoweverManyPassesRan(t *testing.T) {
	loop := func(l dag.Loop) func(b *builder, copies ...int) {
		return func(b *builder, copies ...int) {
			b.node(b.Task("make", b.Out(b.x)))
			b.bring(copies[0])
			b.node(b.Repeat("choose", l, b.inside(func() {
				b.node(b.Task("change", b.InOut(b.x)))
				b.bring(copies[1])
			})))
			b.bring(copies[2])
			b.use()
		}
	}
	twice, maybe, never, until := dag.Loop{Times: 2}, dag.Loop{While: "x(0..1) > 0", Most: 3}, dag.Loop{Times: 0}, dag.Loop{Until: "x(0..1) > 0", Most: 3}
	for _, c := range []struct {
		name   string
		loop   dag.Loop
		copies [3]int
		want   string
	}{
		{"twice, brought after it", twice, [3]int{0, 0, 1}, ""},
		{"twice, brought in it", twice, [3]int{0, 1, 0}, ""},
		{"twice, brought before it", twice, [3]int{1, 0, 0}, stale},
		{"until, brought in it", until, [3]int{0, 1, 0}, ""},
		{"maybe, brought before it and in it", maybe, [3]int{1, 1, 0}, ""},
		{"maybe, brought in it", maybe, [3]int{0, 1, 0}, missing},
		{"maybe, brought before it", maybe, [3]int{1, 0, 0}, stale},
		{"never, brought in it", never, [3]int{0, 1, 0}, missing},
		{"never, brought before it and in it", never, [3]int{1, 1, 0}, ""},
	} {
		t.Run(c.name, func(t *testing.T) { requireError(t, c.want, verify(t, loop(c.loop), c.copies[:]...)) })
	}
}

// A node that comes elsewhere than declared must find what it would find where it was declared. The nodes are a, which writes x, use, b, which
// writes x too, and look, which reads it; before b, a loop over a node that reads x may come.
func TestMovedNodesFindWhatWasDeclared(t *testing.T) {
	for _, c := range []struct {
		order, want string
	}{
		{"a bring use b look", ""},
		{"a bring b use look", ""},
		{"a bring b look use", ""},
		{"a bring use look b", `"look" reads x on device 0 and finds what "a" wrote, but in the pipeline it reads what "b" wrote`},
		{"a b bring use look", `"use" reads x on device 1 and finds what "b" wrote, but in the pipeline it reads what "a" wrote`},
		{"b a bring use look", `"look" reads x on device 0 and finds what "a" wrote, but in the pipeline it reads what "b" wrote`},
		{"b look a bring use", `x ends with what "a" wrote on device 0, but in the pipeline with what "b" wrote`},
		{"a loop bring use b look", ""},
		{"a bring loop b look use", ""},
		{"a bring b loop look use", `"step" reads x on device 0 and finds what "b" wrote, but in the pipeline it reads what "a" wrote`},
		{"a b bring loop look use", `"step" reads x on device 0 and finds what "b" wrote, but in the pipeline it reads what "a" wrote`},
		{"a loop b bring look use", `"use" reads x on device 1 and finds what "b" wrote, but in the pipeline it reads what "a" wrote`},
		{"a bring b look use loop", `"step" reads x on device 0 and finds what "b" wrote, but in the pipeline it reads what "a" wrote`},
		{"b use look a", `"use" reads x on device 1 and finds what was there when the replay began, but in the pipeline it reads what "a" wrote`},
	} {
		t.Run(c.order, func(t *testing.T) {
			declared := []string{"a", "use", "b", "look"}
			if strings.Contains(c.order, "loop") {
				declared = []string{"a", "use", "loop", "b", "look"}
			}
			start := func(on1 bool, words []string) (*dag.Graph, []dag.NodeID) {
				b := dag.New("moved")
				x, y, z := b.Device("x", dag.F32, 8), b.Device("y", dag.F32, 8), b.Device("z", dag.F32, 8)
				there := x
				if on1 {
					there = b.Device("x on 1", dag.F32, 8)
					b.OnDevice(there, 1)
					b.OnDevice(y, 1)
				}
				var nodes []dag.NodeID
				for _, word := range words {
					number := plan.Inserted
					for k, name := range declared {
						if name == word {
							number = dag.NodeID(k)
						}
					}
					nodes = append(nodes, number)
					switch word {
					case "a", "b":
						b.Task(word, b.Out(x))
					case "use":
						b.At(b.Task(word, b.In(there), b.Out(y))).Device = b.BufferAt(there).Device
					case "look":
						b.Task(word, b.In(x), b.Out(z))
					case "loop":
						b.Repeat(word, dag.Loop{Times: 2}, func() { b.Task("step", b.In(x), b.InOut(z)) })
					case "bring":
						b.Copy(word, b.Whole(there), b.Whole(x))
					}
				}
				g, err := b.Graph()
				require.NoError(t, err)
				return g, nodes
			}
			g, _ := start(false, declared)
			made, nodes := start(true, strings.Fields(c.order))
			s := &plan.Spread{Graph: made, Devices: 2, Nodes: nodes, Buffers: []plan.Piece{{Buffer: 0}, {Buffer: 1}, {Buffer: 2}, {Buffer: 0}}, Kept: []dag.BufferID{0}}
			if len(declared) == 5 {
				s.Bodies = [][]dag.NodeID{{0}}
			}
			requireError(t, c.want, Verify(g, s))
		})
	}
}

func TestWithoutGraphsThereIsNoProof(t *testing.T) {
	g, s := declaredSpread(t)
	require.Error(t, Verify(nil, s))
	for _, none := range []*plan.Spread{nil, {}} {
		require.EqualError(t, Verify(g, none), "there is no graph over several devices")
	}
}

// A condition, and the nodes of a body, must find what they find in the pipeline. The condition is tested on device 1, where copies bring x.
func TestConditionsFindWhatWasDeclared(t *testing.T) {
	const start = `finds what was there when the replay began, but in the pipeline it reads what `
	const begins = `finds what a run of a body of "choose" begins with, but in the pipeline it reads what `
	for _, c := range []struct {
		name   string
		loop   *dag.Loop // nil: a branch
		copies [2]int    // before it, and behind the node that changes x in its body
		want   string
		more   bool // x is changed once more at the end of the body
	}{
		{"a branch", nil, [2]int{1, 1}, "", false},
		{"a branch that tests too early", nil, [2]int{0, 1},
			`"choose" reads x(0..1) on device 1 and ` + start + `"make" wrote`, false},
		{"a branch whose body reads too early", nil, [2]int{1, 0},
			`"look" reads x on device 1 and ` + begins + `"change" wrote`, false},
		{"until", &dag.Loop{Until: "%s(0..1) > 0", Most: 3}, [2]int{0, 1}, "", false},
		{"until, with what was before", &dag.Loop{Until: "%s(0..1) > 0", Most: 3}, [2]int{1, 0},
			`"look" reads x on device 1 and ` + begins + `"change" wrote`, false},
		{"until, tested with what was before", &dag.Loop{Until: "%s(0..1) > 0", Most: 3}, [2]int{0, 1},
			`"choose" reads x(0..1) on device 1 and finds what "change" wrote, but in the pipeline it reads what "change more" wrote`, true},
		{"while", &dag.Loop{While: "%s(0..1) > 0", Most: 3}, [2]int{1, 1}, "", false},
		{"while, tested too early", &dag.Loop{While: "%s(0..1) > 0", Most: 3}, [2]int{0, 1},
			`"choose" reads x(0..1) on device 1 and ` + start + `"make" wrote`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			declare := func(there string, copies [2]int) (*dag.Graph, []dag.NodeID, []dag.NodeID) {
				b := dag.New("conditions")
				x, y := b.Device("x", dag.F32, 8), b.Device("y", dag.F32, 8)
				seen := x
				if there != "x" {
					seen = b.Device(there, dag.F32, 8)
					b.OnDevice(seen, 1)
					b.OnDevice(y, 1)
				}
				bring := func(name string) { b.Copy(name, b.Whole(seen), b.Whole(x)) }
				top, inside := []dag.NodeID{0}, []dag.NodeID{0}
				b.Task("make", b.Out(x))
				if copies[0] > 0 {
					bring("bring")
					top = append(top, plan.Inserted)
				}
				body := func() {
					b.Task("change", b.InOut(x))
					if copies[1] > 0 {
						bring("bring again")
						inside = append(inside, plan.Inserted)
					}
					b.At(b.Task("look", b.In(seen), b.Out(y))).Device = b.BufferAt(seen).Device
					inside = append(inside, 1)
					if c.more {
						b.Task("change more", b.InOut(x))
						inside = append(inside, 2)
					}
				}
				if c.loop == nil {
					b.If("choose", there+"(0..1) > 0", body, nil)
				} else {
					l := *c.loop
					l.Until, l.While = strings.ReplaceAll(l.Until, "%s", there), strings.ReplaceAll(l.While, "%s", there)
					b.Repeat("choose", l, body)
				}
				g, err := b.Graph()
				require.NoError(t, err)
				g.Nodes[len(top)].Device = g.Buffers[seen].Device
				return g, append(top, 1), inside
			}
			g, _, _ := declare("x", [2]int{})
			made, top, inside := declare("x1", c.copies)
			made.Nodes[len(top)-1].Control.Condition.Text = g.Nodes[1].Control.Condition.Text
			s := &plan.Spread{Graph: made, Devices: 2, Nodes: top, Bodies: [][]dag.NodeID{inside}, Buffers: []plan.Piece{{Buffer: 0}, {Buffer: 1}, {Buffer: 0}}}
			requireError(t, c.want, Verify(g, s))
		})
	}
}
