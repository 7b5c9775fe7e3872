// Lists: commands that are encoded once and submitted to their streams many times. Errors of a submission name the command.

package host

import (
	"context"
	"slices"
	"sync"

	"github.com/dagrun/dagrun/cudart"
)

// List implements [cudart.List].
type list struct {
	platform *Platform
	options  cudart.ListOptions

	mu       sync.Mutex
	commands []*command
	batch    batch
	closed   bool
}

// Encode implements [cudart.Platform]. Threads is ignored: the calling goroutine submits all commands, in order.
func (p *Platform) Encode(commands []cudart.Command, options cudart.ListOptions) (cudart.List, error) {
	if options.Origin != nil {
		if s, ok := options.Origin.(*stream); !ok || s.queue.platform != p {
			return nil, fail("cuStreamGetCtx", invalidHandle, -1, "the origin stream belongs to another platform")
		}
	}
	l := &list{platform: p, options: options, commands: make([]*command, len(commands))}
	all := make([]command, len(commands))
	for i := range commands {
		if e := p.encode(&all[i], &commands[i], i); e != nil {
			return nil, e
		}
		if all[i].kind == cudart.RunBodies {
			return nil, all[i].fail(notSupported, "a loop or branch is part of a graph, not of a list")
		}
		if s := all[i].stream; s != nil && (s.closed.Load() || s.queue.closed.Load()) {
			return nil, all[i].fail(invalidHandle, "stream %d is closed", s.queue.id)
		}
		l.commands[i] = &all[i]
	}
	l.batch.pool = &p.pool
	p.lists.Add(1)
	return l, nil
}

// Submit implements [cudart.List].
func (l *list) Submit() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.check(); err != nil {
		return err
	}
	for _, c := range l.commands {
		if err := l.platform.submit(c, &l.batch); err != nil {
			l.batch.flush()
			return err
		}
	}
	l.batch.flush()
	return nil
}

func (l *list) check() error {
	if l.closed {
		return fail("cuLaunchKernel", invalidHandle, -1, "the list is closed")
	}
	return nil
}

// submit appends one command to its stream.
func (p *Platform) submit(c *command, b *batch) error {
	switch c.kind {
	case cudart.RangePush, cudart.RangePop, cudart.Empty:
		return nil
	}
	if c.stream == nil {
		return c.fail(invalidHandle, "the command has no stream")
	}
	q := c.stream.queue
	if c.stream.closed.Load() || q.closed.Load() {
		return c.fail(invalidHandle, "stream %d is closed", q.id)
	}
	if c.device.fault.Load() != nil {
		return c.device.check(c.name)
	}
	switch c.kind {
	case cudart.RecordEvent:
		return p.record(c, q, b)
	case cudart.WaitEvent:
		return p.hold(c, q, b)
	}
	if c.nothing {
		return nil
	}
	if q.capturing() {
		return p.captureWork(c, q)
	}
	if err := p.order.command(c, q); err != nil {
		return err
	}
	m := q.submit(&entry{command: c}, b)
	if !c.blocking {
		return nil
	}
	b.flush()
	now := p.order.stands(q)
	q.finish(context.Background(), m.place)
	if c.devices[0] < 0 {
		// When the driver returns, only a copy to the host has certainly ended. A copy from pageable memory may be staged.
		p.order.waited(now)
	}
	if c.device.fault.Load() != nil {
		return c.device.check(c.name)
	}
	return nil
}

// record submits an event's record.
func (p *Platform) record(c *command, q *queue, b *batch) error {
	e := c.event
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return c.fail(invalidHandle, "the event is closed")
	}
	if e.device != q.device {
		e.mu.Unlock()
		return c.fail(invalidHandle, "an event of device %d cannot be recorded on a stream of device %d", e.device.id, q.device.id)
	}
	if q.capturing() {
		e.mu.Unlock()
		return p.captureRecord(c, q)
	}
	e.version++
	version := e.version
	p.order.record(e, q)
	if !e.timed {
		e.record(q.here())
		e.mu.Unlock()
		return nil
	}
	// The worker that stores the time needs mu, and submit may wait for workers.
	e.mu.Unlock()
	m := q.submit(&entry{event: e, version: version}, b)
	e.mu.Lock()
	if e.version == version {
		e.record(m)
	}
	e.mu.Unlock()
	return nil
}

// hold submits a wait for the event's latest record. If that has been reached, or comes earlier on the same stream, there is nothing to do.
func (p *Platform) hold(c *command, q *queue, b *batch) error {
	e := c.event
	e.mu.Lock()
	m, captured, closed, clock := e.mark, e.capture, e.closed, e.clock
	e.mu.Unlock()
	if closed {
		return c.fail(invalidHandle, "the event is closed")
	}
	if captured != nil || q.capturing() {
		return p.captureWait(c, q)
	}
	p.order.hold(clock, q)
	if m.queue != q && !m.reached() {
		q.submit(&entry{wait: m}, b)
	}
	return nil
}

// index returns a copy of a command, to be changed.
func (l *list) index(call string, i int, kinds ...cudart.CommandKind) (*command, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	return changeable(call, l.commands, i, kinds)
}

// changeable copies command i, if it is of one of the kinds.
func changeable(call string, commands []*command, i int, kinds []cudart.CommandKind) (*command, error) {
	if i < 0 || i >= len(commands) {
		return nil, fail(call, invalidValue, -1, "there is no command %d; the list has %d", i, len(commands))
	}
	if !slices.Contains(kinds, commands[i].kind) {
		e := fail(call, invalidValue, -1, "command %d is of a kind that this change does not apply to", i)
		return nil, commands[i].blame(e)
	}
	c := *commands[i]
	return &c, nil
}

// SetArgs implements [cudart.List].
func (l *list) SetArgs(index int, grid [3]uint32, args []cudart.Value) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, err := l.index("cuLaunchKernel", index, cudart.LaunchKernel)
	if err != nil {
		return err
	}
	if e := c.changeArgs(grid, args); e != nil {
		return e
	}
	l.commands[index] = c
	return nil
}

// SetCopy implements [cudart.List].
func (l *list) SetCopy(index int, dst, src cudart.Ptr) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, err := l.index("cuMemcpyAsync", index, cudart.CopyMemory, cudart.SetMemory)
	if err != nil {
		return err
	}
	if e := c.setCopy(dst, src); e != nil {
		return e
	}
	l.commands[index] = c
	return nil
}

// Capture implements [cudart.List].
func (l *list) Capture(options cudart.GraphOptions) (cudart.Graph, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t, origin, err := l.capture(options.Origin)
	if err != nil {
		return nil, err
	}
	return l.platform.newGraph(t, origin.queue.device, options.Priorities, false), nil
}

// capture captures the list.
func (l *list) capture(from cudart.Stream) (*table, *stream, error) {
	if err := l.check(); err != nil {
		return nil, nil, err
	}
	if from == nil {
		from = l.options.Origin
	}
	origin, ok := from.(*stream)
	if !ok || origin.queue.platform != l.platform {
		return nil, nil, fail("cuStreamBeginCapture", invalidHandle, -1, "a capture needs an origin stream of this platform")
	}
	if err := origin.begin(); err != nil {
		return nil, nil, err
	}
	var failed error
	for _, c := range l.commands {
		if c.kind == cudart.RecordEvent && c.event.timed && !l.waited(c.event) && c.stream.queue.capturing() {
			// In a graph, a record that takes the time is a node. A record that only orders becomes an edge.
			failed = l.platform.captureWork(c, c.stream.queue)
		} else {
			failed = l.platform.submit(c, &l.batch)
		}
		if failed != nil {
			break
		}
	}
	l.batch.flush()
	t, err := origin.endCapture()
	if failed != nil {
		return nil, nil, failed
	}
	return t, origin, err
}

// waited reports whether the list waits for an event.
func (l *list) waited(e *event) bool {
	return slices.ContainsFunc(l.commands, func(c *command) bool { return c.kind == cudart.WaitEvent && c.event == e })
}

// Len implements [cudart.List].
func (l *list) Len() int { return len(l.commands) }

// Close implements [cudart.List]. Commands already submitted still run.
func (l *list) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	l.commands = nil
	l.platform.lists.Add(-1)
	return nil
}

// command checks a command that is about to be submitted to a stream.
func (o *order) command(c *command, q *queue) error {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	now := &o.clocks[q.sequence]
	now.join(o.host)
	return o.check(c, epoch{sequence: q.sequence, node: -1, time: now.tick(q.sequence), by: c}, *now)
}

func (b *batch) flush() {
	if len(b.queues) > 0 {
		b.pool.ready(b.queues)
		b.queues = b.queues[:0]
	}
}

// submit appends an entry and returns the place after it.
func (q *queue) submit(e *entry, b *batch) mark {
	q.mu.Lock()
	for q.tail-q.done.Load() >= maxQueued {
		room := q.tail - maxQueued/2
		q.mu.Unlock()
		b.flush()
		q.finish(context.Background(), room)
		q.mu.Lock()
	}
	if q.tail-q.done.Load() == uint64(len(q.ring)) {
		q.grow()
	}
	q.ring[q.tail&uint64(len(q.ring)-1)] = *e
	q.tail++
	m := mark{q, q.tail}
	wake := !q.active
	q.active = true
	q.mu.Unlock()
	if wake {
		b.queues = append(b.queues, q)
	}
	return m
}
