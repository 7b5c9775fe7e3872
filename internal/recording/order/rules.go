// CUDA's rules of order, one function for each. testdata has a transcript for each rule, by its name.
//
//	thread            what a thread submits comes after what it has waited for
//	threads           a thread knows what other threads knew at the end of calls that were over before its own began; this is assumed
//	stream            what is submitted to a stream comes after all that was submitted to it by calls that were over before
//	overlap           nothing orders what two calls submit to one stream if they overlapped in time
//	default           the legacy default stream waits for the blocking streams of its context, and they wait for it
//	event             a wait comes after the latest record that was over before; where that is not known, after what all that may be have in common.
//	                  A launch that records one by an attribute does so when what comes before the kernel is done; what waits for a programmatic
//	                  event may wait for the kernel too. Which event it is, is not in older recordings: it may be any
//	synchronize       a thread that waited for an event, a stream or a context, or found it complete, comes after its work
//	copy              a thread comes after copies that the driver documents as synchronous for it
//	memset            a thread comes after memsets of pinned and managed memory by the synchronous functions
//	free              a free that is not in stream order waits for all work of its context, then takes the memory; not for mapped and registered memory
//	reuse             memory that is given out again comes after its free, whatever the pool's attributes are; that the stream or the thread
//	                  that gets it comes after the free too is assumed: a pool may give it other memory the next time
//	stream-ordered    an allocation or a free in stream order is work of its stream, and takes the memory as a write does
//	tensor            a framework that gives out a tensor's memory again has that done in the order of the stream that the tensor was allocated for
//	host              a host function is work of its stream
//	value             a wait for a value comes after a write of it that was submitted before; this is assumed. Where there is none, a later write
//	                  or the host ends it: what comes after such a wait may have an order that is not known, so its races are possible ones.
//	                  So it is after a write of fewer bytes than the wait has, and after one without a memory barrier
//	context           who ends a context has waited for its work, else it is not covered; its memory is freed then, and its streams are no more
//	capture           captured calls are not work: an event recorded by a capture makes the streams that wait for it part of the capture
//	graph             a graph launch is work of its stream; within it, edges order nodes
//	execution         launches of one executable graph come one after the other
//	programmatic      a programmatic launch may begin before the launch before it has ended, so it comes after what that one came after;
//	                  what follows in the stream waits for both

package order

import (
	"slices"

	"github.com/dagrun/dagrun/internal/happens"
	"github.com/dagrun/dagrun/internal/recording"
)

// threadOrder is rule "thread".
func (m *machine) threadOrder(on happens.Lane, t *thread) {
	m.checker.After(on, m.checker.Now(t.lane))
}

// learn makes a thread come after what a clock holds.
func (m *machine) learn(t *thread, clock happens.Clock) {
	if m.checker.After(t.lane, clock) {
		m.learned++
	}
}

// threadsOrder is rule "threads". It is asked once for each call, when it begins.
func (m *machine) threadsOrder(at moment) {
	t := at.thread
	if m.learned != t.seen {
		all := true
		seen := m.learned
		for _, other := range m.order {
			if other == t {
				continue
			}
			clock := other.before
			if other.end < at.begin {
				clock = m.checker.Now(other.lane)
			} else {
				all = false
			}
			if m.checker.Includes(t.lane, clock) {
				continue
			}
			m.leaned = true
			if m.pass.assume {
				m.learn(t, clock)
			}
		}
		if all {
			t.seen = seen
		}
	}
	t.before, t.end = m.checker.Now(t.lane), at.end
}

// streamOrder is rules "stream" and "overlap": what comes on a lane follows what was submitted to a stream by calls that were over before.
func (m *machine) streamOrder(on happens.Lane, s *stream, at moment) {
	for _, t := range s.tracks {
		if t.lane == on {
			continue
		}
		if t.end < at.begin {
			m.checker.After(on, m.checker.Now(t.lane))
		} else {
			m.checker.After(on, t.before)
		}
	}
}

// defaultOrder is rule "default".
func (m *machine) defaultOrder(on happens.Lane, s *stream, at moment) {
	if s.blocking && s.context.legacy != nil {
		m.streamOrder(on, s.context.legacy, at)
	}
	if s.legacy {
		for _, other := range s.context.streams {
			if other.blocking {
				m.streamOrder(on, other, at)
			}
		}
	}
}

// enqueue returns the lane for work that a call submits to a stream, after all that such work comes after.
func (m *machine) enqueue(at moment, s *stream) happens.Lane {
	var on *track
	for _, t := range s.tracks {
		if t.end < at.begin {
			on = t
			break
		}
	}
	if on == nil {
		on = &track{lane: m.checker.Lane()}
		s.tracks = append(s.tracks, on)
	}
	m.note(at, s.name)
	m.follow(at, s, on)
	m.streamOrder(on.lane, s, at)
	m.defaultOrder(on.lane, s, at)
	m.gateOrder(on.lane, s, at)
	return on.lane
}

// follow makes a call the last one of a track.
func (m *machine) follow(at moment, s *stream, on *track) {
	on.before, on.end, on.kernel, on.call = m.checker.Now(on.lane), at.end, false, at.index
	s.last = on
	m.threadOrder(on.lane, at.thread)
}

// enqueueLaunch is enqueue for a kernel. It is rule "programmatic".
func (m *machine) enqueueLaunch(at moment, s *stream, programmatic bool) happens.Lane {
	before := s.last
	if programmatic && before != nil && !before.kernel {
		m.kept(before.call) // without it, the launch could overlap with the kernel before
	}
	programmatic = programmatic && before != nil && before.kernel && before.end < at.begin
	m.loosened = m.loosened || programmatic
	if !programmatic || m.pass.programmatic {
		m.enqueue(at, s)
	} else {
		on := m.trackWithin(before.start, s, at)
		m.follow(at, s, on)
		m.checker.After(on.lane, before.start)
		m.defaultOrder(on.lane, s, at)
		m.gateOrder(on.lane, s, at)
	}
	s.last.kernel, s.last.start = true, m.checker.Now(s.last.lane)
	return s.last.lane
}

// mostOverlapping is how many programmatic launches in a row count as running at once. A row of more would need a lane for each.
const mostOverlapping = 64

// trackWithin returns a track of a stream whose work is all held by a clock; among too many tracks, the one whose last call is the oldest.
func (m *machine) trackWithin(clock happens.Clock, s *stream, at moment) *track {
	oldest := s.tracks[0]
	for _, t := range s.tracks {
		if t.end < at.begin && clock.Includes(m.checker.Now(t.lane)) {
			return t
		}
		if t.end < oldest.end {
			oldest = t
		}
	}
	if len(s.tracks) >= mostOverlapping {
		return oldest
	}
	t := &track{lane: m.checker.Lane()}
	s.tracks = append(s.tracks, t)
	return t
}

// recordEvent is rule "event", for a record.
func (m *machine) recordEvent(at moment, s *stream, e *event) {
	lane := m.enqueue(at, s)
	m.recordClock(at, e, m.checker.Now(lane))
}

func (m *machine) recordClock(at moment, e *event, clock happens.Clock) {
	newest := newestBefore(e.records, at.begin)
	e.records = slices.DeleteFunc(e.records, func(r record) bool { return r.end < newest })
	e.records = append(e.records, record{at.index, at.begin, at.end, clock})
}

// recordLaunch is rule "event", for a launch that records one by an attribute.
func (m *machine) recordLaunch(at moment, s *stream, event, when uint64) {
	clock := s.last.start
	if when&recording.EventBegun == 0 {
		m.loosened = true
		if m.pass.programmatic {
			clock = m.checker.Now(s.last.lane)
		}
	}
	e := m.event(event)
	e.capture = nil
	m.recordClock(at, e, clock)
}

// newestBefore returns when the last record began of those that were over before a moment. Records that were over before that are surely replaced.
func newestBefore(records []record, moment uint64) uint64 {
	newest := uint64(0)
	for _, r := range records {
		if r.end < moment {
			newest = max(newest, r.begin)
		}
	}
	return newest
}

// afterEvent is rule "event", for whoever waits for the event: what comes on a lane comes after what is surely complete when the event is.
// It returns false if that was so already.
func (m *machine) afterEvent(at moment, on happens.Lane, e *event) bool {
	clock, known := m.clockOf(at, e)
	doubted := !known && m.doubt(at, on)
	return m.checker.After(on, clock) || doubted
}

// clockOf returns what is surely complete when an event is, and false if it may be more because of launches that record events.
func (m *machine) clockOf(at moment, e *event) (clock happens.Clock, known bool) {
	newest := newestBefore(e.records, at.begin)
	found := false
	for _, r := range e.records {
		switch {
		case newest == 0 || r.end < newest: // it may not have been recorded yet, or was replaced
		case found:
			clock = happens.Common(clock, r.clock)
		default:
			clock, found = r.clock, true
		}
	}
	known = true
	for _, r := range m.recorders {
		if r.end >= max(newest, e.created) {
			clock, known = happens.Common(clock, r.clock), false
		}
	}
	return clock, known
}

// waitEvent is rule "event", for a stream that waits.
func (m *machine) waitEvent(at moment, s *stream, e *event) {
	if s.legacy || len(m.index.threads) > 1 {
		m.checker.Tag(at.index) // others come after what the wait itself comes after; elsewhere, what follows it would do so without it
	}
	lane := m.enqueue(at, s)
	before := m.checker.Now(lane)
	m.checker.Tag(at.index)
	m.afterEvent(at, lane, e)
	m.checker.Tag(-1)
	m.waitedForFunction(at, before, m.checker.Now(lane))
	if m.steps != nil {
		newest := newestBefore(e.records, at.begin)
		for _, r := range e.records {
			if r.end >= newest {
				last := &m.steps[len(m.steps)-1]
				last.For = append(last.For, r.call)
			}
		}
	}
}

// learnStream is rule "synchronize", for a stream. The legacy default stream is complete when the blocking streams are.
func (m *machine) learnStream(at moment, s *stream) {
	before := m.checker.Now(at.thread.lane)
	m.streamOrder(at.thread.lane, s, at)
	m.defaultOrder(at.thread.lane, s, at)
	if !before.Includes(m.checker.Now(at.thread.lane)) {
		m.learned++
	}
}

// learnContext is rule "synchronize", for a context.
func (m *machine) learnContext(at moment, c *context) {
	for _, s := range c.streams {
		m.learnStream(at, s)
	}
}

// copied is rule "copy". It says what a thread comes after when a copy returns: what the stream had to do before the copy, and the copy.
func copied(sync bool, from, to place) (before, copy bool) {
	switch {
	case to == pageable: // complete when it returns, even by the functions whose name ends in Async
		return true, true
	case from == pageable: // staged when it returns, and by the synchronous functions after the stream's work
		return sync, false
	case from == pinned || to == pinned:
		return sync, sync
	}
	return false, false // within devices: the host goes on
}

// setSynchronously is rule "memset".
func setSynchronously(sync bool, where place) bool {
	return sync && (where == pinned || where == managed)
}

// release is rule "free". Memory that was mapped or registered is given back without waiting.
func (m *machine) release(at moment, is *memory) {
	if is.kind != allocRegistered && is.kind != allocMapped && is.kind != allocImported {
		m.learnContext(at, is.context)
	}
	m.takeBack(at, is)
}

// takeBack makes a thread free memory.
func (m *machine) takeBack(at moment, is *memory) {
	m.step(at, at.thread.lane, nil, whole(is))
	m.learned++ // others may come to know that the memory was freed
	is.dead, is.freed = true, m.checker.Now(at.thread.lane)
}

// reuse is rule "reuse".
func (m *machine) reuse(on happens.Lane, low, high uint64) {
	for _, is := range m.allocations.overlapping(low, high) {
		if !is.dead || m.checker.Includes(on, is.freed) {
			continue
		}
		m.leaned = true
		if m.pass.assume {
			m.checker.After(on, is.freed)
		}
	}
	m.checker.Fresh(low, high)
}

// reuseTensors is rule "tensor": memory that came back from the tensors of a stream and is given out again is taken by work of that stream.
func (m *machine) reuseTensors(at moment, event *recording.TensorEvent) {
	for _, is := range m.tensors.overlapping(event.Address, event.Address+event.Bytes) {
		if !is.dead || is.taken < 0 || is.stream.capture != nil {
			continue
		}
		at.index = -1 - is.taken // the event at which it came back
		is.taken = -1
		m.step(at, m.enqueue(at, is.stream), is.stream, whole(is))
	}
}

// waitValue is rule "value". Only writes by calls that were over before are known; where several may have ended the wait, it comes after what
// they have in common. It returns false if there is none.
func (m *machine) waitValue(at moment, on happens.Lane, address, value, bytes, flags uint64) bool {
	var clock happens.Clock
	found := false
	for _, write := range m.writes[address] {
		switch {
		case write.end >= at.begin:
		case write.bytes < bytes:
			return false // what the other bytes hold is not known
		case !ends(write.value, value, bytes, flags):
		case write.unfenced:
			return false // what was written before may show later
		case found:
			clock = happens.Common(clock, write.clock)
		default:
			clock, found = write.clock, true
		}
	}
	if found && !m.checker.Includes(on, clock) {
		m.leaned = true
		if m.pass.assume {
			m.checker.After(on, clock)
		}
	}
	return found
}

// endContext is rule "context". Whether the driver waits for the context's work is not documented.
func (m *machine) endContext(at moment, handle uint64) {
	c := m.contexts[handle]
	if c == nil {
		return
	}
	for _, s := range c.streams {
		for _, t := range s.tracks {
			if !m.checker.Includes(at.thread.lane, m.checker.Now(t.lane)) {
				m.report.Uncovered["the end of a context whose work its thread had not waited for"]++
				return
			}
		}
	}
	for _, is := range m.allocations.all() {
		if is.context == c && !is.dead {
			m.takeBack(at, is)
		}
	}
	for handle, s := range m.streams {
		if s.context == c {
			delete(m.streams, handle)
		}
	}
	delete(m.contexts, handle)
}

// ends says whether a value in memory ends a wait for a value of so many bytes.
func ends(is, want, bytes, flags uint64) bool {
	beyond := 64 - 8*min(bytes, 8) // bits
	switch flags & 3 {
	case waitEqual:
		return (is^want)<<beyond == 0
	case waitAnd:
		return is&want<<beyond != 0
	case waitNor:
		return ^(is|want)<<beyond != 0
	}
	return int64((is-want)<<beyond) >= 0 // the driver compares cyclically
}

// recordContext is rule "event" for all streams of a context, as a green context's event has it.
func (m *machine) recordContext(at moment, c *context, e *event) {
	lane := m.checker.Lane()
	m.threadOrder(lane, at.thread)
	for _, s := range c.streams {
		m.streamOrder(lane, s, at)
	}
	m.recordClock(at, e, m.checker.Now(lane))
}

// waitContext makes what is submitted later to all streams of a context wait for an event, also to those that are created later.
func (m *machine) waitContext(at moment, c *context, e *event) {
	if c.gate == nil {
		c.gate = &stream{name: "all streams of a context", context: c}
	}
	m.waitEvent(at, c.gate, e)
}

// gateOrder is rule "event" for what comes on a lane of a stream whose context waits for events.
func (m *machine) gateOrder(on happens.Lane, s *stream, at moment) {
	if gate := s.context.gate; gate != nil && gate != s {
		m.streamOrder(on, gate, at)
	}
}

func whole(is *memory) []happens.Access {
	return []happens.Access{{Low: is.Address, High: is.Address + is.Bytes, Mode: happens.Write}}
}

// place is what kind of memory a copy's side is in.
type place uint8

const (
	device place = iota
	pageable
	pinned
	managed
)
