// Compiles a module's CUDA C source for a device, with libnvrtc.

package driver

import (
	"context"
	"fmt"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/kernels/source/nvrtc"
)

// compiled is the code of a source and the compiler's messages.
type compiled struct {
	code   []byte
	kind   kernels.Kind
	log    string
	origin string
}

// compileFor compiles a module's source for a device.
func (p *Platform) compileFor(ctx context.Context, d *device, module *kernels.Module) (compiled, error) {
	compiler, err := p.compiler.Get()
	if err != nil {
		return compiled{}, fmt.Errorf("module %s is CUDA C: %w: %w", module.Name, cudart.ErrUnsupported, err)
	}
	r, err := compiler.Compile(ctx, nvrtc.Source{Name: module.Name, Path: module.Path, Code: module.Code, Capability: d.info.Capability})
	if err != nil {
		return compiled{}, fmt.Errorf("module %s: %w", module.Name, err)
	}
	kind := kernels.Cubin
	if r.PTX {
		kind = kernels.PTX
	}
	origin := "compiled for " + r.Architecture
	if r.Cached {
		origin += " earlier, from the cache"
	}
	return compiled{r.Code, kind, r.Log, origin}, nil
}
