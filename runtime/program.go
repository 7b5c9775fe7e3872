// The program: a graph, a plan and a platform, ready to run. It owns all its resources; Close frees them.

package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
)

// Mode says how a replay reaches the device.
type Mode uint8

const (
	Streams  Mode = iota // commands are handed to their streams at each replay
	Captured             // one graph, captured from the streams
	Built                // one graph, built node by node; single nodes can be updated
	Auto                 // whichever of Streams and Captured replays faster, measured briefly
)

func (m Mode) String() string {
	if names := [...]string{"streams", "graph", "built graph", "auto"}; int(m) < len(names) {
		return names[m]
	}
	return fmt.Sprintf("Mode(%d)", uint8(m))
}

// Options says how a program runs. The zero value replays as streams, one replay at a time.
type Options struct {
	Mode     Mode
	Memory   MemoryMode
	Inflight int // replays that may overlap, each with its own buffers; 0: 1
	Threads  int // submit streams from that many threads; 0: 1. The plan needs one event per record (planner.Options.SingleUseEvents)
	// Bind makes host buffers, by name, use the caller's memory without a copy. The memory is pinned while the program lives and keeps its
	// contents, even if the buffer has an init. Not possible with Inflight above 1.
	Bind     map[string][]byte
	Origin   cudart.Stream // a stream of the caller that replays are put into; nil: the program's own
	Unsafe   bool          // run a plan although it leaves hazards unenforced (--allow-races); all else is still verified
	Recorder Recorder      // CUPTI for Trace (cupti.Prepare, before the driver is opened); nil: events
	Logger   *slog.Logger  // decisions; nil: none
	Progress func(stage string, done, total int)
	// HostReserve is host memory, in bytes, that the caller needs in addition. New returns an error if the host does not have enough for both.
	HostReserve int64
	// DebugProgress makes every node write a word when it has finished, so that Unfinished works after a hang. It costs a memset per node.
	DebugProgress bool
}

// Program replays a plan. Its methods, except Counters, must not be called concurrently; different programs may run at the same time on
// one device.
type Program struct {
	graph    *dag.Graph
	plan     *planner.Plan
	ops      *planner.Replay // what each replay submits
	platform cudart.Platform
	options  Options
	log      *slog.Logger

	modules   []cudart.Module
	code      []*loadedCode // by replay in flight, or one that all share
	launches  []*dag.Launch // by node, as updated; the graph itself is never changed
	bodies    [][]*Program  // by node: of loops and branches; nil if there are none
	instances []*instance
	next      int // the instance that the next replay uses
	mode      Mode
	choice    string // why Auto chose
	dirty     bool   // a replay has run since buffers had their initial contents
	warnings  []string
	setKernel map[int32]cudart.Kernel // by device: the library's fill for sets of eight-byte patterns
	ranked    bool                    // nodes have priorities other than normal
	low       bool                    // and some of them low

	replays   atomic.Uint64
	latest    atomic.Pointer[instance] // what replayed last; Unfinished reads it while another goroutine replays
	tracing   atomic.Pointer[tracer]   // while learning measures nodes; Running reads it likewise
	stuck     atomic.Pointer[[]string] // the nodes that were running when that was given up
	callbacks sync.WaitGroup

	turns            chan *Turn // of ReplayThen, in flight; nil before the first
	turnNumber       uint64
	finished, failed atomic.Uint64 // turns

	waits                  int // as Counters reports them
	deviceBytes, hostBytes int64

	boundContents map[dag.BufferID][]byte // initial contents of carried buffers in the caller's memory
	initialKept   map[dag.BufferID][]byte // initial contents whose file a save has overwritten, or is about to
	closed        bool
	closeErr      error
}

// instance holds what one replay in flight needs for itself.
type instance struct {
	flight   int // which of the replays in flight it is
	memory   *storage
	streams  []cudart.Stream
	adopted  bool // streams[0] is the caller's
	events   []cudart.Event
	fork     cudart.Event
	join     []cudart.Event
	controls []*control // by node; nil if there are none
	lowered  *lowered
	list     cudart.List
	graph    cudart.Graph
	built    []int // by node: its command in a graph built node by node
	// progress is a pinned word for each node, which becomes 1 when the node has finished; 0 without Options.DebugProgress.
	progress cudart.Ptr
	begin    cudart.Event // timed, around a replay
	end      cudart.Event
	turn     Turn
	loose    bool // a Replay used it, and nobody has waited for that yet
}

// ErrClosed is the error of using a program after Close.
var ErrClosed = errors.New("the program is closed")

var (
	errNoProgram = errors.New("there is no program; make it with New")
	errNoContext = errors.New("there is no context; context.Background() is one that never ends")
)

// usable returns an error for a program that New did not return, one that is closed, and for no context.
func (p *Program) usable(ctx context.Context) error {
	switch {
	case p == nil || p.platform == nil:
		return errNoProgram
	case p.closed:
		return ErrClosed
	case ctx == nil:
		return errNoContext
	}
	return nil
}

// New verifies the plan and prepares everything to run it: memory, kernels, streams, events, encoded commands, initial contents.
func New(ctx context.Context, g *dag.Graph, plan *planner.Plan, platform cudart.Platform, options Options) (*Program, error) {
	switch {
	case ctx == nil:
		return nil, errNoContext
	case g == nil:
		return nil, errors.New("a program needs a graph")
	case g.Check() != nil:
		return nil, fmt.Errorf("a program needs a graph: %w", g.Check())
	case plan == nil:
		return nil, errors.New("a program needs a plan")
	case platform == nil:
		return nil, errors.New("a program needs a platform to run on")
	}
	if options.Inflight == 0 {
		options.Inflight = 1
	}
	p := &Program{graph: g, plan: plan, platform: platform, options: options, mode: options.Mode, log: options.Logger,
		setKernel: map[int32]cudart.Kernel{}}
	p.takeLaunches()
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	for i := range g.Nodes {
		p.ranked = p.ranked || g.Nodes[i].Priority != dag.Normal
		p.low = p.low || g.Nodes[i].Priority == dag.Low
	}
	if err := p.prepare(ctx); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *Program) prepare(ctx context.Context) error {
	if err := planner.Verify(p.graph, p.plan); err != nil && !p.tolerates(err) {
		return err
	}
	if err := p.checkOptions(); err != nil {
		return err
	}
	if err := p.checkWork(); err != nil {
		return err
	}
	p.ops = p.plan.Replay(p.options.Inflight)
	if err := planner.VerifyReplay(p.graph, p.plan, p.ops); err != nil {
		return err
	}
	p.report("prepare devices", 0, 0)
	if err := p.checkDevices(); err != nil {
		return err
	}
	if err := checkFits(p.platform, p.graph, p.plan, p.options.Memory, p.options.Inflight); err != nil {
		return err
	}
	if err := p.checkHost(); err != nil {
		return err
	}
	p.makeBodies()
	if err := p.load(ctx); err != nil {
		return err
	}
	p.report("allocate memory", 0, 0)
	for flight := range p.options.Inflight {
		in, err := p.newInstance(flight)
		if in != nil {
			p.instances = append(p.instances, in)
		}
		if err != nil {
			return err
		}
	}
	p.size()
	if err := p.initialise(ctx); err != nil {
		return err
	}
	return p.chooseMode(ctx)
}

// checkWork refuses a plan that was made for nodes that do other work.
func (p *Program) checkWork() error {
	if p.plan.Work == "" || p.plan.Work == p.graph.WorkHash() {
		return nil
	}
	if old := p.plan.WorkDone; old != nil {
		if difference := p.graph.WorkDifferenceFrom(old); difference != "" {
			return fmt.Errorf("%w: %s when it was planned: plan again", planner.ErrOtherGraph, difference)
		}
	}
	return fmt.Errorf("%w: the pipeline has the same structure, but kernels, arguments, launch shapes or costs have changed since it was planned: plan again", planner.ErrOtherGraph)
}

// tolerates reports whether Options.Unsafe allows a violation: a race in a plan that is otherwise correct.
func (p *Program) tolerates(err error) bool {
	return p.options.Unsafe && errors.Is(err, planner.ErrRace)
}

func (p *Program) checkOptions() error {
	switch o := &p.options; {
	case o.Mode > Auto:
		return fmt.Errorf("unknown mode: %s", o.Mode)
	case o.Memory > Separate:
		return fmt.Errorf("unknown memory mode: MemoryMode(%d)", uint8(o.Memory))
	case o.Threads < 0 || o.Threads > 1024:
		return fmt.Errorf("%d threads: the number must be 1 to 1024", o.Threads)
	case len(p.platform.Devices()) == 0:
		return fmt.Errorf("%s has no device: %w", p.platform.Name(), cudart.ErrNoDevice)
	}
	if p.options.Threads > 1 {
		if err := planner.VerifySingleUse(p.graph, p.plan); err != nil {
			return fmt.Errorf("submitting from %d threads needs a plan with one event per record (planner.Options.SingleUseEvents): %w", p.options.Threads, err)
		}
	}
	if p.options.Inflight < 0 || p.options.Inflight > 1024 {
		return fmt.Errorf("%d replays in flight: the number must be 1 to 1024", p.options.Inflight)
	}
	if p.options.Inflight > 1 {
		if carried := p.graph.Carried(); len(carried) > 0 {
			return &CarriedError{Buffer: p.graph.Buffers[carried[0]].Name, Inflight: p.options.Inflight}
		}
		if len(p.options.Bind) > 0 {
			return errors.New("buffers bound to the caller's memory cannot be given to several replays in flight")
		}
		if p.options.Origin != nil {
			return errors.New("several replays in flight cannot share the caller's stream")
		}
	}
	return nil
}

// CarriedError is returned if several replays in flight are requested for a pipeline whose replays depend on each other.
type CarriedError struct {
	Buffer   string
	Inflight int
}

func (e *CarriedError) Error() string {
	return fmt.Sprintf("%d replays in flight are not possible: buffer %q is read before it is written, so each replay depends on the one before it", e.Inflight, e.Buffer)
}

// checkDevices refuses device numbers that the platform does not have, and enables access between devices where nodes need it.
func (p *Program) checkDevices() error {
	devices := p.platform.Devices()
	for _, s := range p.plan.Streams {
		if int(s.Device) >= len(devices) {
			return fmt.Errorf("the plan uses device %d, but there are only %d (%s)", s.Device, len(devices), p.platform.Name())
		}
	}
	for _, q := range p.family() {
		if err := q.enablePeers(devices); err != nil {
			return err
		}
	}
	return nil
}

// enablePeers enables access between devices where nodes need it.
func (p *Program) enablePeers(devices []cudart.Info) error {
	for i := range p.graph.Nodes {
		n := &p.graph.Nodes[i]
		if n.Kind == dag.Memcpy {
			dst, src := &p.graph.Buffers[n.Copy.Dst.Buffer], &p.graph.Buffers[n.Copy.Src.Buffer]
			if a, b := deviceOf(dst), deviceOf(src); a >= 0 && b >= 0 && a != b && devices[a].Peers[b] && devices[b].Peers[a] {
				if err := p.platform.EnablePeer(a, b); err != nil {
					return err
				}
				if err := p.platform.EnablePeer(b, a); err != nil {
					return err
				}
			}
		}
		if n.Peer {
			for _, a := range p.graph.Accesses(dag.NodeID(i)) {
				if b := &p.graph.Buffers[a.Buffer]; b.Place == dag.Device && b.Device != n.Device {
					if err := p.platform.EnablePeer(n.Device, b.Device); err != nil {
						return fmt.Errorf("node %q: %w", n.Name, err)
					}
				}
			}
		}
	}
	return nil
}

func (p *Program) newInstance(flight int) (in *instance, err error) {
	in = &instance{flight: flight}
	bound := map[dag.BufferID][]byte{}
	for i := range p.graph.Buffers {
		b := &p.graph.Buffers[i]
		memory, ok := p.options.Bind[b.Name]
		if !ok {
			continue
		}
		if b.Place != dag.Host {
			return in, fmt.Errorf("bind %q: only host buffers can be bound", b.Name)
		}
		if int64(len(memory)) != b.Bytes {
			return in, fmt.Errorf("bind %q: the memory has %d bytes, but the buffer has %d", b.Name, len(memory), b.Bytes)
		}
		bound[dag.BufferID(i)] = memory
	}
	for name := range p.options.Bind {
		if _, ok := p.Buffer(name); !ok {
			return in, fmt.Errorf("bind %q: the pipeline has no such buffer", name)
		}
	}
	if in.memory, err = newStorage(p.platform, p.graph, p.plan, p.options.Memory, bound); err != nil {
		return in, err
	}
	for id, address := range p.codeOf(in).symbols {
		in.memory.address[id] = address
	}
	if p.options.DebugProgress {
		if in.progress, err = p.platform.AllocHost(4*int64(max(1, p.graph.Len())), false); err != nil {
			return in, err
		}
		in.memory.owned = append(in.memory.owned, in.progress)
		clear(p.platform.HostBytes(in.progress, 4*int64(p.graph.Len())))
	}
	return in, p.equip(in)
}

// equip gives an instance that has its memory what the plan needs besides: streams, events and encoded commands.
func (p *Program) equip(in *instance) error {
	if err := p.newStreams(in, p.options.Origin); err != nil {
		return err
	}
	if len(in.streams) == 0 { // a pipeline without nodes still needs a stream to be replayed on
		stream, err := p.platform.NewStream(0, dag.Normal)
		if err != nil {
			return err
		}
		in.streams = append(in.streams, stream)
	}
	return p.encodeOn(in, cudart.ListOptions{Origin: in.streams[0], Threads: p.options.Threads})
}

// newStreams gives an instance the plan's streams. The first is origin, if there is one.
func (p *Program) newStreams(in *instance, origin cudart.Stream) error {
	for i, s := range p.plan.Streams {
		if i == 0 && origin != nil {
			in.streams, in.adopted = append(in.streams, origin), true
			continue
		}
		stream, err := p.platform.NewStream(s.Device, p.priority(s.Priority))
		if err != nil {
			return err
		}
		in.streams = append(in.streams, stream)
	}
	return nil
}

// encodeOn gives an instance that has its streams its events and encoded commands.
func (p *Program) encodeOn(in *instance, options cudart.ListOptions) error {
	if err := p.newEvents(in); err != nil {
		return err
	}
	if err := p.equipControls(in); err != nil {
		return err
	}
	var err error
	if in.lowered, err = p.lower(in); err != nil {
		return err
	}
	in.list, err = p.encode(in, in.lowered.commands, options)
	return err
}

// priority is the priority that a node or a stream gets on the device. CUDA has no level below that of streams without a priority, so
// a program's normal work has the lowest level too, like other work of the process, unless some of its nodes have low priority.
func (p *Program) priority(asked dag.Priority) dag.Priority {
	if asked == dag.Normal && !p.low {
		return dag.Low
	}
	return asked
}

// newEvents makes the plan's events, each on the device of the stream that records it, and those of fork, join and timing.
func (p *Program) newEvents(in *instance) error {
	devices := make([]int32, p.plan.Events)
	for _, s := range p.plan.Streams {
		for _, op := range s.Ops {
			if op.Kind == planner.Record {
				devices[op.Event] = s.Device
			}
		}
	}
	for _, device := range devices {
		e, err := p.platform.NewEvent(device, false)
		if err != nil {
			return err
		}
		in.events = append(in.events, e)
	}
	origin := in.streams[0].Device()
	var err error
	if in.fork, err = p.platform.NewEvent(origin, false); err != nil {
		return err
	}
	for _, s := range p.plan.Join() {
		e, err := p.platform.NewEvent(p.plan.Streams[s].Device, false)
		if err != nil {
			return err
		}
		in.join = append(in.join, e)
	}
	if in.begin, err = p.platform.NewEvent(origin, true); err != nil {
		return err
	}
	in.end, err = p.platform.NewEvent(origin, true)
	return err
}

// Buffer returns the id of the buffer of that name.
func (p *Program) Buffer(name string) (dag.BufferID, bool) {
	if p == nil || p.graph == nil {
		return -1, false
	}
	for i := range p.graph.Buffers {
		if p.graph.Buffers[i].Name == name {
			return dag.BufferID(i), true
		}
	}
	return -1, false
}

func (p *Program) isBuffer(id int32) bool {
	return p != nil && p.graph != nil && id >= 0 && int(id) < len(p.graph.Buffers)
}

// report tells Options.Progress how far a stage is; total is 0 if it is not known.
func (p *Program) report(stage string, done, total int) {
	if p.options.Progress != nil {
		p.options.Progress(stage, done, total)
	}
}

// Mode returns how the program replays; for Auto, the mode that it chose.
func (p *Program) Mode() Mode {
	if p == nil {
		return Streams
	}
	return p.mode
}

// Plan is the plan that the program replays; after Learn, the one that it chose.
func (p *Program) Plan() *planner.Plan {
	if p == nil {
		return nil
	}
	return p.plan
}

// Choice tells why Auto chose its mode; "" without Auto.
func (p *Program) Choice() string {
	if p == nil {
		return ""
	}
	return p.choice
}

// Warnings returns the warnings of the modules that were loaded.
func (p *Program) Warnings() []string {
	if p == nil {
		return nil
	}
	return p.warnings
}

// Close waits for submitted work and frees everything. It takes no context, because memory in use by the device cannot be freed. Calling
// it again does nothing. Closing nil, which New returns with an error, does nothing either.
func (p *Program) Close() error {
	if p == nil {
		return nil
	}
	if p.closed {
		return p.closeErr
	}
	p.closed = true
	var errs []error
	p.endTurns()
	p.callbacks.Wait()
	for _, in := range p.instances {
		errs = append(errs, in.close())
	}
	for _, m := range p.modules {
		errs = append(errs, m.Close())
	}
	p.closeErr = errors.Join(errs...)
	return p.closeErr
}

// close frees in the reverse order of creation. A poisoned context refuses every call; that error was reported when it happened.
func (in *instance) close() error {
	err := in.strip()
	if in.memory == nil {
		return err
	}
	if closeErr := in.memory.close(); !errors.Is(closeErr, cudart.ErrPoisoned) {
		err = errors.Join(err, closeErr)
	}
	return err
}

// strip waits for an instance's work and frees everything but its memory.
func (in *instance) strip() error {
	var errs []error
	note := func(err error) {
		if err != nil && !errors.Is(err, cudart.ErrPoisoned) {
			errs = append(errs, err)
		}
	}
	for _, s := range in.streams {
		note(s.Synchronize(context.Background()))
	}
	if in.graph != nil {
		note(in.graph.Close())
	}
	for _, c := range in.controls {
		if c != nil {
			c.strip(note)
		}
	}
	if in.list != nil {
		note(in.list.Close())
	}
	events := append(append([]cudart.Event{}, in.events...), in.join...)
	for _, e := range append(events, in.fork, in.begin, in.end) {
		if e != nil {
			note(e.Close())
		}
	}
	for i, s := range in.streams {
		if i > 0 || !in.adopted {
			note(s.Close())
		}
	}
	return errors.Join(errs...)
}
