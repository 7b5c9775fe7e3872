// Programs of the transcripts: a small language for what a program did, one call a line. See the transcripts for how it reads.

package order

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dagrun/dagrun/internal/recording"
)

// program makes a recording from lines.
type program struct {
	process  *recording.Process
	sequence uint64
	clock    int64 // nanoseconds
	line     int
	open     map[string]int // calls that have begun and not ended
	streams  map[string]uint64
	events   map[string]uint64
	memory   map[string][2]uint64
	kernels  map[string]uint64
	next     uint64
	launches uint64
	node     uint64
	graphs   map[string]*recordedGraph
}

// recordedGraph is a graph of a program, and what its nodes are measured to access.
type recordedGraph struct {
	handle   uint64
	info     recording.GraphInfo
	nodes    map[string]int
	accesses []*recording.AccessInfo // by node; nil if it is not measured
}

func newProgram() *program {
	return &program{open: map[string]int{}, streams: map[string]uint64{"default": 0, "legacy": 1, "thread": 2}, events: map[string]uint64{}, memory: map[string][2]uint64{},
		kernels: map[string]uint64{}, graphs: map[string]*recordedGraph{}, next: 0x1000_0000, process: &recording.Process{Measured: true, Places: map[uint64][]recording.Frame{},
			Functions: map[uint64][]recording.FunctionInfo{}, Accesses: map[uint64]*recording.AccessInfo{}}}
}

// read returns the recording that a text describes.
func read(text string) *recording.Process {
	p := newProgram()
	for i, line := range strings.Split(text, "\n") {
		p.line = i + 1
		if line, _, _ = strings.Cut(line, "#"); strings.TrimSpace(line) != "" {
			p.read(strings.Fields(line))
		}
	}
	if len(p.open) > 0 {
		p.fail("a call does not end")
	}
	slices.SortStableFunc(p.process.Calls, func(a, b recording.Call) int { return int(a.Begin) - int(b.Begin) })
	return p.process
}

func (p *program) fail(format string, args ...any) {
	panic(fmt.Sprintf("line %d: ", p.line) + fmt.Sprintf(format, args...))
}

func (p *program) tick() uint64 {
	p.sequence++
	return p.sequence
}

// fields is what is left of a line.
type fields []string

func (w *fields) take() string {
	if len(*w) == 0 {
		return ""
	}
	first := (*w)[0]
	*w = (*w)[1:]
	return first
}

// cut removes a word, and says whether it was there.
func (w *fields) cut(word string) bool {
	at := slices.Index(*w, word)
	if at < 0 {
		return false
	}
	*w = slices.Delete(slices.Clone(*w), at, at+1)
	return true
}

// after removes a word and the one behind it, and returns that.
func (w *fields) after(word string) string {
	at := slices.Index(*w, word)
	if at < 0 || at+1 == len(*w) {
		return ""
	}
	value := (*w)[at+1]
	*w = slices.Delete(slices.Clone(*w), at, at+2)
	return value
}

// all removes a word wherever it is, with the one behind it, and returns those.
func (w *fields) all(word string) []string {
	var out []string
	for value := w.after(word); value != ""; value = w.after(word) {
		out = append(out, value)
	}
	return out
}

// region returns the bytes that A or A[4:8] means.
func (p *program) region(text string) (low, high uint64) {
	name, rest, part := strings.Cut(strings.TrimSuffix(text, "]"), "[")
	is, found := p.memory[name]
	if !found {
		p.fail("there is no memory %q", name)
	}
	if !part {
		return is[0], is[0] + is[1]
	}
	from, to, _ := strings.Cut(rest, ":")
	return is[0] + p.number(from), is[0] + p.number(to)
}

func (p *program) number(text string) uint64 {
	n, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		p.fail("%q is no number", text)
	}
	return n
}

func (p *program) named(of map[string]uint64, name string) uint64 {
	if _, found := of[name]; !found {
		p.next += 0x1000
		of[name] = p.next
	}
	return of[name]
}

func (p *program) stream(w *fields) uint64 {
	name := w.after("on")
	if name == "" {
		return 0
	}
	handle, found := p.streams[name]
	if !found {
		p.fail("there is no stream %q", name)
	}
	return handle
}

func bit(set bool) uint64 {
	if set {
		return 1
	}
	return 0
}

func (p *program) read(w fields) {
	c := recording.Call{Record: recording.Record{Thread: 1}, Context: 1}
	if name := w.after("end"); name != "" {
		p.process.Calls[p.open[name]].End = p.tick()
		delete(p.open, name)
		return
	}
	begins := w.after("begin")
	if thread := w.after("thread:"); thread != "" {
		c.Thread = uint32(p.number(thread))
	}
	if context := w.after("context:"); context != "" {
		c.Context = p.number(context)
	}
	if at := slices.IndexFunc(w, func(s string) bool { return strings.HasPrefix(s, "@") }); at >= 0 {
		c.Place = p.place(w[at][1:])
		w = slices.Delete(w, at, at+1)
	}
	if w.cut("fails") {
		c.Result = 600
	}
	c.Begin, c.Time = p.tick(), p.clock
	if time := w.after("takes"); time != "" {
		p.clock += int64(p.number(time)) // until the next call
	}
	p.node = 0
	if !p.call(&c, w.take(), &w) {
		return
	}
	if len(w) > 0 {
		p.fail("words left: %s", strings.Join(w, " "))
	}
	if begins != "" {
		p.open[begins] = len(p.process.Calls)
	} else {
		c.End = p.tick()
	}
	p.process.Calls = append(p.process.Calls, c)
}

func (p *program) place(text string) uint64 {
	file, line, _ := strings.Cut(text, ":")
	for id, frames := range p.process.Places {
		if frames[0].File == file && uint64(frames[0].Line) == p.number(line) {
			return id
		}
	}
	id := uint64(len(p.process.Places) + 1)
	p.process.Places[id] = []recording.Frame{{Python: true, File: file, Line: int(p.number(line))}}
	return id
}

// call fills in a call. It returns false if the line was no call.
func (p *program) call(c *recording.Call, verb string, w *fields) bool {
	set := func(kind recording.Kind, args ...uint64) { c.Kind, c.Args = kind, args }
	switch verb {
	case "stream":
		blocking := !w.cut("nonblocking")
		name := w.take()
		handle := p.streams[w.after("with-handle-of")]
		if handle == 0 {
			p.next += 0x1000
			handle = p.next
		}
		p.streams[name] = handle
		set(recording.StreamCreate, handle, bit(!blocking), 0)
	case "create":
		w.cut("event")
		set(recording.EventCreate, p.named(p.events, w.take()), 0)
	case "destroy":
		if w.cut("event") {
			set(recording.EventDestroy, p.named(p.events, w.take()))
			break
		}
		set(recording.StreamDestroy, p.streams[w.take()])
	case "alloc":
		p.alloc(c, w)
	case "free":
		async := w.cut("async")
		stream := p.stream(w)
		low, _ := p.region(w.take())
		kind := uint64(1)
		if async {
			kind = allocAsync
		}
		set(recording.Free, low, kind, stream, p.node)
	case "tensor", "taken":
		p.tensor(c, verb, w)
		return false
	case "launch":
		p.launch(c, w)
	case "node":
		return p.graphNode(c, w)
	case "instantiate":
		p.instantiate(c, w)
	case "run":
		p.runGraph(c, w)
	case "update":
		set(recording.Update, p.named(p.kernels, w.take()), 0, 0)
	case "copy":
		async := w.cut("async")
		stream := p.stream(w)
		to, low, high := p.side(w.take())
		w.cut("from")
		from, source, end := p.side(w.take())
		if to == memoryHost {
			low, high = 0x10, 0x10+end-source
		}
		if from == memoryHost {
			source = 0x10
		}
		set(recording.Copy, stream, p.node, bit(!async), low, source, high-low, 1, 1, 0, 0, 0, 0, to, from, 0, 0)
	case "memset":
		async := w.cut("async")
		stream := p.stream(w)
		low, high := p.region(w.take())
		set(recording.Set, stream, p.node, bit(!async), low, high-low, 1, 0, 0, 1)
	case "record":
		set(recording.EventRecord, p.stream(w), p.node, p.named(p.events, w.take()), 0)
	case "wait":
		set(recording.StreamWait, p.stream(w), p.node, p.named(p.events, w.take()), 0)
	case "synchronize":
		p.synchronize(c, w, recording.EventSync, recording.StreamSync)
	case "query":
		p.synchronize(c, w, recording.EventQuery, recording.StreamQuery)
	case "write", "await":
		flags := bit(w.cut("equal")) * waitEqual
		flags += bit(w.cut("and")) * waitAnd
		flags += bit(w.cut("nor")) * waitNor
		flags += bit(w.cut("unfenced")) * writeUnfenced
		stream := p.stream(w)
		low, _ := p.region(w.take())
		bytes := 4 + 4*bit(w.cut("long"))
		set(recording.MemoryWrite, stream, p.node, low, p.number(w.take()), bytes, flags)
		if verb == "await" {
			c.Kind = recording.MemoryWait
		}
	case "touch":
		low, high := p.region(w.take())
		mode := recording.Read
		if w.cut("writes") {
			mode = recording.Write
		}
		w.cut("reads")
		set(recording.HostAccess, low, high-low, uint64(mode), low&^0xfff)
	case "prefetch":
		stream := p.stream(w)
		low, high := p.region(w.take())
		set(recording.Prefetch, stream, p.node, low, high-low)
	case "map": // a tensor of rows of 10 bytes, of which the first 8 belong to it
		low, high := p.region(w.take())
		set(recording.TensorMap, low, 4, 2, 2, (high-low)/10, 10)
		c.Tail = descriptor(low)
	case "context":
		set(recording.Green, 0, 0, bit(w.take() == "wait"), c.Context)
		c.Args[1] = p.named(p.events, w.take())
	case "ends":
		set(recording.Context, c.Context, contextDestroyed, 0)
	case "resets":
		set(recording.Context, 0, contextReset, 0)
	case "retains":
		set(recording.Context, c.Context, contextRetained, 0)
	case "releases":
		set(recording.Context, 0, contextReleased, 0)
	case "function":
		set(recording.HostFunction, p.stream(w), p.node, 1, 2)
	case "capture":
		set(recording.CaptureBegin, p.stream(w), 0)
	case "captured":
		set(recording.CaptureEnd, p.stream(w), 0)
		if name := w.after("keeping"); name != "" {
			g := p.graph(name)
			info := g.info
			info.Sequence, info.Graph = c.Begin, g.handle
			p.process.Graphs = append(p.process.Graphs, info)
			c.Args[1] = g.handle
		}
	case "host-accesses": // were recorded
		p.process.Host = true
		return false
	case "unmeasured":
		p.process.Measured = false
		return false
	case "uncovered":
		set(recording.Uncovered)
		c.Tail = []byte(w.take())
	default:
		p.fail("what is %q?", verb)
	}
	return true
}

func (p *program) synchronize(c *recording.Call, w *fields, event, stream recording.Kind) {
	switch {
	case w.cut("context"):
		c.Kind = recording.ContextSync
	case w.cut("event"):
		c.Kind, c.Args = event, []uint64{p.named(p.events, w.take())}
	default:
		c.Kind, c.Args = stream, []uint64{p.streams[w.take()]}
	}
}

func (p *program) side(text string) (kind, low, high uint64) {
	if text == "host" {
		return memoryHost, 0, 0
	}
	low, high = p.region(text)
	return 4, low, high
}

func (p *program) alloc(c *recording.Call, w *fields) {
	kind := uint64(1)
	kinds := map[string]uint64{"pinned": allocPinned, "managed": allocManaged, "async": allocAsync, "registered": allocRegistered, "mapped": allocMapped, "imported": allocImported}
	for name, number := range kinds {
		if w.cut(name) {
			kind = number
		}
	}
	stream, at := p.stream(w), w.after("over")
	name := w.take()
	bytes := p.number(w.take())
	p.next += 0x1000
	low := p.next
	if at != "" {
		low, _ = p.region(at)
	}
	p.next += bytes &^ 0xfff
	p.memory[name] = [2]uint64{low, bytes}
	c.Kind, c.Args = recording.Alloc, []uint64{low, bytes, kind, stream, 0, 0, p.node}
}

// tensor makes an event of the framework's allocator.
func (p *program) tensor(c *recording.Call, verb string, w *fields) {
	stream := p.stream(w)
	event := recording.TensorEvent{Sequence: c.Begin, Stream: stream, Thread: c.Thread, Place: c.Place, Action: recording.TensorFreeCompleted}
	name := w.take()
	if verb == "tensor" {
		event.Action = recording.TensorAlloc
		w.cut("=")
		low, high := p.region(w.take())
		p.memory[name] = [2]uint64{low, high - low}
	}
	event.Address, event.Bytes = p.memory[name][0], p.memory[name][1]
	p.process.Tensors = append(p.process.Tensors, event)
}

// accesses takes what a kernel accesses from a line, its arguments, and the handle of its function.
func (p *program) accesses(c *recording.Call, w *fields) (info *recording.AccessInfo, measured bool, function uint64) {
	info = &recording.AccessInfo{Opaque: w.cut("opaque"), Unmeasured: w.cut("unmeasured"), Lost: w.cut("overflowed")}
	for mode, verb := range map[uint32]string{recording.Read: "reads", recording.Write: "writes", recording.Atomic: "updates"} {
		for _, name := range w.all(verb) {
			low, high := p.region(name)
			info.Runs = append(info.Runs, recording.Run{Address: low, Bytes: uint32(high - low), Modes: mode})
		}
	}
	arguments := w.all("argument")
	var parameters []recording.Parameter
	for i, name := range arguments {
		low, _ := p.region(name)
		c.Tail = binary.LittleEndian.AppendUint64(c.Tail, low)
		parameters = append(parameters, recording.Parameter{Offset: uint32(8 * i), Bytes: 8})
	}
	for _, name := range w.all("descriptor") {
		low, _ := p.region(name)
		c.Tail = append(c.Tail, descriptor(low)...)
	}
	name := w.take()
	function = p.named(p.kernels, name)
	p.process.Functions[function] = []recording.FunctionInfo{{Handle: function, Name: name, Parameters: parameters}}
	return info, len(info.Runs) > 0 || len(c.Tail) == 0 || info.Unmeasured, function
}

// descriptor is that of tensor copies, 128 bytes that only the driver can read.
func descriptor(low uint64) []byte {
	return slices.Repeat(body(low^0x5555_5555_5555), mapBytes/8)
}

func (p *program) launch(c *recording.Call, w *fields) {
	stream := p.stream(w)
	var flags uint64
	if w.cut("programmatic") {
		flags |= flagProgrammatic
	}
	if w.cut("recording") {
		flags |= flagEvent
	}
	event, when := uint64(0), uint64(0)
	for word, moment := range map[string]uint64{"begun": recording.EventBegun, "allowed": recording.EventBlocks} {
		if name := w.after(word); name != "" {
			event, when = p.named(p.events, name), moment
			flags |= flagEvent
		}
	}
	lost := w.cut("lost")
	info, measured, function := p.accesses(c, w)
	number := uint64(0)
	if lost || measured {
		p.launches++
		number = p.launches
		if !lost {
			p.process.Accesses[number] = info
		}
	}
	c.Kind, c.Args = recording.Launch, []uint64{stream, p.node, function, number, 1, 1, 1, 1, 1, 1, 0, flags, 0, event, when}
}

func (p *program) graph(name string) *recordedGraph {
	g := p.graphs[name]
	if g == nil {
		g = &recordedGraph{handle: p.named(p.kernels, "graph "+name), nodes: map[string]int{}}
		p.graphs[name] = g
	}
	return g
}

func body(words ...uint64) []byte {
	var out []byte
	for _, word := range words {
		out = binary.LittleEndian.AppendUint64(out, word)
	}
	return out
}

// graphNode adds a node to a graph: node G NAME launch|copy|memset|graph|... [on STREAM] [after NODE] [weakly-after NODE]. With a stream, a call
// made the node.
func (p *program) graphNode(c *recording.Call, w *fields) bool {
	g := p.graph(w.take())
	name := w.take()
	at := len(g.info.Nodes)
	g.nodes[name] = at
	for _, before := range w.all("after") {
		g.info.Edges = append(g.info.Edges, recording.GraphEdge{From: uint32(g.nodes[before]), To: uint32(at)})
	}
	for _, before := range w.all("weakly-after") {
		g.info.Edges = append(g.info.Edges, recording.GraphEdge{From: uint32(g.nodes[before]), To: uint32(at), Programmatic: true})
	}
	p.next++
	node := recording.GraphNode{Node: p.next}
	var access *recording.AccessInfo
	captured := slices.Contains(*w, "on")
	p.node = node.Node
	switch verb := w.take(); verb {
	case "launch":
		rest := slices.Clone(*w)
		p.call(c, verb, &rest)
		if number := c.Args[launchNumber]; number != 0 {
			access = p.process.Accesses[number]
			delete(p.process.Accesses, number)
			c.Args[launchNumber] = 0
		}
		node.Body = append(body(c.Args[launchFunction], 1, 1, 1, 1, 1, 1, 0, 0, 0), c.Tail...)
		*w = rest
	case "copy":
		p.call(c, verb, w)
		node.Type, node.Body = nodeCopy, body(c.Args[3:]...)
	case "memset":
		p.call(c, verb, w)
		node.Type, node.Body = nodeSet, body(c.Args[3:]...)
	case "record", "wait":
		node.Type = nodeRecord
		if verb == "wait" {
			node.Type = nodeWait
		}
		if captured {
			p.call(c, verb, w)
			node.Body = body(c.Args[2])
			break
		}
		node.Body = body(p.named(p.events, w.take()))
	case "graph":
		node.Type, node.Body = nodeChild, body(p.graph(w.take()).handle)
	case "empty":
		node.Type = nodeEmpty
	case "conditional":
		node.Type = 13
	case "function":
		node.Type, node.Body = nodeHost, body(1, 2)
	case "alloc":
		low, high := p.region(w.take())
		node.Type, node.Body = nodeAlloc, body(low, high-low)
	case "free":
		low, _ := p.region(w.take())
		node.Type, node.Body = nodeFree, body(low)
	case "unreadable":
		node.Type, node.Body = nodeCopy, body(1, 2)
	default:
		p.fail("what is node %q?", verb)
	}
	g.info.Nodes = append(g.info.Nodes, node)
	g.accesses = append(g.accesses, access)
	return captured
}

// instantiate makes an executable graph, of the same name, and records the state of the graph and those of its children.
func (p *program) instantiate(c *recording.Call, w *fields) {
	name := w.take()
	g := p.graph(name)
	execution := p.named(p.kernels, name)
	for _, child := range p.graphs {
		info := child.info
		info.Sequence, info.Graph, info.Execution = c.Begin, child.handle, 0
		if child == g {
			info.Execution = execution
		}
		info.Nodes, info.Edges = slices.Clone(info.Nodes), slices.Clone(info.Edges)
		p.process.Graphs = append(p.process.Graphs, info)
	}
	c.Kind, c.Args = recording.Instantiate, []uint64{execution, g.handle}
}

// runGraph launches an executable graph, and measures its kernels: together with those of the next launches that are run "again".
func (p *program) runGraph(c *recording.Call, w *fields) {
	stream := p.stream(w)
	together, again := w.cut("together"), w.cut("again")
	name := w.take()
	c.Kind, c.Args = recording.GraphLaunch, []uint64{stream, p.node, p.named(p.kernels, name), 0}
	p.measure(c, p.graph(name), together || again, again)
}

// measure tells what the kernels of a graph and of its children accessed in a launch.
func (p *program) measure(c *recording.Call, g *recordedGraph, together, again bool) {
	for i, access := range g.accesses {
		node := g.info.Nodes[i]
		if node.Type == nodeChild {
			for _, child := range p.graphs {
				if child.handle == binary.LittleEndian.Uint64(node.Body) {
					p.measure(c, child, together, again)
				}
			}
		}
		if access == nil {
			continue
		}
		p.launches++
		measured := *access
		measured.Together, measured.Again = together, again
		p.process.Accesses[p.launches] = &measured
		p.process.Calls = append(p.process.Calls, recording.Call{Record: recording.Record{Kind: recording.NodeAccess, Thread: c.Thread}, Begin: c.Begin + 1<<40, End: c.Begin + 1<<40,
			Args: append([]uint64{c.Args[2], c.Begin, node.Node, p.launches}, make([]uint64, 7)...)})
	}
}
