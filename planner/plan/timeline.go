// The timeline of a predicted run: when and where each node ran, and what it waited for. Made by Simulate.

package plan

import (
	"cmp"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
)

// Cause is the last thing that the start of a node waited for.
type Cause uint8

const (
	NoCause    Cause = iota // nothing: it started immediately
	AfterOrder              // the node before it on its stream
	AfterWait               // a node of another stream, through a wait
	AfterQueue              // its copy engine, which was busy with another stream's copy
	AfterHost               // the host, which had not submitted it yet; By is the last pageable copy that the host waited for, if any
	AfterIssue              // in a graph: the device, which starts one node at a time
)

var causeNames = []string{"start", "stream order", "wait", "engine", "host", "issue"}

func (c Cause) String() string { return words.Name(c, "Cause", causeNames) }

// Span is one node on the timeline, in microseconds from the start of submission.
type Span struct {
	Start, End float64
	Alone      float64 // duration when nothing else runs; End-Start is longer if the node shared the multiprocessors
	Stream     int32
	Device     int32
	By         dag.NodeID // the node that Cause refers to, -1 for none
	Engine     Engine
	Cause      Cause
}

// HostSpan is the host's submission of one op.
type HostSpan struct {
	Start, End float64
	Stream     int32
	Op         int32 // index into the stream's ops
}

// Timeline is a predicted run of a plan.
type Timeline struct {
	Machine    string
	Graph      bool       // replayed as one CUDA graph, else as streams
	MakespanUS float64    // from the start of submission to the end of the last node
	Nodes      []Span     // by node
	Host       []HostSpan // in submission order; empty if submission takes no time
}

// CriticalPath returns the chain of nodes that determines the makespan, in time order: the Cause of each node names the one before
// it. The first node of the chain waited for no other.
func (t *Timeline) CriticalPath() []dag.NodeID {
	if t == nil {
		return nil
	}
	last := dag.NodeID(-1)
	for i := range t.Nodes {
		if last < 0 || t.Nodes[i].End > t.Nodes[last].End {
			last = dag.NodeID(i)
		}
	}
	var path []dag.NodeID
	for i := last; i >= 0 && int(i) < len(t.Nodes) && len(path) < len(t.Nodes); i = t.Nodes[i].By {
		path = append(path, i)
	}
	slices.Reverse(path)
	return path
}

// Busy is the use of one engine: US is how long it had at least one node to run, LoadUS what those nodes would take one at a time.
type Busy struct {
	Device int32
	Engine Engine
	Nodes  int
	US     float64
	LoadUS float64
}

// Gap is a period in which an engine was idle before its next node.
type Gap struct {
	Device     int32
	Engine     Engine
	Start, End float64
	Next       dag.NodeID // the node that ended the gap; its Cause says what it waited for
}

// Engines returns the use of each engine that ran anything, by device and engine, and the gaps of at least atLeast microseconds before
// and between its nodes, in the same order and by time.
func (t *Timeline) Engines(atLeast float64) ([]Busy, []Gap) {
	if t == nil {
		return nil, nil
	}
	order := make([]int32, len(t.Nodes))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		x, y := &t.Nodes[a], &t.Nodes[b]
		return cmp.Or(cmp.Compare(x.Device, y.Device), cmp.Compare(x.Engine, y.Engine), cmp.Compare(x.Start, y.Start), cmp.Compare(a, b))
	})
	var busy []Busy
	var gaps []Gap
	until := 0.0
	for k, i := range order {
		s := &t.Nodes[i]
		if k == 0 || s.Device != busy[len(busy)-1].Device || s.Engine != busy[len(busy)-1].Engine {
			busy = append(busy, Busy{Device: s.Device, Engine: s.Engine})
			until = 0
		}
		b := &busy[len(busy)-1]
		if idle := s.Start - until; idle > 0 && idle >= atLeast {
			gaps = append(gaps, Gap{s.Device, s.Engine, until, s.Start, dag.NodeID(i)})
		}
		b.Nodes++
		b.LoadUS += s.Alone
		b.US += max(0, s.End-max(s.Start, until))
		until = max(until, s.End)
	}
	return busy, gaps
}
