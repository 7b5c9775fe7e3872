// Files are read whole where they are not mapped.

//go:build !unix

package recording

import "os"

func mapFile(file *os.File, size int) (*mapping, error) { return readFile(file, size) }
