// Kernels that run from their PTX: loading a module's code on the CPU, and sharing a launch among the workers.

package host

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host/simt"
	"github.com/dagrun/dagrun/kernels/launch"
)

// load compiles and reads the code, once.
func (c *code) load(m *launch.Module, compile compileFunc) error {
	c.once.Do(func() {
		source := m.Code
		if m.Kind == launch.Source {
			var compiled *launch.Compiled
			if compiled, c.err = compile(m); c.err != nil {
				return
			}
			source, c.symbols, c.warnings, c.origin = compiled.Code, compiled.Symbols, warnings(compiled.Log), compiled.Origin()
		}
		c.program, c.err = simt.Load(m.Name, string(source))
	})
	return c.err
}

// kernel prepares an entry of the module to run from its PTX.
func (c *code) kernel(m *launch.Module, compile compileFunc, entry string) (*simt.Kernel, error) {
	if err := c.load(m, compile); err != nil {
		return nil, err
	}
	if symbol := c.symbols[entry]; symbol != "" {
		entry = symbol
	}
	return c.program.Kernel(entry)
}

// interpreted is a launch of a kernel from its PTX. A part is what one worker runs of it, which can be any number of blocks.
type interpreted struct{ run *simt.Run }

// firstShare is how long one worker runs blocks before it wakes others to help.
const firstShare = 50 * time.Microsecond

// part implements part.
func (i interpreted) part(lo, hi int64) {
	if lo == 0 {
		i.run.WorkFor(firstShare)
		if hi == 1 {
			return
		}
	}
	i.run.Work()
}

// interpret runs a launch from the kernel's PTX.
func (c *command) interpret(w *worker) *crash {
	options := &c.platform.options
	launch := simt.Launch{Grid: c.call.Grid, Block: c.call.Block, Shared: c.call.Shared, Cooperative: c.together, Cluster: c.cluster, Print: options.Print,
		Check: options.Sanitize, MaxSteps: options.MaxSteps}
	for i, v := range c.args {
		a := simt.Arg{Bits: v.Bits, Struct: v.Struct, Within: int(v.Within), Offset: int64(v.Offset)}
		if v.Pointer {
			a = simt.Arg{Bits: uint64(v.Ptr), Pointer: true, Bytes: v.Bytes, Row: v.Row, Pitch: v.Pitch, Texture: v.Texture, Within: int(v.Within),
				Offset: int64(v.Offset), Start: v.Start}
			if v.Unused {
				launch.Args = append(launch.Args, simt.Arg{Pointer: true, Unused: true, Within: a.Within, Offset: a.Offset})
				continue
			}
			for _, u := range c.uses {
				if u.arg == i {
					a.Bits = uint64(uintptr(u.memory.at(u.ptr)))
					a.ReadOnly = c.onlyReads(stripOf(v))
					if w := u.memory.written; w != nil && !slices.Contains(launch.Written, w) {
						launch.Written = append(launch.Written, w)
					}
				}
			}
		}
		launch.Args = append(launch.Args, a)
	}
	if options.Sanitize != simt.CheckNothing {
		c.forgetOutputs()
	}
	run, err := c.kernel.interpreter.Start(launch)
	if err != nil {
		c.device.poison(c.fail(invalidValue, "%v", err))
		return nil
	}
	if crashed := w.split(interpreted{run}, int64(max(w.pool.workers, 2))); crashed != nil {
		return crashed
	}
	if fault := run.Fault(); fault != nil {
		c.device.poison(c.blame(faultError(c, fault)))
	} else if options.Sanitize != simt.CheckNothing {
		if e := c.checkOutputs(); e != nil {
			c.device.poison(e)
		}
	}
	return nil
}

// stripOf is the memory of an argument.
func stripOf(v cudart.Value) cudart.Strip {
	if v.Row <= 0 || v.Pitch <= 0 || v.Bytes <= v.Row {
		return cudart.Strip{Ptr: v.Ptr, Bytes: v.Bytes}
	}
	rows := (v.Bytes-v.Row)/v.Pitch + 1
	return cudart.Strip{Ptr: v.Ptr, Bytes: rows * v.Row, Rows: rows, Pitch: v.Pitch}
}

// onlyReads says whether an argument's memory was declared, and not to be written.
func (c *command) onlyReads(memory cudart.Strip) bool {
	reads := false
	for _, a := range c.accesses {
		if a.Strip().Overlaps(memory) {
			if a.Write {
				return false
			}
			reads = true
		}
	}
	return reads
}

// declared is what a message adds about an argument: the slice of a buffer that the file declares for it.
func (c *command) declared(argument int) string {
	for _, u := range c.uses {
		if u.arg != argument || argument < 0 || c.args[argument].Unused {
			continue
		}
		inside := func(a cudart.Access) bool {
			return a.Name != "" && a.Ptr >= u.ptr && a.Ptr < u.ptr+cudart.Ptr(u.bytes)
		}
		at := slices.IndexFunc(c.accesses, func(a cudart.Access) bool { return a.Ptr == u.ptr && inside(a) })
		if at < 0 {
			at = slices.IndexFunc(c.accesses, inside)
		}
		if at < 0 {
			continue
		}
		a, name := &c.accesses[at], fmt.Sprintf("argument %d", argument)
		if v := &c.args[argument]; v.Within > 0 {
			name = fmt.Sprintf("the pointer at byte %d of argument %d", v.Offset, v.Within-1)
		}
		if a.Rows > 1 {
			return fmt.Sprintf("; %s is a tile of %s in the file: %d rows of %d bytes, %d apart, from byte %d", name, a.Name, a.Rows,
				a.Strip().Width(), a.Pitch, a.Offset)
		}
		return fmt.Sprintf("; %s is bytes %d to %d of %s in the file", name, a.Offset, a.Offset+a.Bytes, a.Name)
	}
	return ""
}

// faultError returns a kernel's fault as an error with the driver's code for it.
func faultError(c *command, fault *simt.Fault) *cudart.Error {
	status := map[simt.FaultKind]status{
		simt.OutOfBounds: illegalAddress, simt.Misaligned: misalignedAddress, simt.Trapped: launchFailed, simt.Stuck: launchFailed,
		simt.Overflowed: illegalAddress, simt.BadCall: launchFailed, simt.Stopped: launchFailed,
		simt.Uninitialised: launchFailed, simt.Race: launchFailed, simt.Endless: launchTimeout, simt.Undeclared: illegalAddress, simt.Diverged: launchFailed,
		simt.BadTexture: launchFailed,
	}[fault.Kind]
	way := ""
	if fault.Kind == simt.OutOfBounds && fault.Argument <= 0 && c.kernel.interpreter.Meets() && !c.together {
		way = "; a kernel that waits for its whole grid needs cooperative: true"
	}
	return c.fail(status, "%v%s%s", fault, c.declared(fault.Argument), way)
}

// notRunnable returns the error for code that the CPU device cannot run.
func (m *module) notRunnable(call string, err error) error {
	var unsupported *simt.UnsupportedError
	if errors.As(err, &unsupported) || errors.Is(err, launch.ErrNoCompiler) {
		return fail(call, notSupported, m.device.id, "%v", err)
	}
	return fail(call, invalidImage, m.device.id, "%v", err)
}
