// How large files of kernels and their headers may be. Sizes are checked before files are read.

package source

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/dagrun/dagrun/internal/words"
)

const (
	mostSource = 8 << 20  // bytes of CUDA C. People write kilobytes
	mostPTX    = 16 << 20 // what internal/ptx reads. Templates make megabytes
	mostBinary = 1 << 30  // bytes of cubins and fat binaries: those of large libraries stay below
)

// Limits of sources that people write; generated ones stay far below too.
const (
	mostWords      = 2 << 20 // of a source and all that it includes
	mostTokens     = 1 << 18 // that macros add
	mostSteps      = 8 << 20 // words that are looked at for macros
	mostNested     = 500     // macros in the bodies of macros
	mostConditions = 500     // inside of one another
	mostBrackets   = 1000    // inside of one another
	mostIncludes   = 200     // inside of one another
	mostFiles      = 2000
	mostKernels    = 20_000
	mostVariables  = 20_000 // that launches share
)

// MostBytes is how large a file of kernels, or a header, may be. The ending of its path tells what it is.
func MostBytes(path string) int64 {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".cubin", ".fatbin":
		return mostBinary
	case ".ptx":
		return mostPTX
	}
	return mostSource
}

// CheckSize returns an error for a file that is too large to be read. A file that is not a regular one has no size yet.
func CheckSize(path string) error {
	info, err := os.Stat(path)
	if err == nil && info.Mode().IsRegular() && info.Size() > MostBytes(path) {
		return fmt.Errorf("%s %w", path, tooLarge(info.Size(), MostBytes(path)))
	}
	return nil
}

func tooLarge(size, most int64) error {
	return fmt.Errorf("has %s, and files of kernels have at most %s", words.Bytes(size), words.Bytes(most))
}

// checkHeader returns an error for a header that is too large, or that is no file at all: reading a device or a FIFO may never end.
func checkHeader(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil || info.IsDir(): // reading it fails, and the search goes on
		return nil
	case !info.Mode().IsRegular():
		return fmt.Errorf("is not a regular file")
	case info.Size() > mostSource:
		return tooLarge(info.Size(), mostSource)
	}
	return nil
}

// readable refuses what is not text, before anything spends time on it.
func readable(code []byte, most int64) error {
	if int64(len(code)) > most {
		return tooLarge(int64(len(code)), most)
	}
	if at := bytes.IndexByte(code, 0); at >= 0 {
		return fmt.Errorf("is not text: line %d has a zero byte", bytes.Count(code[:at], []byte{'\n'})+1)
	}
	return nil
}
