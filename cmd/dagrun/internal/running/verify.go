// --verify: runs the pipeline once more, serially on the CPU device, and compares every result.

package running

import (
	"context"
	"fmt"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/runs"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/session"
	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

// referenceNeed returns how much host memory verifyOnCPU will need besides the program: another copy of every buffer, and a copy of the
// largest result.
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

// The values of --verify.
const (
	VerifyResults = "results"
	VerifyNodes   = "nodes"
)

// referenceOn makes a program of a graph of p's pipeline that runs serially, in which every buffer has its own bytes.
func (u *Commands) referenceOn(ctx context.Context, p *runs.Prepared, g *dag.Graph, platform cudart.Platform) (*runtime.Program, error) {
	plan, err := planner.New(ctx, g, planner.Options{Strategy: "serial", Machine: runtime.MachineOf(platform), KeepAll: true})
	if err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	allowed, err := session.RacesAllowed(p.Name, g, plan, true)
	if err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	program, err := runtime.New(ctx, g, plan, platform, runtime.Options{Unsafe: len(allowed) > 0, Logger: u.Log, Confined: u.Flags.Confined})
	if err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	return program, nil
}

// verifyEachNode replays the pipeline node by node on its own device and on the CPU and returns the first node that differs.
func (u *Commands) verifyEachNode(ctx context.Context, p *runs.Prepared) (differs *runtime.Difference, err error) {
	cpu, err := host.Open(host.Options{Devices: p.Graph.UsedDevices(), MaxSteps: u.Flags.Steps, Compilers: u.Compiler()})
	if err != nil {
		return nil, err
	}
	defer func() { err = cli.Closing(err, cpu) }()
	got, err := u.referenceOn(ctx, p, p.Graph, p.Platform.Platform)
	if err != nil {
		return nil, err
	}
	defer func() { err = cli.Closing(err, got) }()
	want, err := u.referenceOn(ctx, p, p.Graph, cpu)
	if err != nil {
		return nil, err
	}
	defer func() { err = cli.Closing(err, want) }()
	u.Progress.Report("verify each node", 0, 0)
	differs, err = runtime.CompareNodes(ctx, got, want, u.Flags.Iterations)
	if differs != nil {
		differs.Check.Against = "a serial run on the CPU"
	}
	return differs, err
}

// verifyOnCPU runs p's pipeline with as many replays as program had and compares the two programs' results.
func (u *Commands) verifyOnCPU(ctx context.Context, p *runs.Prepared, program *runtime.Program) (checks []runtime.Check, err error) {
	cpu, err := host.Open(host.Options{Devices: u.Declared.UsedDevices(), MaxSteps: u.Flags.Steps, Compilers: u.Compiler()})
	if err != nil {
		return nil, err
	}
	defer func() { err = cli.Closing(err, cpu) }()
	reference, err := u.referenceOn(ctx, p, u.Declared, cpu)
	if err != nil {
		return nil, err
	}
	defer func() { err = cli.Closing(err, reference) }()
	for i := range u.Flags.Iterations {
		u.Progress.Report("verify on the CPU", i, u.Flags.Iterations)
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
