// The rules of order against brute force: random programs of all kinds of calls on two threads, where each call looks at all calls before it. What
// is known to have happened is a set of pieces of work, not a clock. With DAGRUN_LONG set, 100,000 programs are compared.

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
type works [4]uint64

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
	bruteBytes  = 4 * 8 // four buffers of eight bytes
)

// done is a call that brute force has looked at.
type done struct {
	c        *recording.Call
	stream   string // of what it put on a stream; "" if nothing
	own      []int  // its pieces of work
	knows    works  // by what comes after its work on the stream: the work, and what it came after
	before   works  // by a programmatic launch that follows: what its work came after
	kernel   bool
	returned works // what its thread knows when it returns
	event    uint64
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
	kinds map[uint64]uint64 // of streams: 0 legacy, 1 per thread, 2 blocking, 3 nonblocking
	exec  map[uint64]*recording.GraphInfo
}

func (b *bruteForce) name(thread uint32, handle uint64) string {
	if handle == 2 {
		return fmt.Sprint("thread ", thread)
	}
	return fmt.Sprint("stream ", handle)
}

func (b *bruteForce) blocking(name string) bool {
	return name != "stream 0" && b.kinds[handleOf(name)] != 3
}

func handleOf(name string) uint64 {
	var handle uint64
	if _, err := fmt.Sscanf(name, "stream %d", &handle); err != nil {
		return 2
	}
	return handle
}

// orders says whether work on one stream comes before later work on another without an event.
func (b *bruteForce) orders(one, other string) bool {
	return one == other || one == "stream 0" && b.blocking(other) || other == "stream 0" && b.blocking(one)
}

// enqueued returns what comes before work that a call puts on a stream.
func (b *bruteForce) enqueued(c *recording.Call, on string, host works) works {
	for _, d := range b.calls {
		if d.stream != "" && d.c.End < c.Begin && b.orders(d.stream, on) {
			host = host.or(d.knows)
		}
	}
	return host
}

// complete returns what an event or a wait for it stands for.
func (b *bruteForce) complete(c *recording.Call, event uint64) works {
	var candidates []*done
	for _, d := range b.calls {
		if d.event != event {
			continue
		}
		if d.renewed {
			candidates = nil
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
		return works{}
	}
	return known
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

// call looks at one call; pass says what counts as order.
func (b *bruteForce) call(index int, c *recording.Call, pass pass) {
	d := &done{c: c}
	var host works
	for _, other := range b.calls {
		if other.c.Thread == c.Thread || pass.assume && other.c.End < c.Begin {
			host = host.or(other.returned)
		}
	}
	d.returned = host
	put := func(on string, after works, accesses []happens.Access) {
		own := b.add(index, -1, after, accesses)
		d.stream, d.own, d.before, d.knows = on, []int{own}, after, after.with(own)
	}
	stream := func() string { return b.name(c.Thread, c.Args[0]) }
	switch c.Kind {
	case recording.Launch:
		var last *done
		for _, other := range b.calls {
			if other.stream == stream() {
				last = other
			}
		}
		after := b.enqueued(c, stream(), host)
		if c.Args[launchFlags] != 0 && last != nil && last.kernel && last.c.End < c.Begin && !pass.programmatic {
			after = host.or(last.before)
			for _, other := range b.calls {
				if other.stream != "" && other.stream != stream() && other.c.End < c.Begin && b.orders(other.stream, stream()) {
					after = after.or(other.knows)
				}
			}
		}
		put(stream(), after, b.runs(c.Args[launchNumber]))
		d.kernel = true
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
		d.stream, d.knows, d.event = stream(), b.enqueued(c, stream(), host), c.Args[2]
		d.recorded = d.knows
	case recording.StreamWait:
		d.stream, d.knows = stream(), b.enqueued(c, stream(), host).or(b.complete(c, c.Args[2]))
	case recording.EventSync, recording.EventQuery:
		if c.Result == 0 {
			d.returned = host.or(b.complete(c, c.Args[0]))
		}
	case recording.StreamSync:
		d.returned = b.enqueued(c, b.name(c.Thread, c.Args[0]), host)
	case recording.ContextSync:
		for _, other := range b.calls {
			if other.stream != "" && other.c.End < c.Begin {
				d.returned = d.returned.or(other.knows)
			}
		}
	case recording.EventCreate:
		d.event, d.renewed = c.Args[0], true
	case recording.Free:
		if c.Args[1] == allocAsync {
			put(b.name(c.Thread, c.Args[2]), b.enqueued(c, b.name(c.Thread, c.Args[2]), host), bruteWhole(c.Args[0]))
			b.freed[c.Args[0]] = d.knows
			break
		}
		after := host
		for _, other := range b.calls {
			if other.stream != "" && other.c.End < c.Begin {
				after = after.or(other.knows)
			}
		}
		own := b.add(index, -1, after, bruteWhole(c.Args[0]))
		d.returned = after.with(own)
		b.freed[c.Args[0]] = d.returned
	case recording.Alloc:
		if c.Args[2] == allocAsync {
			put(b.name(c.Thread, c.Args[3]), b.enqueued(c, b.name(c.Thread, c.Args[3]), host).or(b.freed[c.Args[0]]), bruteWhole(c.Args[0]))
			break
		}
		d.returned = host.or(b.freed[c.Args[0]])
		for at := range 8 {
			b.fresh[(c.Args[0]-bruteBase)/bruteStride*8+uint64(at)] = len(b.works)
		}
	case recording.GraphLaunch:
		b.graph(index, c, d, b.enqueued(c, stream(), host))
	}
	b.calls = append(b.calls, d)
}

// graph looks at a graph launch: the nodes are in an order in which all edges lead forward.
func (b *bruteForce) graph(index int, c *recording.Call, d *done, start works) {
	d.stream, d.exec = b.name(c.Thread, c.Args[0]), c.Args[2]
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
			after = after.or(b.complete(c, wordOf(node.Body)))
		}
		own := b.add(index, i, after, b.runs(uint64(1_000_000+int(d.exec)*10+i)))
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
	switch {
	case a == 0 || d == 0 || (a|d) == happens.Read:
		return happens.NoConflict
	case a|d == happens.Atomic:
		return happens.OrderDependent
	}
	return happens.Race
}

// randomProcess makes a program of two threads whose calls may overlap.
func randomProcess(r *rand.Rand) (*recording.Process, *bruteForce) {
	p := &recording.Process{Measured: true, Accesses: map[uint64]*recording.AccessInfo{}, Functions: map[uint64][]recording.FunctionInfo{}}
	b := &bruteForce{p: p, freed: map[uint64]works{}, kinds: map[uint64]uint64{0: 0, 2: 1, 10: 2, 11: 2, 12: 3, 13: 3}, exec: map[uint64]*recording.GraphInfo{}}
	sequence := uint64(0)
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
		p.Calls = append(p.Calls, recording.Call{Record: recording.Record{Kind: kind, Thread: thread}, Begin: sequence, Context: 1, Args: args})
		ends[thread] = len(p.Calls) - 1
		return &p.Calls[len(p.Calls)-1]
	}
	runs := func() (out []recording.Run) {
		for range 1 + r.IntN(2) {
			low := r.Uint64N(8)
			out = append(out, recording.Run{Address: bruteBase + r.Uint64N(4)*bruteStride + low, Bytes: uint32(1 + r.Uint64N(8-low)), Modes: []uint32{1, 1, 2, 2, 3, 4}[r.IntN(6)]})
		}
		return out
	}
	for _, handle := range []uint64{10, 11, 12, 13} {
		do(1, recording.StreamCreate, handle, b.kinds[handle]-2, 0)
	}
	for i := range uint64(4) {
		do(1, recording.Alloc, bruteBase+i*bruteStride, 8, []uint64{1, 1, allocAsync, allocPinned}[i], 0, 0, 0, 0)
	}
	for exec := range uint64(2) {
		info := recording.GraphInfo{Sequence: sequence, Graph: 50 + exec, Execution: 60 + exec}
		for i := range 2 + r.IntN(3) {
			node := recording.GraphNode{Node: 100 + 10*exec + uint64(i), Type: nodeEmpty}
			p.Accesses[1_000_000+(60+exec)*10+uint64(i)] = &recording.AccessInfo{}
			switch r.IntN(6 + 10*int(exec)) {
			case 0:
				node.Type, node.Body = nodeWait, body(90+r.Uint64N(2))
			case 1:
				node.Type, node.Body = nodeRecord, body(90+r.Uint64N(2))
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
	alive := [4]bool{true, true, true, true}
	streams := []uint64{0, 2, 10, 10, 11, 12, 12, 13, 13}
	number := uint64(0)
	for range 6 + r.IntN(26) {
		thread := uint32(1 + r.IntN(2))
		if r.IntN(3) > 0 { // most calls do not overlap
			finish(1)
			finish(2)
		}
		stream := streams[r.IntN(len(streams))]
		buffer := r.Uint64N(4)
		at := bruteBase + buffer*bruteStride
		switch r.IntN(20) {
		case 0, 1, 2, 3, 4:
			number++
			p.Accesses[number] = &recording.AccessInfo{Runs: runs()}
			do(thread, recording.Launch, stream, 0, 1, number, 1, 1, 1, 1, 1, 1, 0, bit(r.IntN(4) == 0)*flagProgrammatic, 0)
		case 5:
			kinds := []uint64{memoryHost, 4, 4}
			to, from := kinds[r.IntN(3)], kinds[r.IntN(3)]
			other := r.Uint64N(4)
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
			kind := []uint64{1, 1, allocAsync, allocPinned}[buffer]
			if alive[buffer] {
				do(thread, recording.Free, at, kind, stream, 0)
			} else {
				do(thread, recording.Alloc, at, 8, kind, stream, 0, 0, 0)
			}
			alive[buffer] = !alive[buffer]
		default:
			exec := 60 + r.Uint64N(2)
			c := do(thread, recording.GraphLaunch, stream, 0, exec, 0)
			begin := c.Begin
			for i, node := range b.exec[exec].Nodes {
				p.Calls = append(p.Calls, recording.Call{Record: recording.Record{Kind: recording.NodeAccess, Thread: 1}, Begin: 1 << 40, End: 1 << 40, Args: []uint64{exec, begin, node.Node, 1_000_000 + exec*10 + uint64(i)}})
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
		programs = 300
	}
	clean, racy := 0, 0
	for seed := range programs {
		r := rand.New(rand.NewPCG(uint64(seed), 2))
		p, b := randomProcess(r)
		pass := pass{assume: r.IntN(3) > 0, programmatic: r.IntN(2) == 0}
		for i := range p.Calls {
			if p.Calls[i].Kind != recording.NodeAccess {
				b.call(i, &p.Calls[i], pass)
			}
		}
		m := emptyMachine(p, newIndex(p), pass)
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
		require.NoError(t, m.run())
		wrong := b.compare(told)
		require.Empty(t, wrong, "seed %d", seed)
		if len(told) == 0 {
			clean++
		} else {
			racy++
		}
	}
	require.Greater(t, clean, programs/50)
	require.Greater(t, racy, programs/5)
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
