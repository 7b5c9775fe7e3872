// Contents of buffers without a program: initial contents in memory, and array files.

package runtime

import (
	"context"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/runtime/internal/arrays"
	"github.com/dagrun/dagrun/runtime/internal/engine"
)

// Generate fills memory, which must have the buffer's size, with a buffer's initial contents. Relative file names are resolved against dir.
func Generate(ctx context.Context, dir string, b *dag.Buffer, memory []byte) error {
	if ctx == nil {
		return engine.ErrNoContext
	}
	return arrays.Files{Dir: dir}.Generate(ctx, b, memory)
}

// CheckArrayFile reports how a .npy or raw .bin file differs from an array of a type and shape, or nil. It does not read the elements, only
// how many there are.
func CheckArrayFile(ctx context.Context, path string, t dag.DType, shape []int64) error {
	if ctx == nil {
		return engine.ErrNoContext
	}
	return arrays.CheckFile(ctx, path, t, shape)
}

// Check is the result of comparing one buffer.
type Check = arrays.Check
