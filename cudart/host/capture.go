// Stream capture by the driver's rules: submitted commands become nodes, events become dependencies, and synchronisations are refused.

package host

import (
	"slices"

	"github.com/dagrun/dagrun/cudart"
)

// BeginCapture makes the stream capture what is submitted to it instead of running it, like cuStreamBeginCapture.
func (s *stream) BeginCapture() error {
	const call = "cuStreamBeginCapture"
	if s.queue.handle == legacyHandle {
		return fail(call, captureUnsupported, s.queue.device.id, "the default stream cannot capture")
	}
	return s.begin()
}

// begin starts a capture. It also works on the stream that stands for the default stream.
func (s *stream) begin() error {
	const call = "cuStreamBeginCapture"
	if err := s.check(call); err != nil {
		return err
	}
	q := s.queue
	q.platform.capture.Lock()
	defer q.platform.capture.Unlock()
	if q.capturing() {
		return fail(call, illegalState, q.device.id, "stream %d is capturing", q.id)
	}
	q.join(&capture{origin: q}, nil)
	return nil
}

// join makes a queue part of a capture, after the given nodes.
func (q *queue) join(c *capture, after []int32) {
	c.queues = append(c.queues, q)
	q.frontier = append(q.frontier[:0], after...)
	q.recording.Store(c)
}

// EndCapture ends the capture that began on this stream and makes an executable graph of it.
func (s *stream) EndCapture(options cudart.GraphOptions) (cudart.Graph, error) {
	t, err := s.endCapture()
	if err != nil {
		return nil, err
	}
	return s.queue.platform.newGraph(t, s.queue.device, options.Priorities, false), nil
}

func (s *stream) endCapture() (*table, error) {
	const call = "cuStreamEndCapture"
	q := s.queue
	q.platform.capture.Lock()
	defer q.platform.capture.Unlock()
	c := q.recording.Load()
	if c == nil {
		return nil, fail(call, illegalState, q.device.id, "stream %d is not capturing", q.id)
	}
	if c.origin != q {
		c.invalid = true
		return nil, fail(call, captureUnmatched, q.device.id, "the capture began on stream %d", c.origin.id)
	}
	loose := c.unjoined()
	for _, o := range c.queues {
		o.recording.Store(nil)
	}
	c.ended = true
	switch {
	case c.invalid:
		return nil, fail(call, captureInvalidated, q.device.id, "")
	case loose != nil:
		last := c.commands[loose.frontier[len(loose.frontier)-1]]
		return nil, fail(call, captureUnjoined, q.device.id, "nothing waits for node %q, the last on stream %d", last.label, loose.id)
	}
	return newTable(c.commands, c.deps)
}

// unjoined returns a queue whose work the origin does not wait for.
func (c *capture) unjoined() *queue {
	joined := make([]bool, len(c.commands))
	open := slices.Clone(c.origin.frontier)
	for len(open) > 0 {
		n := open[len(open)-1]
		open = open[:len(open)-1]
		if !joined[n] {
			joined[n] = true
			open = append(open, c.deps[n]...)
		}
	}
	for _, q := range c.queues {
		for _, n := range q.frontier {
			if !joined[n] {
				return q
			}
		}
	}
	return nil
}

// refuseCapture returns the error for a call that is not allowed on a capturing stream. Such a call invalidates the capture.
func (q *queue) refuseCapture(call string) error {
	if !q.capturing() {
		return nil
	}
	q.platform.capture.Lock()
	defer q.platform.capture.Unlock()
	c := q.recording.Load()
	if c == nil {
		return nil
	}
	c.invalid = true
	return fail(call, captureUnsupported, q.device.id, "stream %d is capturing", q.id)
}

// current returns the capture of a queue; the caller holds Platform.capture.
func (q *queue) current(by *command) (*capture, error) {
	c := q.recording.Load()
	if c == nil {
		return nil, by.fail(captureInvalidated, "the capture has ended in the meantime")
	}
	if c.invalid {
		return nil, by.fail(captureInvalidated, "")
	}
	return c, nil
}

// captureWork makes a command the next node of its stream.
func (p *Platform) captureWork(by *command, q *queue) error {
	p.capture.Lock()
	defer p.capture.Unlock()
	c, err := q.current(by)
	if err != nil {
		return err
	}
	c.add(by, q)
	return nil
}

func (c *capture) add(by *command, q *queue) {
	n := int32(len(c.commands))
	c.commands = append(c.commands, by)
	c.deps = append(c.deps, slices.Clone(q.frontier))
	q.frontier = append(q.frontier[:0], n)
}

// captureRecord makes an event refer to what its stream has captured so far.
func (p *Platform) captureRecord(by *command, q *queue) error {
	p.capture.Lock()
	defer p.capture.Unlock()
	c, err := q.current(by)
	if err != nil {
		return err
	}
	e := by.event
	e.mu.Lock()
	e.capture, e.nodes = c, append(e.nodes[:0], q.frontier...)
	e.mu.Unlock()
	return nil
}

// captureWait adds the nodes that an event refers to as dependencies of the stream's next node. A stream that does not capture yet joins the
// capture that the event belongs to.
func (p *Platform) captureWait(by *command, q *queue) error {
	p.capture.Lock()
	defer p.capture.Unlock()
	e := by.event
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.capture != nil && e.capture.ended {
		return by.fail(capturedEvent, "its capture has ended")
	}
	mine := q.recording.Load()
	switch {
	case mine == nil && e.capture.invalid, mine != nil && mine.invalid:
		return by.fail(captureInvalidated, "")
	case mine == nil:
		q.join(e.capture, e.nodes)
	case e.capture == nil:
		mine.invalid = true
		return by.fail(captureIsolation, "")
	case e.capture != mine:
		mine.invalid, e.capture.invalid = true, true
		return by.fail(captureMerge, "")
	default:
		for _, n := range e.nodes {
			if !slices.Contains(q.frontier, n) {
				q.frontier = append(q.frontier, n)
			}
		}
	}
	return nil
}

// captureGraph adds a whole graph's nodes after what the stream has captured so far.
func (p *Platform) captureGraph(t *table, q *queue) error {
	p.capture.Lock()
	defer p.capture.Unlock()
	c := q.recording.Load()
	if c == nil || c.invalid {
		return fail("cuGraphLaunch", captureInvalidated, q.device.id, "")
	}
	base := int32(len(c.commands))
	var last []int32
	for n, by := range t.commands {
		var deps []int32
		for _, d := range t.before(int32(n)) {
			deps = append(deps, base+d)
		}
		if deps == nil {
			deps = slices.Clone(q.frontier)
		}
		c.commands = append(c.commands, by)
		c.deps = append(c.deps, deps)
		if len(t.after(int32(n))) == 0 {
			last = append(last, base+int32(n))
		}
	}
	if last != nil {
		q.frontier = last
	}
	return nil
}
