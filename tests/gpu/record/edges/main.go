// Command edges removes, one at a time, each edge of the graphs in a recording that others do not imply, and checks the recording again: a race must be
// found wherever two nodes conflict that the edge alone ordered, and at no other nodes. It runs anywhere, on recordings made on a GPU.
//
//	edges FILE...
//
// The exit status is the number of edges with a wrong verdict, at most 100.
package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"

	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/internal/recording/order"
)

func main() {
	wrong := 0
	for _, name := range os.Args[1:] {
		r, err := recording.ReadFile(name)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(101)
		}
		for _, p := range r.Processes {
			wrong += removeEach(os.Stdout, name, p)
		}
	}
	os.Exit(min(wrong, 100))
}

// removeEach goes through the graphs that a process launched, and returns how many verdicts are wrong.
func removeEach(out io.Writer, name string, p *recording.Process) int {
	whole, err := order.Check(p, order.Options{})
	if err != nil {
		fmt.Fprintf(out, "%s: %v\n", name, err)
		return 1
	}
	wrong := len(whole.Races)
	for _, r := range whole.Races {
		fmt.Fprintf(out, "%s: FALSE in the graph as it is: %s, %s\n", name, r.First.Name, r.Second.Name)
	}
	for _, state := range launched(p) {
		g := newGraph(p, state)
		edges := g.needed()
		outcomes := make([]outcome, len(edges))
		work := make(chan int)
		var all sync.WaitGroup
		for range runtime.NumCPU() {
			all.Go(func() {
				for k := range work {
					outcomes[k] = g.without(edges[k])
				}
			})
		}
		for k := range edges {
			work <- k
		}
		close(work)
		all.Wait()
		counts := map[string]int{}
		for k, o := range outcomes {
			counts[o.verdict]++
			if o.verdict == missed || o.verdict == falsely {
				wrong++
				e := g.info.Edges[edges[k]]
				fmt.Fprintf(out, "%s: %s without the edge from node %d to node %d: %s\n", name, o.verdict, e.From, e.To, o.text)
			}
		}
		fmt.Fprintf(out, "%s: a graph of %d nodes and %d edges, %d of them implied by no others. Removed in turn: %d races found, %d possible (what conflicts was not measured), %d order nothing that conflicts, %d missed, %d false\n",
			name, len(g.info.Nodes), len(g.info.Edges), len(edges), counts[found], counts[possible], counts[nothing], counts[missed], counts[falsely])
	}
	return wrong
}

// launched returns the states of executable graphs, as indices of Process.Graphs, that were launched.
func launched(p *recording.Process) []int {
	var states []int
	seen := map[int]bool{}
	for _, c := range p.Calls {
		if c.Kind != recording.GraphLaunch || c.Result != 0 || len(c.Args) < 3 {
			continue
		}
		state := -1
		for i, g := range p.Graphs {
			if g.Execution != 0 && g.Execution == c.Args[2] && g.Sequence <= c.Begin {
				state = i
			}
		}
		if state >= 0 && !seen[state] {
			seen[state] = true
			states = append(states, state)
		}
	}
	return states
}

const (
	found    = "found"
	possible = "possible"
	nothing  = "nothing"
	missed   = "MISSED"
	falsely  = "FALSE"
)

type outcome struct{ verdict, text string }

// graph is a state of a graph, and what its nodes were seen to touch in all launches.
type graph struct {
	process *recording.Process
	state   int
	info    *recording.GraphInfo
	before  [][]bool // with all edges
	runs    [][][]recording.Run
	guessed []bool // what the node touches was not measured, or not all of it
}

func newGraph(p *recording.Process, state int) *graph {
	g := &graph{process: p, state: state, info: &p.Graphs[state]}
	g.before = reach(len(g.info.Nodes), g.info.Edges, -1)
	index := map[uint64]int{}
	for i, n := range g.info.Nodes {
		index[n.Node] = i
	}
	g.runs, g.guessed = make([][][]recording.Run, len(g.info.Nodes)), make([]bool, len(g.info.Nodes))
	measured := make([]bool, len(g.info.Nodes))
	launches := map[uint64]bool{}
	for _, c := range p.Calls {
		if c.Kind == recording.GraphLaunch && len(c.Args) >= 3 && c.Args[2] == g.info.Execution {
			launches[c.Begin] = true
		}
	}
	for _, c := range p.Calls {
		if c.Kind != recording.NodeAccess || len(c.Args) < 4 || !launches[c.Args[1]] {
			continue
		}
		i, here := index[c.Args[2]]
		if a := p.Accesses[c.Args[3]]; here && a != nil {
			g.runs[i] = append(g.runs[i], a.Runs)
			measured[i] = true
			g.guessed[i] = g.guessed[i] || a.Lost || a.Opaque || a.Unmeasured
		}
	}
	for i, n := range g.info.Nodes {
		switch n.Type {
		case kernelNode:
			g.guessed[i] = g.guessed[i] || !measured[i]
			if len(n.Body) >= 8 {
				for _, f := range p.Functions[binary.LittleEndian.Uint64(n.Body)] {
					g.guessed[i] = g.guessed[i] || f.Opaque || f.Unpatched
				}
			}
		case copyNode:
			g.guessed[i] = !g.touch(i, n.Body, 0, 3, recording.Write) || !g.touch(i, n.Body, 1, 3, recording.Read)
		case setNode:
			g.guessed[i] = !g.touch(i, n.Body, 0, 2, recording.Write)
		}
	}
	return g
}

// Types of nodes.
const (
	kernelNode = 0
	copyNode   = 1
	setNode    = 2
)

// touch notes the bytes of a copy or a memset that has a single row. It returns false if it has more.
func (g *graph) touch(node int, body []byte, address, rows int, mode uint32) bool {
	word := func(k int) uint64 { return binary.LittleEndian.Uint64(body[8*k:]) }
	bytes := rows - 1
	if len(body) < 8*(rows+1) || word(rows) > 1 || word(bytes) > 1<<32-1 {
		return false
	}
	g.runs[node] = append(g.runs[node], []recording.Run{{Address: word(address), Bytes: uint32(word(bytes)), Modes: mode}})
	return true
}

// reach returns which nodes each node comes before, by all edges but one.
func reach(nodes int, edges []recording.GraphEdge, without int) [][]bool {
	next := make([][]uint32, nodes)
	for k, e := range edges {
		if k != without {
			next[e.From] = append(next[e.From], e.To)
		}
	}
	all := make([][]bool, nodes)
	for i := range all {
		all[i] = make([]bool, nodes)
		stack := append([]uint32(nil), next[i]...)
		for len(stack) > 0 {
			n := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if !all[i][n] {
				all[i][n] = true
				stack = append(stack, next[n]...)
			}
		}
	}
	return all
}

// needed returns the edges that no others imply.
func (g *graph) needed() []int {
	var edges []int
	for k, e := range g.info.Edges {
		if !reach(len(g.info.Nodes), g.info.Edges, k)[e.From][e.To] {
			edges = append(edges, k)
		}
	}
	return edges
}

// conflict says whether two nodes touch the same bytes in a way that needs an order, as far as was measured.
func (g *graph) conflict(a, b int) bool {
	for _, x := range g.runs[a] {
		for _, y := range g.runs[b] {
			if overlap(x, y) {
				return true
			}
		}
	}
	return false
}

// overlap goes through two sorted lists of stretches.
func overlap(x, y []recording.Run) bool {
	for i, j := 0, 0; i < len(x) && j < len(y); {
		a, b := x[i], y[j]
		endA, endB := a.Address+uint64(a.Bytes), b.Address+uint64(b.Bytes)
		switch modes := a.Modes | b.Modes; {
		case endA <= b.Address:
			i++
			continue
		case endB <= a.Address:
			j++
			continue
		case modes&recording.Write != 0, modes == recording.Read|recording.Atomic:
			return true
		}
		if endA < endB {
			i++
		} else {
			j++
		}
	}
	return false
}

// without checks the recording without an edge.
func (g *graph) without(edge int) outcome {
	after := reach(len(g.info.Nodes), g.info.Edges, edge)
	loose := func(a, b int) bool { return !after[a][b] && !after[b][a] && (g.before[a][b] || g.before[b][a]) }
	certain, guessed := false, false
	for a := range g.info.Nodes {
		for b := range g.info.Nodes {
			if a == b || !g.before[a][b] || after[a][b] {
				continue
			}
			certain = certain || g.conflict(a, b)
			guessed = guessed || g.guessed[a] || g.guessed[b]
		}
	}
	of := g.process
	p := recording.Process{ // without places, which are looked up in maps that goroutines must not share
		Measured: of.Measured, Cut: of.Cut, Lost: of.Lost, Command: of.Command, Facts: of.Facts, Calls: of.Calls, Threads: of.Threads, Functions: of.Functions,
		Graphs: append([]recording.GraphInfo(nil), of.Graphs...), Accesses: of.Accesses, Tensors: of.Tensors, Modules: of.Modules,
	}
	changed := &p.Graphs[g.state]
	changed.Edges = append(append([]recording.GraphEdge(nil), changed.Edges[:edge]...), changed.Edges[edge+1:]...)
	report, err := order.Check(&p, order.Options{})
	if err != nil {
		return outcome{missed, err.Error()}
	}
	for _, r := range report.Races {
		a, b := r.First.Node, r.Second.Node
		if a < 0 || b < 0 || a >= len(after) || b >= len(after) || !loose(a, b) {
			return outcome{falsely, fmt.Sprintf("%s (node %d) and %s (node %d)", r.First.Name, a, r.Second.Name, b)}
		}
	}
	switch {
	case len(report.Races) > 0:
		return outcome{verdict: found}
	case certain:
		return outcome{missed, "nodes conflict that nothing orders"}
	case guessed && len(report.Possible) > 0:
		return outcome{verdict: possible}
	}
	return outcome{verdict: nothing}
}
