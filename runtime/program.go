// A program: a plan made ready to be replayed, and what can be done with it. The work is done by internal/engine.

package runtime

import (
	"context"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime/internal/engine"
)

// Program replays a plan. Its methods, except Counters, must not be called concurrently; different programs may run at the same time on
// one device.
type Program struct{ engine *engine.Program }

// inner returns what does the work: nil, which refuses everything, if New did not return the program.
func (p *Program) inner() *engine.Program {
	if p == nil {
		return nil
	}
	return p.engine
}

// New verifies the plan and prepares everything to run it: memory, kernels, streams, events, encoded commands, initial contents.
func New(ctx context.Context, g *dag.Graph, plan *planner.Plan, platform cudart.Platform, options Options) (*Program, error) {
	p, err := engine.New(ctx, g, plan, platform, planner.GraphEdges, engine.Options(options))
	if err != nil {
		return nil, err
	}
	return &Program{p}, nil
}

// Replay submits the whole program once and returns without waiting for the device. Replays are ordered on the device. With several in
// flight, each waits only for the previous one that used the same buffers. Replay itself waits only if a callback of ReplayThen still uses
// the buffers, and gives up when the context ends.
//
// To get each replay's own result, use ReplayThen. With host functions, Replay first waits for the previous replay that used the same buffers,
// and returns an error if one of them has failed; the context must live as long as the replay.
func (p *Program) Replay(ctx context.Context) error { return p.inner().Replay(ctx) }

// Run replays the program the given number of times and waits. When the context ends, it neither submits nor waits any longer.
func (p *Program) Run(ctx context.Context, iterations int) error {
	return p.inner().Run(ctx, iterations)
}

// ReplayThen submits one replay and returns without waiting for it. before, which may be nil, runs first, on the caller's goroutine,
// and writes the replay's input. then runs when the replay has finished, gets its error, and reads the result. Calls of then come one at a
// time, in the order of the replays, on a goroutine of the program.
//
// With Options.Inflight K, up to K turns are in flight. Each has its own buffers, so that the input of the next turn can be written while
// others compute. If the next buffers are still in use, by a replay or by a then that has not returned, ReplayThen waits for them and gives
// up when the context ends. A then must not call any method of the program except Counters. If before panics, nothing is submitted and the
// program stays usable. If then panics, the process ends, as with a panic on any goroutine. ReplayThen itself allocates no memory per turn.
func (p *Program) ReplayThen(ctx context.Context, before func(*Turn), then func(*Turn, error)) error {
	return p.inner().ReplayThen(ctx, before, then)
}

// OnDone calls f once everything replayed so far has finished, with the first error of that work. It returns at once; f runs on a
// goroutine of its own, and Close waits for it.
func (p *Program) OnDone(f func(error)) error { return p.inner().OnDone(f) }

// Synchronize waits until every replay has finished and every then of ReplayThen has returned. It returns the first error of that work.
func (p *Program) Synchronize(ctx context.Context) error { return p.inner().Synchronize(ctx) }

// Restore restores the contents of every buffer that has initial contents and that a replay changes, results without an init included, which
// start as zeros. It waits for replays first.
func (p *Program) Restore(ctx context.Context) error { return p.inner().Restore(ctx) }

// Measure warms up, then times the given number of replays. Submission and device times come from one pass with an event before and after
// every replay, wall time from a second pass without events. That pass begins with the initial contents, which decide how many passes loops make.
// They are restored afterwards too.
func (p *Program) Measure(ctx context.Context, warmup, iterations int) (*Timing, error) {
	return p.inner().Measure(ctx, warmup, iterations)
}

// RunAlone replays the program with one node on the device at a time: it submits each node by itself, in the plan's order, and waits for it.
// A device reports the fault of a kernel only to a later call. Here that is the call that waits for this kernel, so the error names the node
// that caused the fault.
func (p *Program) RunAlone(ctx context.Context, iterations int) error {
	return p.inner().RunAlone(ctx, iterations)
}

// SetScalar changes one scalar argument of a kernel, which may be in the body of a loop or branch, for all later replays. The launch's grid and
// extents are computed again. An update that would touch more bytes than declared is refused, because the plan was proved for the declared bytes.
func (p *Program) SetScalar(node string, argument int, value float64) error {
	return p.inner().SetScalar(node, argument, value)
}

// SetStorage moves a declared buffer to other memory for all later replays: device memory of the same device for a device buffer, pinned or
// pageable host memory (as declared) for a host buffer. bytes must be the buffer's size. The caller keeps owning the memory. A buffer that
// shares bytes with others in the plan cannot be moved, and the memory must not overlap that of another buffer of the program: the plan
// was not proved for that. If a loop or branch uses the buffer, a graph is made anew, which takes longer than a change.
func (p *Program) SetStorage(buffer string, address cudart.Ptr, bytes int64) error {
	return p.inner().SetStorage(buffer, address, bytes)
}

// Plan is the plan that the program replays; after Learn, the one that it chose.
func (p *Program) Plan() *planner.Plan { return p.inner().Plan() }

// Mode returns how the program replays; for Auto, the mode that it chose.
func (p *Program) Mode() Mode { return p.inner().Mode() }

// Choice tells why Auto chose its mode; "" without Auto.
func (p *Program) Choice() string { return p.inner().Choice() }

// NoGraph says why a program with loops or branches replays as streams although its Options asked for a graph; "" if it need not.
func (p *Program) NoGraph() string { return p.inner().NoGraph() }

// Overlaps reports whether launches overlap, and of how many nodes, in one replay.
func (p *Program) Overlaps() (nodes int, on bool) { return p.inner().Overlaps() }

// Warnings returns the warnings of the modules that were loaded.
func (p *Program) Warnings() []string { return p.inner().Warnings() }

// Counters returns the program's figures. It may be called at any time from any goroutine.
func (p *Program) Counters() Counters { return p.inner().Counters() }

// Replays returns how many replays were submitted since the program was created, including warm-up and measurements.
func (p *Program) Replays() uint64 { return p.inner().Replays() }

// Memory returns the figures of a program.
func (p *Program) Memory() MemoryStats { return p.inner().Memory() }

// Unfinished returns the nodes of the latest replay that had not finished when their progress words were read, in submission order. It
// works while the device hangs. Options.DebugProgress must be set, and the latest replay must be the first.
func (p *Program) Unfinished() []string { return p.inner().Unfinished() }

// Communicating returns the node that communicates with other ranks right now, and the one that did so before, nil for none and where the
// passes of a loop decide. A loop or branch communicates itself when rank 0 tells the others whether its condition holds. It may be called
// from any goroutine, also while the device hangs. Options.FollowCommunication must be set.
func (p *Program) Communicating() (now, last *dag.Node) { return p.inner().Communicating() }

// Close waits for submitted work and frees everything. It takes no context, because memory in use by the device cannot be freed. Calling
// it again does nothing. Closing nil, which New returns with an error, does nothing either.
func (p *Program) Close() error { return p.inner().Close() }

// Turn is one replay of ReplayThen and the host buffers that it uses. It is valid only inside the functions that it is passed to.
type Turn = engine.Turn

// Timing is the result of Measure.
type Timing = engine.Timing

// Series summarizes one measured quantity, in microseconds.
type Series = engine.Series

// Summarize returns the Series of samples, and sorts them.
func Summarize(samples []float64) Series { return engine.Summarize(samples) }

// Counters holds figures of a program at one moment: counts, which only grow, and the size of the program.
type Counters = engine.Counters

// MemoryStats holds how much memory a program takes.
type MemoryStats = engine.MemoryStats

// BufferMemory tells where a device buffer lies and when it is alive in a replay.
type BufferMemory = engine.BufferMemory
