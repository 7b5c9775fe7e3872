// Files are mapped on Unix, so that a large recording is paged in as it is read.

//go:build unix

package recording

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps a file and returns how to unmap it.
func mapFile(file *os.File, size int) ([]byte, func([]byte) error, error) {
	b, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	return b, unix.Munmap, err
}
