// The data of the CPU device: platform, memory, queues, events, graphs and clocks. They all refer to each other.

package host

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host/simt"
	"github.com/dagrun/dagrun/cudart/world"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/launch"
	"golang.org/x/sync/errgroup"
)

// Platform is a set of CPU devices.
type Platform struct {
	options Options
	infos   []cudart.Info
	devices []*device
	memory  addresses
	pool    pool
	order   *order // nil unless CheckOrder
	peers   [][]atomic.Bool
	capture sync.Mutex // guards every capture

	mu      sync.Mutex
	closed  bool
	queues  []*queue // queues that are not closed, or not empty yet
	made    int32    // number of streams made so far
	streams atomic.Int64
	events  atomic.Int64
	modules atomic.Int64
	lists   atomic.Int64
	graphs  atomic.Int64
	wakers  sync.Pool // channels that goroutines wait on
	compile compileFunc
	world   *world.World // nil: this process is the only rank
}

// device is the state of one device's context.
type device struct {
	id    int32
	limit int64
	used  atomic.Int64
	fault atomic.Pointer[cudart.Error]
	told  atomic.Bool // whether the fault itself was returned to someone
}

// check returns the error of a device after a fault: the fault itself the first time, later cudart.ErrPoisoned with it.
func (d *device) check(call string) error {
	fault := d.fault.Load()
	switch {
	case fault == nil:
		return nil
	case fault.Code == int(deinitialized):
		return fail(call, deinitialized, d.id, "the platform is closed")
	}
	if d.told.CompareAndSwap(false, true) {
		return fault
	}
	return fmt.Errorf("device %d: %w: %w", d.id, cudart.ErrPoisoned, fault)
}

// memory is one allocation.
type memory struct {
	place  place
	device int32 // -1 for host memory
	base   cudart.Ptr
	bytes  int64
	data   unsafe.Pointer
	pages  pages
	owned  []byte // registered: the caller's slice, kept alive
	front  []byte // guard bands within the pages
	back   []byte
	guards bool
	live   atomic.Bool
	shadow shadow
	// written is what anybody has written, on a device whose kernels are checked.
	written *simt.Written
}

// place is the kind of memory of an allocation.
type place uint8

// addresses holds every live allocation.
type addresses struct {
	mu      sync.RWMutex
	sorted  []*memory // by descending address: new mappings mostly lie below older ones, so they are appended
	graves  []*memory // freed allocations whose addresses are still reserved, oldest first
	guarded int       // allocations with inaccessible neighbours
}

// globals are the variables of a module that were asked for, by their names in the code.
type globals struct {
	mu    sync.Mutex
	known map[string]*memory
}

// module is a loaded module. Its kernels are Go references, or run from its PTX.
type module struct {
	platform *Platform
	device   *device
	source   *launch.Module
	closed   atomic.Bool
	code     code
	globals  globals
}

// kernel is a kernel that can be launched, in Go or as PTX.
type kernel struct {
	module    *module
	entry     string
	reference launch.Reference

	interpreter *simt.Kernel // nil if the reference runs
}

// code is a module's PTX. It is compiled and parsed when one of its kernels is first needed.
type code struct {
	once     sync.Once
	program  *simt.Program
	warnings []string
	symbols  map[string]string // of source: where the code has kernels
	origin   string            // how source became code
	err      error
}

type queue struct {
	platform *Platform
	device   *device
	priority dag.Priority
	id       int32
	handle   uintptr
	sequence sequence // of the order checker
	closed   atomic.Bool

	mu      sync.Mutex
	ring    []entry // a power of two
	tail    uint64  // entries submitted
	active  bool    // a worker serves the queue or will do so, or the queue is stopped at a wait
	waiters []waiter

	waiting   atomic.Int32  // len(waiters)
	done      atomic.Uint64 // entries done; only the worker that serves the queue changes it
	recording atomic.Pointer[capture]
	frontier  []int32 // while capturing: the nodes that the next one depends on; guarded by Platform.capture
	rank      uint64  // while timing is perturbed: the highest is served first; guarded by pool.mu
}

// stream is a handle of a queue.
type stream struct {
	queue   *queue
	adopted bool
	closed  atomic.Bool
}

// command is an encoded cudart.Command. It does not change after it is submitted: a change makes a new command.
type command struct {
	platform *Platform
	kind     cudart.CommandKind
	priority dag.Priority
	width    uint8
	together bool // a cooperative launch
	cluster  [3]uint32
	blocking bool // a copy that the submitting goroutine waits for
	nothing  bool // a launch of no blocks, or a copy or a set of no bytes
	pageable bool // a copy that was declared to touch pageable memory
	node     int32
	index    int
	name     string // the name of the driver call
	label    string
	stream   *stream
	device   *device // the device that the command runs on; nil for a graph's copies until the graph is made
	event    *event
	kernel   *kernel
	call     launch.Call
	args     []cudart.Value
	dst, src cudart.Ptr
	devices  [2]int32 // of dst and src, as declared
	bytes    int64
	rows     int64    // of a copy or a set; 0 or 1: none
	pitches  [2]int64 // of dst and src
	pattern  uint32
	uses     []use
	talk     *cudart.Communication
	repeated *conditional
	function func() // of the host
	accesses []cudart.Access
}

// use is memory that a command accesses. Its allocation is looked up once, and again if it was freed.
type use struct {
	memory *memory // nil: there was no allocation when it was looked up
	ptr    cudart.Ptr
	bytes  int64 // from the first byte to the last
	arg    int   // the argument's index, destination or source
}

// event is a place in a stream.
type event struct {
	platform *Platform
	device   *device
	timed    bool

	mu      sync.Mutex
	closed  bool
	mark    mark
	version uint64 // number of records
	stamped uint64 // the version that at belongs to
	at      time.Time
	helped  int64    // what the pool's counter was at that time
	capture *capture // the capture of the last record, which comes after nodes
	nodes   []int32
	clock   clock // of the order checker, at the last record; it is replaced, never changed
}

// capture is a graph that is being captured. Platform.capture guards it and the frontiers of its queues.
type capture struct {
	origin   *queue
	queues   []*queue // in the order they joined, the origin first
	commands []*command
	deps     [][]int32
	invalid  bool
	ended    bool
}

// Graph implements [cudart.Graph].
type graph struct {
	platform   *Platform
	device     *device
	priorities bool
	indexed    bool // made by BuildGraph: nodes are the given commands

	mu       sync.Mutex
	table    *table
	launched bool // a launch may still use table
	last     mark // after the last launch
	batch    batch
	closed   bool
	versions []atomic.Uint64 // of timed events, by node, at the last launch
	sequence sequence        // of the order checker

	// State of the running launch; the next one starts after it.
	queue   *queue
	running *table
	waits   []atomic.Int32
	left    atomic.Int32
}

// table holds what one launch runs. It does not change while a launch that uses it may be pending.
type table struct {
	commands   []*command // each after its dependencies
	depStart   []int32
	deps       []int32
	afterStart []int32
	afters     []int32
	stamps     []int32 // the timed records
}

type pool struct {
	workers int
	all     []*worker
	group   errgroup.Group

	mu     sync.Mutex
	wake   sync.Cond
	tasks  [levels]tasks
	shared []*share // kernels whose parts any worker may run
	idle   int
	closed bool
	random *rand.Rand // nil unless timing is perturbed

	waiting [levels]atomic.Int32 // by level, how many tasks there are
	helped  atomic.Int64         // nanoseconds that workers have spent on parts of other workers' commands
}

// worker runs one thing at a time.
type worker struct {
	pool  *pool
	share share
	woken []*queue
	queue [1]*queue
	order uint64 // the state of its own random numbers, 0 unless timing is perturbed
	// doing is the command that it runs, nil between commands.
	doing atomic.Pointer[command]
}

// share is a command whose parts several workers run.
type share struct {
	job     part
	next    atomic.Int64
	parts   int64
	step    int64
	helpers sync.WaitGroup
	panic   atomic.Pointer[crash]
}

// part runs the parts from lo to hi of a command.
type part interface{ part(lo, hi int64) }

// task is a queue to serve or a graph node to run.
type task struct {
	queue *queue
	graph *graph
	node  int32
}

// tasks is a first-in first-out queue.
type tasks struct {
	items []task
	head  int
}

// levels is the number of priorities, the highest last.
const levels = 3

// crash is a panic of a command.
type crash struct {
	value any
	stack []byte
}

// order keeps vector clocks of the streams, the graphs and the host. A nil order checks nothing.
type order struct {
	mu      sync.Mutex
	clocks  []clock
	host    clock      // what the host has waited for; everything it submits comes after that
	retired []sequence // sequences of closed streams and graphs
	search  search
}

// sequence numbers a source of commands that are ordered among themselves: a stream, or the launches of a graph.
type sequence int32

// epoch is the time of a command on its sequence. All nodes of one graph launch have the same time; the graph orders them.
type epoch struct {
	sequence sequence
	node     int32 // of the graph; -1 on a stream
	time     uint64
	by       *command
	access   int32 // index among the accesses of by
	graph    *table
}

// clock holds, for each sequence, the last time that is known to have passed; 0 for sequences beyond its end.
type clock []uint64

// search finds paths in graphs without a table of all pairs: commands that conflict mostly have an edge or a short path between them.
type search struct {
	seen []uint32 // by node: the search that saw it
	turn uint32
	open []int32
}

// shadow holds the accessed spans of an allocation, in ascending order, without overlap. They are stored in leaves of limited size, so that
// in an arena of many small buffers an insertion does not move all spans.
type shadow struct {
	leaves [][]span
}

// span is a range of bytes with one history.
type span struct {
	lo, hi int64
	write  epoch
	reads  []epoch // since the write; none of them happened before another
}

// batch collects idle queues that got work, so that workers are woken once for many commands.
type batch struct {
	pool   *pool
	queues []*queue
}

// mark is a place in a queue. It is reached when all entries before it are done. Because queues are in order, a record needs no entry, and a
// wait only stores the place that the event had when the wait was submitted; neither allocates memory.
type mark struct {
	queue *queue
	place uint64
}

// entry is one thing to do. The queue waits until wait is reached, then does whatever is not nil.
type entry struct {
	wait    mark
	command *command
	event   *event // a timed event: store the time if version is still its last record
	version uint64
	graph   *graph
	table   *table
}

// waiter is notified when a place is reached: a queue that is stopped at a wait, or a goroutine.
type waiter struct {
	place uint64
	queue *queue
	wake  chan struct{}
}

// assumedMemory is used if the machine's memory size cannot be found out.
const assumedMemory = 16 << 30

// conditional is what a command of kind RunBodies runs.
type conditional struct {
	cudart.Conditional
	bodies []*table
	random *rand.Rand // nil unless timing is perturbed: then commands run in any order that their dependencies allow
}
