// Memory that a list or a graph passes to the driver: rows, arguments, words that threads watch. It is freed as a whole.

package driver

import "unsafe"

const (
	chunkBytes = 16 << 10
	cacheLine  = 64
)

// arena allocates memory outside Go's heap, zeroed, and aligned to 16 bytes or to a cache line.
type arena struct {
	chunks [][]byte
	used   int // of the last chunk
}

func (a *arena) take(bytes, align int) (unsafe.Pointer, error) {
	if len(a.chunks) > 0 {
		last := a.chunks[len(a.chunks)-1]
		if start := (a.used + align - 1) &^ (align - 1); start+bytes <= len(last) {
			a.used = start + bytes
			return unsafe.Pointer(&last[start]), nil
		}
	}
	size := max(chunkBytes, (bytes+4095)&^4095)
	if len(a.chunks) > 0 {
		size = max(size, min(len(a.chunks[len(a.chunks)-1])*2, 1<<20))
	}
	chunk, err := mapMemory(int64(size))
	if err != nil {
		return nil, err
	}
	a.chunks = append(a.chunks, chunk)
	a.used = bytes
	return unsafe.Pointer(&chunk[0]), nil
}

// rows allocates n rows and a spare one that is never walked, because the walker may look one row ahead.
func (a *arena) rows(n int) ([]row, error) {
	p, err := a.take((n+1)*int(rowBytes), cacheLine)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*row)(p), n+1)[:n:n], nil
}

// word allocates a word in a cache line of its own, so that only its writer changes the line.
func (a *arena) word() (*uint64, error) {
	p, err := a.take(cacheLine, cacheLine)
	return (*uint64)(p), err
}

func (a *arena) words(n int) ([]uint64, error) {
	if n == 0 {
		return nil, nil
	}
	p, err := a.take(n*8, 16)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*uint64)(p), n), nil
}

func (a *arena) text(s string) (unsafe.Pointer, error) {
	p, err := a.take(len(s)+1, 16)
	if err != nil {
		return nil, err
	}
	copy(unsafe.Slice((*byte)(p), len(s)), s)
	return p, nil
}

func (a *arena) close() error {
	var first error
	for _, chunk := range a.chunks {
		if err := unmapMemory(chunk); err != nil && first == nil {
			first = err
		}
	}
	a.chunks = nil
	return first
}
