// The address space: which allocation an address belongs to, and what an address used to be. Allocates nothing itself.

package host

import (
	"fmt"
	"slices"
	"sync"

	"github.com/dagrun/dagrun/cudart"
)

// addresses holds every live allocation.
type addresses struct {
	mu      sync.RWMutex
	sorted  []*memory // by falling address: new mappings mostly lie below older ones, so that they are appended
	graves  []*memory // freed, oldest first
	guarded int       // allocations with inaccessible neighbours
}

// place returns where in sorted an allocation with that base is or would be.
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

// find returns the live allocation that holds p, or that ends at p; the caller holds mu.
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

// explain says why an address is no allocation's base; the caller holds mu.
func (a *addresses) explain(p cudart.Ptr) string {
	if m := a.find(p); m != nil && (p > m.base || m.place == registered) {
		if p == m.base {
			return "the address was registered, not allocated"
		}
		return fmt.Sprintf("the address is %d bytes into %v, not their start", p-m.base, m)
	}
	for i := len(a.graves) - 1; i >= 0; i-- {
		if m := a.graves[i]; p >= m.base && p <= m.end() {
			return fmt.Sprintf("the address belonged to %v that were freed", m)
		}
	}
	return "the address belongs to no allocation"
}

// misuse says what is wrong with touching a range, "" if it lies within one live allocation, which it returns.
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

// bury gives a freed allocation's addresses back; the caller holds mu.
func (a *addresses) bury(m *memory) error {
	if m.guards {
		a.guarded--
	}
	return m.pages.release()
}

// clear gives everything back and returns how many allocations were live.
func (a *addresses) clear() (live int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	live = len(a.sorted)
	for _, m := range a.sorted {
		m.live.Store(false)
		if m.place != registered {
			a.graves = append(a.graves, m)
		}
	}
	a.sorted = nil
	for _, m := range a.graves {
		if e := a.bury(m); e != nil && err == nil {
			err = e
		}
	}
	a.graves = nil
	return live, err
}
