// Reads a plan from JSON and checks it against its graph. Whether the schedule is correct is not checked here: see Verify.

package plan

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/outline"
	"github.com/dagrun/dagrun/internal/jsontext"
	"github.com/dagrun/dagrun/internal/words"
)

// DecodePlan reads a plan of g from its JSON form. Errors wrap a *FileError that matches ErrPlanShape, or ErrOtherGraph if the plan
// was made for another graph; then the error names the first difference. The plan is well-formed, but its schedule may still be wrong:
// Verify it before running it.
func DecodePlan(r io.Reader, g *dag.Graph) (*Plan, error) {
	if err := g.Check(); err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	data, err := jsontext.ReadLimited(r, "plan", planLimit(g))
	if err != nil {
		return nil, err
	}
	d := &planDecoder{Reader: jsontext.Reader{Data: data, Kind: ErrPlanShape}, g: g, p: &Plan{Graph: g}, hash: g.Hash()}
	d.read()
	if d.misfits || d.Err == nil && d.p.GraphHash != d.hash {
		if other := otherGraph(data, g, d.hash); other != nil {
			d.Err = other
		}
	}
	if d.Err != nil {
		return nil, fmt.Errorf("plan: %w", d.Err)
	}
	return d.p, nil
}

// planLimit is more than any plan of g needs: each node and edge may be named several times with every letter escaped.
func planLimit(g *dag.Graph) int64 {
	longest := 0
	for i := range g.Nodes {
		longest = max(longest, len(g.Nodes[i].Name))
	}
	for i := range g.Buffers {
		longest = max(longest, len(g.Buffers[i].Name))
	}
	work := 0 // kernels and formulas, of every node once
	for i := range g.Nodes {
		if l := g.Nodes[i].Launch; l != nil {
			work += len(l.Name) + 64*len(l.Args)
			if l.Map != nil {
				work += len(l.Map.Text)
			}
		}
	}
	for _, m := range g.Modules {
		work += len(m.Name) + len(m.Path)
	}
	items := int64(g.Len() + len(g.Edges()) + len(g.Buffers))
	limit := 1<<20 + items*int64(1024+16*longest) + 16*int64(work)
	for i := range g.Nodes {
		if c := g.Nodes[i].Control; c != nil {
			for _, body := range c.Bodies {
				limit = min(maxPlanBytes, limit+planLimit(body)+int64(64*len(c.Condition.String())))
			}
		}
	}
	return min(maxPlanBytes, limit)
}

// planDecoder fills a plan from a file.
type planDecoder struct {
	jsontext.Reader
	g      *dag.Graph
	p      *Plan
	hash   string // structure hash of g
	within bool   // the plan of a body, inside of another
	nodes  map[string]int32

	misfits  bool    // the error names something that g does not have
	launched []int32 // by node: 1 + the stream that launches it, 0 for none
	launches int
	records  int
	waits    int
	event    int32 // the highest one used
	eventAt  int
	stats    Stats
	statsAt  int
	orderAt  int
	keptSeen bool
	works    [][]string
	workSeen bool
	modules  []string
	workOf   []int32 // by node: its entry of works, -1 for none
	work     int32   // the highest one used
	workAt   int
}

func (d *planDecoder) read() {
	d.nodes = make(map[string]int32, d.g.Len())
	for i := range d.g.Nodes {
		d.nodes[d.g.Nodes[i].Name] = int32(i)
	}
	d.launched = make([]int32, d.g.Len())
	d.event, d.work = -1, -1
	d.workOf = make([]int32, d.g.Len())
	for i := range d.workOf {
		d.workOf[i] = -1
	}
	p := d.p
	d.Object(planKeys, 8, func(key int) {
		switch planKeys[key] {
		case "version":
			d.Version(planVersion)
		case "name":
			p.Name = d.Label()
		case "graph":
			p.GraphHash = d.Label()
		case "work":
			p.Work = d.Label()
		case "modules":
			d.List(func(int) { d.modules = append(d.modules, d.Text()) })
		case "works":
			d.workSeen = true
			d.List(func(int) {
				var parts []string
				d.List(func(int) { parts = append(parts, d.Text()) })
				d.works = append(d.works, parts)
			})
		case "spread":
			p.Spread = readSpread(&d.Reader)
		case "strategy":
			p.Strategy = d.Label()
		case "requested_strategy":
			p.Requested = d.Label()
		case "machine":
			p.Machine = d.Label()
		case "note":
			p.Note = d.Label()
		case "streams":
			p.Streams = []Stream{}
			d.List(d.stream)
		case "order":
			d.orderAt = d.At
			p.Order = []int32{}
			d.List(func(int) { p.Order = append(p.Order, int32(d.Int(0, math.MaxInt32))) })
		case "edges":
			d.edges()
		case "memory":
			p.Memory = []Placement{}
			d.List(d.memory)
		case "kept":
			d.keptSeen = true
			p.Kept = []dag.BufferID{}
			d.List(d.kept)
		case "bodies":
			d.List(d.body)
		case "costs":
			p.Costs = make([]Cost, 0, d.g.Len())
			d.List(d.cost)
		case "stats":
			d.statsAt = d.At
			held := d.stats.held()
			d.Object(statsKeys, 2, func(key int) { readValue(&d.Reader, held[key]) })
		}
	})
	if d.Err == nil && !d.within {
		d.End()
	}
	d.settle()
}

// misfit reports an error that may be due to the plan being for another graph.
func (d *planDecoder) misfit(at int, format string, args ...any) {
	if d.Err == nil {
		d.misfits = true
		d.FailAt(at, ErrPlanShape, format, args...)
	}
}

// node reads the name of a node.
func (d *planDecoder) node() int32 {
	d.Peek()
	at := d.At
	name := d.Bytes()
	if d.Err != nil {
		return -1
	}
	i, ok := d.nodes[string(name)]
	if !ok {
		d.misfit(at, "this graph has no node %q", jsontext.Clip(string(name)))
		return -1
	}
	return i
}

// end reads one end of an edge: the name of a node or the number of a join.
func (d *planDecoder) end() dag.NodeID {
	if !isJoin(&d.Reader) {
		return dag.NodeID(d.node())
	}
	at := d.At
	join := d.Int(0, math.MaxInt32)
	if d.Err == nil && join >= int64(len(d.g.Joins())) {
		d.misfit(at, "this graph has no join %d", join)
		return -1
	}
	return dag.NodeID(int64(d.g.Len()) + join)
}

func (d *planDecoder) stream(index int) {
	s := Stream{Ops: []Op{}}
	d.Object(streamKeys, 0, func(key int) {
		switch streamKeys[key] {
		case "id":
			at := d.At
			if id := d.Int(0, math.MaxInt32); d.Err == nil && id != int64(index) {
				d.FailAt(at, ErrPlanShape, "stream %d is at position %d: streams must be in order, without gaps", id, index)
			}
		case "device":
			s.Device = int32(d.Int(0, math.MaxInt32))
		case "priority":
			s.Priority = [...]dag.Priority{dag.High, dag.Normal, dag.Low}[d.Choice("high", "normal", "low")]
		case "ops":
			d.List(func(int) { s.Ops = append(s.Ops, d.op(int32(index))) })
		}
	})
	d.p.Streams = append(d.p.Streams, s)
}

func (d *planDecoder) op(stream int32) Op {
	op := Op{Event: -1}
	at, nodeAt, eventAt, workAt := d.At, d.At, -1, -1
	work := int32(-1)
	d.Object(opKeys, 2, func(key int) {
		switch opKeys[key] {
		case "op":
			op.Kind = OpKind(d.Choice("launch", "record", "wait"))
		case "node":
			nodeAt = d.At
			op.Node = dag.NodeID(d.node())
		case "event":
			eventAt = d.At
			op.Event = int32(d.Int(0, math.MaxInt32))
		case "work":
			workAt = d.At
			work = int32(d.Int(0, math.MaxInt32))
		}
	})
	if d.Err != nil {
		return op
	}
	switch {
	case op.Kind != Launch && workAt >= 0:
		d.FailAt(workAt, ErrPlanShape, "a %s has no work", op.Kind)
	case op.Kind == Launch && eventAt >= 0:
		d.FailAt(eventAt, ErrPlanShape, "a launch has no event")
	case op.Kind == Launch && d.launched[op.Node] > 0:
		d.FailAt(nodeAt, ErrPlanShape, "%q is launched a second time; the first is on stream %d", d.g.Nodes[op.Node].Name, d.launched[op.Node]-1)
	case op.Kind != Launch && eventAt < 0:
		d.FailAt(at, ErrPlanShape, "key %q is missing", "event")
	}
	switch op.Kind {
	case Launch:
		d.launched[op.Node] = stream + 1
		d.launches++
		d.workOf[op.Node] = work
		if work > d.work {
			d.work, d.workAt = work, workAt
		}
	case Record:
		d.records++
	case Wait:
		d.waits++
	}
	if op.Event > d.event {
		d.event, d.eventAt = op.Event, eventAt
	}
	return op
}

// edges compares the file's dependencies with the graph's, one by one.
func (d *planDecoder) edges() {
	own := d.g.Edges()
	count := 0
	d.List(func(index int) {
		at := d.At
		var e dag.Edge
		why, bytes, spans := "", [2]int64{}, 0
		var box []int64
		d.Object(edgeKeys, 2, func(key int) {
			switch edgeKeys[key] {
			case "from":
				e.From = d.end()
			case "to":
				e.To = d.end()
			case "why":
				why = d.Text()
			case "bytes":
				d.List(func(k int) {
					v := d.Int(0, math.MaxInt64)
					if k < len(bytes) {
						bytes[k] = v
					}
					spans = k + 1
				})
			case "box":
				d.List(func(int) {
					d.List(func(int) { box = append(box, d.Int(0, math.MaxInt64)) })
				})
			}
		})
		if d.Err != nil {
			return
		}
		count++
		if index >= len(own) {
			d.misfit(at, "this graph has no dependency %s", d.edgeText(&e, why))
			return
		}
		o := &own[index]
		reason := d.g.EdgeText(*o)
		want := [2]int64{o.Lo, o.Hi}
		switch {
		case e.From != o.From || e.To != o.To || why != reason:
			d.misfit(at, "dependency %d is %s; this graph has %s", index, d.edgeText(&e, why), d.edgeText(o, reason))
		case o.Buffer < 0 && spans != 0:
			d.misfit(at, "dependency %d, %s, has no bytes in this graph", index, d.edgeText(o, why))
		case o.Buffer >= 0 && (spans != 2 || bytes != want):
			d.misfit(at, "dependency %d, %s, has the bytes %d in this graph", index, d.edgeText(o, why), want)
		case box != nil:
			rows, columns, ok := d.g.TileBox(d.g.EdgeRange(*o))
			if own := []int64{rows[0], rows[1], columns[0], columns[1]}; !ok || !slices.Equal(box, own) {
				d.misfit(at, "dependency %d, %s, has another box in this graph", index, d.edgeText(o, why))
			}
		}
	})
	if d.Err == nil && count < len(own) {
		o := &own[count]
		d.misfit(d.At, "dependency %s of this graph is missing", d.edgeText(o, d.g.EdgeText(*o)))
	}
}

func (d *planDecoder) edgeText(e *dag.Edge, why string) string {
	return fmt.Sprintf("%q -> %q (%s)", d.g.NameOf(e.From), d.g.NameOf(e.To), jsontext.Clip(why))
}

func (d *planDecoder) memory(int) {
	m := Placement{Buffer: -1}
	at, bytesAt := d.At, d.At
	d.Object(memoryKeys, 0, func(key int) {
		switch memoryKeys[key] {
		case "buffer":
			at = d.At
			name := d.Text()
			if d.Err != nil {
				return
			}
			// Placements are in the order of ids, so the search continues after the last one.
			first := int32(0)
			if k := len(d.p.Memory); k > 0 {
				first = int32(d.p.Memory[k-1].Buffer + 1)
			}
			for b := first; int(b) < len(d.g.Buffers) && m.Buffer < 0; b++ {
				if d.g.Buffers[b].Name == name {
					m.Buffer = dag.BufferID(b)
				}
			}
			if m.Buffer < 0 {
				d.misfit(at, "this graph has no buffer %q declared after the previous entry", jsontext.Clip(name))
			}
		case "device":
			m.Device = int32(d.Int(0, math.MaxInt32))
		case "offset":
			m.Offset = d.Int(0, math.MaxInt64)
		case "bytes":
			bytesAt = d.At
			m.Bytes = d.Int(0, math.MaxInt64)
		}
	})
	if d.Err != nil {
		return
	}
	b := &d.g.Buffers[m.Buffer]
	switch {
	case b.Place != dag.Device:
		d.misfit(at, "buffer %q is in host memory", b.Name)
	case !b.InArena():
		d.misfit(at, "buffer %q is a variable of a module, which has its own memory", b.Name)
	case m.Device != b.Device:
		d.misfit(at, "buffer %q is on device %d, not %d", b.Name, b.Device, m.Device)
	case m.Bytes != b.Bytes:
		d.misfit(bytesAt, "buffer %q has %d bytes, not %d", b.Name, b.Bytes, m.Bytes)
	case m.Offset > math.MaxInt64-m.Bytes:
		d.FailAt(at, ErrPlanShape, "buffer %q ends beyond 2^63 - 1 bytes", b.Name)
	}
	d.p.Memory = append(d.p.Memory, m)
}

// kept reads the name of a buffer whose bytes are not shared with another. Entries are in the order of ids.
func (d *planDecoder) kept(int) {
	at := d.At
	name := d.Text()
	if d.Err != nil {
		return
	}
	first := int32(0)
	if k := len(d.p.Kept); k > 0 {
		first = int32(d.p.Kept[k-1] + 1)
	}
	for b := first; int(b) < len(d.g.Buffers); b++ {
		if d.g.Buffers[b].Name != name {
			continue
		}
		if !d.g.Buffers[b].InArena() {
			d.misfit(at, "buffer %q is in host memory or a variable of a module", jsontext.Clip(name))
		}
		d.p.Kept = append(d.p.Kept, dag.BufferID(b))
		return
	}
	d.misfit(at, "this graph has no buffer %q declared after the previous entry", jsontext.Clip(name))
}

// settle makes the checks that need the whole file.
func (d *planDecoder) settle() {
	if d.Err != nil {
		return
	}
	p, g := d.p, d.g
	if !d.keptSeen {
		d.FailAt(0, ErrPlanShape, "key \"kept\" is missing: an older dagrun wrote this file, which does not say which buffers keep their bytes; plan again")
		return
	}
	if n := len(p.Costs); p.Costs != nil && n != g.Len() && d.hash == p.GraphHash {
		d.FailAt(0, ErrPlanShape, "there are costs for %d nodes, but the graph has %d", n, g.Len())
		return
	}
	if p.Work == "" {
		d.FailAt(0, ErrPlanShape, "key \"work\" is missing: an older dagrun wrote this file, which does not say what the nodes did; plan again")
		return
	}
	if int(d.work) >= len(d.works) {
		d.FailAt(d.workAt, ErrPlanShape, "work %d of %d (works)", d.work, len(d.works))
		return
	}
	if d.workSeen {
		p.WorkDone = &outline.Work{Modules: d.modules, Nodes: make([][]string, g.Len())}
		for i, work := range d.workOf {
			if work >= 0 {
				p.WorkDone.Nodes[i] = d.works[work]
			}
		}
	}
	if d.launches < g.Len() {
		for i := range d.launched {
			if d.launched[i] == 0 {
				d.misfit(d.orderAt, "no stream launches %q", g.Nodes[i].Name)
				return
			}
		}
	}
	within := len(d.Path) // the plan of a body has a path before its own
	defer func() { d.Path = d.Path[:within] }()
	d.Path = append(d.Path, jsontext.Step{Key: "order"})
	taken := make([]int, len(p.Streams))
	for k, s := range p.Order {
		if int(s) >= len(taken) {
			d.FailAt(d.orderAt, ErrPlanShape, "entry %d is stream %d; the plan has %d streams", k, s, len(taken))
			return
		}
		taken[s]++
	}
	for s := range taken {
		if taken[s] != len(p.Streams[s].Ops) {
			d.FailAt(d.orderAt, ErrPlanShape, "stream %d appears %s, but has %s", s, words.Count(taken[s], "time", "times"),
				words.Count(len(p.Streams[s].Ops), "op", "ops"))
			return
		}
	}
	d.Path[within].Key = "stats"
	for _, f := range []struct {
		name      string
		said, has int
	}{
		{"nodes", d.stats.Nodes, g.Len()}, {"edges", d.stats.Edges, len(g.Edges())}, {"streams", d.stats.Streams, len(p.Streams)},
		{"records", d.stats.Records, d.records}, {"waits", d.stats.Waits, d.waits},
	} {
		if f.said != f.has {
			d.FailAt(d.statsAt, ErrPlanShape, "%s is %d; the plan has %d", f.name, f.said, f.has)
			return
		}
	}
	if d.stats.Events > d.records {
		d.FailAt(d.statsAt, ErrPlanShape, "events is %d; the plan has only %d records", d.stats.Events, d.records)
		return
	}
	if int(d.event) >= d.stats.Events {
		d.Path = d.Path[:within]
		d.FailAt(d.eventAt, ErrPlanShape, "event %d is out of range: stats.events is %d", d.event, d.stats.Events)
		return
	}
	p.Stats = d.stats
	p.Events = int32(d.stats.Events)
}

// body reads the plan of one body.
func (d *planDecoder) body(int) {
	b := Body{Node: -1}
	d.Object(bodyKeys, 0, func(key int) {
		switch bodyKeys[key] {
		case "node":
			b.Node = dag.NodeID(d.node())
		case "body":
			b.Body = int32(d.Int(0, math.MaxInt32))
		case "plan":
			g := bodyOf(d.g, b.Node, b.Body)
			if g == nil {
				d.misfit(d.At, "this graph has no such body; node and body must stand before the plan")
				return
			}
			inner := &planDecoder{Reader: d.Reader, g: g, p: &Plan{Graph: g}, hash: g.Hash(), within: true}
			at := d.At
			inner.read()
			d.Reader, d.misfits = inner.Reader, d.misfits || inner.misfits
			if d.Err == nil && inner.p.GraphHash != inner.hash {
				d.misfit(at, "this is the plan of another body")
			}
			b.Plan = inner.p
		}
	})
	d.p.Bodies = append(d.p.Bodies, b)
}

// cost reads the assumed duration of one node. Entries are in declaration order.
func (d *planDecoder) cost(i int) {
	var c Cost
	d.Object(costKeys, 2, func(key int) {
		switch costKeys[key] {
		case "node":
			at := d.At
			if node := d.node(); d.Err == nil && int(node) != i {
				d.FailAt(at, ErrPlanShape, "costs are in declaration order: entry %d is of another node", i)
			}
		case "us":
			c.US = d.Float(math.MaxFloat64)
		case "source":
			c.Source = CostSource(d.Choice(costSources...))
		case "passes":
			c.Passes.Count = d.Int(0, dag.MaxPasses)
		case "passes_from":
			c.Passes.Source = PassSource(1 + d.Choice(passSources[1:]...))
		}
	})
	d.p.Costs = append(d.p.Costs, c)
}
