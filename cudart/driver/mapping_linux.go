// Memory outside Go's heap, so that the garbage collector neither scans nor moves it and C may keep its address.

package driver

import "syscall"

func mapMemory(bytes int64) ([]byte, error) {
	return syscall.Mmap(-1, 0, int(bytes), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
}

func unmapMemory(memory []byte) error { return syscall.Munmap(memory) }
