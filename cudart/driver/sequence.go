// A sequence: a few driver calls in one call into C, with the context pushed before and popped after. Replays have their own tables instead.

package driver

import (
	"sync"
	"unsafe"
)

const sequenceRows = 12

// sequence is a small table. Sequences are pooled, so that queries and waits allocate nothing.
type sequence struct {
	walk     walk
	rows     [sequenceRows + 1]row // one spare, so that the end lies inside
	epilogue [3]row
	calls    [sequenceRows]function
	count    int
	last     int // epilogue rows in use
	ends     [2]function
	outs     [4]uint64
	popped   uint64
	held     []unsafe.Pointer
	lib      *library
	d        *device
	home     *sync.Pool
}

// begin takes an empty sequence into use, in a context unless that is 0. home takes it back.
func (s *sequence) begin(lib *library, d *device, context uintptr, home *sync.Pool) {
	s.lib, s.d, s.home = lib, d, home
	s.outs = [4]uint64{}
	s.reset()
	if context != 0 {
		s.call(cuCtxPushCurrent, context)
		s.finally(cuCtxPopCurrent, uintptr(unsafe.Pointer(&s.popped)))
	}
}

// reset empties a sequence of rows, so that it can be filled again. Only for sequences without a context.
func (s *sequence) reset() { s.count, s.last = 0, 0 }

// call appends a call.
func (s *sequence) call(f function, args ...uintptr) {
	r := &s.rows[s.count]
	*r = row{fn: s.lib.address[f]}
	copy(r.arg[:], args)
	s.calls[s.count] = f
	s.count++
}

// callPointers appends a call with arguments that may be addresses of Go memory. The sequence keeps that memory alive.
func (s *sequence) callPointers(f function, args ...any) {
	r := &s.rows[s.count]
	*r = row{fn: s.lib.address[f]}
	for i, a := range args {
		switch a := a.(type) {
		case uintptr:
			r.arg[i] = a
		case int:
			r.arg[i] = uintptr(a)
		case unsafe.Pointer:
			r.arg[i] = uintptr(a)
			s.held = append(s.held, a)
		}
	}
	s.calls[s.count] = f
	s.count++
}

// finally appends a call that is made even after an error, if the row that was appended last had run.
func (s *sequence) finally(f function, args ...uintptr) {
	r := &s.epilogue[s.last]
	*r = row{fn: s.lib.address[f]}
	copy(r.arg[:rowGuard], args)
	r.arg[rowGuard] = uintptr(unsafe.Pointer(&s.rows[s.count-1]))
	s.ends[s.last] = f
	s.last++
}

// out returns the address of a result.
func (s *sequence) out(i int) uintptr { return uintptr(unsafe.Pointer(&s.outs[i])) }

// run makes the calls. It stores a fault that makes the context unusable.
func (s *sequence) run() error {
	if code, f := s.callAll(); code != 0 {
		return s.d.fail(s.lib, f, code)
	}
	return nil
}

// callAll makes the calls and returns the first result that is not zero, and the function that returned it.
func (s *sequence) callAll() (uint64, function) {
	s.walk.own = 0
	s.walk.stop = &s.walk.own
	s.walk.setRows(s.rows[:s.count])
	s.walk.setEpilogue(s.epilogue[:s.last])
	walkTable(&s.walk)
	if i := s.walk.failedRow(); i >= 0 {
		return s.walk.code, s.calls[i]
	}
	if i := s.walk.failedEpilogue(); i >= 0 {
		return s.walk.epilogueCode, s.ends[i]
	}
	return 0, 0
}

func (s *sequence) release() {
	s.d = nil
	clear(s.held)
	s.held = s.held[:0]
	s.home.Put(s)
}
