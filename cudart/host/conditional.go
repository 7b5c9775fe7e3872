// Loops and branches of graphs: one worker runs the passes, command after command. Kernels and copies are still split among all workers.

package host

import (
	"math/rand/v2"
	"unsafe"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/kernels/conditions"
)

// conditional is what a command of kind RunBodies runs.
type conditional struct {
	cudart.Conditional
	bodies []*table
	random *rand.Rand // nil unless timing is perturbed: then commands run in any order that their dependencies allow
}

// setConditional prepares a loop or branch.
func (c *command) setConditional(from *cudart.Command) *cudart.Error {
	v := from.Conditional
	switch {
	case v == nil || len(v.Bodies) == 0 || len(v.Bodies) > 2 || len(v.Bodies) > 1 && !v.Branch:
		return c.fail(invalidValue, "a loop has one body, and a branch one or two")
	case v.Condition == nil && (v.Branch || len(v.Operands) > 0), v.Condition != nil && len(v.Operands) != len(v.Condition.Operands):
		return c.fail(invalidValue, "its condition needs one address for each operand")
	}
	c.repeated = &conditional{Conditional: *v}
	if seed := c.platform.options.Perturb; seed != 0 {
		c.repeated.random = rand.New(rand.NewPCG(seed, uint64(c.index)))
	}
	c.call.Args = make([]kernels.Arg, len(v.Operands)+1)
	for k, at := range v.Operands {
		c.uses = append(c.uses, use{ptr: at, bytes: v.Condition.Types[k].Size(), arg: k})
	}
	c.uses = append(c.uses, use{ptr: v.Counts, bytes: 8 * conditions.CountWords * int64(max(v.Clear, 1)), arg: len(v.Operands)})
	c.resolve()
	for _, body := range v.Bodies {
		if len(body.Deps) != len(body.Commands) {
			return c.fail(invalidValue, "its body has %d commands, but dependencies for %d", len(body.Commands), len(body.Deps))
		}
		encoded := make([]*command, len(body.Commands))
		for i := range body.Commands {
			inner := new(command)
			if e := c.platform.encode(inner, &body.Commands[i], i); e != nil {
				return e
			}
			switch inner.kind {
			case cudart.RecordEvent, cudart.WaitEvent, cudart.Communicate:
				return inner.fail(notSupported, "the body of a loop or branch cannot contain it")
			}
			encoded[i] = inner
		}
		t, err := newTable(encoded, body.Deps)
		if err != nil {
			return err.(*cudart.Error)
		}
		c.repeated.bodies = append(c.repeated.bodies, t)
	}
	return nil
}

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
			v.pass(v.bodies[0], w)
		} else if len(v.bodies) > 1 {
			v.pass(v.bodies[1], w)
		}
		return
	}
	for more := v.Times > 0 && (!v.While || c.holds()); more; {
		v.pass(v.bodies[0], w)
		if c.device.fault.Load() != nil {
			return
		}
		pass++
		counts[conditions.CountPass] = pass
		end := pass >= v.Times
		more = !end
		if v.Condition != nil && (end || pass%v.Every == 0) {
			stop := c.holds() != v.While
			if more = !end && !stop; end && !stop {
				counts[conditions.CountMissed]++
			}
		}
	}
	counts[conditions.CountPasses] += pass
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
