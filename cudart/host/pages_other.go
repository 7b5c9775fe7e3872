//go:build !unix

// Pages for systems without page protection: memory from Go's heap, kept alive by its owner. Only guard bands show overruns.

package host

import (
	"errors"
	"unsafe"
)

const guarded = false

type pages struct {
	data unsafe.Pointer
	size uintptr
}

// reserve refuses sizes that the machine certainly does not have, because Go ends the process if its heap cannot grow.
func reserve(bytes int64, guards bool) (pages, error) {
	if bytes < 0 || bytes > assumedMemory {
		return pages{}, errors.New("more than the Go heap is trusted with")
	}
	size := uintptr(max(bytes, 1)+255) / 256 * 256
	words := make([]byte, size+256)
	shift := -uintptr(unsafe.Pointer(&words[0])) & 255
	return pages{unsafe.Pointer(&words[shift]), size}, nil
}

// revoke fills the memory with a pattern that is a NaN in every float format, so that late reads show.
func (p pages) revoke() error {
	fill(unsafe.Slice((*byte)(p.data), p.size), 0xff)
	return nil
}

func (p pages) release() error { return nil }
