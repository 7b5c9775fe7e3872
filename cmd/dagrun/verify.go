// --verify: runs the pipeline once more, serially on the CPU device, and compares every result.

package main

import (
	"context"
	"fmt"

	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

// referenceNeed is how much host memory verifyOnCPU takes beside the program, known before it runs: every buffer once more, and a copy of
// the largest result.
func referenceNeed(g *dag.Graph) int64 {
	all, largest := int64(0), int64(0)
	for i := range g.Buffers {
		b := &g.Buffers[i]
		all += b.Bytes
		if b.Place == dag.Device && (b.Save != "" || b.Expect != nil) {
			largest = max(largest, b.Bytes)
		}
	}
	return all + largest
}

// verifyOnCPU runs p's pipeline with as many replays as program had and compares the two programs' results.
func (a *app) verifyOnCPU(ctx context.Context, p *prepared, program *runtime.Program) (checks []runtime.Check, err error) {
	cpu, err := host.Open(host.Options{Devices: devicesOf(p.graph), MaxSteps: a.flags.steps})
	if err != nil {
		return nil, err
	}
	defer func() { err = closing(err, cpu) }()
	plan, err := planner.New(ctx, p.graph, planner.Options{Strategy: "serial", Machine: runtime.MachineOf(cpu), KeepAll: true})
	if err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	unsafe, err := racesAllowed(p.name, p.graph, plan, true)
	if err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	reference, err := runtime.New(ctx, p.graph, plan, cpu, runtime.Options{Unsafe: unsafe, Logger: a.log})
	if err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	defer func() { err = closing(err, reference) }()
	for i := range a.flags.iterations {
		a.progress.report("verify on the CPU", i, a.flags.iterations)
		if err := reference.Run(ctx, 1); err != nil {
			return nil, fmt.Errorf("verify: %w", err)
		}
	}
	checks, err = runtime.CompareResults(ctx, program, reference)
	for i := range checks {
		checks[i].Against = "a serial run on the CPU"
	}
	return checks, err
}
