// Which host memory belongs to the platform, by address.

package driver

import (
	"slices"
	"sync"

	"github.com/dagrun/dagrun/cudart"
)

// A hostBlock is host memory that this platform made or pinned.
type hostBlock struct {
	start  cudart.Ptr
	bytes  int64
	kind   hostKind
	device *device // the device whose context must free it
	memory []byte  // pageable: the mapping; registered: the caller's, kept alive
}

type hostKind uint8

const (
	pinned hostKind = iota
	pageable
	registered
)

// hostMemory holds host blocks in the order of their addresses, and device memory by address.
type hostMemory struct {
	mu     sync.Mutex
	blocks []hostBlock
	device map[cudart.Ptr]deviceBlock
}

// deviceBlock is an allocation of device memory.
type deviceBlock struct {
	d     *device
	bytes int64
}

func (h *hostMemory) search(ptr cudart.Ptr) (int, bool) {
	return slices.BinarySearchFunc(h.blocks, ptr, func(b hostBlock, at cudart.Ptr) int {
		switch {
		case b.start < at:
			return -1
		case b.start > at:
			return 1
		}
		return 0
	})
}

func (h *hostMemory) add(b hostBlock) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i, _ := h.search(b.start)
	h.blocks = slices.Insert(h.blocks, i, b)
}

func (h *hostMemory) take(ptr cudart.Ptr, fits func(hostKind) bool) (hostBlock, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i, found := h.search(ptr)
	if !found || !fits(h.blocks[i].kind) {
		return hostBlock{}, false
	}
	b := h.blocks[i]
	h.blocks = slices.Delete(h.blocks, i, i+1)
	return b, true
}

func (h *hostMemory) covers(ptr cudart.Ptr, bytes int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	i, found := h.search(ptr)
	if !found {
		i--
	}
	return i >= 0 && bytes >= 0 && ptr+cudart.Ptr(bytes) <= h.blocks[i].start+cudart.Ptr(h.blocks[i].bytes)
}
