// CUDA C source on its way into a module: compiled for the device. Loads nothing.

package driver

import (
	"context"
	"errors"
	"fmt"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/kernels/launch"
)

// compileFor compiles a module's source for a device.
func (p *Platform) compileFor(ctx context.Context, d *device, module *launch.Module) (*launch.Compiled, error) {
	r, err := launch.Compile(ctx, p.compilers, module, launch.Target{Capability: d.info.Capability, PTX: module.Waiting})
	switch {
	case errors.Is(err, launch.ErrNoCompiler):
		return nil, fmt.Errorf("module %w: %w", err, cudart.ErrUnsupported)
	case err != nil:
		return nil, fmt.Errorf("module %w", err)
	}
	return r, nil
}
