// Loops and branches of graphs: one worker runs the passes, command after command. Kernels and copies are still split among all workers.

package host

import (
	"time"
	"unsafe"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host/simt"
	"github.com/dagrun/dagrun/kernels/conditions"
)

// settle gives a command of a graph, and those of its bodies, their device.
func (c *command) settle(d *device) {
	if c.kind == cudart.LaunchKernel {
		c.device = c.kernel.module.device
	} else if c.device == nil {
		c.device = d
	}
	c.stream = nil
	if c.repeated == nil {
		return
	}
	for _, body := range c.repeated.bodies {
		for _, inner := range body.commands {
			inner.settle(c.device)
		}
	}
}

// runBodies does what the kernels of a conditional node do, in the same order.
func (c *command) runBodies(w *worker) {
	v := c.repeated
	last := c.call.Args[len(v.Operands)]
	counts := unsafe.Slice((*int64)(last.Memory), conditions.CountWords*max(v.Clear, 1))
	if v.Clear > 0 {
		clear(counts)
	}
	counts[conditions.CountRuns]++
	pass := int64(0)
	counts[conditions.CountPass] = 0
	if v.Branch {
		if c.holds() {
			counts[conditions.CountHeld]++
			c.stamp(counts, conditions.StampHeld)
			v.pass(v.bodies[0], w)
			c.stamp(counts, 1)
		} else {
			c.stamp(counts, conditions.StampOtherwise)
			if len(v.bodies) > 1 {
				v.pass(v.bodies[1], w)
				c.stamp(counts, 1)
			}
		}
		return
	}
	more := v.Times > 0 && (!v.While || c.holds())
	for c.stamp(counts, conditions.StampBegun); more; {
		v.pass(v.bodies[0], w)
		if c.device.fault.Load() != nil {
			return
		}
		pass++
		counts[conditions.CountPass] = pass
		if pass <= v.Stamping.Each {
			c.stamp(counts, pass)
		}
		end := pass >= v.Times
		more = !end
		if v.Condition != nil && (end || pass%v.Every == 0) {
			stop := c.holds() != v.While
			if more = !end && !stop; end && !stop {
				counts[conditions.CountMissed]++
			}
		}
	}
	if pass > v.Stamping.Each {
		c.stamp(counts, pass)
	}
	counts[conditions.CountPasses] += pass
}

// stampsFrom is the time that stamps count from.
var stampsFrom = time.Now()

// stamp writes a stamp if stamps are asked for and there is room for it.
func (c *command) stamp(counts []int64, what int64) {
	v := c.repeated
	if v.Stamping.Room == 0 {
		return
	}
	k := counts[conditions.CountStamps]
	if counts[conditions.CountStamps]++; k >= v.Stamping.Room {
		return
	}
	stamps := unsafe.Slice((*int64)(c.call.Args[len(v.Operands)+1].Memory), conditions.StampWords*v.Stamping.Room)
	stamps[conditions.StampWords*k], stamps[conditions.StampWords*k+1] = time.Since(stampsFrom).Nanoseconds(), what
}

// holds computes the condition.
func (c *command) holds() bool {
	condition := c.repeated.Condition
	return condition.Holds(func(k int) uint64 {
		t := condition.Types[k]
		return t.Load(unsafe.Slice((*byte)(c.call.Args[k].Memory), t.Size()), 0)
	})
}

// pass runs a body once.
func (v *conditional) pass(t *table, w *worker) {
	if v.random == nil {
		for _, c := range t.commands {
			c.execute(w)
		}
		return
	}
	waits := make([]int, len(t.commands))
	var ready []int32
	for n := range int32(len(waits)) {
		if waits[n] = len(t.before(n)); waits[n] == 0 {
			ready = append(ready, n)
		}
	}
	for len(ready) > 0 {
		k := v.random.IntN(len(ready))
		n := ready[k]
		ready[k] = ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		t.commands[n].execute(w)
		for _, a := range t.after(n) {
			if waits[a]--; waits[a] == 0 {
				ready = append(ready, a)
			}
		}
	}
}

// execute runs the command. A fault makes the device unusable.
func (c *command) execute(w *worker) {
	if c.nothing || c.device.fault.Load() != nil {
		return
	}
	if len(c.uses) > 0 {
		u, e := c.usable()
		if e != nil {
			c.device.poison(e)
			return
		}
		c = u
	}
	if c.kind == cudart.RunBodies {
		c.runBodies(w)
		return
	}
	w.doing.Store(c)
	defer w.doing.Store(nil)
	var crashed *crash
	switch c.kind {
	case cudart.RunHost:
		if e := c.callHost(); e != nil {
			c.device.poison(e)
			return
		}
	case cudart.Communicate:
		if e := c.communicate(); e != nil {
			c.device.poison(e)
			return
		}
	case cudart.LaunchKernel:
		crashed = c.launch(w)
	case cudart.CopyMemory, cudart.SetMemory:
		crashed = w.split(c, c.parts())
	}
	if c.platform.options.Sanitize != simt.CheckNothing {
		c.markWritten()
	}
	if crashed != nil {
		c.device.poison(c.crashed(crashed))
		return
	}
	if c.kind == cudart.LaunchKernel {
		for i := range c.uses {
			if m := c.uses[i].memory; !m.intact() {
				c.device.poison(c.fail(illegalAddress, "bytes just outside %s, %v, were overwritten", c.uses[i].describe(), m))
				return
			}
		}
	}
}
