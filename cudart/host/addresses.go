// The address space: which allocation an address belongs to, or belonged to before it was freed.

package host

import (
	"errors"
	"fmt"
	"slices"

	"github.com/dagrun/dagrun/cudart"
)

// place returns the index in sorted of the allocation with this base, or where it would be inserted.
func (a *addresses) place(base cudart.Ptr) (int, bool) {
	return slices.BinarySearchFunc(a.sorted, base, func(m *memory, p cudart.Ptr) int {
		switch {
		case m.base > p:
			return -1
		case m.base < p:
			return 1
		}
		return 0
	})
}

func (a *addresses) insert(m *memory) {
	m.live.Store(true)
	i, _ := a.place(m.base)
	a.sorted = slices.Insert(a.sorted, i, m)
}

func (a *addresses) remove(m *memory) {
	m.live.Store(false)
	i, _ := a.place(m.base)
	a.sorted = slices.Delete(a.sorted, i, i+1)
}

// find returns the live allocation that contains p or ends at p. The caller holds mu.
func (a *addresses) find(p cudart.Ptr) *memory {
	i, _ := a.place(p)
	if i == len(a.sorted) || p > a.sorted[i].end() {
		return nil
	}
	return a.sorted[i]
}

func (a *addresses) lookup(p cudart.Ptr) *memory {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.find(p)
}

// explain tells why an address is not the start of an allocation. The caller holds mu.
func (a *addresses) explain(p cudart.Ptr) string {
	if m := a.find(p); m != nil && m.place == variable {
		return "the address belongs to a variable of a module"
	}
	if m := a.find(p); m != nil && (p > m.base || m.place == registered) {
		if p == m.base {
			return "the address was registered, not allocated"
		}
		return fmt.Sprintf("the address is %d bytes into %v, not their start", p-m.base, m)
	}
	for i := len(a.graves) - 1; i >= 0; i-- {
		if m := a.graves[i]; p >= m.base && p <= m.end() {
			return fmt.Sprintf("the address belonged to %v, which were freed", m)
		}
	}
	return "the address belongs to no allocation"
}

// misuse tells what is wrong with accessing a range. If the range lies within one live allocation, it returns that and "".
func (a *addresses) misuse(p cudart.Ptr, bytes int64) (*memory, string) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	m := a.find(p)
	if m == nil {
		return nil, a.explain(p)
	}
	if over := int64(p-m.base) + bytes - m.bytes; over > 0 {
		return nil, fmt.Sprintf("%d bytes at offset %d reach %d bytes past the end of %v", bytes, p-m.base, over, m)
	}
	return m, ""
}

// unmap gives the addresses of a freed allocation back to the system. The caller holds mu.
func (a *addresses) unmap(m *memory) error {
	if m.guards {
		a.guarded--
	}
	return m.pages.release()
}

// clear gives everything back to the system and returns how many allocations were live.
func (a *addresses) clear() (live int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	live = len(a.sorted)
	for _, m := range a.sorted {
		m.live.Store(false)
		if m.allocated() {
			a.graves = append(a.graves, m)
		}
	}
	a.sorted = nil
	for _, m := range a.graves {
		err = errors.Join(err, a.unmap(m))
	}
	a.graves = nil
	return live, err
}

const (
	onDevice   place = iota
	pinned           // host memory for asynchronous copies
	pageable         // host memory without asynchronous copies
	registered       // memory of the caller, pinned
	variable         // of a loaded module
)

// allocated reports whether the memory came from Alloc or AllocHost.
func (m *memory) allocated() bool { return m.place != registered && m.place != variable }

func (m *memory) end() cudart.Ptr { return m.base + cudart.Ptr(m.bytes) }
