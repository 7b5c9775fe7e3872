// The state of a launch: programs as they were compiled, and clusters, blocks, warps and groups of lanes while they run. They refer to each
// other, so their types are in one file.

package simt

import (
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/internal/ptx"
)

// Program is a module whose variables have memory.
type Program struct {
	Name   string // for messages
	module *ptx.Module
	memory []byte   // of all global and constant variables
	places []uint64 // by variable: its address, if it has one
	ranges []span   // the variables of memory, in order

	mu      sync.Mutex
	kernels map[ptx.FunctionID]*Kernel
}

// Kernel is an entry that can be launched. Any number of launches may run at the same time.
type Kernel struct {
	program   *Program
	entry     *function
	functions map[ptx.FunctionID]*function
	list      []*function // the same, by number
	names     []sharedName
	params    []param
	bytes     int64 // of all parameters
	shared    int64 // static
	open      int64 // where dynamic shared memory starts
	stack     int64 // local memory of a lane
	limits    ptx.Limits
	idle      idle
	meets     bool // it asks where the blocks of a cooperative launch meet
}

// idle is the clusters of a kernel that no launch uses. They have one shape.
type idle struct {
	mu       sync.Mutex
	shape    shape
	clusters []*cluster
	bytes    int64
}

// shape is all that blocks keep of the launch that they were made for.
type shape struct {
	grid, block, cluster [3]uint32
	shared               uint32
}

// slotRange is slots from lo up to but without hi.
type slotRange struct{ lo, hi int }

// param is the place of a parameter in the bytes that a launch passes.
type param struct {
	offset, size int64
}

// sharedName is a variable in a block's shared memory.
type sharedName struct {
	at   int64
	name string
}

// function is a compiled function.
type function struct {
	f       *ptx.Function
	id      ptx.FunctionID
	blocks  []basic
	slots   int // registers with memory of their own: slots 0 to slots-1
	preds   int
	extras  []extra // the slots after them
	frame   int64   // bytes of a lane's local memory
	number  uint32  // among the kernel's functions
	results []place // where they are left
	params  []place

	// Of an entry: what its first block runs once a warp has run it in the same launch, nil where that is everything; and the registers
	// that may be read before they are written.
	later   []op
	laterAt []int32
	unset   []slotRange
}

// place is where a parameter or result of a function is: a register, or bytes of its local memory.
type place struct {
	slot      int // -1: in memory
	offset    int64
	size      int64
	predicate int // its number plus one
	more      int // further slots, of a register that is a vector
}

// extra is a slot that is not a register: a constant, a special register, or an address in a lane's local memory.
type extra struct {
	constant *lanes
	special  specialSlot
	local    bool
	generic  bool
	offset   int64
}

type specialSlot struct {
	special ptx.Special
	part    int
}

// basic is a basic block: instructions for all its lanes, and how it ends.
type basic struct {
	ops      []op
	at       []int32                        // by op: its instruction
	operands []operands                     // by op
	need     func(x *exec, m uint32) uint32 // the lanes that must have come before it runs; nil: none
	end      ending
	last     int32 // the instruction that ends it
	guard    guard
	to       int32   // endJump
	turn     int32   // its place in the order in which lanes at different places run
	table    []int32 // endTable
	index    int     // endTable: the slot
	call     *call
	bar      *barrierOp
	closing  operands // of the instruction that ends it
}

// op is an instruction. It works on the lanes of the mask, which is never empty.
type op func(x *exec, m uint32)

// operands are what an instruction reads and writes, by slot.
type operands struct {
	uses, sets []int32
	copies     copying
	choose     func(x *exec) uint32 // of a selection: the lanes that take the first
	guard      guard
}

// triple writes an index of a thread or block.
func triple(v [3]uint32) string { return fmt.Sprintf("(%d,%d,%d)", v[0], v[1], v[2]) }

// ending tells how a basic block ends.
type ending uint8

const (
	endNext ending = iota // continues with the next block
	endJump
	endTable
	endCall
	endReturn
	endExit
	endBarrier
	endTrap
)

// guard is the predicate of an instruction; register -1 stands for none.
type guard struct {
	register int32
	negated  bool
}

func (g guard) mask(x *exec, m uint32) uint32 {
	if g.register < 0 {
		return m
	}
	if g.negated {
		return m &^ x.p[g.register]
	}
	return m & x.p[g.register]
}

// barrierOp is a bar or barrier instruction.
type barrierOp struct {
	name    int // slot
	count   int // slot, or -1
	arrive  bool
	cluster bool    // the barrier of the cluster
	reduce  ptx.Mod // ModPopc, ModAnd, ModOr; ModOther: none
	target  int     // slot or predicate of the result
	source  int     // predicate, -1: constant
	negated bool
}

// call is one call instruction.
type call struct {
	callee  *function // nil: through the address in slot
	slot    int
	builtin func(x *exec, m uint32, c *call)
	args    []place // of the caller
	results []place
}

// Launch describes what to run.
type Launch struct {
	Grid, Block [3]uint32
	Shared      uint32    // dynamic shared memory
	Cluster     [3]uint32 // blocks of a cluster; all zero: as the kernel says
	Cooperative bool      // all blocks run at once, so that the kernel may wait for its whole grid
	Args        []Arg
	// Reach reports whether the kernel may access memory that belongs to no argument; nil: it may not.
	Reach func(address uint64, bytes int) bool
	// Check is what is checked beside bounds and alignment; Written is what is known of memory that nobody has written.
	Check   Check
	Written []*Written
	// MaxSteps is how many instructions the lanes may run together; 0 sets no limit.
	MaxSteps uint64
	// Print takes what the kernel prints; nil drops it.
	Print func(text string)
}

// Arg is one argument of a launch. For a pointer, the kernel may access the memory that starts there.
type Arg struct {
	Bits    uint64
	Pointer bool
	Bytes   int64 // for a pointer: the size of its memory; of a tile: from its first byte to its last
	Row     int64 // of a tile: the bytes of each row that belong to it; 0: all do
	Pitch   int64 // of a tile: the bytes from one row to the next
	Start   int64 // for a pointer: bytes from the first of its memory to where it points
	// ReadOnly says that the launch was declared to write none of it.
	ReadOnly bool
	// Unused says that the launch was declared to use none of it. Such a pointer gets an address of its own, whatever Bits is.
	Unused bool
	Struct []byte // for a struct by value: its bytes, instead of Bits
	Within int    // for a member of a struct by value: 1 + the index of the struct's argument; such arguments come after all others
	Offset int64  // for a member: where it is in the struct
	// Texture says that the kernel reads the memory of the pointer through a texture object, whose handle is passed instead of the pointer.
	Texture *cudart.Texture
}

// span is memory from lo up to hi.
type span struct{ lo, hi uint64 }

// memory is what belongs to an argument: a span, or rows of a span.
type memory struct {
	span
	row, pitch uint64 // the bytes of a row, and from one row to the next; row 0: all of the span
}

// Run is a running launch. Any number of workers may call Work.
type Run struct {
	kernel *Kernel
	Launch
	grid, block [3]uint32
	threads     int
	params      []byte
	ranges      []span
	sharedBytes int64
	blocks      uint64
	cluster     [3]uint32
	clusters    uint64
	next        atomic.Uint64
	fence       atomic.Uint32
	meeting     []uint64 // of a cooperative launch: what its blocks count in when they meet
	steps       atomic.Uint64
	readOnly    []memory
	numbered    []memory // arguments by number
	textures    []texture
	history     history
	board       board
	told        *told // nil without checks

	mu        sync.Mutex
	suspended []*cluster
	fault     *Fault
	faulty    uint64        // the block that it is of
	broken    atomic.Uint64 // that block plus one; 0: there is no fault
}

// texture is a texture object of a launch.
type texture struct {
	cudart.Texture
	base     uint64
	argument int
}

// cluster is blocks that run together.
type cluster struct {
	size    [3]uint32
	index   [3]uint32 // in the grid of clusters
	blocks  []*block  // by rank
	arrived int       // threads, since the cluster's barrier last opened

	running *block // that has run last

	releases *releases // what its blocks knew when it opened, where that is checked
}

const (
	mostCluster = 16 // blocks
	// An address in the shared memory of another block of the cluster has the block's rank plus one above the offset.
	rankShift    = 24
	inShare      = uint64(1)<<rankShift - 1
	mostRanks    = 1<<(32-rankShift) - 1
	clusterPlace = barriers // what a group that waits for the cluster has in place of a barrier's number
)

// block is one block that runs.
type block struct {
	run     *Run
	cluster *cluster
	rank    int // in the cluster
	index   [3]uint32
	threads int
	alive   int
	warps   []*warp
	shared  []byte
	polling bool // all its warps poll memory that other threads write, so other blocks run first
	bars    [barriers]barrier
	ctaid   [3]lanes
	// The index of its cluster.
	clusterid [3]lanes
	other     map[specialSlot]*lanes

	// What is checked needs the rest.
	number   uint64 // in the grid
	grace    int    // turns that are left once a later block has failed
	now      uint32 // the count of synchronisations; it goes on from block to block, so that what earlier blocks did is past
	base     uint32 // the time before which all accesses of the block are past
	pairs    [][]uint32
	acquired *knowledge
	heard    heard // what acquired tells, as far as that was asked
	board    board
	history  *blockHistory
	met      map[*barrierOp][]uint32 // of barriers of the whole block: the lanes of each warp that met there last
	came     []uint32                // the lanes of each warp that have met at any of them
	pending  *Fault                  // to be reported at the next barrier or at the end
}

// thread is the index of a thread in its block.
func (b *block) thread(i int) [3]uint32 { return b.run.threadIndex(i) }

func (r *Run) threadIndex(i int) [3]uint32 {
	n := r.block
	return [3]uint32{uint32(i) % n[0], uint32(i) / n[0] % n[1], uint32(i) / n[0] / n[1]}
}

// barrier is one of a block's barriers.
type barrier struct {
	want   int // number of threads; 0: all that are alive
	here   int
	ones   int // threads whose predicate was true
	counts bool
	arrive bool     // some came without waiting
	times  []uint32 // by warp: when it came, where that is checked
}

const (
	warpSize  = 32
	fullMask  = ^uint32(0)
	barriers  = 16
	groupTurn = 1 << 10 // basic blocks that a group runs before other groups of its warp get a turn
	warpTurn  = 1 << 10 // the same for a warp among those of its block
	pollTurn  = 8       // passes of a polling loop before all others get a turn
)

// lanes is one register: a value for each lane, zero-extended to 64 bits.
type lanes [warpSize]uint64

// firstLane is the lowest lane of a mask.
func firstLane(m uint32) int { return bits.TrailingZeros32(m) & 31 }

// warp is 32 lanes of a block.
type warp struct {
	index int
	live  uint32
	// Lanes that have arrived at the barrier of the cluster, since it last opened and before.
	arrived, met uint32
	groups       []group
	idle         bool // all its groups poll memory that other threads write
	top          *frame
	local        []byte           // 32 stacks, one after the other
	valid        []byte           // by byte of local: not 0 once it was written; nil where nothing is checked
	origins      map[int64]origin // of undefined values that were stored in local
	lane         lanes
	tid          [3]lanes
	x            exec
	slots        []lanes // of the top frame
	prepared     bool    // its registers hold what the first basic block computes once for all blocks of the launch
}

// group is the lanes at the start of the same basic block of the same frame.
type group struct {
	frame   *frame
	pc      int32
	mask    uint32
	polls   int32 // passes of a polling loop
	idle    bool  // it polls memory that other threads write, so it runs last
	age     int32 // how often it has yielded
	waiting int8  // the barrier that it waits at, or -1
	parked  bool  // it waits for the lanes that it needs
}

// frame is one call of a function. Lanes that made the same chain of calls share it.
type frame struct {
	fn        *function
	parent    *frame
	back      int32 // the block of the parent that follows the call
	call      *call
	depth     int32
	local     int64 // where its local memory starts
	carry     uint32
	s         []*lanes
	p         []uint32
	children  map[*call]*frame
	undefined map[int]*undefinedLanes // registers that hold what nobody wrote, by slot
}

// undefinedLanes are those in which a register holds an undefined value.
type undefinedLanes struct {
	lanes uint32
	from  [warpSize]origin
}

// nearby is how many instructions remember the memory of their last access. A power of two.
const nearby = 32

// exec is the state that an instruction works on.
type exec struct {
	s         []*lanes // registers, constants and special registers, by slot
	p         []uint32 // predicates
	frame     *frame
	warp      *warp
	block     *block
	at        int32        // the instruction that runs
	steps     uint64       // instructions that its lanes have run since the block last gave way
	check     *checker     // nil: bounds and alignment are all that is checked
	sameValue bool         // the store that runs leaves memory as it is
	polls     bool         // since the last jump back it has read what other threads write
	argument  int          // that a message has named last
	near      [nearby]span // where the last global accesses were, by instruction
	spare     lanes        // what a loop over all lanes computes where only some of them run
}

// checker is what a warp needs to check its accesses.
type checker struct {
	level   Check  // CheckFast or CheckFull
	full    int64  // instructions that are left until CheckUsual becomes CheckFast; 0: they are not counted
	block   uint32 // its number in the grid plus one
	page    *page  // where the last access to global memory was
	number  uint64
	written *Written // the same
	order   warpOrder
	texel   *origin // of what the fetch that runs reads, where nobody wrote it
}

// origin is where an undefined value was read.
type origin struct {
	fn      *function
	at      int32
	window  uint64
	address uint64
	size    int
}

// copying says what becomes of an undefined value.
type copying uint8

// warpOrder is what the lanes of a warp know.
type warpOrder struct {
	known    uint32                      // of the warp: the time before which all is past
	lanes    *[warpSize][warpSize]uint32 // of pairs of lanes, after barriers of some lanes
	gpu, cta [warpSize]fenced            // the last fence of each lane, for all threads and for those of the block
	acquired [warpSize][]seen            // of each lane
	pending  [warpSize][]seen            // read, and acquired at the next fence
	waits    uint32                      // lanes with something pending
	wrote    [warpSize]uint32            // the time of the last plain write of each lane to global memory, plus one
}

// fenced is what a lane knew at its last fence.
type fenced struct {
	time, base, known uint32
	row               *[warpSize]uint32
	pairs             []uint32 // by warp of the block
	acquired          *knowledge
}

// board holds the addresses at which a launch's threads have released something.
type board struct {
	any atomic.Bool
	mu  sync.Mutex
	at  map[uint64]*releases
}

// told is by number of a block, modulo their count, the time from which on no release of it tells of its accesses.
type told [1 << 10]atomic.Uint32

func (t *told) of(block uint32) *atomic.Uint32 { return &t[block%uint32(len(t))] }

// seen is the first n releases at a place, of all threads or only of those of one block.
type seen struct {
	at   *releases
	n    int
	only uint32 // the block; 0: of all
}

// heardOf is what releases somebody has gone through.
type heardOf struct {
	at   *releases
	only uint32
}

// knowledge is what somebody knew once: what was seen, beside what was known before. It never changes, so that many releases may have the same.
type knowledge struct {
	seen   []seen
	before *knowledge
}

// releases are those at one address, oldest first. Nothing is ever taken away.
type releases struct {
	mu   sync.Mutex
	log  []released
	last map[uint32]int // of each block
	told []telling
}

// telling is what is known to who sees a release or a later one.
type telling struct {
	*knowledge
	at int // of the release
}

// heard is what a block knows of others' accesses, from all that it has acquired, and from what those knew who released that.
type heard struct {
	seen   map[heardOf]int
	known  map[*knowledge]bool
	past   map[uint32]uint32      // by block: the time before which all its accesses are past
	single map[uint32][]*released // by block: those that tell more than that, of single threads
}

type released struct {
	fenced
	block  uint32
	thread uint16
	cta    bool // for threads of the block only
}
