// Checking an array file before anything runs: its header and its length.

package arrays

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/files"
)

// CheckFile reports how a .npy or raw .bin file differs from an array of a type and shape, or nil. It does not read the elements, only
// how many there are.
func CheckFile(ctx context.Context, path string, t dag.DType, shape []int64) error {
	if t.Size() == 0 {
		return errors.New("the element type is missing")
	}
	file, err := files.Open(ctx, path)
	if err != nil {
		return files.CannotRead(path, err)
	}
	defer file.Close()
	info, err := os.Stat(path)
	if err != nil {
		return files.CannotRead(path, err)
	}
	r := &counter{Reader: file}
	if err := checkHeader(r, path, t, shape); err != nil {
		return err
	}
	if has, wants := info.Size()-r.read, count(shape)*t.Size(); has != wants {
		return wrongLength(path, has, wants)
	}
	return nil
}

// counter counts what is read.
type counter struct {
	io.Reader
	read int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.read += int64(n)
	return n, err
}
