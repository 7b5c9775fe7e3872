// Package order proves that what a program did on its GPUs was in order: it goes through a recording by CUDA's rules of order (rules.go), and
// reports conflicting accesses that nothing orders.
package order

import (
	"github.com/dagrun/dagrun/internal/happens"
	"github.com/dagrun/dagrun/internal/recording"
)

// Check goes through what a process did.
func Check(p *recording.Process, options Options) (*Report, error) {
	x, err := newIndex(p)
	if err != nil {
		return nil, err
	}
	first := newMachine(p, x, options, pass{assume: !options.StrictThreads, programmatic: true})
	if options.Strict {
		first.watch()
	}
	first.run()
	report := first.report
	for _, r := range first.found(nil, "") {
		if r.Because != "" {
			report.Possible = append(report.Possible, r)
		} else {
			report.Races = append(report.Races, r)
		}
	}
	if first.loosened {
		second := newMachine(p, x, options, pass{assume: !options.StrictThreads})
		if options.Strict {
			second.watch()
		}
		second.run()
		first.needToo(second)
		report.Possible = append(report.Possible, second.found(first, "programmatic")...)
	}
	if first.leaned && !options.StrictThreads {
		third := newMachine(p, x, options, pass{programmatic: true})
		third.run()
		report.Assumed = third.found(first, "assumed")
	}
	if options.Strict {
		report.Strict = first.strictReport()
		report.Strict.locate(p)
	}
	return report, nil
}

func newMachine(p *recording.Process, x *index, options Options, pass pass) *machine {
	m := emptyMachine(p, x, pass)
	m.hostAccesses, m.since = options.HostAccesses || p.Host, options.Since
	m.checker = happens.New(m.pair, nil)
	return m
}

// run goes through the calls and the events of allocators in the order in which they began.
func (m *machine) run() {
	p := m.process
	m.report.Cut = p.Cut || p.Lost > 0
	for _, note := range p.Notes {
		if note.Code == recording.NoteUncovered {
			m.report.Uncovered[note.Text]++
		}
	}
	tensor := 0
	for i := range p.Calls {
		call := &p.Calls[i]
		for tensor < len(p.Tensors) && p.Tensors[tensor].Sequence < call.Begin {
			m.tensorEvent(tensor)
			tensor++
		}
		m.call(i, call)
	}
	for ; tensor < len(p.Tensors); tensor++ {
		m.tensorEvent(tensor)
	}
	m.idleGraphs()
}

// tensorEvent applies an event of a framework's allocator.
func (m *machine) tensorEvent(index int) {
	event := &m.process.Tensors[index]
	at := moment{begin: event.Sequence, end: event.Sequence, thread: m.thread(event.Thread)}
	m.threadsOrder(at)
	switch event.Action {
	case recording.TensorAlloc:
		if event.Bytes == 0 || event.Address+event.Bytes < event.Address {
			break
		}
		in := m.allocations.at(event.Address)
		context := m.last
		if in != nil {
			in.traced = true
			context = in.context
		}
		m.reuseTensors(at, event)
		m.tensors.put(event.Address, event.Address+event.Bytes,
			&memory{Memory: Memory{What: "tensor", Address: event.Address, Bytes: event.Bytes, Place: event.Place},
				stream: m.stream(context, event.Thread, event.Stream)})
		m.checker.Unwritten(event.Address, event.Address+event.Bytes)
	case recording.TensorFreeCompleted:
		if is := m.tensors.at(event.Address); is != nil && is.Address == event.Address && !is.dead {
			is.dead, is.taken = true, int32(index)
		}
	}
}

// call applies a call of the driver.
func (m *machine) call(index int, c *recording.Call) {
	at := moment{index: int32(index), begin: c.Begin, end: c.End, thread: m.thread(c.Thread)}
	m.threadsOrder(at)
	m.earlier = c.Begin < m.since
	if c.Result != 0 && c.Kind != recording.CaptureEnd {
		return
	}
	in := m.context(c.Context)
	m.last = in
	switch c.Kind {
	case recording.Launch:
		m.launch(at, c, in)
	case recording.Copy:
		m.copy(at, c, in)
	case recording.Set:
		m.set(at, c, in)
	case recording.EventRecord:
		s, e := m.stream(in, c.Thread, c.Args[0]), m.event(c.Args[2])
		if c.Args[1] != 0 {
			break // a node that will record it when the graph runs
		}
		if e.capture = s.capture; s.capture == nil {
			m.recordEvent(at, s, e)
		}
	case recording.StreamWait:
		s, e := m.stream(in, c.Thread, c.Args[0]), m.event(c.Args[2])
		if s.capture == nil && e.capture != nil {
			m.join(s, e.capture)
		}
		if s.capture == nil && c.Args[1] == 0 {
			m.waitEvent(at, s, e)
		} else if m.strict != nil {
			m.strict.skipped[at.index] = true
		}
	case recording.EventSync, recording.EventQuery, recording.StreamSync, recording.StreamQuery, recording.ContextSync:
		m.synchronize(at, c, in)
	case recording.EventCreate:
		m.events[c.Args[0]] = &event{created: c.Begin}
	case recording.EventDestroy:
		delete(m.events, c.Args[0])
	case recording.StreamCreate:
		m.createStream(in, c.Args[0], c.Args[1]&1 == 0)
	case recording.StreamDestroy:
		delete(m.streams, c.Args[0])
	case recording.Alloc:
		m.alloc(at, c, in)
	case recording.Free:
		m.free(at, c, in)
	case recording.HostFunction:
		if s := m.stream(in, c.Thread, c.Args[0]); s.capture == nil && c.Args[1] == 0 {
			on := m.enqueue(at, s)
			m.step(at, on, s, nil)
			m.ranFunction(on)
		}
	case recording.MemoryWrite, recording.MemoryWait:
		m.value(at, c, in)
	case recording.Prefetch:
		if s := m.stream(in, c.Thread, c.Args[0]); s.capture == nil && c.Args[1] == 0 {
			m.enqueue(at, s) // moving managed memory changes no byte
		}
	case recording.TensorMap:
		m.tensorMap(c)
	case recording.Green:
		if e, of := m.event(c.Args[1]), m.context(c.Args[3]); c.Args[2] == 0 {
			m.recordContext(at, of, e)
		} else {
			m.waitContext(at, of, e)
		}
	case recording.Context:
		m.contextCall(at, c)
	case recording.CaptureBegin:
		m.join(m.stream(in, c.Thread, c.Args[0]), &capture{})
	case recording.CaptureEnd:
		if of := m.stream(in, c.Thread, c.Args[0]).capture; of != nil {
			for _, s := range of.streams {
				s.capture = nil
			}
		}
	case recording.GraphLaunch:
		if s := m.stream(in, c.Thread, c.Args[0]); s.capture == nil && c.Args[1] == 0 {
			m.launchGraph(at, c, s)
		}
	case recording.Instantiate:
		delete(m.executed, c.Args[0]) // the handle may have meant another before
	case recording.Update:
		m.updates[c.Args[0]] = c.Begin
	case recording.HostAccess:
		m.touch(at, c)
	case recording.Uncovered:
		m.report.Uncovered[string(c.Tail)]++
	}
}

// contextCall applies a call that ends a context, as the last release of a device's primary context does. Releases and resets name the device: where
// its context was not seen to be retained, a reset can only be followed if one context did all the work.
func (m *machine) contextCall(at moment, c *recording.Call) {
	context, device := c.Args[0], c.Args[2]
	primary, retained := m.primary[device]
	switch action := c.Args[1]; {
	case action == contextDestroyed:
		m.endContext(at, context)
	case action == contextRetained:
		m.primary[device] = primaryContext{context, primary.users + 1}
	case action == contextReleased && primary.users > 1:
		m.primary[device] = primaryContext{primary.handle, primary.users - 1}
	case action == contextReleased && !retained:
		m.report.Uncovered["the release of a device's context that was not seen to be retained"]++
	case retained && (action == contextReleased || action == contextReset):
		delete(m.primary, device)
		m.endContext(at, primary.handle)
	case action == contextReset:
		var used []uint64
		for handle, of := range m.contexts {
			if len(of.streams) > 0 {
				used = append(used, handle)
			}
		}
		switch len(used) {
		case 0:
		case 1:
			m.endContext(at, used[0])
		default:
			m.report.Uncovered["the reset of a device, where there are several contexts"]++
		}
	}
}

func (m *machine) synchronize(at moment, c *recording.Call, in *context) {
	m.note(at, "the host")
	before := m.checker.Now(at.thread.lane)
	m.checker.Tag(at.index)
	switch c.Kind {
	case recording.EventSync, recording.EventQuery:
		if m.afterEvent(at, at.thread.lane, m.event(c.Args[0])) {
			m.learned++
		}
	case recording.ContextSync:
		m.learnContext(at, in)
	default:
		m.learnStream(at, m.stream(in, c.Thread, c.Args[0]))
	}
	m.checker.Tag(-1)
	m.synchronized(at, before)
}

// join is rule "capture": a stream becomes part of a capture.
func (m *machine) join(s *stream, c *capture) {
	s.capture = c
	c.streams = append(c.streams, s)
}

func (m *machine) launch(at moment, c *recording.Call, in *context) {
	s := m.stream(in, c.Thread, c.Args[launchStream])
	f := m.function(c.Args[launchFunction], c.Begin)
	event, when := c.LaunchEvent()
	records := c.Args[launchFlags]&flagEvent != 0
	if records && (event == 0 || s.capture != nil || c.Args[launchNode] != 0) {
		m.report.Uncovered["a launch that records an event"]++
	}
	if s.capture != nil || c.Args[launchNode] != 0 {
		m.nodes[c.Args[launchNode]] = captured{at.index, records, m.argumentAccesses(nil, f, c.Tail)}
		return
	}
	if m.visit != nil {
		m.visit(c)
	}
	on := m.enqueueLaunch(at, s, c.Args[launchFlags]&flagProgrammatic != 0)
	if records && event == 0 {
		m.recorders = append(m.recorders, record{at.index, at.begin, at.end, s.last.start})
	}
	m.buffer = m.launchAccesses(m.buffer[:0], f, c.Args[launchNumber], func(into []happens.Access) []happens.Access {
		return m.argumentAccesses(into, f, c.Tail)
	})
	m.step(at, on, s, m.buffer)
	m.showsHost(on, m.buffer)
	if event != 0 {
		m.recordLaunch(at, s, event, when)
	}
}

func (m *machine) copy(at moment, c *recording.Call, in *context) {
	s := m.stream(in, c.Thread, c.Args[0])
	if s.capture != nil || c.Args[1] != 0 {
		m.nodes[c.Args[1]] = captured{call: at.index}
		return
	}
	from, to := m.sides(c.Args[3:])
	before, after := copied(c.Args[2] != 0, from, to)
	on := m.enqueue(at, s)
	if before {
		m.learn(at.thread, m.checker.Now(on))
	}
	m.hostAccess(at, c.Args[3:], from == pageable, happens.Read)
	m.threadOrder(on, at.thread)
	m.buffer = m.copyAccesses(m.buffer[:0], c.Args[3:])
	m.step(at, on, s, m.buffer)
	m.showsHost(on, m.buffer)
	if m.strict != nil && c.Args[2] != 0 && after && (from == pinned || to == pinned) {
		m.strict.pinned[at.index] = true
	}
	if after {
		m.learn(at.thread, m.checker.Now(on))
	}
	m.hostAccess(at, c.Args[3:], to == pageable, happens.Write)
}

// hostAccess tells of a side of a copy that is in pageable memory, which the thread itself accesses.
func (m *machine) hostAccess(at moment, words []uint64, pageable bool, mode happens.Mode) {
	if !m.hostAccesses || !pageable {
		return
	}
	address, pitch, slice := words[copyFrom], words[copyFromPitch], words[copyFromSlice]
	if mode == happens.Write {
		address, pitch, slice = words[copyTo], words[copyToPitch], words[copyToSlice]
	}
	m.buffer = stretches(m.buffer[:0], mode, address, words[copyBytes], words[copyRows], words[copySlices], pitch, slice)
	m.step(at, at.thread.lane, nil, m.buffer)
	m.learned++
}

// touch is what a thread did to memory of the host by itself, in its own order.
func (m *machine) touch(at moment, c *recording.Call) {
	mode := happens.Read
	if c.Args[2]&recording.Write != 0 {
		mode = happens.Write
	}
	m.buffer = stretches(m.buffer[:0], mode, c.Args[0], c.Args[1], 1, 1, 0, 0)
	m.step(at, at.thread.lane, nil, m.buffer)
	m.learned++ // others may come to know of it
}

func (m *machine) value(at moment, c *recording.Call, in *context) {
	s := m.stream(in, c.Thread, c.Args[0])
	if s.capture != nil || c.Args[1] != 0 {
		return
	}
	on := m.enqueue(at, s)
	address, value, bytes := c.Args[2], c.Args[3], c.Args[4] // these bytes are no race: they are for ordering others
	if c.Kind == recording.MemoryWait {
		if !m.waitValue(at, on, address, value, bytes, c.Args[5]) {
			m.report.Uncovered["a wait for a value that no call before it writes"]++
			m.doubt(at, on)
		}
		return
	}
	m.writes[address] = append(m.writes[address], valueWrite{at.end, value, bytes, c.Args[5]&writeUnfenced != 0, m.checker.Now(on)})
}

// tensorMap keeps what a descriptor of tensor copies reaches.
func (m *machine) tensorMap(c *recording.Call) {
	rank := c.Args[2]
	if len(c.Tail) != mapBytes || rank == 0 || rank > 5 || uint64(len(c.Args)) < 3+2*rank-1 {
		m.report.Uncovered["cuTensorMapEncode of a shape that is not known"]++
		return
	}
	dimensions, strides := c.Args[3:3+rank], c.Args[3+rank:]
	bytes := dimensions[0] * c.Args[1]
	for i := range rank - 1 {
		bytes += (dimensions[i+1] - 1) * strides[i]
	}
	m.maps[[mapBytes]byte(c.Tail)] = happens.Access{Low: c.Args[0], High: c.Args[0] + bytes, Mode: happens.PossibleRead | happens.PossibleWrite}
}

func (m *machine) set(at moment, c *recording.Call, in *context) {
	s := m.stream(in, c.Thread, c.Args[0])
	if s.capture != nil || c.Args[1] != 0 {
		m.nodes[c.Args[1]] = captured{call: at.index}
		return
	}
	on := m.enqueue(at, s)
	m.buffer = setAccesses(m.buffer[:0], c.Args[3:])
	m.step(at, on, s, m.buffer)
	if setSynchronously(c.Args[2] != 0, m.place(0, c.Args[3])) {
		m.learn(at.thread, m.checker.Now(on))
	}
}

var allocNames = map[uint64]string{allocPinned: "pinned memory", allocManaged: "managed memory", allocRegistered: "pinned memory", allocArray: "array"}

func (m *machine) alloc(at moment, c *recording.Call, in *context) {
	is := &memory{Memory: Memory{What: "allocation", Address: c.Args[0], Bytes: c.Args[1], Place: c.Place}, kind: c.Args[2], context: in}
	if is.kind == allocImported {
		m.report.Uncovered["memory of another process or library"]++
	}
	if name := allocNames[is.kind]; name != "" {
		is.What = name
	}
	if c.Args[6] != 0 || is.Bytes == 0 || is.Address+is.Bytes < is.Address {
		return
	}
	low, high := is.Address, is.Address+is.Bytes
	m.tensors.drop(low, high) // of an allocation that lay there before
	if is.kind == allocAsync {
		s := m.stream(in, c.Thread, c.Args[3])
		on := m.enqueue(at, s)
		m.reuse(on, low, high)
		m.allocations.put(low, high, is)
		m.step(at, on, s, whole(is))
		m.checker.Unwritten(low, high)
		return
	}
	m.reuse(at.thread.lane, low, high)
	m.learned++
	m.allocations.put(low, high, is)
}

func (m *machine) free(at moment, c *recording.Call, in *context) {
	is := m.allocations.at(c.Args[0])
	if is == nil || is.dead || is.Address != c.Args[0] || c.Args[3] != 0 {
		return
	}
	if c.Args[1] == allocAsync {
		s := m.stream(in, c.Thread, c.Args[2])
		on := m.enqueue(at, s)
		m.step(at, on, s, whole(is))
		is.dead, is.freed = true, m.checker.Now(on)
		return
	}
	m.release(at, is)
}
