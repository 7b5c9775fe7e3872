// Writes a plan as JSON, the stable form for caching, comparing and reviewing plans.

package plan

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"unicode/utf8"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/outline"
	"github.com/dagrun/dagrun/internal/jsontext"
	"github.com/dagrun/dagrun/internal/words"
)

// planVersion is the version of the JSON form.
const planVersion = 1

// EncodeJSON writes the plan of g as JSON, one op per line. The same plan gives the same bytes.
func (p *Plan) EncodeJSON(w io.Writer, g *dag.Graph) error {
	if w == nil {
		return words.ErrNoWriter
	}
	out := bufio.NewWriterSize(w, 1<<16)
	if err := p.encode(out, g); err != nil {
		return err
	}
	out.WriteByte('\n')
	return out.Flush()
}

func (p *Plan) encode(out *bufio.Writer, g *dag.Graph) error {
	if err := p.checkNodes(g); err != nil {
		return err
	}
	e := &planEncoder{Writer: out, g: g}
	e.names = make([]int32, 1, g.Len()+1)
	for i := range g.Nodes {
		e.quoted = jsontext.AppendString(e.quoted, g.Nodes[i].Name)
		e.names = append(e.names, int32(len(e.quoted)))
	}
	if err := e.check(p); err != nil {
		return err
	}
	if err := e.takeWork(p); err != nil {
		return err
	}
	return e.plan(p)
}

// check returns an error for plans that cannot be written as JSON.
func (e *planEncoder) check(p *Plan) error {
	if len(e.quoted) > math.MaxInt32 {
		return fmt.Errorf("plan %q: the names of its nodes are too long to write", p.Name)
	}
	for k := range p.Memory {
		if b := p.Memory[k].Buffer; b < 0 || int(b) >= len(e.g.Buffers) {
			return fmt.Errorf("%w: memory entry %d places buffer %d, but the graph has %d buffers", ErrPlanShape, k, b, len(e.g.Buffers))
		}
	}
	for k, b := range p.Kept {
		if b < 0 || int(b) >= len(e.g.Buffers) {
			return fmt.Errorf("%w: kept entry %d is buffer %d, but the graph has %d buffers", ErrPlanShape, k, b, len(e.g.Buffers))
		}
	}
	if n := len(p.Costs); n > 0 && n != e.g.Len() {
		return fmt.Errorf("%w: costs for %d nodes, but the graph has %d", ErrPlanShape, n, e.g.Len())
	}
	for i, c := range p.Costs {
		if !(c.US >= 0) || math.IsInf(c.US, 0) || int(c.Source) >= len(costSources) || int(c.Passes.Source) >= len(passSources) {
			return fmt.Errorf("%w: node %q has a cost of %v us, source %v", ErrPlanShape, e.g.Nodes[i].Name, c.US, c.Source)
		}
	}
	for _, us := range []float64{p.Stats.MakespanUS, p.Stats.LowerBoundUS, p.Stats.CriticalPathUS} {
		if math.IsNaN(us) || math.IsInf(us, 0) {
			return fmt.Errorf("%w: a predicted time is %v", ErrPlanShape, us)
		}
	}
	for _, s := range []string{p.Name, p.GraphHash, p.Work, p.Strategy, p.Requested, p.Machine, p.Note, p.Stats.LowerBoundBy} {
		if !utf8.ValidString(s) {
			return fmt.Errorf("%w: %q is not valid UTF-8", ErrPlanShape, s)
		}
	}
	if s := p.Spread; s != nil && (!utf8.ValidString(s.Original) || !utf8.ValidString(s.Policy) || !utf8.ValidString(s.Requested) ||
		!(s.Stats.OneUS >= 0) || math.IsInf(s.Stats.OneUS, 0)) {
		return fmt.Errorf("%w: its spread has a name that is not valid UTF-8, or takes %v us", ErrPlanShape, s.Stats.OneUS)
	}
	for i := range e.g.Nodes {
		if !utf8.ValidString(e.g.Nodes[i].Name) {
			return fmt.Errorf("node %d: its name %q is not valid UTF-8", i, e.g.Nodes[i].Name)
		}
	}
	for i := range e.g.Buffers {
		if !utf8.ValidString(e.g.Buffers[i].Name) {
			return fmt.Errorf("buffer %d: its name %q is not valid UTF-8", i, e.g.Buffers[i].Name)
		}
	}
	return nil
}

// checkNodes returns an error for ops that cannot be written by name.
func (p *Plan) checkNodes(g *dag.Graph) error {
	if p == nil {
		return fmt.Errorf("%w: there is no plan", ErrPlanShape)
	}
	if err := g.Check(); err != nil {
		return err
	}
	if s := p.Spread; s != nil && (s.Devices < 0 || s.Devices > dag.MostDevices) {
		return fmt.Errorf("%w: the graph is spread over %d devices, and there can be from 1 to %d", ErrPlanShape, s.Devices, dag.MostDevices)
	}
	for k := range p.Streams {
		for i := range p.Streams[k].Ops {
			switch op := &p.Streams[k].Ops[i]; {
			case op.Kind > Wait:
				return fmt.Errorf("%w: stream %d, op %d is of kind %d", ErrPlanShape, k, i, op.Kind)
			case op.Node < 0 || int(op.Node) >= g.Len():
				return fmt.Errorf("%w: stream %d, op %d is of node %d, but the graph has %d nodes", ErrPlanShape, k, i, op.Node, g.Len())
			}
		}
	}
	return nil
}

func (e *planEncoder) plan(p *Plan) error {
	e.WriteString("{\n  \"version\": ")
	e.int(planVersion)
	e.field("name", p.Name)
	hash := p.GraphHash
	if hash == "" {
		hash = e.g.Hash()
	}
	e.field("graph", hash)
	work := p.Work
	if work == "" {
		work = e.g.WorkHash()
	}
	e.field("work", work)
	e.work()
	e.spread(p.Spread)
	e.field("strategy", p.Strategy)
	e.field("requested_strategy", p.Requested)
	e.field("machine", p.Machine)
	if p.Note != "" {
		e.field("note", p.Note)
	}
	e.WriteString(",\n  \"streams\": [")
	for k := range p.Streams {
		s := &p.Streams[k]
		e.item(k, "    ")
		e.WriteString(`{"id": `)
		e.int(int64(k))
		e.WriteString(`, "device": `)
		e.int(int64(s.Device))
		e.WriteString(`, "priority": "`)
		e.WriteString(s.Priority.String())
		e.WriteString(`", "ops": [`)
		for i := range s.Ops {
			e.item(i, "      ")
			e.op(&s.Ops[i])
		}
		if len(s.Ops) > 0 {
			e.WriteString("\n    ")
		}
		e.WriteString("]}")
	}
	e.close(len(p.Streams))
	e.WriteString(",\n  \"order\": [")
	for k, s := range p.Order {
		if k > 0 {
			e.WriteString(", ")
		}
		e.int(int64(s))
	}
	e.WriteString("],\n  \"edges\": [")
	edges := e.g.Edges()
	for k := range edges {
		e.item(k, "    ")
		e.edge(&edges[k])
	}
	e.close(len(edges))
	e.WriteString(",\n  \"memory\": [")
	for k := range p.Memory {
		m := &p.Memory[k]
		e.item(k, "    ")
		e.WriteString(`{"buffer": `)
		e.string(e.g.Buffers[m.Buffer].Name)
		e.WriteString(`, "device": `)
		e.int(int64(m.Device))
		e.WriteString(`, "offset": `)
		e.int(m.Offset)
		e.WriteString(`, "bytes": `)
		e.int(m.Bytes)
		e.WriteString("}")
	}
	e.close(len(p.Memory))
	e.WriteString(",\n  \"kept\": [")
	for k, b := range p.Kept {
		if k > 0 {
			e.WriteString(", ")
		}
		e.string(e.g.Buffers[b].Name)
	}
	e.WriteByte(']')
	if err := e.bodies(p); err != nil {
		return err
	}
	e.costs(p)
	e.stats(p)
	e.WriteString("\n}")
	return nil
}

// costs writes the assumed duration of each node, in declaration order.
func (e *planEncoder) costs(p *Plan) {
	if len(p.Costs) == 0 {
		return
	}
	e.WriteString(",\n  \"costs\": [")
	for i := range p.Costs {
		e.item(i, "    ")
		e.WriteString(`{"node": `)
		e.node(int32(i))
		e.WriteString(`, "us": `)
		e.scratch = jsontext.AppendFloat(e.scratch[:0], p.Costs[i].US)
		e.Write(e.scratch)
		e.WriteString(`, "source": "`)
		e.WriteString(p.Costs[i].Source.String())
		e.WriteByte('"')
		if passes := p.Costs[i].Passes; passes.Source != NoPasses {
			e.WriteString(`, "passes": `)
			e.int(passes.Count)
			e.WriteString(`, "passes_from": "`)
			e.WriteString(passes.Source.String())
			e.WriteByte('"')
		}
		e.WriteByte('}')
	}
	e.close(len(p.Costs))
}

// takeWork collects what the plan's nodes do: from the plan file that the plan was read from if it has them, otherwise from the graph if its
// work is the plan's. If the plan has only the hash of different work, nothing is written but the hash.
func (e *planEncoder) takeWork(p *Plan) error {
	parts := func(i int) []string { return outline.Parts(e.g, dag.NodeID(i)) }
	switch {
	case p.WorkDone != nil && len(p.WorkDone.Nodes) == e.g.Len():
		e.modules = p.WorkDone.Modules
		parts = func(i int) []string { return p.WorkDone.Nodes[i] }
	case p.Work == "" || p.Work == e.g.WorkHash():
		e.modules = outline.Modules(e.g)
	default:
		return nil
	}
	for _, m := range e.modules {
		if !utf8.ValidString(m) {
			return fmt.Errorf("module %q is not valid UTF-8", m)
		}
	}
	e.workOf = make([]int32, e.g.Len())
	known := map[string]int32{}
	var text []byte
	for i := range e.workOf {
		e.workOf[i] = -1
		list := parts(i)
		if len(list) == 0 {
			continue
		}
		text = text[:0]
		for k, part := range list {
			if !utf8.ValidString(part) {
				return fmt.Errorf("node %q: %q is not valid UTF-8", e.g.Nodes[i].Name, part)
			}
			if k > 0 {
				text = append(text, ", "...)
			}
			text = jsontext.AppendString(text, part)
		}
		work, ok := known[string(text)]
		if !ok {
			work = int32(len(e.works))
			e.works = append(e.works, string(text))
			known[e.works[work]] = work
		}
		e.workOf[i] = work
	}
	return nil
}

// work writes the modules and the works, each work once.
func (e *planEncoder) work() {
	if e.workOf == nil {
		return
	}
	if len(e.modules) > 0 {
		e.WriteString(",\n  \"modules\": [")
		for k, m := range e.modules {
			if k > 0 {
				e.WriteString(", ")
			}
			e.string(m)
		}
		e.WriteByte(']')
	}
	e.WriteString(",\n  \"works\": [")
	for k, text := range e.works {
		e.item(k, "    ")
		e.WriteByte('[')
		e.WriteString(text)
		e.WriteByte(']')
	}
	e.close(len(e.works))
}

func (e *planEncoder) op(op *Op) {
	e.WriteString(`{"op": "`)
	e.WriteString(op.Kind.String())
	e.WriteByte('"')
	if op.Kind != Launch {
		e.WriteString(`, "event": `)
		e.int(int64(op.Event))
	}
	e.WriteString(`, "node": `)
	e.node(int32(op.Node))
	if op.Kind == Launch && e.workOf != nil && e.workOf[op.Node] >= 0 {
		e.WriteString(`, "work": `)
		e.int(int64(e.workOf[op.Node]))
	}
	e.WriteByte('}')
}

func (e *planEncoder) edge(edge *dag.Edge) {
	e.WriteString(`{"from": `)
	e.end(edge.From)
	e.WriteString(`, "to": `)
	e.end(edge.To)
	e.WriteString(`, "why": `)
	e.string(e.g.EdgeText(*edge))
	if edge.Buffer >= 0 {
		e.WriteString(`, "bytes": [`)
		e.int(edge.Lo)
		e.WriteString(", ")
		e.int(edge.Hi)
		e.WriteByte(']')
		if rows, columns, ok := e.g.TileBox(e.g.EdgeRange(*edge)); ok {
			e.WriteString(`, "box": [[`)
			e.int(rows[0])
			e.WriteString(", ")
			e.int(rows[1])
			e.WriteString("], [")
			e.int(columns[0])
			e.WriteString(", ")
			e.int(columns[1])
			e.WriteString("]]")
		}
	}
	e.WriteByte('}')
}

func (e *planEncoder) stats(p *Plan) {
	s := p.Stats
	s.Events = int(p.Events)
	held := s.held()
	e.WriteString(",\n  \"stats\": {")
	for i, k := range statsOrder {
		switch {
		case statsKeys[k] == "lower_bound_by" && s.LowerBoundBy == "":
			continue
		case statsKeys[k] == "makespan_us":
			e.WriteString(",\n            ")
		case i > 0:
			e.WriteString(", ")
		}
		e.key(statsKeys[k])
		e.value(held[k])
	}
	e.WriteByte('}')
}

// item starts the k-th entry of a list with one entry per line.
func (e *planEncoder) item(k int, indent string) {
	if k > 0 {
		e.WriteByte(',')
	}
	e.WriteByte('\n')
	e.WriteString(indent)
}

// close ends a list with one entry per line.
func (e *planEncoder) close(entries int) {
	if entries > 0 {
		e.WriteString("\n  ")
	}
	e.WriteByte(']')
}

func (e *planEncoder) field(name, value string) {
	e.WriteString(",\n  ")
	e.key(name)
	e.string(value)
}

func (e *planEncoder) node(i int32) { e.Write(e.quoted[e.names[i]:e.names[i+1]]) }

// end writes one end of an edge: the name of a node or the number of a join.
func (e *planEncoder) end(i dag.NodeID) {
	if e.g.IsJoin(i) {
		e.int(int64(i) - int64(e.g.Len()))
		return
	}
	e.node(int32(i))
}

// bodies writes the plans of the bodies, each as a plan of its own.
func (e *planEncoder) bodies(p *Plan) error {
	if len(p.Bodies) == 0 {
		return nil
	}
	e.WriteString(",\n  \"bodies\": [")
	for k, b := range p.Bodies {
		body := bodyOf(e.g, b.Node, b.Body)
		if body == nil || b.Plan == nil {
			return fmt.Errorf("%w: the plan has body %d of node %d, which the graph does not have", ErrPlanShape, b.Body, b.Node)
		}
		e.item(k, "    ")
		e.WriteString(`{"node": `)
		e.node(int32(b.Node))
		e.WriteString(`, "body": `)
		e.int(int64(b.Body))
		e.WriteString(`, "plan": `)
		if err := b.Plan.encode(e.Writer, body); err != nil {
			return err
		}
		e.WriteString("}")
	}
	e.close(len(p.Bodies))
	return nil
}
