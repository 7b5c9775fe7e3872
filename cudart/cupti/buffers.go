// Buffers: the memory that CUPTI writes records to, and reading the records from it. The memory is outside Go's heap.

package cupti

import (
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
