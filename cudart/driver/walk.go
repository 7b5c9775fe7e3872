// The table of rows {function, arguments} that are called one after the other inside one call into C. Independent of CUDA.

package driver

import (
	"runtime"
	"unsafe"
)

// A row is one call: fn is the address of a C function, or one of the codes below. An epilogue row has at most ten arguments:
// its last is the address of the row that must have been passed for it to run.
type row struct {
	fn  uintptr
	arg [11]uintptr
}

const (
	rowNothing  = 0 // does nothing: a launch of no blocks, a copy of no bytes
	rowWait     = 1 // wait until *arg[0] has reached the walk's generation
	rowPublish  = 2 // *arg[0] = generation
	rowIgnore   = 3 // call arg[0] with arg[1..4], whatever it returns
	rowJoin     = 4 // rowWait in an epilogue: the stop word does not end it
	rowBuiltins = 16

	rowGuard = 10 // the argument of an epilogue row that holds its guard
	rowBytes = unsafe.Sizeof(row{})
)

// A walk is one thread's table and the outcome of walking it. It must not move: it is outside Go's heap, or in an object on the heap.
type walk struct {
	rows, end             *row
	epilogue, epilogueEnd *row
	stop                  *uint64 // not zero: run no further rows
	generation            uint64
	failed                *row // the row that failed, or nil
	code                  uint64
	epilogueFailed        *row
	epilogueCode          uint64
	start, done           *uint64 // of a submitting thread: the generation to run, the generation that ran; nil: walk once
	patience              uint64  // how often to check start before the call into C returns
	yield                 uintptr // sched_yield, called after many spins; 0: none
	own                   uint64  // the stop word of a walk without a shared one
	self                  uintptr // its own address: the only argument of the call into C, kept here so that the call allocates nothing
}

func (w *walk) setRows(rows []row) {
	w.rows = unsafe.SliceData(rows)
	w.end = (*row)(unsafe.Add(unsafe.Pointer(w.rows), uintptr(len(rows))*rowBytes))
}

func (w *walk) setEpilogue(rows []row) {
	w.epilogue = unsafe.SliceData(rows)
	w.epilogueEnd = (*row)(unsafe.Add(unsafe.Pointer(w.epilogue), uintptr(len(rows))*rowBytes))
}

// failedRow returns the index of the row that failed, or -1.
func (w *walk) failedRow() int { return rowIndex(w.rows, w.failed) }

// failedEpilogue returns the index of the epilogue row that failed, or -1.
func (w *walk) failedEpilogue() int { return rowIndex(w.epilogue, w.epilogueFailed) }

func rowIndex(first, failed *row) int {
	if failed == nil {
		return -1
	}
	return int((uintptr(unsafe.Pointer(failed)) - uintptr(unsafe.Pointer(first))) / rowBytes)
}

// patience is how often a thread checks for the next replay before it sleeps: about 100 microseconds of an idle core, while waking a thread
// takes 5 to 50. On x86, PAUSE takes about 40 ns; on ARM, YIELD takes almost no time.
func patience() uint64 {
	if runtime.GOARCH == "arm64" {
		return 100_000
	}
	return 3000
}
