// Taking the records out of the buffers that CUPTI has filled.

package cupti

import (
	"cmp"
	"errors"
	"slices"
	"unsafe"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/internal/dl"
)

// Flush returns what has been recorded since the last Flush, in the order of calls and, within a graph launch, of nodes. The devices must be
// idle. want is how many records the caller expects: if CUPTI delivers fewer, Flush forces it to deliver all it has.
func (l *Library) Flush(want int) ([]cudart.Activity, error) {
	var records []cudart.Activity
	for _, force := range [...]uintptr{0, 1} {
		if code := uint32(dl.Call(l.address[cuptiActivityFlushAll], force)); code != 0 {
			return nil, l.failure(cuptiActivityFlushAll, code)
		}
		more, err := l.read()
		if err != nil {
			return nil, err
		}
		if records = append(records, more...); len(records) >= want {
			break
		}
	}
	slices.SortStableFunc(records, func(x, y cudart.Activity) int {
		return cmp.Or(cmp.Compare(x.Correlation, y.Correlation), cmp.Compare(x.GraphNode, y.GraphNode), cmp.Compare(x.Start, y.Start))
	})
	return records, nil
}

// read decodes the filled buffers and frees them for the next request.
func (l *Library) read() ([]cudart.Activity, error) {
	b := l.buffers
	b.mu.Lock()
	list, lost := b.filled, b.lost
	b.filled, b.lost = nil, false
	b.mu.Unlock()
	var records []cudart.Activity
	var first error
	if lost {
		first = errors.New("there was not enough memory for CUPTI's records, so some were dropped")
	}
	for _, f := range list {
		if err := l.each(f, func(r cudart.Activity) { records = append(records, r) }); err != nil && first == nil {
			first = err
		}
		b.mu.Lock()
		if memory := b.held[f.address]; memory != nil {
			delete(b.held, f.address)
			b.free = append(b.free, memory)
		}
		b.mu.Unlock()
	}
	return records, first
}

// each goes through a buffer's records with CUPTI's own function, which knows their sizes.
func (l *Library) each(f filled, do func(cudart.Activity)) error {
	at := new(uintptr)
	for f.bytes > 0 {
		code := uint32(dl.Call(l.address[cuptiActivityGetNextRecord], f.address, f.bytes, uintptr(unsafe.Pointer(at))))
		if code == codeMaxLimitReached {
			return nil
		}
		if code != 0 {
			return l.failure(cuptiActivityGetNextRecord, code)
		}
		if *at < f.address || *at >= f.address+f.bytes {
			return nil
		}
		left := f.address + f.bytes - *at
		if r, ok := l.layout.decode(unsafe.Slice((*byte)(pointer(*at)), left)); ok {
			do(r)
		}
	}
	return nil
}
