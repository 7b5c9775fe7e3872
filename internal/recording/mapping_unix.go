// Files are mapped on Unix, so that a large recording is paged in as it is read.

//go:build unix

package recording

import (
	"os"

	"golang.org/x/sys/unix"
)

func mapFile(file *os.File, size int) (*mapping, error) {
	bytes, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return readFile(file, size)
	}
	return &mapping{bytes: bytes, release: unix.Munmap}, nil
}
