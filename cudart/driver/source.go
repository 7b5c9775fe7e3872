// CUDA C source on its way into a module. Loads nothing.

package driver

import (
	"context"
	"fmt"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/kernels"
)

// compiler compiles source for a device.
type compiler struct{}

func (c *compiler) source(_ context.Context, _ *device, code *kernels.Module) ([]byte, error) {
	return nil, fmt.Errorf("module %s: %w: CUDA C source", code.Name, cudart.ErrUnsupported)
}
