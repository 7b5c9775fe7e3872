// The rules of order against brute force: random programs of all kinds of calls on two threads and in two contexts, with the events of a framework's
// allocator, where each call looks at all calls before it. What is known to have happened is a set of pieces of work, not a clock. With DAGRUN_LONG set,
// 100,000 programs are compared.

package order

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/dagrun/dagrun/internal/happens"
	"github.com/dagrun/dagrun/internal/recording"
	"github.com/stretchr/testify/require"
)

// works is a set of pieces of work, by number.
type works [5]uint64

func (w works) has(i int) bool { return w[i/64]>>(i%64)&1 != 0 }

func (w works) with(i int) works {
	w[i/64] |= 1 << (i % 64)
	return w
}

func (w works) or(other works) works {
	for i := range w {
		w[i] |= other[i]
	}
	return w
}

func (w works) and(other works) works {
	for i := range w {
		w[i] &= other[i]
	}
	return w
}

// work is what one call does on a device or the host, or one node of a graph does.
type work struct {
	call, node int
	after      works // what is known to have happened before it
	modes      [bruteBytes]happens.Mode
}

const (
	bruteBase   = 0x10_0000
	bruteStride = 0x1000
	bruteBytes  = 5 * 8 // five buffers of eight bytes: two of the device, one in stream order, one pinned, and one in which tensors lie
	bruteTensor = bruteBase + 4*bruteStride
)

// lineup is a stream: its handle, and its context or, of a default stream of a thread, the thread too.
type lineup struct{ context, handle, thread uint64 }

// anyStream stands for all streams of a context, which wait for an event.
const anyStream = 99

// done is a call that brute force has looked at.
type done struct {
	c        *recording.Call
	queued   bool // it put something on a stream
	stream   lineup
	own      []int // its pieces of work
	knows    works // by what comes after its work on the stream: the work, and what it came after
	before   works // by a programmatic launch that follows: what its work came after
	kernel   bool
	returned works // what its thread knows when it returns
	event    uint64
	launched bool // it is a launch that records an event, it is not known which
	recorded works
	renewed  bool // it created or destroyed the event
	exec     uint64
}

type bruteForce struct {
	p     *recording.Process
	calls []*done
	works []work
	fresh [bruteBytes]int // pieces of work when the byte was last allocated
	since [][bruteBytes]int
	freed map[uint64]works
	alive map[uint64]*recording.Call // allocations, and the call that made each
	kinds map[uint64]uint64          // of streams: 0 legacy, 1 per thread, 2 blocking, 3 nonblocking
	exec  map[uint64]*recording.GraphInfo

	tensors []bruteTensorInfo
	traced  bool // a tensor was given out
	doubt   int  // the piece of work that all comes after which waits for a value that nothing known writes; 0 is none
}

// bruteTensorInfo is a tensor, or the memory of one that came back and was not given out again.
type bruteTensorInfo struct {
	low, high uint64
	stream    lineup
	back      int // index of the event at which it came back, -1 before
}

func (b *bruteForce) stream(context uint64, thread uint32, handle uint64) lineup {
	switch b.kinds[handle] {
	case 0:
		return lineup{context: context, handle: handle}
	case 1:
		return lineup{context: context, handle: handle, thread: uint64(thread)}
	}
	return lineup{context: bruteContext(handle), handle: handle}
}

// bruteContext is the context in which a stream was created.
func bruteContext(handle uint64) uint64 {
	if handle >= 14 {
		return 2
	}
	return 1
}

func (b *bruteForce) blocking(s lineup) bool { return b.kinds[s.handle] == 1 || b.kinds[s.handle] == 2 }

// orders says whether work on one stream comes before later work on another without an event.
func (b *bruteForce) orders(one, other lineup) bool {
	return one == other || one.context == other.context && (one.handle == 0 && b.blocking(other) || other.handle == 0 && b.blocking(one))
}

// gated returns what the waits of a context make work of its streams come after.
func (b *bruteForce) gated(c *recording.Call, context uint64) (after works) {
	for _, d := range b.calls {
		if d.queued && d.stream == (lineup{context, anyStream, 0}) && d.c.End < c.Begin {
			after = after.or(d.knows)
		}
	}
	return after
}

// preceding returns what comes before work that a call puts on a stream, apart from the waits of the context.
func (b *bruteForce) preceding(c *recording.Call, on lineup, host works) works {
	for _, d := range b.calls {
		if d.queued && d.c.End < c.Begin && b.orders(d.stream, on) {
			host = host.or(d.knows)
		}
	}
	return host
}

// enqueued returns what comes before work that a call puts on a stream.
func (b *bruteForce) enqueued(c *recording.Call, on lineup, host works) works {
	return b.preceding(c, on, host).or(b.gated(c, on.context))
}

// all returns what the streams of a context were given before a call.
func (b *bruteForce) all(c *recording.Call, context uint64) (work works) {
	for _, d := range b.calls {
		if d.queued && d.stream.context == context && d.stream.handle != anyStream && d.c.End < c.Begin {
			work = work.or(d.knows)
		}
	}
	return work
}

// complete returns what an event or a wait for it stands for.
func (b *bruteForce) complete(index int, c *recording.Call, event uint64) works {
	var candidates, launches []*done
	for _, d := range b.calls {
		if d.launched {
			launches = append(launches, d)
		}
		if d.event != event {
			continue
		}
		if d.renewed {
			candidates = nil
			launches = slices.DeleteFunc(launches, func(l *done) bool { return l.c.End < d.c.Begin })
		} else {
			candidates = append(candidates, d)
		}
	}
	replaced := func(d *done) bool {
		return slices.ContainsFunc(candidates, func(later *done) bool { return d.c.End < later.c.Begin && later.c.End < c.Begin })
	}
	known := works{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}
	settled := false
	for _, d := range candidates {
		if !replaced(d) {
			known = known.and(d.recorded)
			settled = settled || d.c.End < c.Begin
		}
	}
	if !settled {
		known = works{}
	}
	for _, l := range launches {
		if !replaced(l) {
			known = known.and(l.recorded).or(b.doubtful(index))
		}
	}
	return known
}

// doubtful is what comes before all whose order is not known.
func (b *bruteForce) doubtful(index int) works {
	if b.doubt == 0 {
		b.doubt = b.add(index, -1, works{}, nil)
	}
	return works{}.with(b.doubt)
}

func (b *bruteForce) add(call, node int, after works, accesses []happens.Access) int {
	w := work{call: call, node: node, after: after}
	for _, access := range accesses {
		for at := access.Low; at < access.High; at++ {
			w.modes[(at-bruteBase)/bruteStride*8+(at-bruteBase)%bruteStride] |= access.Mode
		}
	}
	b.works = append(b.works, w)
	b.since = append(b.since, b.fresh)
	return len(b.works) - 1
}

func bruteWhole(address uint64) []happens.Access {
	return []happens.Access{{Low: address, High: address + 8, Mode: happens.Write}}
}

func (b *bruteForce) runs(number uint64) (out []happens.Access) {
	for _, run := range b.p.Accesses[number].Runs {
		out = append(out, happens.Access{Low: run.Address, High: run.Address + uint64(run.Bytes), Mode: happens.Mode(run.Modes)})
	}
	return out
}

// arguments returns what a kernel's parameters point into.
func (b *bruteForce) arguments(c *recording.Call) (out []happens.Access) {
	for at := 0; at+8 <= len(c.Tail); at += 8 {
		address := wordOf(c.Tail[at:])
		mode := happens.PossibleRead | happens.PossibleWrite
		if c.Args[launchFunction] == bruteConst && at == 0 {
			mode = happens.PossibleRead
		}
		found := false
		for _, t := range b.tensors {
			if t.low <= address && address < t.high {
				out = append(out, happens.Access{Low: t.low, High: t.high, Mode: mode})
				found = true
			}
		}
		base := address &^ (bruteStride - 1)
		if !found && address < base+8 && b.alive[base] != nil && (base != bruteTensor || !b.traced) {
			out = append(out, happens.Access{Low: base, High: base + 8, Mode: mode})
		}
	}
	return out
}

// Functions of the kernels: one that is measured, one with accesses that cannot be, and one whose first parameter is const.
const (
	bruteKernel = 1 + iota
	bruteOpaque
	bruteConst
)

func (b *bruteForce) launched(c *recording.Call) []happens.Access {
	switch {
	case c.Args[launchNumber] == 0:
		return b.arguments(c)
	case c.Args[launchFunction] == bruteOpaque:
		return append(b.runs(c.Args[launchNumber]), b.arguments(c)...)
	}
	return b.runs(c.Args[launchNumber])
}

// host returns what a thread knows when a call begins.
func (b *bruteForce) host(c *recording.Call, pass pass) (host works) {
	for _, other := range b.calls {
		if other.c.Thread == c.Thread || pass.assume && other.c.End < c.Begin {
			host = host.or(other.returned)
		}
	}
	return host
}

// tensor looks at an event of a framework's allocator.
func (b *bruteForce) tensor(index int, event *recording.TensorEvent, pass pass) {
	c := &recording.Call{Record: recording.Record{Thread: event.Thread}, Begin: event.Sequence, End: event.Sequence}
	host := b.host(c, pass)
	low, high := event.Address, event.Address+event.Bytes
	overlaps := func(t bruteTensorInfo) bool { return t.low < high && low < t.high }
	if event.Action == recording.TensorFreeCompleted {
		for i := range b.tensors {
			if b.tensors[i].low == low {
				b.tensors[i].back = index
			}
		}
		b.calls = append(b.calls, &done{c: c, returned: host})
		return
	}
	for _, t := range b.tensors {
		if overlaps(t) && t.back >= 0 {
			after := b.enqueued(c, t.stream, host)
			own := b.add(-1-t.back, -1, after, []happens.Access{{Low: t.low, High: t.high, Mode: happens.Write}})
			b.calls = append(b.calls, &done{c: c, queued: true, stream: t.stream, knows: after.with(own)})
		}
	}
	b.traced = true
	b.tensors = append(slices.DeleteFunc(b.tensors, overlaps), bruteTensorInfo{low, high, b.stream(b.alive[bruteTensor].Context, event.Thread, event.Stream), -1})
	slices.SortFunc(b.tensors, func(a, b bruteTensorInfo) int { return int(a.low) - int(b.low) })
	b.calls = append(b.calls, &done{c: c, returned: host})
}

// call looks at one call; pass says what counts as order.
func (b *bruteForce) call(index int, c *recording.Call, pass pass) {
	d := &done{c: c}
	host := b.host(c, pass)
	d.returned = host
	wait := func(on lineup, after works) { d.queued, d.stream, d.knows = true, on, after }
	put := func(on lineup, after works, accesses []happens.Access) {
		own := b.add(index, -1, after, accesses)
		d.queued, d.stream, d.own, d.before, d.knows = true, on, []int{own}, after, after.with(own)
	}
	stream := func() lineup { return b.stream(c.Context, c.Thread, c.Args[0]) }
	switch c.Kind {
	case recording.Launch:
		var last *done
		for _, other := range b.calls {
			if other.queued && other.stream == stream() {
				last = other
			}
		}
		after := b.enqueued(c, stream(), host)
		if c.Args[launchFlags]&flagProgrammatic != 0 && last != nil && last.kernel && last.c.End < c.Begin && !pass.programmatic {
			after = host.or(last.before).or(b.gated(c, stream().context))
			for _, other := range b.calls {
				if other.queued && other.stream != stream() && other.c.End < c.Begin && b.orders(other.stream, stream()) {
					after = after.or(other.knows)
				}
			}
		}
		put(stream(), after, b.launched(c))
		d.kernel, d.recorded = true, after
		if event, when := c.LaunchEvent(); event != 0 {
			d.event = event
			if when != recording.EventBegun && pass.programmatic {
				d.recorded = d.knows
			}
		} else {
			d.launched = c.Args[launchFlags]&flagEvent != 0
		}
	case recording.Copy:
		after := b.enqueued(c, stream(), host)
		accesses := []happens.Access{}
		to, from, bytes := c.Args[3], c.Args[4], c.Args[5]
		if c.Args[12] != memoryHost {
			accesses = append(accesses, happens.Access{Low: to, High: to + bytes, Mode: happens.Write})
		}
		if c.Args[13] != memoryHost {
			accesses = append(accesses, happens.Access{Low: from, High: from + bytes, Mode: happens.Read})
		}
		put(stream(), after, accesses)
		pinned := func(address uint64) bool { return (address-bruteBase)/bruteStride == 3 }
		sync := c.Args[2] != 0
		switch {
		case c.Args[12] == memoryHost, sync && (pinned(to) || pinned(from) && c.Args[13] != memoryHost):
			if c.Args[13] != memoryHost || c.Args[12] == memoryHost {
				d.returned = host.or(d.knows)
			} else {
				d.returned = host.or(after)
			}
		case sync && c.Args[13] == memoryHost:
			d.returned = host.or(after)
		}
	case recording.Set:
		put(stream(), b.enqueued(c, stream(), host), []happens.Access{{Low: c.Args[3], High: c.Args[3] + c.Args[4], Mode: happens.Write}})
		if c.Args[2] != 0 && (c.Args[3]-bruteBase)/bruteStride == 3 {
			d.returned = host.or(d.knows)
		}
	case recording.EventRecord:
		wait(stream(), b.enqueued(c, stream(), host))
		d.event, d.recorded = c.Args[2], d.knows
	case recording.StreamWait:
		wait(stream(), b.enqueued(c, stream(), host).or(b.complete(index, c, c.Args[2])))
	case recording.Green:
		if c.Args[2] == 0 {
			d.event, d.recorded = c.Args[1], host.or(b.all(c, c.Args[3]))
			break
		}
		wait(lineup{context: c.Args[3], handle: anyStream}, host.or(b.gated(c, c.Args[3])).or(b.complete(index, c, c.Args[1])))
	case recording.MemoryWrite:
		wait(stream(), b.enqueued(c, stream(), host))
	case recording.MemoryWait:
		wait(stream(), b.enqueued(c, stream(), host).or(b.written(index, c, pass)))
	case recording.EventSync, recording.EventQuery:
		if c.Result == 0 {
			d.returned = host.or(b.complete(index, c, c.Args[0]))
		}
	case recording.StreamSync:
		d.returned = b.preceding(c, stream(), host)
	case recording.ContextSync:
		d.returned = host.or(b.all(c, c.Context))
	case recording.EventCreate:
		d.event, d.renewed = c.Args[0], true
	case recording.Free:
		of := b.alive[c.Args[0]]
		delete(b.alive, c.Args[0])
		if c.Args[1] == allocAsync {
			on := b.stream(c.Context, c.Thread, c.Args[2])
			put(on, b.enqueued(c, on, host), bruteWhole(c.Args[0]))
			b.freed[c.Args[0]] = d.knows
			break
		}
		after := host.or(b.all(c, of.Context))
		own := b.add(index, -1, after, bruteWhole(c.Args[0]))
		d.returned = after.with(own)
		b.freed[c.Args[0]] = d.returned
	case recording.Alloc:
		b.alive[c.Args[0]] = c
		for at := range 8 {
			b.fresh[(c.Args[0]-bruteBase)/bruteStride*8+uint64(at)] = len(b.works)
		}
		known := host
		if pass.assume {
			known = known.or(b.freed[c.Args[0]])
		}
		if c.Args[2] == allocAsync {
			on := b.stream(c.Context, c.Thread, c.Args[3])
			put(on, b.enqueued(c, on, known), bruteWhole(c.Args[0]))
			break
		}
		d.returned = known
	case recording.GraphLaunch:
		b.graph(index, c, d, b.enqueued(c, stream(), host))
	}
	b.calls = append(b.calls, d)
}

// written returns what a wait for a value comes after: what all writes have in common that may have ended it.
func (b *bruteForce) written(index int, c *recording.Call, pass pass) works {
	var known []works
	for _, d := range b.calls {
		if d.c.Kind != recording.MemoryWrite || d.c.Args[2] != c.Args[2] || d.c.End >= c.Begin {
			continue
		}
		is, want := d.c.Args[3], c.Args[3]
		if ended := [4]bool{int32(uint32(is-want)) >= 0, is == want, is&want != 0, uint32(is|want) != ^uint32(0)}; ended[c.Args[5]] {
			known = append(known, d.knows)
		}
	}
	if len(known) == 0 {
		return b.doubtful(index)
	}
	for _, other := range known[1:] {
		known[0] = known[0].and(other)
	}
	if !pass.assume {
		return works{}
	}
	return known[0]
}

// graph looks at a graph launch: the nodes are in an order in which all edges lead forward.
func (b *bruteForce) graph(index int, c *recording.Call, d *done, start works) {
	d.queued, d.stream, d.exec = true, b.stream(c.Context, c.Thread, c.Args[0]), c.Args[2]
	for _, other := range b.calls {
		if other.exec == d.exec {
			start = start.or(other.knows)
		}
	}
	d.knows = start
	info := b.exec[d.exec]
	ends := make([]works, len(info.Nodes))
	for i, node := range info.Nodes {
		after := start
		for _, edge := range info.Edges {
			if int(edge.To) == i {
				after = after.or(ends[edge.From])
			}
		}
		if node.Type == nodeWait {
			after = after.or(b.complete(index, c, wordOf(node.Body)))
		}
		accesses := b.runs(uint64(1_000_000 + int(d.exec)*10 + i))
		if node.Type == nodeSet {
			accesses = bruteWhole(wordOf(node.Body))
		}
		own := b.add(index, i, after, accesses)
		ends[i] = after.with(own)
		d.knows = d.knows.or(ends[i])
		if node.Type == nodeRecord {
			b.calls = append(b.calls, &done{c: c, event: wordOf(node.Body), recorded: ends[i]})
		}
	}
}

func wordOf(data []byte) (word uint64) {
	for i := range 8 {
		word |= uint64(data[i]) << (8 * i)
	}
	return word
}

func bruteConflict(a, d happens.Mode) happens.Conflict {
	const certain = happens.Read | happens.Write | happens.Atomic
	conflict := func(a, d happens.Mode) happens.Conflict {
		switch {
		case a == 0 || d == 0 || (a|d) == happens.Read:
			return happens.NoConflict
		case a|d == happens.Atomic:
			return happens.OrderDependent
		}
		return happens.Race
	}
	if conflict(a&certain, d&certain) == happens.Race {
		return happens.Race
	}
	switch conflict(a&certain|a>>3, d&certain|d>>3) {
	case happens.Race:
		return happens.Possible
	case happens.OrderDependent:
		return happens.OrderDependent
	}
	return happens.NoConflict
}

// bruteKinds are the kinds of the buffers' memory.
var bruteKinds = [5]uint64{1, 1, allocAsync, allocPinned, 1}

// randomProcess makes a program of two threads whose calls may overlap.
func randomProcess(r *rand.Rand) (*recording.Process, *bruteForce) {
	p := &recording.Process{Measured: true, Accesses: map[uint64]*recording.AccessInfo{}, Functions: map[uint64][]recording.FunctionInfo{bruteOpaque: {{Opaque: true}},
		bruteConst: {{Name: "_Z4readPKfPf", Parameters: []recording.Parameter{{Bytes: 8}, {Offset: 8, Bytes: 8}}}}}}
	b := &bruteForce{p: p, freed: map[uint64]works{}, alive: map[uint64]*recording.Call{}, exec: map[uint64]*recording.GraphInfo{},
		kinds: map[uint64]uint64{0: 0, 2: 1, 10: 2, 11: 2, 12: 3, 13: 3, 14: 2, 15: 3}, works: make([]work, 1), since: make([][bruteBytes]int, 1)}
	sequence := uint64(0)
	context := uint64(1)
	ends := map[uint32]int{} // calls that have begun and not ended
	finish := func(thread uint32) {
		if at, open := ends[thread]; open {
			sequence++
			p.Calls[at].End = sequence
			delete(ends, thread)
		}
	}
	do := func(thread uint32, kind recording.Kind, args ...uint64) *recording.Call {
		finish(thread)
		sequence++
		p.Calls = append(p.Calls, recording.Call{Record: recording.Record{Kind: kind, Thread: thread}, Begin: sequence, Context: context, Args: args})
		ends[thread] = len(p.Calls) - 1
		return &p.Calls[len(p.Calls)-1]
	}
	runs := func() (out []recording.Run) {
		for range 1 + r.IntN(2) {
			low := r.Uint64N(8)
			out = append(out, recording.Run{Address: bruteBase + r.Uint64N(5)*bruteStride + low, Bytes: uint32(1 + r.Uint64N(8-low)), Modes: []uint32{1, 1, 2, 2, 3, 4}[r.IntN(6)]})
		}
		return out
	}
	for _, handle := range []uint64{10, 11, 12, 13, 14, 15} {
		context = bruteContext(handle)
		do(1, recording.StreamCreate, handle, b.kinds[handle]-2, 0)
	}
	context = 1
	for i := range uint64(5) {
		do(1, recording.Alloc, bruteBase+i*bruteStride, 8, bruteKinds[i], 0, 0, 0, 0)
	}
	for exec := range uint64(2) {
		info := recording.GraphInfo{Sequence: sequence, Graph: 50 + exec, Execution: 60 + exec}
		for i := range 2 + r.IntN(3) {
			node := recording.GraphNode{Node: 100 + 10*exec + uint64(i), Type: nodeEmpty}
			p.Accesses[1_000_000+(60+exec)*10+uint64(i)] = &recording.AccessInfo{}
			switch r.IntN(7 + 10*int(exec)) {
			case 0:
				node.Type, node.Body = nodeWait, body(90+r.Uint64N(2))
			case 1:
				node.Type, node.Body = nodeRecord, body(90+r.Uint64N(2))
			case 2:
				node.Type, node.Body = nodeSet, body(bruteBase+r.Uint64N(5)*bruteStride, 8, 1, 0, 0, 1)
			default:
				node.Type, node.Body = nodeKernel, body(1, 1, 1, 1, 1, 1, 1, 0, 0, 0)
				p.Accesses[1_000_000+(60+exec)*10+uint64(i)].Runs = runs()
			}
			for from := range i {
				if r.IntN(2) == 0 {
					info.Edges = append(info.Edges, recording.GraphEdge{From: uint32(from), To: uint32(i)})
				}
			}
			info.Nodes = append(info.Nodes, node)
		}
		p.Graphs = append(p.Graphs, info)
	}
	for i := range p.Graphs {
		b.exec[p.Graphs[i].Execution] = &p.Graphs[i]
	}
	alive := [5]bool{true, true, true, true, true}
	streams := []uint64{0, 2, 10, 10, 11, 12, 12, 13, 13, 14, 15}
	tensors := map[[2]uint64]bool{} // those that are there, by their bytes
	number := uint64(0)
	for range 6 + r.IntN(26) {
		thread := uint32(1 + r.IntN(2))
		if r.IntN(3) > 0 { // most calls do not overlap
			finish(1)
			finish(2)
		}
		stream := streams[r.IntN(len(streams))]
		context = 1 + bit(r.IntN(5) == 0)
		if b.kinds[stream] > 1 {
			context = bruteContext(stream)
		}
		buffer := r.Uint64N(5)
		at := bruteBase + buffer*bruteStride
		switch r.IntN(23) {
		case 0, 1, 2, 3, 4:
			function := []uint64{bruteKernel, bruteKernel, bruteKernel, bruteOpaque, bruteConst}[r.IntN(5)]
			named := uint64(0)
			if function != bruteConst {
				number++
				named = number
				p.Accesses[number] = &recording.AccessInfo{Runs: runs()}
			}
			c := do(thread, recording.Launch, stream, 0, function, named, 1, 1, 1, 1, 1, 1, 0, bit(r.IntN(4) == 0)*flagProgrammatic|bit(r.IntN(20) == 0)*flagEvent, 0, 0, 0)
			if c.Args[launchFlags]&flagEvent == 0 && r.IntN(10) == 0 {
				c.Args[launchFlags] |= flagEvent
				c.Args[13], c.Args[14] = 90+r.Uint64N(2), []uint64{recording.EventBlocks, recording.EventBegun}[r.IntN(2)]
			}
			c.Tail = body(at+r.Uint64N(8), bruteBase+r.Uint64N(5)*bruteStride+r.Uint64N(10))
		case 5:
			kinds := []uint64{memoryHost, 4, 4}
			to, from := kinds[r.IntN(3)], kinds[r.IntN(3)]
			other := r.Uint64N(5)
			source := bruteBase + other*bruteStride
			if !alive[buffer] || !alive[other] {
				continue // an address that is not known is taken for the host's
			}
			do(thread, recording.Copy, stream, 0, r.Uint64N(2), at, source, 8, 1, 1, 0, 0, 0, 0, to, from, 0, 0)
			if to == memoryHost {
				p.Calls[len(p.Calls)-1].Args[3] = 0x10
			}
			if from == memoryHost {
				p.Calls[len(p.Calls)-1].Args[4] = 0x10
			}
		case 6:
			if !alive[buffer] {
				continue
			}
			do(thread, recording.Set, stream, 0, r.Uint64N(2), at, 8, 1, 0, 0, 1)
		case 7, 8, 9:
			do(thread, recording.EventRecord, stream, 0, 90+r.Uint64N(2), 0)
		case 10, 11, 12:
			do(thread, recording.StreamWait, stream, 0, 90+r.Uint64N(2), 0)
		case 13:
			kind := []recording.Kind{recording.EventSync, recording.EventQuery}[r.IntN(2)]
			c := do(thread, kind, 90+r.Uint64N(2))
			c.Result = int32(600 * bit(kind == recording.EventQuery && r.IntN(2) == 0))
		case 14:
			do(thread, recording.StreamSync, stream)
		case 15:
			if r.IntN(3) == 0 {
				do(thread, recording.ContextSync)
			}
		case 16:
			if r.IntN(4) == 0 {
				do(thread, recording.EventCreate, 90+r.Uint64N(2), 0)
			}
		case 17:
			if buffer == 4 {
				continue // tensors lie in it
			}
			if alive[buffer] {
				do(thread, recording.Free, at, bruteKinds[buffer], stream, 0)
			} else {
				do(thread, recording.Alloc, at, 8, bruteKinds[buffer], stream, 0, 0, 0)
			}
			alive[buffer] = !alive[buffer]
		case 18:
			do(thread, recording.Green, 0, 90+r.Uint64N(2), r.Uint64N(2), 1+r.Uint64N(2))
		case 19:
			kind := []recording.Kind{recording.MemoryWrite, recording.MemoryWait}[r.IntN(2)]
			do(thread, kind, stream, 0, 0x20+4*r.Uint64N(2), r.Uint64N(4), 4, bit(kind == recording.MemoryWait)*r.Uint64N(4))
		case 20:
			sequence++
			bytes := [][2]uint64{{0, 4}, {4, 8}, {0, 8}}[r.IntN(3)]
			event := recording.TensorEvent{Sequence: sequence, Address: bruteTensor + bytes[0], Bytes: bytes[1] - bytes[0], Stream: stream, Thread: thread, Action: recording.TensorAlloc}
			free := true
			for other := range tensors {
				free = free && (other[1] <= bytes[0] || bytes[1] <= other[0])
			}
			switch {
			case tensors[bytes]:
				event.Action = recording.TensorFreeCompleted
				delete(tensors, bytes)
			case !free:
				continue
			default:
				tensors[bytes] = true
			}
			p.Tensors = append(p.Tensors, event)
		default:
			exec := 60 + r.Uint64N(2)
			c := do(thread, recording.GraphLaunch, stream, 0, exec, 0)
			begin := c.Begin
			for i, node := range b.exec[exec].Nodes {
				p.Calls = append(p.Calls, recording.Call{Record: recording.Record{Kind: recording.NodeAccess, Thread: 1}, Begin: 1 << 40, End: 1 << 40, Args: append([]uint64{exec, begin, node.Node, 1_000_000 + exec*10 + uint64(i)}, make([]uint64, 7)...)})
			}
		}
	}
	finish(1)
	finish(2)
	slices.SortStableFunc(p.Calls, func(a, b recording.Call) int { return int(a.Begin) - int(b.Begin) })
	return p, b
}

func TestRandomProgramsAgreeWithBruteForce(t *testing.T) {
	programs := 2000
	switch {
	case os.Getenv("DAGRUN_LONG") != "":
		programs = 100_000
	case testing.Short():
		programs = 600
	}
	clean, racy, doubtful, possible := 0, 0, 0, 0
	for seed := range programs {
		r := rand.New(rand.NewPCG(uint64(seed), 2))
		p, b := randomProcess(r)
		pass := pass{assume: r.IntN(3) > 0, programmatic: r.IntN(2) == 0}
		tensor := 0
		for i := range p.Calls {
			for ; tensor < len(p.Tensors) && p.Tensors[tensor].Sequence < p.Calls[i].Begin; tensor++ {
				b.tensor(tensor, &p.Tensors[tensor], pass)
			}
			if p.Calls[i].Kind != recording.NodeAccess {
				b.call(i, &p.Calls[i], pass)
			}
		}
		for ; tensor < len(p.Tensors); tensor++ {
			b.tensor(tensor, &p.Tensors[tensor], pass)
		}
		x, err := newIndex(p)
		require.NoError(t, err)
		m := emptyMachine(p, x, pass)
		var told []toldPair
		number := map[[2]int]int{}
		for i, w := range b.works {
			number[[2]int{w.call, w.node}] = i
		}
		of := func(step, node int32) int {
			act := m.acts[step]
			switch {
			case act.graph == nil:
				node = -1
			case act.node >= 0:
				node = act.node
			}
			return number[[2]int{int(act.call), int(node)}]
		}
		m.checker = happens.New(func(pair happens.Pair) {
			for at := pair.Low; at < pair.High; at++ {
				told = append(told, toldPair{of(pair.First, pair.FirstNode), of(pair.Second, pair.SecondNode), int((at-bruteBase)/bruteStride*8 + (at-bruteBase)%bruteStride), pair.Conflict})
			}
		}, nil)
		m.run()
		for step, act := range m.acts {
			if w := of(int32(step), 0); w != b.doubt {
				require.Equal(t, b.doubt > 0 && b.works[w].after.has(b.doubt), act.doubtful, "seed %d, call %d", seed, act.call)
			}
		}
		wrong := b.compare(told)
		require.Empty(t, wrong, "seed %d", seed)
		doubtful += int(bit(slices.ContainsFunc(m.acts, func(a act) bool { return a.doubtful })))
		possible += int(bit(slices.ContainsFunc(told, func(p toldPair) bool { return p.conflict == happens.Possible })))
		if len(told) == 0 {
			clean++
		} else {
			racy++
		}
	}
	require.Greater(t, clean, programs/50)
	require.Greater(t, racy, programs/5)
	require.Greater(t, doubtful, programs/20)
	require.Greater(t, possible, programs/5)
	t.Logf("%d programs: %d without a race, %d with one, %d with possible ones, %d with a wait that something unknown ends", programs, clean, racy, possible, doubtful)
}

type toldPair struct {
	a, d, byte int
	conflict   happens.Conflict
}

// compare returns a difference: a pair that was told though it is ordered or does not conflict, or one that was not told and would not be mended with
// one that was.
func (b *bruteForce) compare(told []toldPair) string {
	all := map[toldPair]bool{}
	for d := range b.works {
		for byte := range bruteBytes {
			for a := b.since[d][byte]; a < d; a++ {
				if conflict := bruteConflict(b.works[a].modes[byte], b.works[d].modes[byte]); conflict != happens.NoConflict && !b.works[d].after.has(a) {
					all[toldPair{a, d, byte, conflict}] = true
				}
			}
		}
	}
	for _, pair := range told {
		if !all[pair] {
			return fmt.Sprintf("told, but wrong: %+v", pair)
		}
	}
	for pair := range all {
		if !slices.ContainsFunc(told, func(other toldPair) bool {
			return other.byte == pair.byte && other.conflict >= pair.conflict && (other.a == pair.a || b.works[other.a].after.has(pair.a)) &&
				(other.d == pair.d || b.works[pair.d].after.has(other.d))
		}) {
			return fmt.Sprintf("not told: %+v", pair)
		}
	}
	return ""
}
