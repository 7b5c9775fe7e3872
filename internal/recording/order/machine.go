// The machine: contexts, streams, events, threads and memory while a recording is gone through, and the lanes on which their work lies.

package order

import (
	"strconv"

	"github.com/dagrun/dagrun/internal/happens"
	"github.com/dagrun/dagrun/internal/recording"
)

// memory is a stretch of memory that was allocated, or a tensor within one.
type memory struct {
	Memory
	kind    uint64 // ALLOC_*; 0 for a tensor
	context *context
	dead    bool          // it was freed, and nothing lies there since
	freed   happens.Clock // what the next allocation of these bytes comes after
	stream  *stream       // of a tensor: the stream that it was allocated for
	traced  bool          // of an allocation: tensors lie in it, and are known
	taken   int32         // of a tensor that is dead: the event at which its memory came back; -1 once it was given out again
}

type context struct {
	legacy  *stream
	threads map[uint32]*stream // the per-thread default streams
	streams []*stream          // all of them
	gate    *stream            // not nil if all that is submitted waits for events: those waits
}

// primaryContext is that of a device, and how often it was retained and not released.
type primaryContext struct {
	handle uint64
	users  int
}

type stream struct {
	name     string
	context  *context
	blocking bool // it waits for the legacy default stream, which waits for it
	legacy   bool
	tracks   []*track
	last     *track   // of the call that was made last
	capture  *capture // the capture that it is part of now
}

// track is a lane of a stream. A stream has one, unless calls on it overlapped in time.
type track struct {
	lane   happens.Lane
	end    uint64         // of the last call
	before happens.Clock  // what the track held before this call
	start  happens.Clock  // what this call came after
	chains []happens.Lane // for nodes of graphs that are told one by one, see launchNodes
	kernel bool           // it is a launch, before whose end a programmatic launch may begin
	call   int32          // the last call, as act.call
}

type capture struct{ streams []*stream }

type thread struct {
	lane   happens.Lane
	end    uint64        // of the last call
	before happens.Clock // what the thread knew before this call
	seen   int           // machine.learned when the thread last looked at what the others had learned
}

type event struct {
	records []record // those of which it is not known whether a later one has replaced them
	capture *capture
	created uint64 // when, 0 if that was not seen
}

// valueWrite is a write of a value to memory by a stream.
type valueWrite struct {
	end, value, bytes uint64
	unfenced          bool // other writes may be seen after it that come before it
	clock             happens.Clock
}

type record struct {
	call       int32
	begin, end uint64
	clock      happens.Clock
}

// index is what is looked up while a recording is gone through.
type index struct {
	executions map[uint64][]int        // the states of each executable graph, in Process.Graphs
	graphs     map[uint64][]int        // those of each graph
	measured   map[uint64][]nodeAccess // the nodes that were measured, by the beginning of a graph's launch
	made       map[uint64]int32        // the call that last instantiated or captured a graph, by execution or graph
	children   map[uint64]bool         // graphs that are nodes of others
	threads    map[uint32]bool         // that made calls
}

// captured is a call that made a node of a graph, and what the arguments of a launch pointed into then.
type captured struct {
	call     int32
	records  bool // a launch that records an event
	accesses []happens.Access
}

// graph is a state of an executable graph.
type graph struct {
	nodes     []graphNode // those of child graphs follow their node
	edges     [][2]int32
	shape     *happens.Shape
	accesses  [][]happens.Access
	external  bool // it records events or waits for them
	records   bool // one of its launches records an event, it is not known which
	unknown   bool // a node does what is not known, as host functions do
	launched  bool
	origin    []int // by edge: the index of the graph's own edge, or -1
	uncovered []string
	failed    string

	kernels []signed // the nodes that launch kernels; nil until they are asked for
}

// nodeAccess is a node of a launched graph that was measured.
type nodeAccess struct {
	node, number uint64
	launches     string // the kernel and its shape; "" if that is not known
}

// signed is a node of a graph that launches a kernel.
type signed struct {
	node       uint64
	launches   string
	parameters []byte
}

// Step is a call that submitted something to a stream, or for which the host waited.
type Step struct {
	Call   int32   // index of Process.Calls
	Stream string  // its name, as in reports; "the host"
	For    []int32 // of a wait: the calls that recorded the event
}

type graphNode struct {
	node  *recording.GraphNode // nil where a child graph ends
	words []uint64
	place int32 // the call that made the node, or -1
	top   int   // index among the nodes of the graph that is launched: its own, or that of the child graph that it is in
	child int   // index among the nodes of this child graph, or -1
}

// act is what a step of the checker was.
type act struct {
	call   int32 // index of Process.Calls, or -1 - index of Process.Tensors
	stream *stream
	graph  *graph // of a graph launch
	node   int32  // of the graph, where it was told by itself; else -1

	doubtful bool // it comes after something that may have an order that is not known
}

// function is a kernel, as far as its accesses go.
type function struct {
	name       string
	opaque     bool
	parameters []recording.Parameter
	reads      []bool // by parameter: it is a pointer to const
}

// where is a place in the program: what is told as one race has the same two.
type where struct {
	place    uint64
	kind     recording.Kind // 0 for an event of a framework's allocator
	function uint64
	node     int32
}

type site struct {
	first, second where
	because       string // of a possible race
}

// group is a race while pairs are added to it.
type group struct {
	site  site
	race  Race
	last  [4]int32 // the steps and nodes of the last pair
	kinds [3]bool
}

type machine struct {
	steps   []Step                  // where they are asked for; never nil then
	visit   func(c *recording.Call) // is told of each launch, where that is asked for
	process *recording.Process
	index   *index
	pass    pass
	report  *Report
	checker *happens.Checker
	acts    []act
	groups  map[site]*group
	sorted  []*group

	contexts     map[uint64]*context
	primary      map[uint64]primaryContext // by device, where it was seen to be retained
	last         *context                  // of the last call
	streams      map[uint64]*stream
	created      int
	threads      map[uint32]*thread
	order        []*thread
	learned      int // how often a thread learned something
	events       map[uint64]*event
	allocations  spans[*memory]
	tensors      spans[*memory]
	writes       map[uint64][]valueWrite // by address
	maps         map[[mapBytes]byte]happens.Access
	functions    map[uint64][]*function
	nodes        map[uint64]captured
	graphs       map[int]*graph // by state, an index of Process.Graphs
	executed     map[uint64]happens.Clock
	updates      map[uint64]uint64 // when an executable graph was last updated
	buffer       []happens.Access
	hostAccesses bool     // Options.HostAccesses
	since        uint64   // Options.Since
	earlier      bool     // the call began before that
	strict       *watched // nil without Options.Strict
	leaned       bool     // something was ordered by time alone
	loosened     bool     // a programmatic launch was left without an order
	doubting     bool     // a wait was met of which it is not known what ends it
	doubts       happens.Clock
	recorders    []record // launches that record an event, it is not known which
}

// watched is what Options.Strict looks at.
type watched struct {
	needed    map[int32]bool  // calls
	skipped   map[int32]bool  // calls that were captured
	pinned    map[int32]bool  // synchronous copies of pinned memory
	edges     map[[2]int]bool // of graphs, by state and index, that another pass needs
	unwritten map[where]*Unwritten
	reads     []*Unwritten
	functions []happens.Clock // host functions
	shown     []happens.Clock // writes to memory of the host that no thread has waited for
}

// pass says which orders count.
type pass struct {
	assume       bool // calls of two threads that did not overlap, values that are waited for
	programmatic bool // programmatic launches wait for their predecessors
}

func emptyMachine(p *recording.Process, x *index, pass pass) *machine {
	m := &machine{process: p, index: x, pass: pass, acts: make([]act, 0, len(p.Calls)), report: &Report{Uncovered: map[string]int{}}, groups: map[site]*group{},
		contexts: map[uint64]*context{}, primary: map[uint64]primaryContext{}, streams: map[uint64]*stream{}, threads: map[uint32]*thread{},
		events:      map[uint64]*event{},
		allocations: spans[*memory]{full: 128}, tensors: spans[*memory]{full: 128}, functions: map[uint64][]*function{}, nodes: map[uint64]captured{},
		graphs: map[int]*graph{}, executed: map[uint64]happens.Clock{}, writes: map[uint64][]valueWrite{}, maps: map[[mapBytes]byte]happens.Access{},
		updates: map[uint64]uint64{}}
	m.last = m.context(0)
	return m
}

func (m *machine) context(handle uint64) *context {
	c := m.contexts[handle]
	if c == nil {
		c = &context{threads: map[uint32]*stream{}}
		m.contexts[handle] = c
	}
	return c
}

func (m *machine) newStream(in *context, name string, blocking bool) *stream {
	s := &stream{name: name, context: in, blocking: blocking}
	in.streams = append(in.streams, s)
	return s
}

// stream returns the stream that a handle means in a call of a thread.
func (m *machine) stream(in *context, thread uint32, handle uint64) *stream {
	switch {
	case handle <= legacyStream:
		if in.legacy == nil {
			in.legacy = m.newStream(in, defaultStream, false)
			in.legacy.legacy = true
		}
		return in.legacy
	case handle == perThreadStream:
		s := in.threads[thread]
		if s == nil {
			s = m.newStream(in, "the default stream of thread "+strconv.Itoa(int(thread)), true)
			in.threads[thread] = s
		}
		return s
	}
	s := m.streams[handle]
	if s == nil {
		s = m.createStream(in, handle, true)
	}
	return s
}

func (m *machine) createStream(in *context, handle uint64, blocking bool) *stream {
	m.created++
	s := m.newStream(in, "stream "+strconv.Itoa(m.created), blocking)
	m.streams[handle] = s
	return s
}

func (m *machine) thread(index uint32) *thread {
	t := m.threads[index]
	if t == nil {
		t = &thread{lane: m.checker.Lane()}
		m.threads[index] = t
		m.order = append(m.order, t)
	}
	return t
}

func (m *machine) event(handle uint64) *event {
	e := m.events[handle]
	if e == nil {
		e = &event{}
		m.events[handle] = e
	}
	return e
}

// moment is a call, or an event of a framework's allocator, as far as order goes.
type moment struct {
	index      int32 // as act.call
	begin, end uint64
	thread     *thread
}

// step tells the checker of a step of a stream, or of the host.
func (m *machine) step(at moment, on happens.Lane, of *stream, accesses []happens.Access) {
	m.acts = append(m.acts, act{call: at.index, stream: of, node: -1, doubtful: m.doubtful(on)})
	m.checker.Step(on, accesses)
}

// doubt makes what comes on a lane doubtful: it may have an order that is not known. It returns false if it was so already.
func (m *machine) doubt(at moment, on happens.Lane) bool {
	if !m.doubting {
		m.doubting = true
		lane := m.checker.Lane()
		m.step(at, lane, nil, nil)
		m.doubts = m.checker.Now(lane)
	}
	return m.checker.After(on, m.doubts)
}

// doubtful says whether what comes on a lane comes after something doubtful.
func (m *machine) doubtful(on happens.Lane) bool {
	return m.doubting && m.checker.Includes(on, m.doubts)
}

// note adds a step.
func (m *machine) note(at moment, stream string) {
	if m.steps == nil || at.index < 0 {
		return
	}
	m.steps = append(m.steps, Step{Call: at.index, Stream: stream})
}
