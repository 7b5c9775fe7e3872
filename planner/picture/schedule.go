// The schedule that pictures show: a plan, its predicted timeline, and the dependencies that each wait enforces.

// Package picture draws graphs and plans: as SVG, as Mermaid, as a Gantt chart in text, and as a page with a timeline. The same input
// always gives the same bytes. Names are escaped, so they appear as text whatever they contain.
package picture

import (
	"errors"
	"fmt"
	"io"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/planner/proof"
)

// Schedule is a plan with its predicted timeline.
type Schedule struct {
	graph    *dag.Graph
	plan     *plan.Plan
	timeline *plan.Timeline
	path     []dag.NodeID // the critical path
	critical []bool       // by node
	level    []int32      // by node: the length of the longest chain of launches ordered before it
	waits    []wait       // in submission order
	enforced []proof.Enforcement
	deepest  int32
}

// wait is one wait of the plan: from the record after one node to the first node that it delays.
type wait struct {
	from, to             int32 // nodes; to is -1 where nothing follows the wait
	fromStream, toStream int32
	event                int32
	edges                []int32 // the dependencies that it enforces
}

// New makes a Schedule of a plan for g and its predicted timeline. It returns an error if the plan is not a schedule of g.
func New(g *dag.Graph, p *plan.Plan, t *plan.Timeline) (*Schedule, error) {
	if err := g.Check(); err != nil {
		return nil, err
	}
	if t == nil || p == nil {
		return nil, errors.New("a plan and its timeline are needed to draw a schedule")
	}
	if len(t.Nodes) != g.Len() {
		return nil, fmt.Errorf("a timeline of %d nodes for a graph of %d", len(t.Nodes), g.Len())
	}
	if err := checkTimeline(p, t); err != nil {
		return nil, err
	}
	enforced, err := proof.Explain(g, p)
	if err != nil {
		return nil, err
	}
	s := &Schedule{graph: g, plan: p, timeline: t, critical: make([]bool, g.Len()), level: make([]int32, g.Len())}
	s.path = t.CriticalPath()
	for _, i := range s.path {
		s.critical[i] = true
	}
	s.walk(enforced)
	s.enforced = enforced
	return s, nil
}

// longestUS is the longest time for which coordinates and labels do not overflow.
const longestUS = 1e15

// checkTimeline rejects timelines that the simulator could not have produced, because their numbers become coordinates and indices.
func checkTimeline(p *plan.Plan, t *plan.Timeline) error {
	if !(t.MakespanUS >= 0 && t.MakespanUS <= longestUS) {
		return fmt.Errorf("the timeline ends at %v us", t.MakespanUS)
	}
	for i := range t.Nodes {
		switch s := &t.Nodes[i]; {
		case !(s.Start >= 0 && s.Start <= s.End && s.End <= t.MakespanUS && s.Alone >= 0 && s.Alone <= longestUS):
			return fmt.Errorf("node %d of the timeline runs from %v to %v us, and %v us alone, of %v us", i, s.Start, s.End, s.Alone, t.MakespanUS)
		case s.Stream < 0 || int(s.Stream) >= len(p.Streams) || s.Device < 0 || s.By < -1 || int(s.By) >= len(t.Nodes) || s.Engine > plan.HostCopy ||
			s.Cause > plan.AfterIssue:
			return fmt.Errorf("node %d of the timeline is on stream %d of %d, device %d and %v, after node %d because of %v", i, s.Stream, len(p.Streams),
				s.Device, s.Engine, s.By, s.Cause)
		}
	}
	for k := range t.Host {
		switch s := &t.Host[k]; {
		case !(s.Start >= 0 && s.Start <= s.End && s.End <= longestUS):
			return fmt.Errorf("submission %d of the timeline takes from %v to %v us", k, s.Start, s.End)
		case s.Stream < 0 || int(s.Stream) >= len(p.Streams) || s.Op < 0 || int(s.Op) >= len(p.Streams[s.Stream].Ops):
			return fmt.Errorf("submission %d of the timeline is of op %d of stream %d, which the plan does not have", k, s.Op, s.Stream)
		}
	}
	return nil
}

// drawable returns an error if the schedule was not made by New or the writer is nil.
func (s *Schedule) drawable(w io.Writer) error {
	if s == nil || s.graph == nil {
		return errors.New("there is no schedule to draw; make it with New")
	}
	if w == nil {
		return words.ErrNoWriter
	}
	return nil
}

// walk goes through the ops as they are submitted: it finds every wait and gives each node its level.
func (s *Schedule) walk(enforced []proof.Enforcement) {
	p := s.plan
	number := make([]int32, len(p.Order)) // by op: its wait
	cursor := make([]int32, len(p.Streams))
	reached := make([]int32, len(p.Streams))
	recorded := make([]int32, p.Events)
	stream := make([]int32, s.graph.Len())
	open := make([][]int32, len(p.Streams)) // waits since the stream's last launch
	for at, k := range p.Order {
		op := p.Streams[k].Ops[cursor[k]]
		cursor[k]++
		switch op.Kind {
		case plan.Launch:
			stream[op.Node] = k
			s.level[op.Node] = reached[k]
			s.deepest = max(s.deepest, reached[k])
			reached[k]++
			for _, w := range open[k] {
				s.waits[w].to = int32(op.Node)
			}
			open[k] = open[k][:0]
		case plan.Record:
			recorded[op.Event] = reached[k]
		case plan.Wait:
			reached[k] = max(reached[k], recorded[op.Event])
			number[at] = int32(len(s.waits))
			open[k] = append(open[k], int32(len(s.waits)))
			s.waits = append(s.waits, wait{from: int32(op.Node), to: -1, fromStream: stream[op.Node], toStream: k, event: op.Event})
		}
	}
	// A wait is explained by the dependencies that it enforces alone. If there are none, by those that it helps to enforce.
	for _, how := range []proof.How{proof.ByWait, proof.ByEarlier} {
		for i := range enforced {
			if enforced[i].How != how {
				continue
			}
			for _, link := range enforced[i].Waits {
				w := &s.waits[number[link.Op]]
				if how == proof.ByWait || len(w.edges) == 0 {
					w.edges = append(w.edges, enforced[i].Edge)
				}
			}
		}
	}
}

// maxReasons is how many dependencies the text of a wait names.
const maxReasons = 4

// reason says which dependencies a wait enforces.
func (s *Schedule) reason(w *wait) string {
	if len(w.edges) == 0 {
		return "keeps buffers that share bytes apart"
	}
	text := ""
	for k, e := range w.edges {
		if k == maxReasons {
			text += fmt.Sprintf(" and %d more", len(w.edges)-k)
			break
		}
		if k > 0 {
			text += ", "
		}
		text += s.graph.EdgeText(s.graph.Edges()[e])
	}
	return text
}

// waitText describes a wait.
func (s *Schedule) waitText(w *wait) string {
	text := fmt.Sprintf("event %d: recorded after %s (stream %d), stream %d waits", w.event, s.graph.Nodes[w.from].Name, w.fromStream, w.toStream)
	if w.to >= 0 {
		text += " before " + s.graph.Nodes[w.to].Name
	}
	return text + "; " + s.reason(w)
}

// streamText names a stream.
func (s *Schedule) streamText(k int) string {
	stream := &s.plan.Streams[k]
	text := streamName(k)
	if s.plan.Banded() {
		text += fmt.Sprintf(", device %d", stream.Device)
	}
	if stream.Priority != dag.Normal {
		text += fmt.Sprintf(", %v", stream.Priority)
	}
	return text
}

// streamLabel names a stream where its device is known.
func (s *Schedule) streamLabel(k int) string {
	text := streamName(k)
	if priority := s.plan.Streams[k].Priority; priority != dag.Normal {
		text += fmt.Sprintf(", %v", priority)
	}
	return text
}

func streamName(k int) string { return fmt.Sprintf("stream %d", k) }

// summary is a schedule in one line.
func (s *Schedule) summary() string {
	text := words.Count(s.graph.Len(), "node", "nodes") + " on " + words.Count(len(s.plan.Streams), "stream",
		"streams") + ", " + words.Count(len(s.waits), "wait", "waits")
	text += "; predicted " + words.Time(s.timeline.MakespanUS)
	if s.timeline.Machine != "" {
		text += " on " + s.timeline.Machine
	}
	if bound := s.plan.Stats.LowerBoundUS; bound > 0 {
		text += "; lower bound " + words.Time(bound)
	}
	return text
}

// title is a schedule's name and strategy.
func (s *Schedule) title() string {
	if s.plan.Strategy == "" {
		return s.graph.Name
	}
	return s.graph.Name + ": " + s.plan.Strategy
}

// nodeTitle describes a node, line by line.
func (s *Schedule) nodeTitle(i int32) string {
	span := &s.timeline.Nodes[i]
	text := s.graph.Nodes[i].Name + "\n" + plan.Action(s.graph, dag.NodeID(i))
	if bytes := s.graph.Nodes[i].Work.Bytes; bytes > 0 {
		text += "\n" + words.Bytes(bytes)
	}
	text += fmt.Sprintf("\npredicted %s, from %s to %s on stream %d", words.Time(span.End-span.Start), words.Time(span.Start), words.Time(span.End), span.Stream)
	text += "\n" + s.causeText(span)
	if s.critical[i] {
		text += "\n" + criticalMark + " on the critical path"
	}
	return text
}

// causeText says what a node waited for before it started.
func (s *Schedule) causeText(span *plan.Span) string {
	by := ""
	if span.By >= 0 {
		by = s.graph.Nodes[span.By].Name
	}
	switch {
	case span.Cause == plan.NoCause:
		return "started at once"
	case span.Cause == plan.AfterHost && by == "":
		return "started as soon as the host had submitted it"
	case by == "":
		return "waited for: " + span.Cause.String()
	}
	return fmt.Sprintf("waited for %s (%v)", by, span.Cause)
}
