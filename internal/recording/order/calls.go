// Calls: where the words of a recorded call are, and what the numbers in them mean. format.h of the recorder says the same.

package order

// Words of a launch.
const (
	launchStream = iota
	launchNode
	launchFunction
	launchNumber
	launchFlags = 11

	flagProgrammatic = 2
	flagEvent        = 4
)

// Words of a copy, from its destination on. They are the same in a call and in a node of a graph.
const (
	copyTo = iota
	copyFrom
	copyBytes
	copyRows
	copySlices
	copyToPitch
	copyFromPitch
	copyToSlice
	copyFromSlice
	copyToKind
	copyFromKind
	copyWords
)

// Kinds of memory, as a copy names them, and of allocations.
const (
	memoryHost   = 1
	memoryDevice = 2
	memoryArray  = 3

	allocPinned     = 2
	allocManaged    = 3
	allocAsync      = 4
	allocRegistered = 5
	allocMapped     = 6
	allocArray      = 7
	allocImported   = 8
)

// Words of a memset, from its address on.
const (
	setAddress = iota
	setBytes
	setRows
	setPitch
	setWords
)

// The driver's names of default streams.
const (
	legacyStream    = 1 // and 0
	perThreadStream = 2
)

// Types of a graph's nodes, and the words of a kernel node before its parameters.
const (
	nodeKernel = iota
	nodeCopy
	nodeSet
	nodeHost
	nodeChild
	nodeEmpty
	nodeWait
	nodeRecord
	nodeAlloc = 10
	nodeFree  = 11

	kernelWords = 10
)

// How a stream waits for a value, CUstreamWaitValue_flags.
const (
	waitEqual = 1
	waitAnd   = 2
	waitNor   = 3
)

const writeUnfenced = 1 // how a stream writes a value, CUstreamWriteValue_flags

// What happened to a context.
const (
	contextDestroyed = 2
	contextReset     = 3
	contextRetained  = 4
	contextReleased  = 5
)

const mapBytes = 128 // of the descriptor of a tensor copy
