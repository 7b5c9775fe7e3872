// Device and host memory. Copies between them are commands of a list.

package driver

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/dagrun/dagrun/cudart"
)

// minimumBytes is the size of an allocation of 0 bytes, so that it has an address of its own.
const minimumBytes = 256

// Alloc returns device memory aligned to 256 bytes or more.
func (p *Platform) Alloc(number int32, bytes int64) (cudart.Ptr, error) {
	d, err := p.device(number)
	if err != nil {
		return 0, err
	}
	if bytes < 0 {
		return 0, fmt.Errorf("cannot allocate %d bytes of device memory", bytes)
	}
	s, err := p.sequence(d)
	if err != nil {
		return 0, err
	}
	defer s.release()
	s.call(cuMemAlloc, s.out(0), uintptr(max(bytes, minimumBytes)))
	if err := s.run(); err != nil {
		if isCode(err, codeOutOfMemory) {
			err.(*cudart.Error).Detail = p.shortage(d, bytes)
		}
		return 0, err
	}
	ptr := cudart.Ptr(s.outs[0])
	p.host.mu.Lock()
	if p.host.device == nil {
		p.host.device = make(map[cudart.Ptr]deviceBlock)
	}
	p.host.device[ptr] = deviceBlock{d, max(bytes, minimumBytes)}
	p.host.mu.Unlock()
	p.live.memory.Add(1)
	return ptr, nil
}

// shortage tells how much was requested and how much is free.
func (p *Platform) shortage(d *device, bytes int64) string {
	free, total, err := p.MemoryInfo(d.number)
	if err != nil {
		return fmt.Sprintf("%d bytes were requested", bytes)
	}
	return fmt.Sprintf("%d bytes were requested; %d of %d are free on device %d", bytes, free, total, d.number)
}

// AllocHost returns host memory, pinned and portable to every device unless pageable.
func (p *Platform) AllocHost(bytes int64, asPageable bool) (cudart.Ptr, error) {
	if bytes < 0 {
		return 0, fmt.Errorf("cannot allocate %d bytes of host memory", bytes)
	}
	size := max(bytes, minimumBytes)
	if asPageable {
		memory, err := mapMemory(size)
		if err != nil {
			return 0, fmt.Errorf("%w: %d bytes of host memory: %w", cudart.ErrOutOfMemory, size, err)
		}
		ptr := cudart.Ptr(uintptr(unsafe.Pointer(&memory[0])))
		p.host.add(hostBlock{start: ptr, bytes: size, kind: pageable, memory: memory})
		p.live.memory.Add(1)
		return ptr, nil
	}
	d := p.hostDevice()
	s, err := p.sequence(d)
	if err != nil {
		return 0, err
	}
	defer s.release()
	s.call(cuMemHostAlloc, s.out(0), uintptr(size), memHostPortable)
	if err := s.run(); err != nil {
		return 0, err
	}
	ptr := cudart.Ptr(s.outs[0])
	p.host.add(hostBlock{start: ptr, bytes: size, kind: pinned, device: d})
	p.live.memory.Add(1)
	return ptr, nil
}

// hostDevice returns the device whose context pins memory for all devices: one that is already in use, if there is one.
func (p *Platform) hostDevice() *device {
	for _, d := range p.devices {
		if d.context.Load() != 0 && d.fault.Load() == nil {
			return d
		}
	}
	return p.devices[0]
}

// RegisterHost pins memory that the caller owns and keeps it alive until UnregisterHost.
func (p *Platform) RegisterHost(memory []byte) (cudart.Ptr, error) {
	if len(memory) == 0 {
		return 0, fmt.Errorf("no memory to register")
	}
	d := p.hostDevice()
	s, err := p.sequence(d)
	if err != nil {
		return 0, err
	}
	defer s.release()
	start := uintptr(unsafe.Pointer(unsafe.SliceData(memory)))
	s.call(cuMemHostRegister, start, uintptr(len(memory)), memHostPortable)
	if err := s.run(); err != nil {
		if isCode(err, codeHostAlreadyLocked) {
			err.(*cudart.Error).Detail = "the memory, or a page that it shares with other memory, is already registered"
		}
		return 0, err
	}
	ptr := cudart.Ptr(start)
	p.host.add(hostBlock{start: ptr, bytes: int64(len(memory)), kind: registered, device: d, memory: memory})
	p.live.memory.Add(1)
	return ptr, nil
}

// UnregisterHost unpins memory of RegisterHost.
func (p *Platform) UnregisterHost(ptr cudart.Ptr) error {
	block, ok := p.host.take(ptr, func(k hostKind) bool { return k == registered })
	if !ok {
		return fmt.Errorf("%#x is not the start of registered memory", uint64(ptr))
	}
	p.live.memory.Add(-1)
	return p.dispose(block.device, cuMemHostUnregister, uintptr(ptr))
}

// Free frees memory of Alloc or AllocHost. After a fault, the memory of the context is already gone, so Free succeeds.
func (p *Platform) Free(ptr cudart.Ptr) error {
	p.host.mu.Lock()
	d := p.host.device[ptr].d
	delete(p.host.device, ptr)
	p.host.mu.Unlock()
	if d != nil {
		if p.comms != nil {
			p.comms.direct.unshare(ptr)
		}
		p.live.memory.Add(-1)
		return errors.Join(p.dropTextures(ptr), p.dispose(d, cuMemFree, uintptr(ptr)))
	}
	block, ok := p.host.take(ptr, func(k hostKind) bool { return k != registered })
	if !ok {
		return fmt.Errorf("%#x is not the start of allocated memory", uint64(ptr))
	}
	p.live.memory.Add(-1)
	if block.kind == pageable {
		return unmapMemory(block.memory)
	}
	return p.dispose(block.device, cuMemFreeHost, uintptr(ptr))
}

// HostBytes returns the memory behind a host pointer, nil if the range is not inside one block of host memory.
func (p *Platform) HostBytes(ptr cudart.Ptr, bytes int64) []byte {
	if bytes == 0 {
		return nil
	}
	if !p.host.covers(ptr, bytes) {
		return nil
	}
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&ptr)), bytes)
}
