// Buffers: the memory that CUPTI writes records to, and reading the records from it. The memory is outside Go's heap.

package cupti

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"unsafe"

	"github.com/dagrun/dagrun/internal/dl"
)

// bufferBytes holds about 15,000 kernels, so few buffers are exchanged while the device works.
const bufferBytes = 4 << 20

// buffers gives memory to CUPTI and takes it back filled. The memory is mapped, not from Go's heap, because CUPTI keeps it between calls.
type buffers struct {
	request, complete uintptr // C functions

	mu     sync.Mutex
	free   [][]byte
	held   map[uintptr][]byte // given to CUPTI, or filled, by address
	filled []filled
	lost   bool // there was not enough memory: records were dropped
}

type filled struct {
	address, bytes uintptr
}

// processBuffers is the only one in the process, because its callbacks are never freed and have no argument to tell several apart.
var processBuffers = sync.OnceValue(newBuffers)

func newBuffers() *buffers {
	b := &buffers{held: map[uintptr][]byte{}}
	b.request = dl.Callback(b.give)
	b.complete = dl.Callback(b.take)
	return b
}

// pointer returns an address from C as a pointer.
func pointer(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

// give answers CUPTI's request for memory: void (uint8_t **buffer, size_t *size, size_t *maxNumRecords).
func (b *buffers) give(buffer, size, records uintptr) uintptr {
	b.mu.Lock()
	defer b.mu.Unlock()
	*(*uintptr)(pointer(buffer)), *(*uintptr)(pointer(size)), *(*uintptr)(pointer(records)) = 0, 0, 0
	var memory []byte
	if n := len(b.free); n > 0 {
		memory, b.free = b.free[n-1], b.free[:n-1]
	} else {
		var err error
		if memory, err = mapMemory(bufferBytes); err != nil {
			b.lost = true
			return 0
		}
	}
	address := uintptr(unsafe.Pointer(&memory[0]))
	b.held[address] = memory
	*(*uintptr)(pointer(buffer)), *(*uintptr)(pointer(size)) = address, uintptr(len(memory))
	return 0
}

// take accepts a buffer: void (CUcontext, uint32_t streamId, uint8_t *buffer, size_t size, size_t validSize). It runs on a thread of CUPTI,
// so it only stores what there is to read.
func (b *buffers) take(_, _, buffer, _, valid uintptr) uintptr {
	b.mu.Lock()
	defer b.mu.Unlock()
	if buffer != 0 {
		b.filled = append(b.filled, filled{buffer, valid})
	}
	return 0
}

// Flush returns what has been recorded since the last Flush, in the order of calls and, within a graph launch, of nodes. The devices must be
// idle. want is how many records the caller expects: if CUPTI delivers fewer, Flush forces it to deliver all it has.
func (l *Library) Flush(want int) ([]Record, error) {
	var records []Record
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
	slices.SortStableFunc(records, func(x, y Record) int {
		return cmp.Or(cmp.Compare(x.Correlation, y.Correlation), cmp.Compare(x.GraphNode, y.GraphNode), cmp.Compare(x.Start, y.Start))
	})
	return records, nil
}

// read decodes the filled buffers and frees them for the next request.
func (l *Library) read() ([]Record, error) {
	b := l.buffers
	b.mu.Lock()
	list, lost := b.filled, b.lost
	b.filled, b.lost = nil, false
	b.mu.Unlock()
	var records []Record
	var first error
	if lost {
		first = errors.New("there was not enough memory for CUPTI's records, so some were dropped")
	}
	for _, f := range list {
		if err := l.each(f, func(r Record) { records = append(records, r) }); err != nil && first == nil {
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
func (l *Library) each(f filled, do func(Record)) error {
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
