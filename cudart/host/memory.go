// Memory of the CPU device: allocations, who may access them, guard bands, and freed addresses.

package host

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host/simt"
)

// alignment of every allocation, as cuMemAlloc's.
const alignment = 256

// guardByte fills the unused bytes of an allocation's pages.
const guardByte = 0xa5

// maxGuarded limits the allocations with inaccessible neighbours: each takes two memory mappings, and by default Linux allows a process
// 65,530 of them.
const maxGuarded = 16 << 10

// quarantined is how many freed allocations keep their addresses reserved, so that late uses are found.
const quarantined = 256

// maxGarbage limits how many bytes of an allocation are filled with garbage while timing is perturbed, so that few pages are touched.
const maxGarbage = 64 << 20

// at returns the memory behind an address within the allocation.
func (m *memory) at(p cudart.Ptr) unsafe.Pointer { return unsafe.Add(m.data, uintptr(p-m.base)) }

func (m *memory) String() string {
	kind := [...]string{"device memory", "pinned memory", "pageable memory", "registered memory", ""}[m.place]
	if m.place == onDevice || m.place == variable {
		kind = fmt.Sprintf("memory of device %d", m.device)
	}
	return fmt.Sprintf("%d bytes of %s", m.bytes, kind)
}

// intact reports whether the guard bands within the pages are unchanged.
func (m *memory) intact() bool { return isGuard(m.front) && isGuard(m.back) }

func isGuard(b []byte) bool {
	for _, v := range b {
		if v != guardByte {
			return false
		}
	}
	return true
}

func fill(b []byte, v byte) {
	for i := range b {
		b[i] = v
	}
}

// MemoryInfo implements [cudart.Platform].
func (p *Platform) MemoryInfo(device int32) (free, total int64, err error) {
	d, err := p.device("cuMemGetInfo", device)
	if err != nil {
		return 0, 0, err
	}
	return d.limit - d.used.Load(), d.limit, nil
}

// Alloc implements [cudart.Platform].
func (p *Platform) Alloc(device int32, bytes int64) (cudart.Ptr, error) {
	d, err := p.device("cuMemAlloc", device)
	if err != nil {
		return 0, err
	}
	if bytes < 0 {
		return 0, fail("cuMemAlloc", invalidValue, device, "%d bytes", bytes)
	}
	held := roundUp(bytes)
	if used := d.used.Add(held); used > d.limit {
		d.used.Add(-held)
		return 0, fail("cuMemAlloc", outOfMemory, device, "%d bytes were requested; %d of %d are free", bytes, d.limit-(used-held), d.limit)
	}
	m, err := p.allocate("cuMemAlloc", onDevice, device, bytes)
	if err != nil {
		d.used.Add(-held)
		return 0, err
	}
	return m.base, nil
}

// AllocHost implements [cudart.Platform].
func (p *Platform) AllocHost(bytes int64, isPageable bool) (cudart.Ptr, error) {
	if bytes < 0 {
		return 0, fail("cuMemHostAlloc", invalidValue, -1, "%d bytes", bytes)
	}
	kind := pinned
	if isPageable {
		kind = pageable
	}
	m, err := p.allocate("cuMemHostAlloc", kind, -1, bytes)
	if err != nil {
		return 0, err
	}
	return m.base, nil
}

func roundUp(bytes int64) int64 { return (bytes + alignment - 1) / alignment * alignment }

func (p *Platform) allocate(call string, kind place, device int32, bytes int64) (*memory, error) {
	p.memory.mu.Lock()
	defer p.memory.mu.Unlock()
	guards := guarded && p.memory.guarded < maxGuarded
	rounded := roundUp(bytes)
	band := int64(0)
	if !guards {
		band = alignment // instead of an inaccessible page
	}
	if bytes > 1<<62 {
		return nil, fail(call, outOfMemory, device, "%d bytes", bytes)
	}
	r, err := reserve(rounded+2*band, guards)
	if err != nil {
		return nil, fail(call, outOfMemory, device, "%d bytes: %v", bytes, err)
	}
	// The allocation ends where the pages end, so that the inaccessible page is next to its last byte.
	lead := int64(r.size) - rounded - band
	m := &memory{place: kind, device: device, bytes: bytes, pages: r, guards: guards, data: unsafe.Add(r.data, lead)}
	m.base = cudart.Ptr(uintptr(m.data))
	m.front = unsafe.Slice((*byte)(unsafe.Add(m.data, -min(lead, alignment))), min(lead, alignment))
	m.back = unsafe.Slice((*byte)(unsafe.Add(m.data, bytes)), rounded+band-bytes)
	fill(m.front, guardByte)
	fill(m.back, guardByte)
	if p.options.Perturb != 0 {
		// Contents are unspecified, so do not let a program that reads unwritten memory find zeros.
		fill(unsafe.Slice((*byte)(m.data), min(bytes, maxGarbage)), byte(p.options.Perturb)|0x40)
	}
	if kind == onDevice && p.options.Sanitize != simt.CheckNothing {
		m.written = simt.NewWritten(uint64(m.base), bytes)
	}
	if guards {
		p.memory.guarded++
	}
	p.memory.insert(m)
	return m, nil
}

// RegisterHost implements [cudart.Platform].
func (p *Platform) RegisterHost(b []byte) (cudart.Ptr, error) {
	const call = "cuMemHostRegister"
	if len(b) == 0 {
		return 0, fail(call, invalidValue, -1, "no bytes")
	}
	m := &memory{place: registered, device: -1, bytes: int64(len(b)), data: unsafe.Pointer(&b[0]), owned: b}
	m.base = cudart.Ptr(uintptr(m.data))
	p.memory.mu.Lock()
	defer p.memory.mu.Unlock()
	for _, other := range p.memory.sorted {
		if m.base < other.end() && other.base < m.end() {
			return 0, fail(call, alreadyRegistered, -1, "")
		}
	}
	p.memory.insert(m)
	return m.base, nil
}

// UnregisterHost implements [cudart.Platform].
func (p *Platform) UnregisterHost(ptr cudart.Ptr) error {
	p.memory.mu.Lock()
	defer p.memory.mu.Unlock()
	m := p.memory.find(ptr)
	if m == nil || m.base != ptr || m.place != registered {
		return fail("cuMemHostUnregister", notRegistered, -1, "")
	}
	p.memory.remove(m)
	return nil
}

// Free implements [cudart.Platform].
func (p *Platform) Free(ptr cudart.Ptr) error {
	if ptr == 0 {
		return nil
	}
	p.memory.mu.Lock()
	defer p.memory.mu.Unlock()
	m := p.memory.find(ptr)
	if m == nil || m.base != ptr || !m.allocated() {
		return fail("cuMemFree", invalidValue, -1, "%s", p.memory.explain(ptr))
	}
	call := "cuMemFreeHost"
	if m.place == onDevice {
		call = "cuMemFree"
		p.devices[m.device].used.Add(-roundUp(m.bytes))
	}
	p.memory.remove(m)
	intact := m.intact()
	if err := m.pages.revoke(); err != nil {
		return fail(call, invalidValue, m.device, "%v", err)
	}
	p.memory.graves = append(p.memory.graves, m)
	if len(p.memory.graves) > quarantined {
		oldest := p.memory.graves[0]
		p.memory.graves = slices.Delete(p.memory.graves, 0, 1)
		if err := p.memory.unmap(oldest); err != nil {
			return fail(call, invalidValue, m.device, "%v", err)
		}
	}
	if !intact {
		return fail(call, illegalAddress, m.device, "bytes just outside an allocation of %v were overwritten", m)
	}
	return nil
}

// HostBytes implements [cudart.Platform]. It returns nil if the range is not inside one allocation of host memory.
func (p *Platform) HostBytes(ptr cudart.Ptr, bytes int64) []byte {
	if bytes == 0 {
		return nil
	}
	m := p.memory.lookup(ptr)
	if m == nil || m.device >= 0 || bytes < 0 || ptr+cudart.Ptr(bytes) > m.end() {
		return nil
	}
	return unsafe.Slice((*byte)(m.at(ptr)), bytes)
}

// device returns a device that exists and works.
func (p *Platform) device(call string, id int32) (*device, error) {
	if id < 0 || int(id) >= len(p.devices) {
		return nil, fail(call, invalidDevice, id, "there are %d CPU devices", len(p.devices))
	}
	d := p.devices[id]
	return d, d.check(call)
}
