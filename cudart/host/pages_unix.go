//go:build unix

// Pages outside Go's heap with inaccessible pages on both sides, so that an overrun faults at once.

package host

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// guarded tells that pages on this system can have inaccessible neighbours.
const guarded = true

// pages is a range of whole pages.
type pages struct {
	base  unsafe.Pointer // of the reserved range
	bytes uintptr        // of it
	data  unsafe.Pointer // the readable and writable part
	size  uintptr        // of it
}

// reserve maps at least bytes of zeroed memory. With guards, the page before it and the page after it are inaccessible.
func reserve(bytes int64, guards bool) (pages, error) {
	page := uintptr(os.Getpagesize())
	size := (uintptr(bytes) + page - 1) / page * page
	if size == 0 {
		size = page
	}
	if !guards {
		base, err := unix.MmapPtr(-1, 0, nil, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		return pages{base, size, base, size}, err
	}
	base, err := unix.MmapPtr(-1, 0, nil, size+2*page, unix.PROT_NONE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return pages{}, err
	}
	p := pages{base, size + 2*page, unsafe.Add(base, page), size}
	if err := unix.Mprotect(unsafe.Slice((*byte)(p.data), size), unix.PROT_READ|unix.PROT_WRITE); err != nil {
		_ = unix.MunmapPtr(base, p.bytes)
		return pages{}, err
	}
	return p, nil
}

// revoke gives the memory of the pages back and makes every later access a fault. The addresses stay reserved.
func (p pages) revoke() error {
	data := unsafe.Slice((*byte)(p.data), p.size)
	if err := unix.Madvise(data, unix.MADV_DONTNEED); err != nil {
		return err
	}
	return unix.Mprotect(data, unix.PROT_NONE)
}

// release gives the addresses back too.
func (p pages) release() error { return unix.MunmapPtr(p.base, p.bytes) }
