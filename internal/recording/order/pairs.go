// Pairs: from two steps without an order to a race that a person can mend. Pairs at the same two places are one race.

package order

import (
	"strconv"
	"strings"

	"github.com/dagrun/dagrun/internal/happens"
	"github.com/dagrun/dagrun/internal/recording"
)

// pair is called by the checker while a step is told.
func (m *machine) pair(p happens.Pair) {
	if m.began(p.First) < m.since {
		return
	}
	if p.Conflict == happens.OrderDependent {
		m.report.OrderDependent++
		return
	}
	first, second := m.where(p.First, p.FirstNode), m.where(p.Second, p.SecondNode)
	key := site{first, second, m.because(p)}
	g := m.groups[key]
	if g == nil {
		g = &group{site: key, race: m.race(p)}
		g.race.Because = key.because
		m.groups[key] = g
		m.sorted = append(m.sorted, g)
	}
	if steps := [4]int32{p.First, p.FirstNode, p.Second, p.SecondNode}; g.race.Count == 0 || steps != g.last {
		g.race.Count++
		g.last = steps
	}
	g.race.Bytes += p.High - p.Low
	g.kinds[kindOf(p)] = true
}

// began returns the moment at which a step began.
func (m *machine) began(step int32) uint64 {
	call := m.acts[step].call
	if call >= 0 {
		return m.process.Calls[call].Begin
	}
	return m.process.Tensors[-1-call].Sequence
}

// where returns the place of a step.
func (m *machine) where(step, node int32) where {
	act := m.acts[step]
	if act.call < 0 {
		event := &m.process.Tensors[-1-act.call]
		return where{place: event.Place}
	}
	call := &m.process.Calls[act.call]
	w := where{place: call.Place, kind: call.Kind}
	if act.graph != nil {
		if act.node >= 0 {
			node = act.node
		}
		n := &act.graph.nodes[node]
		if n.node.Type == nodeKernel {
			w.function = n.words[0]
		}
		if at := m.madeAt(n); at != 0 {
			w.place = at
		} else {
			w.node = node
		}
		return w
	}
	if call.Kind == recording.Launch {
		w.function = call.Args[launchFunction]
	}
	return w
}

// madeAt returns the place of the call that made a node, 0 if it is not known.
func (m *machine) madeAt(n *graphNode) uint64 {
	if n.place < 0 {
		return 0
	}
	return m.process.Calls[n.place].Place
}

// Kinds of races, by what the second access does after what the first does.
var kinds = [...]string{"RAW", "WAW", "WAR"}

func kindOf(p happens.Pair) int {
	first, second := p.FirstMode, p.SecondMode
	if p.Conflict == happens.Possible {
		first, second = first.All(), second.All()
	}
	const writes = happens.Write | happens.Atomic
	switch {
	case first&writes != 0 && second&happens.Read != 0:
		return 0
	case first&writes != 0 && second&writes != 0:
		return 1
	}
	return 2
}

func (g *group) finished() Race {
	r := g.race
	var names []string
	for i, name := range kinds {
		if g.kinds[i] {
			names = append(names, name)
		}
	}
	r.Kinds = strings.Join(names, ", ")
	return r
}

func (m *machine) race(p happens.Pair) Race {
	return Race{Low: p.Low, High: p.High, Memory: m.memoryAt(p.Low), First: m.side(p.First, p.FirstNode, p.FirstMode, p.Conflict),
		Second: m.side(p.Second, p.SecondNode, p.SecondMode, p.Conflict)}
}

// because says why a race is only possible.
func (m *machine) because(p happens.Pair) string {
	switch {
	case m.acts[p.First].doubtful || m.acts[p.Second].doubtful:
		return "wait"
	case p.Conflict == happens.Possible:
		return "arguments"
	}
	return ""
}

func (m *machine) side(step, node int32, mode happens.Mode, conflict happens.Conflict) Side {
	act := m.acts[step]
	s := Side{Stream: "the host", Node: -1, Child: -1}
	if act.stream != nil {
		s.Stream = act.stream.name
	}
	if act.call < 0 {
		s.Tensor = &m.process.Tensors[-1-act.call]
		s.Place, s.Thread, s.Name = s.Tensor.Place, s.Tensor.Thread, "tensor freed"
		return s
	}
	s.Call = &m.process.Calls[act.call]
	s.Place, s.Thread = s.Call.Place, s.Call.Thread
	if s.Call.Kind != recording.Alloc && s.Call.Kind != recording.Free && s.Call.Kind != recording.Context {
		s.Mode = modeText(mode, conflict)
	}
	if act.graph != nil {
		if act.node >= 0 {
			node = act.node
		}
		n := &act.graph.nodes[node]
		s.Node, s.Child, s.Name = n.top, n.child, nodeNames[n.node.Type]
		if n.node.Type == nodeKernel {
			s.Name = m.function(n.words[0], s.Call.Begin).name
		}
		if at := m.madeAt(n); at != 0 {
			s.Place = at
		}
		return s
	}
	if s.Call.Kind == recording.Launch {
		s.Name = m.function(s.Call.Args[launchFunction], s.Call.Begin).name
	} else {
		s.Name = callNames[s.Call.Kind]
	}
	return s
}

var callNames = map[recording.Kind]string{recording.Copy: "copy", recording.Set: "memset", recording.Alloc: "allocation", recording.Free: "free",
	recording.Context: "end of its context", recording.HostAccess: "touch"}

var nodeNames = map[uint32]string{nodeCopy: "copy", nodeSet: "memset", nodeAlloc: "allocation", nodeFree: "free"}

func modeText(mode happens.Mode, conflict happens.Conflict) string {
	if conflict == happens.Possible {
		mode = mode.All()
	}
	switch {
	case mode&happens.Read != 0 && mode&happens.Write != 0:
		return "reads and writes"
	case mode&happens.Write != 0:
		return "writes"
	case mode&happens.Atomic != 0:
		return "updates atomically"
	}
	return "reads"
}

// fixOf says what would order a race.
func fixOf(r Race) Fix {
	f := Fix{Kind: StreamWaits, Waiting: r.Second.Stream, For: r.First.Stream, Before: r.Second.Place}
	if r.Second.Call != nil {
		f.Before = r.Second.Call.Place
	}
	switch {
	case r.Because == "programmatic":
		f.Kind, f.Before = KernelWaits, 0
		f.Text = "let " + recording.PlainName(r.Second.Name) +
			", or a kernel between the two, execute griddepcontrol.wait (cudaGridDependencySynchronize) before it accesses this"
	case r.Second.Tensor != nil:
		f.Kind = BeforeFree
		f.Text = "make " + f.Waiting + " wait for " + f.For + ", or record the tensor on " + f.For
	case r.First.Call != nil && r.First.Call == r.Second.Call:
		f.Kind, f.Before = EdgeOfGraph, r.Second.Place
		if r.First.Node == r.Second.Node {
			f.Text = "add an edge to the child graph, from node " + strconv.Itoa(r.First.Child) + " to node " + strconv.Itoa(r.Second.Child)
			break
		}
		f.Text = "add an edge to the graph, from node " + strconv.Itoa(r.First.Node) + " to node " + strconv.Itoa(r.Second.Node)
	case r.First.Stream == "the host" && r.Second.Stream == "the host":
		f.Kind = ThreadsInOrder
		f.Text = "let one thread wait for the other"
	case r.First.Stream == "the host":
		f.Kind = ThreadsInOrder
		f.Text = "let the thread of the second wait for that of the first"
	case r.First.Stream == r.Second.Stream:
		f.Kind = ThreadsInOrder
		f.Text = "let only one thread at a time submit to " + f.For
	case r.Second.Stream == "the host":
		f.Kind = HostWaits
		f.Text = "make the thread wait for " + f.For
	default:
		f.Text = "make " + f.Waiting + " wait for " + f.For
	}
	return f
}

// found returns the races of a pass that are not among those of another, and why they are none there.
func (m *machine) found(without *machine, because string) []Race {
	var races []Race
	for _, g := range m.sorted {
		if without != nil && without.groups[g.site] != nil {
			continue
		}
		r := g.finished()
		if because != "" {
			r.Because = because
		}
		r.Fix = fixOf(r)
		r.Fix.Code = codeOf(m.process, &r.Fix)
		r.locate(m.process)
		races = append(races, r)
	}
	return races
}
