// Modules and kernels on the CPU: a kernel runs as its Go reference or from its PTX, with the limits of a device.

package host

import (
	"context"
	"fmt"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host/simt"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/launch"
)

const (
	maxThreads    = 1024
	sharedDefault = 48 << 10
	sharedMax     = 227 << 10
)

// Load implements [cudart.Platform].
func (p *Platform) Load(ctx context.Context, id int32, code *launch.Module) (cudart.Module, error) {
	d, err := p.device("cuModuleLoadData", id)
	if err != nil {
		return nil, err
	}
	if code == nil {
		return nil, fail("cuModuleLoadData", invalidValue, id, "there is no module to load")
	}
	if ctx != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	m := &module{platform: p, device: d, source: code}
	if code.Kind == launch.Source && len(code.Code) > 0 && len(code.References) == 0 && len(p.options.References) == 0 {
		if err := m.code.load(code, p.compile); err != nil {
			return nil, m.notRunnable("cuModuleLoadData", err)
		}
	}
	p.modules.Add(1)
	return m, nil
}

// Kernel implements [cudart.Module].
func (m *module) Kernel(entry string) (cudart.Kernel, error) {
	const call = "cuModuleGetFunction"
	if m.closed.Load() {
		return nil, fail(call, invalidHandle, m.device.id, "module %q is closed", m.source.Name)
	}
	r, ok := m.source.References[entry]
	if !ok {
		r, ok = m.platform.options.References[entry]
	}
	if ok && r.Run != nil && !m.platform.options.PTX {
		return &kernel{module: m, entry: entry, reference: r}, nil
	}
	if m.source.Kind != launch.PTX && m.source.Kind != launch.Source || len(m.source.Code) == 0 {
		return nil, fail(call, notSupported, m.device.id,
			"kernel %q of module %q cannot run on the CPU device: that needs its source or PTX, or a Go implementation registered under its name",
			entry, m.source.Name)
	}
	interpreter, err := m.code.kernel(m.source, m.platform.compile, entry)
	if err != nil {
		return nil, m.notRunnable(call, err)
	}
	return &kernel{module: m, entry: entry, interpreter: interpreter}, nil
}

// Warnings implements [cudart.Module].
func (m *module) Warnings() []string { return m.code.warnings }

// Origin says how a module of CUDA C came to its code; "" for other modules.
func (m *module) Origin() string { return m.code.origin }

// Close implements [cudart.Module].
func (m *module) Close() error {
	if m.closed.Swap(true) {
		return nil
	}
	m.globals.remove(&m.platform.memory)
	m.platform.modules.Add(-1)
	return nil
}

// Attributes implements [cudart.Kernel].
func (k *kernel) Attributes() cudart.KernelAttributes {
	a := cudart.KernelAttributes{MaxThreads: maxThreads}
	if k.interpreter != nil {
		if most := k.interpreter.MaxThreads(); most > 0 {
			a.MaxThreads = most
		}
		a.SharedStatic, a.ParamSizes = int(k.interpreter.SharedBytes()), k.interpreter.ParamSizes()
	}
	return a
}

// Occupancy implements [cudart.Kernel].
func (k *kernel) Occupancy(shared uint32) (block uint32, blocksPerSM int, err error) {
	if shared > sharedMax {
		return 0, 0, fail("cuOccupancyMaxPotentialBlockSize", invalidValue, k.module.device.id,
			"%d bytes of shared memory; a block has at most %d", shared, sharedMax)
	}
	blocksPerSM = 2048 / maxThreads
	if shared > 0 {
		blocksPerSM = min(blocksPerSM, max(1, (sharedMax+1024)/(int(shared)+1024)))
	}
	return maxThreads, blocksPerSM, nil
}

// SetMaxShared implements [cudart.Kernel].
func (k *kernel) SetMaxShared(bytes uint32) error {
	if bytes > sharedMax {
		return fail("cuFuncSetAttribute", invalidValue, k.module.device.id, "%d bytes of shared memory; a block has at most %d", bytes, sharedMax)
	}
	return nil // Encode opts in for each launch
}

// refuse returns what is wrong with a launch by the rules of a device.
func (k *kernel) refuse(c *command) *cudart.Error {
	axis := [3]string{"x", "y", "z"}
	maxBlock, maxGrid := [3]uint32{1024, 1024, 64}, [3]uint32{1<<31 - 1, 65535, 65535}
	if k.interpreter == nil {
		for i := range c.args {
			if c.args[i].Start > 0 {
				return c.fail(invalidValue, "argument %d points into its memory, and kernels in Go are passed the beginning", i+1)
			}
		}
	}
	threads := uint64(1)
	for i := range 3 {
		grid, block := c.call.Grid[i], c.call.Block[i]
		if grid > maxGrid[i] {
			return c.fail(invalidValue, "grid.%s is %d; up to %d is possible", axis[i], grid, maxGrid[i])
		}
		if block == 0 || block > maxBlock[i] {
			return c.fail(invalidValue, "block.%s is %d; 1 to %d is possible", axis[i], block, maxBlock[i])
		}
		threads *= uint64(block)
	}
	if threads > maxThreads {
		return c.fail(invalidValue, "a block of %d threads; at most %d are possible", threads, maxThreads)
	}
	if c.call.Shared > sharedMax {
		return c.fail(invalidValue, "%d bytes of shared memory; a block has at most %d", c.call.Shared, sharedMax)
	}
	if grid := c.call.Grid; c.together {
		blocks, most := uint64(grid[0])*uint64(grid[1])*uint64(grid[2]), simt.MostTogether(c.call.Block)
		if blocks > most {
			return c.fail(cooperativeTooLarge, "a cooperative launch of %d blocks of %d threads; at most %d such blocks run at once", blocks, threads, most)
		}
	}
	if problem := dag.ClusterProblem(c.cluster, c.call.Grid); problem != "" {
		return c.fail(invalidCluster, "%s", problem)
	}
	if k.module.device != c.device {
		return c.fail(invalidHandle, "the kernel was loaded on device %d", k.module.device.id)
	}
	return nil
}

// String returns the kernel's name.
func (k *kernel) String() string { return fmt.Sprintf("%s of %s", k.entry, k.module.source.Name) }
