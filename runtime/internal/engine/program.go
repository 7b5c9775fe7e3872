// The program: a graph, a plan and a platform, ready to run, and what each replay in flight has of its own.

// Package engine replays plans: it takes memory, loads kernels, lowers a plan to the commands of a platform, and submits them as streams or as a
// graph. Plans are given to it, and proved again before they are used. Package runtime is its front for everyone outside.
package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/conditions"
	"github.com/dagrun/dagrun/kernels/launch"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/planner/proof"
	"github.com/dagrun/dagrun/runtime/internal/arrays"
	"github.com/dagrun/dagrun/runtime/internal/spans"
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

// Options is runtime.Options, which says what each field does.
type Options struct {
	Mode                Mode
	Memory              MemoryMode
	Inflight            int
	Threads             int
	Bind                map[string][]byte
	Functions           map[string]HostFunction
	Origin              cudart.Stream
	Unsafe              bool
	Recorder            Recorder
	Logger              *slog.Logger
	Progress            func(stage string, done, total int)
	Overlap             Overlap
	Confined            bool
	HostReserve         int64
	DebugProgress       bool
	FollowCommunication bool
	Agree               func(ctx context.Context, own string) (string, error)
	Exchange            func(ctx context.Context, own string) ([]string, error)
}

// Program replays a plan. Its methods, except Counters, must not be called concurrently; different programs may run at the same time on
// one device.
type Program struct {
	graph    *dag.Graph
	plan     *plan.Plan
	ops      *plan.Replay // what each replay submits
	platform cudart.Platform
	edges    EdgesOf
	options  Options
	arrays   arrays.Files
	log      *slog.Logger

	modules        []cudart.Module
	code           []*loadedCode            // in use: by replay in flight, or one that all share
	codes          [2][]*loadedCode         // the plain code, and that whose kernels wait for the launches before them; nil if not loaded
	overlap        bool                     // launches overlap: the code in use is the latter
	early          int                      // launches of a replay that begin before the one before them has ended
	loaded         *loader                  // of what was loaded first
	loading        time.Duration            // what that took
	joined         map[int32]*launch.Module // by device: its modules that can be joined, where there are several
	deciders       *deciders                // of loops and branches, shared with all bodies; nil if the platform decides without kernels
	launches       []*dag.Launch            // by node, as updated; the graph itself is never changed
	bodies         [][]*Program             // by node: of loops and branches; nil if there are none
	body           bool                     // it is one of these
	layout         []plan.Placement         // of a body: the memory layout of the plan around it
	hosts          *hostCalls               // nil if no node runs a host function
	instances      []*instance
	next           int // the instance that the next replay uses
	mode           Mode
	choice         string // why Auto chose
	noGraph        string // why it is not made a graph although that was asked for
	dirty          bool   // a replay has run since buffers had their initial contents
	warnings       []string
	symbolsWritten map[dag.BufferID]bool   // variables of modules that launches write; nil until needed
	setKernel      map[int32]cudart.Kernel // by device: the library's fill for sets of eight-byte patterns
	ranked         bool                    // nodes have priorities other than normal
	low            bool                    // and some of them low
	followed       []followed              // with Options.FollowCommunication: all communication, that of bodies included
	followedAt     map[*dag.Node]int       // by node: its place in followed; bodies have that of the program around them

	replays   atomic.Uint64
	latest    atomic.Pointer[instance] // what replayed last; Unfinished reads it while another goroutine replays
	trials    Trials
	callbacks sync.WaitGroup

	turns                  turns
	waits                  int // as Counters reports them
	deviceBytes, hostBytes int64

	initial  initialContents
	closed   bool
	closeErr error
}

// EdgesOf returns the edges that a CUDA graph of a plan needs. They are proved before they are used.
type EdgesOf func(*dag.Graph, *plan.Plan) ([]plan.GraphEdge, error)

// initialContents is what buffers hold before the first replay.
type initialContents struct {
	program *Program
	bound   map[dag.BufferID][]byte // of carried buffers in the caller's memory
	kept    map[dag.BufferID][]byte // whose file a save has overwritten, or is about to, and of variables of modules
}

// Way is how a program replays: by which plan, as streams or as a graph, submitted by how many threads.
type Way struct {
	Plan    *plan.Plan
	Mode    Mode // Streams or Captured
	Threads int
	Overlap bool // launches overlap
}

// keptWay is what a way needs that is not in use. Its memory is that of the program.
type keptWay struct {
	ops       *plan.Replay
	early     int
	instances []*instance
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
	borders  []cudart.Event // of a body that begins on another device than the node around it
	controls []*control     // by node; nil if there are none
	run      *hostRun       // of host functions; bodies have that of the instance around them
	lowered  *lowered
	list     cudart.List
	graph    cudart.Graph
	built    []int // by node: its command in a graph built node by node
	// progress is a pinned word for each node, which becomes 1 when the node has finished; 0 without Options.DebugProgress.
	progress cudart.Ptr
	// communicated is a pinned word: 2k+1 since the k-th communication began, 2k+2 since it ended; 0 without Options.FollowCommunication.
	communicated cudart.Ptr
	begin        cudart.Event // timed, around a replay
	end          cudart.Event
	turn         Turn
	loose        bool // a Replay used it, and nobody has waited for that yet
}

// ErrClosed is the error of using a program after Close.
var ErrClosed = errors.New("the program is closed")

var (
	ErrNoProgram = errors.New("there is no program; make it with New")
	ErrNoContext = errors.New("there is no context; context.Background() is one that never ends")
)

// usable returns an error for a program that New did not return, one that is closed, and for no context.
func (p *Program) usable(ctx context.Context) error {
	switch {
	case p == nil || p.platform == nil:
		return ErrNoProgram
	case p.closed:
		return ErrClosed
	case ctx == nil:
		return ErrNoContext
	}
	return nil
}

// tolerates reports whether Options.Unsafe allows a violation: a race in a plan that is otherwise correct.
func (p *Program) tolerates(err error) bool {
	return p.options.Unsafe && errors.Is(err, proof.ErrRace)
}

// priority is the priority that a node or a stream gets on the device. CUDA has no level below that of streams without a priority, so
// a program's normal work has the lowest level too, like other work of the process, unless some of its nodes have low priority.
func (p *Program) priority(asked dag.Priority) dag.Priority {
	if asked == dag.Normal && !p.low {
		return dag.Low
	}
	return asked
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

// Trials are what learning does with the program; nil if there is no program.
func (p *Program) Trials() *Trials {
	if p == nil {
		return nil
	}
	return &p.trials
}

// Graph is what the program runs; nil if there is no program.
func (p *Program) Graph() *dag.Graph {
	if p == nil {
		return nil
	}
	return p.graph
}

// Platform is where it runs; nil if there is no program.
func (p *Program) Platform() cudart.Platform {
	if p == nil {
		return nil
	}
	return p.platform
}

// Logger is where decisions go.
func (p *Program) Logger() *slog.Logger { return p.log }

// Recorder is that of the options.
func (p *Program) Recorder() Recorder { return p.options.Recorder }

// Mode returns how the program replays; for Auto, the mode that it chose.
func (p *Program) Mode() Mode {
	if p == nil {
		return Streams
	}
	return p.mode
}

// Plan is the plan that the program replays; after Learn, the one that it chose.
func (p *Program) Plan() *plan.Plan {
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

// control runs one loop or branch of one instance.
type control struct {
	name   string
	node   *dag.Node
	place  int // of the node in its graph
	stream cudart.Stream
	bodies []*controlBody
	test   cudart.List // copies the operands to words; nil without a condition
	words  []byte      // eight bytes for each operand
	memory cudart.Ptr  // of words
	shared cudart.Ptr  // where rank 0's operands come to all ranks, if the bodies communicate; 0 otherwise

	platform cudart.Platform
	passes   int64 // in the latest replay, over all times that it ran
	runs     int64
	missed   int64 // runs that ended although the condition did not hold
	chosen   [2]int64

	counted cudart.Ptr // of the counts in a graph
	counts  *counts    // of a loop or branch that is in no other one, once there is a graph

	recorder passWatch  // while its passes are traced as streams
	stamps   cudart.Ptr // while they are traced as a graph
	stamping conditions.Stamping
}

// followed is a communication that the device tells of.
type followed struct {
	node *dag.Node // a loop or branch: the communication of its condition
	body bool      // what came before it depends on the pass that it is in
}

// passWatch is told of the passes of loops and branches, and submits their bodies.
type passWatch interface {
	submit(ctx context.Context, c *control, k int, pass int64) error
	chosenNone(c *control)
}

// controlBody is a body as a program of its own, over the memory of the one around it.
type controlBody struct {
	program *Program
	in      *instance
}

// family returns the program and those of all its bodies.
func (p *Program) family() []*Program {
	all := []*Program{p}
	for _, bodies := range p.bodies {
		for _, body := range bodies {
			all = append(all, body.family()...)
		}
	}
	return all
}

// Recorder records when kernels, copies and sets ran, and on which streams. *cupti.Library implements it.
type Recorder interface {
	Enable() error
	Disable() error
	// Flush returns the records since the last Flush in the order of calls and graph nodes. If it can, it waits for that many records.
	Flush(want int) ([]cudart.Activity, error)
}

// Trials are replays of a program that learning measures or times, and the ways to replay that it goes through for that. The replays count: nothing
// is restored.
type Trials struct {
	program  *Program
	tracing  atomic.Pointer[tracer] // while nodes are measured; Running reads it while another goroutine replays
	learning atomic.Bool
	trial    atomic.Pointer[Trial]    // what is timed, or was when learning was given up
	stuck    atomic.Pointer[[]string] // the nodes that were running when that was given up
	kept     map[Way]*keptWay
	keeping  bool // ways that go out of use are kept
}

// tracer holds what a traced replay needs in addition: a timed event before and after every node.
type tracer struct {
	program *Program
	in      *instance
	base    []cudart.Event // by device: the zero of its clock
	before  []cudart.Event // by node
	after   []cudart.Event
	origin  cudart.List // records base while everything is idle
	list    cudart.List // streams: the commands with their events
	graph   cudart.Graph
	bodies  tracedBodies // nil without loops and branches
}

// tracedBodies records what the loops and branches of an instance do.
type tracedBodies interface {
	begin() // a replay
	// add adds to a replay that has ended what they did. The clock of the trace starts first microseconds after the base events.
	add(ctx context.Context, r *spans.TracedReplay, first float64) error
	close() []error
}

// Turn is one replay of ReplayThen and the host buffers that it uses. It is valid only inside the functions that it is passed to.
type Turn struct {
	// Number counts the turns of a program from 0.
	Number  uint64
	program *Program
	in      *instance
	then    func(*Turn, error)
	idle    chan struct{} // holds one token while no turn uses the instance
}

// turns are those of ReplayThen.
type turns struct {
	program          *Program
	queue            chan *Turn // in flight; nil before the first
	number           uint64
	finished, failed atomic.Uint64
}

// lowered holds the commands of one replay and the index of each node's command.
type lowered struct {
	commands []cudart.Command
	index    []int32 // by node: its command
}

// loadedCode is what one replay in flight has of the modules. Where no buffer is a variable of a module, all replays share it.
type loadedCode struct {
	kernels []cudart.Kernel // by node; nil if it launches none
	symbols map[dag.BufferID]cudart.Ptr
	waits   []bool // by node: its kernel was loaded in the form that waits for the launches before it
}

// codeOf returns the code of a replay in flight.
func (p *Program) codeOf(in *instance) *loadedCode { return p.code[min(in.flight, len(p.code)-1)] }

// Overlap says whether launches may begin before the launches before them have ended, to wait in their own code.
type Overlap uint8

// counts is what the device counts for a loop or branch that is in no other one, and for all in its bodies: a set of counts for each, in
// the order of nest.
type counts struct {
	device cudart.Ptr
	host   cudart.Ptr
	words  []int64 // at host
	fetch  cudart.List
	nest   []*control
	known  bool // a replay as a graph has begun
}

type loadedAt struct {
	module *launch.Module // nil: the library
	device int32
	flight int // of modules with variables
}

// deciders are the kernel that decides about loops and branches in graphs.
type deciders struct {
	conditions.Decider
	module  *launch.Module
	kernels map[int32]cudart.Kernel // by device that has loops or branches
}

// loader loads modules for one program.
type loader struct {
	program   *Program
	joinables map[int32][]*launch.Module  // by device: those that can be joined
	library   map[int32]map[string]bool   // by device: the library's entries that are launched
	wanted    map[*launch.Module][]string // kernels and variables that have symbols only once they are compiled
	modules   map[loadedAt]cudart.Module
	shared    map[*launch.Module]bool // modules with variables that are buffers: each replay in flight loads its own
	flight    int
	waiting   bool              // kernels are loaded so that they wait for the launches before them
	plain     map[loadedAt]bool // modules that have no such form
}

// HostFunction is a function of the program that embeds dagrun, which a node runs in every replay.
type HostFunction func(ctx context.Context, call *HostCall) error

// HostCall is one run of a host function. Its memory is valid until the function returns.
type HostCall struct {
	Node   string
	Replay uint64 // counts the replays of the program from 0
	names  []string
	memory [][]byte
}

// HostError is returned if a host function failed. The program can then only be closed.
type HostError struct {
	Node     string
	Function string
	Replay   uint64
	Err      error
	Stack    string // if it panicked
}

// hostCalls is what a program and its bodies have in common about host functions.
type hostCalls struct {
	place map[string]int // of each node that runs one, in the order of declaration

	mu     sync.Mutex
	begun  uint64 // replays
	failed *HostError
}

// hostRun is the replay that an instance is in.
type hostRun struct {
	mu      sync.Mutex
	ctx     context.Context
	cancel  context.CancelCauseFunc
	replay  uint64
	started bool // and nobody has waited for it
	failed  *HostError
}
