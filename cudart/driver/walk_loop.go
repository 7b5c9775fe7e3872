// The walker as a loop in Go, with one call into C per row: for platforms without an assembly walker, and as the reference in the tests of
// the assembly walkers.

package driver

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/dagrun/dagrun/internal/dl"
)

func (r *row) next() *row { return (*row)(unsafe.Add(unsafe.Pointer(r), rowBytes)) }

func (r *row) word(i int) *uint64 { return *(**uint64)(unsafe.Pointer(&r.arg[i])) }

func (r *row) before(other *row) bool {
	return uintptr(unsafe.Pointer(r)) < uintptr(unsafe.Pointer(other))
}

// walkLoop walks a table once. It ignores a submitting thread's start word.
func walkLoop(w *walk) {
	w.failed, w.code, w.epilogueFailed, w.epilogueCode = nil, 0, nil, 0
	at := w.rows
rows:
	for ; at.before(w.end) && atomic.LoadUint64(w.stop) == 0; at = at.next() {
		switch at.fn {
		case rowNothing:
		case rowWait:
			for atomic.LoadUint64(at.word(0)) < w.generation {
				if atomic.LoadUint64(w.stop) != 0 {
					break rows
				}
				runtime.Gosched()
			}
		case rowPublish:
			atomic.StoreUint64(at.word(0), w.generation)
		case rowIgnore:
			dl.Call(at.arg[0], at.arg[1], at.arg[2], at.arg[3], at.arg[4])
		default:
			if code := uint32(dl.Call(at.fn, at.arg[:]...)); code != 0 {
				w.code, w.failed = uint64(code), at
				atomic.StoreUint64(w.stop, 1)
				break rows
			}
		}
	}
	for r := w.epilogue; r.before(w.epilogueEnd); r = r.next() {
		if uintptr(unsafe.Pointer(at)) <= r.arg[rowGuard] {
			continue
		}
		if r.fn == rowJoin {
			for atomic.LoadUint64(r.word(0)) < w.generation {
				runtime.Gosched()
			}
			continue
		}
		if code := uint32(dl.Call(r.fn, r.arg[:]...)); code != 0 && w.epilogueFailed == nil {
			w.epilogueCode, w.epilogueFailed = uint64(code), r
		}
	}
}
