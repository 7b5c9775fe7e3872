// What binds a schedule: compares how long a run took with what its longest chain, each engine and the host need at least.

package analysis

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/planner/proof"
)

// Analysis explains a timeline. Its lists name nodes, so that it can be read without the graph.
type Analysis struct {
	MakespanUS float64      `json:"makespan_us"`     // from the start of the first node to the end of the last
	Binds      Bound        `json:"binds"`           // what the makespan is closest to
	Bounds     []Bound      `json:"bounds"`          // all that were looked at, the closest first
	Path       []Step       `json:"critical_path"`   // in order of time
	Waited     []Waited     `json:"waited"`          // what the nodes of the critical path waited for after the node before, the longest first
	Engines    []EngineUse  `json:"engines"`         // those that ran anything
	Idle       []Idle       `json:"idle"`            // the longest first, at most MostListed
	Waits      []Held       `json:"waits"`           // those that held their stream, the longest first, at most MostListed
	WaitsHeld  WaitsHeld    `json:"waits_held"`      // how many waits held, and for how long in all
	Memory     []MemoryUsed `json:"memory"`          // by device
	Guess      string       `json:"guess,omitempty"` // of a prediction: which durations are unknown, so that nothing follows from it
}

// afterLast is the cause of idle time after an engine's last node.
const afterLast = "end"

// MostListed is how many idle times and waits an analysis lists.
const MostListed = 200

// The kinds of Bound.
const (
	Submission = "submission" // the host takes that long to submit all ops
	Engine     = "engine"     // an engine is busy for that long
	Cores      = "cores"      // the cores of a CPU need at least that long for all nodes
	Chain      = "chain"      // nodes that depend on each other take that long, one after the other
	Schedule   = "schedule"   // none of the others is close: streams, order and waits take the rest
)

// Bound is a time that the run cannot be shorter than, unless what it names changes.
type Bound struct {
	What   string   `json:"what"`             // submission, engine, cores, chain or schedule
	US     float64  `json:"us"`               // the time
	Part   float64  `json:"part"`             // of the makespan
	Device int32    `json:"device"`           // of an engine
	Engine string   `json:"engine,omitempty"` // its name
	Nodes  []string `json:"nodes,omitempty"`  // of a chain
	Text   string   `json:"text"`             // the same in a sentence
}

// Step is one node of the critical path.
type Step struct {
	Node     string  `json:"node"`      // its name
	Start    float64 `json:"start_us"`  // from the start of the first node
	End      float64 `json:"end_us"`    // from the start of the first node
	WaitedUS float64 `json:"waited_us"` // since the end of the step before
	Cause    string  `json:"cause"`     // what it waited for: start (nothing), stream order, wait, engine, host or issue
}

// Waited is time on the critical path during which no node of it ran.
type Waited struct {
	Cause string  `json:"cause"` // as of a step
	US    float64 `json:"us"`    // the sum
}

// EngineUse is the use of one engine during a run.
type EngineUse struct {
	Device int32    `json:"device"`  // its number
	Engine string   `json:"engine"`  // compute, h2d, d2h, peer, d2d or host
	Nodes  int      `json:"nodes"`   // that it ran
	BusyUS float64  `json:"busy_us"` // while it ran at least one
	Part   float64  `json:"part"`    // of the makespan
	Idle   []Waited `json:"idle"`    // by what the node that ended the idle time had waited for, the longest first; "end" is after the last node
}

// Idle is a time in which an engine had nothing to run before its next node.
type Idle struct {
	Device int32   `json:"device"`       // its number
	Engine string  `json:"engine"`       // its name
	Start  float64 `json:"start_us"`     // the end of the node before
	End    float64 `json:"end_us"`       // the start of the next node
	Next   string  `json:"next"`         // the node that ended it
	Cause  string  `json:"cause"`        // what Next waited for
	By     string  `json:"by,omitempty"` // the node that it waited for
}

// Held is a wait that held its stream back.
type Held struct {
	Event  int32   `json:"event"`  // that was waited for
	From   string  `json:"from"`   // the node that was waited for
	Before string  `json:"before"` // the first node after the wait
	Stream int32   `json:"stream"` // the stream that waited
	US     float64 `json:"us"`     // from when the stream could have gone on without it
}

// WaitsHeld counts waits.
type WaitsHeld struct {
	Waits int     `json:"waits"` // of the plan
	Held  int     `json:"held"`  // those that held their stream
	US    float64 `json:"us"`    // the sum over all that held
}

// MemoryUsed is the memory of one device.
type MemoryUsed struct {
	Device int32 `json:"device"`      // its number
	Peak   int64 `json:"peak_bytes"`  // alive at one time
	Arena  int64 `json:"arena_bytes"` // what the layout takes
}

// Run is what is known of a run besides its timeline.
type Run struct {
	Machine  *model.Machine // nil: an H200
	SubmitUS float64        // measured time of submission; 0 if it was predicted, or the run was a graph
	HelpedUS []float64      // by node: what other cores of a CPU worked on it; nil if unknown
	Guess    string         // if the timeline is a guess: which durations are unknown, and the way out, as [plan.Plan.GuessText] says it
}

// near is how much closer to the makespan a bound must be to come before one that says more.
const near = 0.02

// enough is the part of the makespan that a bound must reach to be called what binds.
const enough = 0.5

// Of explains a timeline of a plan, made by Measured or by a simulation.
func Of(g *dag.Graph, p *plan.Plan, t *plan.Timeline, run Run) (*Analysis, error) {
	if err := proof.CheckOps(g, p); err != nil {
		return nil, err
	}
	if t == nil || len(t.Nodes) != g.Len() {
		return nil, errors.New("the timeline is not one of this graph")
	}
	if run.HelpedUS != nil && len(run.HelpedUS) != g.Len() {
		return nil, fmt.Errorf("what other cores did for %d nodes, for a graph of %d", len(run.HelpedUS), g.Len())
	}
	for i := range t.Nodes {
		if s := &t.Nodes[i]; !(s.Start >= 0 && s.Start <= s.End && s.End <= longestUS) || s.By < -1 || int(s.By) >= g.Len() {
			return nil, fmt.Errorf("node %q ran from %v to %v us after node %d", g.Nodes[i].Name, s.Start, s.End, s.By)
		}
	}
	a := &Analysis{MakespanUS: t.MakespanUS, Guess: run.Guess, Path: []Step{}, Memory: []MemoryUsed{}}
	a.path(g, t)
	a.engines(g, t)
	a.waits(g, p, t)
	for _, o := range model.OccupancyOf(g, p, t) {
		m := MemoryUsed{Device: o.Device, Arena: o.Arena}
		for _, step := range o.Steps {
			m.Peak = max(m.Peak, step.Bytes)
		}
		a.Memory = append(a.Memory, m)
	}
	a.bounds(g, t, run)
	return a, nil
}

// path follows the causes from the node that ended last back to the first.
func (a *Analysis) path(g *dag.Graph, t *plan.Timeline) {
	waited := map[plan.Cause]float64{}
	before := 0.0
	for _, i := range t.CriticalPath() {
		s := &t.Nodes[i]
		step := Step{Node: g.Nodes[i].Name, Start: s.Start, End: s.End, WaitedUS: max(0, s.Start-before), Cause: s.Cause.String()}
		waited[s.Cause] += step.WaitedUS
		before = s.End
		a.Path = append(a.Path, step)
	}
	a.Waited = sorted(waited, 0)
}

// sorted lists times by cause, the longest first. What is left over after the last node, if anything, is last.
func sorted(by map[plan.Cause]float64, end float64) []Waited {
	list := []Waited{}
	for c := plan.NoCause; c <= plan.AfterIssue; c++ {
		if by[c] > 0 {
			list = append(list, Waited{c.String(), by[c]})
		}
	}
	slices.SortStableFunc(list, func(x, y Waited) int { return cmp.Compare(y.US, x.US) })
	if end > 0 {
		list = append(list, Waited{afterLast, end})
	}
	return list
}

func (a *Analysis) engines(g *dag.Graph, t *plan.Timeline) {
	busy, gaps := t.Engines(0)
	a.Engines, a.Idle = []EngineUse{}, []Idle{}
	for _, b := range busy {
		by := map[plan.Cause]float64{}
		last := 0.0
		for len(gaps) > 0 && gaps[0].Device == b.Device && gaps[0].Engine == b.Engine {
			gap := gaps[0]
			gaps = gaps[1:]
			next := &t.Nodes[gap.Next]
			by[next.Cause] += gap.End - gap.Start
			idle := Idle{Device: gap.Device, Engine: gap.Engine.String(), Start: gap.Start, End: gap.End, Next: g.Nodes[gap.Next].Name, Cause: next.Cause.String()}
			if next.By >= 0 {
				idle.By = g.Nodes[next.By].Name
			}
			a.Idle = append(a.Idle, idle)
		}
		for i := range t.Nodes {
			if s := &t.Nodes[i]; s.Device == b.Device && s.Engine == b.Engine {
				last = max(last, s.End)
			}
		}
		a.Engines = append(a.Engines, EngineUse{Device: b.Device, Engine: b.Engine.String(), Nodes: b.Nodes, BusyUS: b.US, Part: part(b.US, t.MakespanUS),
			Idle: sorted(by, t.MakespanUS-last)})
	}
	slices.SortStableFunc(a.Idle, func(x, y Idle) int { return cmp.Compare(y.End-y.Start, x.End-x.Start) })
	a.Idle = a.Idle[:min(len(a.Idle), MostListed)]
}

func part(us, of float64) float64 {
	if of <= 0 {
		return 0
	}
	return us / of
}

// HeldUS returns for each wait of a plan, in submission order, how long it held its stream: from when the stream could have gone on without it
// until its event.
func HeldUS(g *dag.Graph, p *plan.Plan, t *plan.Timeline) []float64 {
	if proof.CheckOps(g, p) != nil || t == nil || len(t.Nodes) != g.Len() {
		return nil
	}
	held := []float64{}
	forEachWait(p, t, func(_ int32, _ *plan.Op, _ dag.NodeID, us float64) { held = append(held, us) })
	return held
}

// forEachWait calls f for each wait in submission order, with its stream, the first node after it (-1 for none) and how long it held.
func forEachWait(p *plan.Plan, t *plan.Timeline, f func(stream int32, op *plan.Op, before dag.NodeID, us float64)) {
	ready, recorded := make([]float64, len(p.Streams)), make([]float64, p.Events)
	cursor := make([]int32, len(p.Streams))
	following := make([][]dag.NodeID, len(p.Streams)) // by op: the first launch after it
	for k := range p.Streams {
		ops := p.Streams[k].Ops
		following[k] = make([]dag.NodeID, len(ops))
		next := dag.NodeID(-1)
		for at := len(ops) - 1; at >= 0; at-- {
			following[k][at] = next
			if ops[at].Kind == plan.Launch {
				next = ops[at].Node
			}
		}
	}
	for _, k := range p.Order {
		at := cursor[k]
		op := &p.Streams[k].Ops[at]
		cursor[k]++
		switch op.Kind {
		case plan.Launch:
			ready[k] = t.Nodes[op.Node].End
		case plan.Record:
			recorded[op.Event] = ready[k]
		case plan.Wait:
			f(k, op, following[k][at], max(0, recorded[op.Event]-ready[k]))
			ready[k] = max(ready[k], recorded[op.Event])
		}
	}
}

func (a *Analysis) waits(g *dag.Graph, p *plan.Plan, t *plan.Timeline) {
	a.Waits = []Held{}
	forEachWait(p, t, func(stream int32, op *plan.Op, before dag.NodeID, us float64) {
		a.WaitsHeld.Waits++
		if us <= 0 {
			return
		}
		a.WaitsHeld.Held++
		a.WaitsHeld.US += us
		h := Held{Event: op.Event, From: plan.NodeName(g, op.Node), Stream: stream, US: us}
		if before >= 0 {
			h.Before = g.Nodes[before].Name
		}
		a.Waits = append(a.Waits, h)
	})
	slices.SortStableFunc(a.Waits, func(x, y Held) int { return cmp.Compare(y.US, x.US) })
	a.Waits = a.Waits[:min(len(a.Waits), MostListed)]
}

// bounds fills in Bounds and Binds.
func (a *Analysis) bounds(g *dag.Graph, t *plan.Timeline, run Run) {
	var all []Bound
	us, names := chain(g, t)
	if len(names) == 0 {
		a.Bounds, a.Binds = []Bound{}, Bound{What: Schedule, Text: "there is nothing to run"}
		return
	}
	all = append(all, Bound{What: Chain, US: us, Nodes: names})
	m := run.Machine
	if m == nil {
		m = model.H200()
	}
	filled := map[int32]float64{} // by device: how long its kernels, or on a CPU everything, would need all of it
	for i := range t.Nodes {
		span := &t.Nodes[i]
		us := span.End - span.Start
		switch {
		case m.Cores > 0 && run.HelpedUS != nil:
			filled[0] += (us + max(0, run.HelpedUS[i])) / float64(m.Cores)
		case m.Cores > 0:
			filled[0] += us * m.Share(&g.Nodes[i])
		case span.Engine == plan.Compute:
			filled[span.Device] += us * m.Share(&g.Nodes[i])
		}
	}
	if m.Cores > 0 {
		all = append(all, Bound{What: Cores, US: min(filled[0], t.MakespanUS)})
	} else {
		for _, e := range a.Engines {
			b := Bound{What: Engine, US: e.BusyUS, Device: e.Device, Engine: e.Engine}
			if e.Engine == plan.Compute.String() { // kernels that do not fill the device do not keep others from running
				b.US = min(b.US, filled[e.Device])
			}
			all = append(all, b)
		}
	}
	if !t.Graph {
		submit := run.SubmitUS
		for k := range t.Host {
			submit = max(submit, t.Host[k].End)
		}
		if submit > 0 {
			all = append(all, Bound{What: Submission, US: submit})
		}
	}
	for k := range all {
		all[k].Part = part(all[k].US, t.MakespanUS)
		all[k].Text = a.boundText(&all[k], len(g.Nodes))
	}
	// A chain says more than an engine that is as close, and an engine more than submission.
	slices.SortStableFunc(all, func(x, y Bound) int { return cmp.Compare(y.US, x.US) })
	first := 0
	rank := map[string]int{Chain: 0, Engine: 1, Cores: 1, Submission: 2}
	for k := range all {
		if all[0].US-all[k].US <= near*t.MakespanUS && rank[all[k].What] < rank[all[first].What] {
			first = k
		}
	}
	best := all[first]
	a.Bounds = slices.Insert(slices.Delete(all, first, first+1), 0, best)
	a.Binds = best
	if best.Part < enough && t.MakespanUS > 0 {
		a.Binds = Bound{What: Schedule, US: t.MakespanUS, Part: 1, Text: a.scheduleText(&best)}
	}
}

// chain is the longest chain of nodes that depend on each other, by how long they ran.
func chain(g *dag.Graph, t *plan.Timeline) (us float64, names []string) {
	n := g.Len() + len(g.Joins())
	end, before := make([]float64, n), make([]dag.NodeID, n)
	last := dag.NodeID(-1)
	for _, i := range g.Sequence() {
		before[i] = -1
		for _, q := range g.Preds(i) {
			if before[i] < 0 || end[q] > end[before[i]] {
				before[i] = q
			}
		}
		if before[i] >= 0 {
			end[i] = end[before[i]]
		}
		if g.IsJoin(i) {
			continue
		}
		end[i] += t.Nodes[i].End - t.Nodes[i].Start
		if last < 0 || end[i] > end[last] {
			last = i
		}
	}
	if last < 0 {
		return 0, nil
	}
	for i := last; i >= 0; i = before[i] {
		if !g.IsJoin(i) {
			names = append(names, g.Nodes[i].Name)
		}
	}
	slices.Reverse(names)
	return end[last], names
}

// boundText says what a bound is.
func (a *Analysis) boundText(b *Bound, nodes int) string {
	of := fmt.Sprintf("%s of %s (%s)", words.Time(b.US), words.Time(a.MakespanUS), percent(b.Part))
	switch b.What {
	case Chain:
		if len(b.Nodes) == 1 {
			return fmt.Sprintf("%s alone takes %s", b.Nodes[0], of)
		}
		return fmt.Sprintf("a chain of %s takes %s: %s", words.Count(len(b.Nodes), "node", "nodes"), of, chainText(b.Nodes))
	case Engine:
		if b.Engine == plan.Compute.String() {
			return fmt.Sprintf("kernels fill engine %s%s for %s", b.Engine, a.deviceText(b.Device), of)
		}
		return fmt.Sprintf("engine %s%s is busy for %s", b.Engine, a.deviceText(b.Device), of)
	case Cores:
		return "the work needs all cores for " + of
	}
	return fmt.Sprintf("the host takes %s to submit %s", of, words.Count(nodes, "node", "nodes"))
}

// deviceText names a device where there are several.
func (a *Analysis) deviceText(device int32) string {
	for _, e := range a.Engines {
		if e.Device != 0 {
			return fmt.Sprintf(" of device %d", device)
		}
	}
	return ""
}

// chainText names the nodes of a chain, of a long one its ends.
func chainText(names []string) string {
	if len(names) <= 5 {
		return join(names)
	}
	return join(names[:2]) + " -> ... -> " + join(names[len(names)-2:])
}

func join(names []string) string {
	text := names[0]
	for _, name := range names[1:] {
		text += " -> " + name
	}
	return text
}

// scheduleText says what takes the time if nothing binds alone.
func (a *Analysis) scheduleText(closest *Bound) string {
	text := "nothing binds it alone; closest: " + closest.Text
	if len(a.Waited) > 0 {
		text += fmt.Sprintf("; the critical path waited %s %s", words.Time(a.Waited[0].US), betweenText(a.Waited[0].Cause))
	}
	return text
}

// betweenText says what the critical path waited for between two of its nodes.
func betweenText(cause string) string {
	switch cause {
	case plan.AfterOrder.String():
		return "from one node of a stream to the next"
	case plan.AfterWait.String():
		return "from a node of another stream to the next"
	case plan.AfterQueue.String():
		return "until a busy engine took the next node"
	case plan.AfterHost.String():
		return "for the host"
	case plan.AfterIssue.String():
		return "until the device issued the next node"
	}
	return "before the first node"
}

// idleText says what the nodes that ended idle times of an engine had waited for.
func idleText(cause string) string {
	switch cause {
	case plan.AfterOrder.String():
		return "for the node before on a stream"
	case plan.AfterWait.String():
		return "for a node of another stream"
	case plan.AfterQueue.String():
		return "for a busy engine"
	case plan.AfterHost.String():
		return "for the host"
	case plan.AfterIssue.String():
		return "until the device issued the next node"
	case afterLast:
		return "after its last node"
	}
	return "before its first node"
}

func percent(part float64) string { return fmt.Sprintf("%.0f %%", 100*part) }

// advice is what to do about what binds.
func advice(b *Bound) string {
	switch b.What {
	case Submission:
		return "run it as a graph (--graph), or give each node more to do"
	case Engine:
		if b.Engine == plan.Compute.String() {
			return "only faster kernels help"
		}
		return "only fewer bytes, or copies on another engine, help"
	case Cores:
		return "only faster kernels help"
	case Chain:
		if len(b.Nodes) > 1 {
			return "only a shorter chain helps: split its nodes so that their parts overlap"
		}
		return "only a faster node helps, or one that is split"
	}
	return "more streams or another order may help: compare them with dagrun tune"
}

// Lines explains the run in a few lines of text, what binds it first.
func (a *Analysis) Lines() []string {
	if a == nil || len(a.Path) == 0 {
		return nil
	}
	if a.Guess != "" {
		return []string{"a guess: " + a.Guess}
	}
	lines := []string{fmt.Sprintf("bound by %s: %s; %s", boundWord(&a.Binds), a.Binds.Text, advice(&a.Binds))}
	ran := 0.0
	for _, s := range a.Path {
		ran += s.End - s.Start
	}
	lines = append(lines, fmt.Sprintf("critical path: %s, which ran for %s", words.Count(len(a.Path), "node", "nodes"),
		words.Time(ran))+waitedText(" and waited", a.Waited, betweenText))
	for _, e := range a.Engines {
		lines = append(lines, fmt.Sprintf("engine %s%s: busy %s", e.Engine, a.deviceText(e.Device), percent(e.Part))+waitedText("; idle", e.Idle, idleText))
	}
	if a.WaitsHeld.Waits > 0 {
		line := fmt.Sprintf("waits: %d of %d held a stream", a.WaitsHeld.Held, a.WaitsHeld.Waits)
		if len(a.Waits) > 0 {
			w := &a.Waits[0]
			line += fmt.Sprintf(", %s in all; longest: stream %d waited %s for %s", words.Time(a.WaitsHeld.US), w.Stream, words.Time(w.US), w.From)
		}
		lines = append(lines, line)
	}
	for _, m := range a.Memory {
		lines = append(lines, fmt.Sprintf("memory: at most %s of device %d alive, in %s", words.Bytes(m.Peak), m.Device, words.Bytes(m.Arena)))
	}
	return lines
}

// waitedText lists what was waited for, after a verb; nothing if nothing was.
func waitedText(verb string, all []Waited, why func(cause string) string) string {
	text := ""
	for k, w := range all {
		if k > 0 {
			verb = ","
		}
		text += verb + " " + words.Time(w.US) + " " + why(w.Cause)
	}
	return text
}

// boundWord is what binds, in a word or two.
func boundWord(b *Bound) string {
	switch b.What {
	case Engine:
		return "an engine"
	case Cores:
		return "the cores"
	case Chain:
		return "a chain"
	case Schedule:
		return "the schedule"
	}
	return "submission"
}
