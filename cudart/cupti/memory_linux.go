// Memory outside Go's heap, which CUPTI may keep and write to at any time.

package cupti

import "syscall"

func mapMemory(bytes int) ([]byte, error) {
	return syscall.Mmap(-1, 0, bytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
}
