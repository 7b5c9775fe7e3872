// The bytes of a file in memory.

package recording

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sync"

	"github.com/dagrun/dagrun/internal/files"
)

// mapping is a file in memory. A file that another process makes shorter while it is read ends this process, as with every mapped file;
// the recorder never makes one shorter.
type mapping struct {
	bytes   []byte
	release func([]byte) error // nil where the collector frees them
	once    sync.Once
}

func (m *mapping) begins(magic string) bool { return bytes.HasPrefix(m.bytes, []byte(magic)) }

func (m *mapping) close() (err error) {
	if m != nil && m.release != nil {
		m.once.Do(func() { err = m.release(m.bytes) })
	}
	return err
}

// openFile brings a regular file into memory.
func openFile(name string) (*mapping, error) {
	info, err := os.Stat(name) // before it is opened: opening a FIFO waits for a writer
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err != nil {
		return nil, files.CannotRead(name, err)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, files.CannotRead(name, err)
	}
	defer file.Close()
	if info, err = file.Stat(); err == nil && info.Size() > math.MaxInt {
		err = fmt.Errorf("it has %d bytes", info.Size())
	}
	if err != nil {
		return nil, files.CannotRead(name, err)
	}
	if info.Size() == 0 {
		return &mapping{}, nil
	}
	size := int(info.Size())
	if b, release, err := mapFile(file, size); err == nil {
		return &mapping{bytes: b, release: release}, nil
	}
	b, err := io.ReadAll(io.NewSectionReader(file, 0, int64(size))) // some file systems cannot be mapped
	if err != nil {
		return nil, files.CannotRead(name, err)
	}
	return &mapping{bytes: b}, nil
}
