// Executable graphs: a node runs on any worker as soon as its dependencies are done. Launches of one graph never overlap.

package host

import (
	"fmt"
	"slices"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
)

// BuildGraph implements [cudart.Platform].
func (p *Platform) BuildGraph(commands []cudart.Command, deps [][]int32, options cudart.GraphOptions) (cudart.Graph, error) {
	d := p.devices[0]
	if options.Origin != nil {
		s, ok := options.Origin.(*stream)
		if !ok || s.queue.platform != p {
			return nil, fail("cuGraphInstantiate", invalidHandle, -1, "the origin stream belongs to another platform")
		}
		d = s.queue.device
	}
	if err := d.check("cuGraphInstantiate"); err != nil {
		return nil, err
	}
	if len(deps) != len(commands) {
		return nil, fail("cuGraphInstantiate", invalidValue, d.id, "there are %d commands, but dependencies for %d", len(commands), len(deps))
	}
	all := make([]command, len(commands))
	encoded := make([]*command, len(commands))
	for i := range commands {
		c := &all[i]
		if e := p.encode(c, &commands[i], i); e != nil {
			return nil, e
		}
		c.settle(d)
		encoded[i] = c
	}
	t, err := newTable(encoded, deps)
	if err != nil {
		return nil, err
	}
	return p.newGraph(t, d, options.Priorities, true), nil
}

// Launch implements [cudart.Graph].
func (g *graph) Launch(stream cudart.Stream) error {
	const call = "cuGraphLaunch"
	s, err := g.stream(call, stream)
	if err != nil {
		return err
	}
	q := s.queue
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return fail(call, invalidHandle, g.device.id, "the graph is closed")
	}
	if q.capturing() {
		return g.platform.captureGraph(g.table, q)
	}
	if err := g.platform.order.launch(g, q); err != nil {
		return err
	}
	e := entry{graph: g, table: g.table}
	if g.last.queue != q {
		e.wait = g.last
	}
	for _, n := range g.table.stamps {
		stamped := g.table.commands[n].event
		stamped.mu.Lock()
		stamped.version++
		g.versions[n].Store(stamped.version)
		stamped.mu.Unlock()
	}
	g.last = q.submit(&e, &g.batch)
	g.launched = true
	for _, n := range g.table.stamps {
		stamped := g.table.commands[n].event
		stamped.mu.Lock()
		if stamped.version == g.versions[n].Load() {
			stamped.record(g.last)
			g.platform.order.record(stamped, q)
		}
		stamped.mu.Unlock()
	}
	g.batch.flush()
	return nil
}

func (g *graph) stream(call string, on cudart.Stream) (*stream, error) {
	s, ok := on.(*stream)
	if !ok || s.queue.platform != g.platform {
		return nil, fail(call, invalidHandle, g.device.id, "the stream belongs to another platform")
	}
	if err := s.check(call); err != nil {
		return nil, err
	}
	return s, nil
}

// Upload implements [cudart.Graph]. There is nothing to upload to a CPU.
func (g *graph) Upload(stream cudart.Stream) error {
	const call = "cuGraphUpload"
	s, err := g.stream(call, stream)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return fail(call, invalidHandle, g.device.id, "the graph is closed")
	}
	return s.queue.refuseCapture(call)
}

// begin starts a launch for a queue. It reports whether the launch has already finished.
func (g *graph) begin(q *queue, t *table, w *worker) bool {
	n := len(t.commands)
	if n == 0 {
		return true
	}
	g.queue, g.running = q, t
	g.left.Store(int32(n))
	for i := range int32(n) {
		g.waits[i].Store(int32(len(t.before(i))))
	}
	w.pool.mu.Lock()
	for i := range int32(n) {
		if len(t.before(i)) == 0 {
			w.pool.add(level(g.priority(i)), task{graph: g, node: i})
		}
	}
	w.pool.mu.Unlock()
	return false
}

// priority returns a node's own priority if the graph has priorities (a captured node has that of its stream), or else the launch's.
func (g *graph) priority(n int32) dag.Priority {
	c := g.running.commands[n]
	switch {
	case !g.priorities:
		return g.queue.priority
	case c.stream != nil:
		return c.stream.queue.priority
	}
	return min(max(c.priority, dag.Low), dag.High)
}

// run runs a node, then one of the nodes that became ready, until there is none.
func (g *graph) run(n int32, w *worker) {
	t := g.running
	for served := 1; n >= 0; served++ {
		c := t.commands[n]
		if c.kind == cudart.RecordEvent && c.event.timed {
			c.event.stamp(g.versions[n].Load())
		} else {
			c.execute(w)
		}
		next := int32(-1)
		for _, a := range t.after(n) {
			if g.waits[a].Add(-1) > 0 {
				continue
			}
			if next < 0 {
				next = a
				continue
			}
			g.offer(a, w)
		}
		if g.left.Add(-1) == 0 {
			q := g.queue
			q.complete(q.done.Load()+1, w)
			w.pool.ready(w.one(q))
			return
		}
		if n = next; n >= 0 && w.pool.shouldYield(g.priority(n), served) {
			g.offer(n, w)
			return
		}
	}
}

// offer hands a node to the workers.
func (g *graph) offer(n int32, w *worker) {
	w.pool.mu.Lock()
	w.pool.add(level(g.priority(n)), task{graph: g, node: n})
	w.pool.mu.Unlock()
}

// change replaces a node's command for later launches.
func (g *graph) change(call string, index int, kinds []cudart.CommandKind, edit func(*command) *cudart.Error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return fail(call, invalidHandle, g.device.id, "the graph is closed")
	}
	if !g.indexed {
		return fail(call, notSupported, g.device.id, "the nodes of a captured graph are changed by Update")
	}
	c, err := changeable(call, g.table.commands, index, kinds)
	if err != nil {
		return err
	}
	if e := edit(c); e != nil {
		return e
	}
	if g.launched {
		t := *g.table
		t.commands = slices.Clone(t.commands)
		g.table, g.launched = &t, false
	}
	g.table.commands[index] = c
	return nil
}

// SetArgs implements [cudart.Graph]; launches already submitted keep their arguments.
func (g *graph) SetArgs(index int, grid [3]uint32, args []cudart.Value) error {
	return g.change("cuGraphExecKernelNodeSetParams", index, []cudart.CommandKind{cudart.LaunchKernel}, func(c *command) *cudart.Error {
		return c.changeArgs(grid, args)
	})
}

// SetCopy implements [cudart.Graph]; launches already submitted keep their addresses.
func (g *graph) SetCopy(index int, dst, src cudart.Ptr) error {
	return g.change("cuGraphExecMemcpyNodeSetParams", index, []cudart.CommandKind{cudart.CopyMemory, cudart.SetMemory}, func(c *command) *cudart.Error {
		return c.setCopy(dst, src)
	})
}

// Update implements [cudart.Graph].
func (g *graph) Update(from cudart.List) error {
	const call = "cuGraphExecUpdate"
	l, ok := from.(*list)
	if !ok || l.platform != g.platform {
		return fail(call, invalidValue, g.device.id, "the list belongs to another platform")
	}
	l.mu.Lock()
	t, _, err := l.capture(nil)
	l.mu.Unlock()
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return fail(call, invalidHandle, g.device.id, "the graph is closed")
	}
	if why := g.table.differs(t); why != "" {
		return fail(call, graphExecUpdateError, g.device.id, "%s", why)
	}
	g.table, g.launched = t, false
	return nil
}

// differs tells how the shapes of two graphs differ, "" if they are equal.
func (t *table) differs(o *table) string {
	if len(t.commands) != len(o.commands) {
		return "the number of nodes differs"
	}
	for n, c := range t.commands {
		if c.kind != o.commands[n].kind {
			return fmt.Sprintf("the kind of node %q differs", o.commands[n].label)
		}
		if !slices.Equal(t.before(int32(n)), o.before(int32(n))) {
			return fmt.Sprintf("the dependencies of node %q differ", o.commands[n].label)
		}
	}
	return ""
}

// Nodes implements [cudart.Graph].
func (g *graph) Nodes() int { return len(g.table.commands) }

// Close implements [cudart.Graph]. A launch already submitted still runs.
func (g *graph) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	g.closed = true
	g.platform.order.retire(g.sequence)
	g.platform.graphs.Add(-1)
	return nil
}

// launch checks the commands of a graph that is about to be launched. Launches of one graph are in order.
func (o *order) launch(g *graph, q *queue) error {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	now, stream := &o.clocks[g.sequence], &o.clocks[q.sequence]
	now.join(o.host)
	now.join(*stream)
	time := now.tick(g.sequence)
	for n, c := range g.table.commands {
		if err := o.check(c, epoch{sequence: g.sequence, node: int32(n), time: time, by: c, graph: g.table}, *now); err != nil {
			return err
		}
	}
	stream.join(*now)
	return nil
}

// complete marks all entries before a place as done and notifies waiters.
func (q *queue) complete(place uint64, w *worker) {
	q.done.Store(place)
	if q.waiting.Load() == 0 {
		return
	}
	q.mu.Lock()
	kept := q.waiters[:0]
	for _, o := range q.waiters {
		switch {
		case o.place > place:
			kept = append(kept, o)
		case o.queue != nil:
			w.woken = append(w.woken, o.queue)
		default:
			o.wake <- struct{}{}
		}
	}
	clear(q.waiters[len(kept):])
	q.waiters = kept
	q.waiting.Store(int32(len(kept)))
	q.mu.Unlock()
	if len(w.woken) > 0 {
		w.pool.ready(w.woken)
		w.woken = w.woken[:0]
	}
}
