// What buffers of a program hold, and its results.

package runtime

import (
	"context"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/runtime/internal/engine"
)

// Buffer returns the id of the buffer of that name.
func (p *Program) Buffer(name string) (dag.BufferID, bool) { return p.inner().Buffer(name) }

// Host returns the memory of a host buffer that the next replay will use (with several replays in flight, each has its own), or nil if the
// buffer is not a host buffer. It is valid until Close. Do not write to it while a replay that uses it runs.
func (p *Program) Host(buffer dag.BufferID) []byte { return p.inner().Host(buffer) }

// Address returns the address of a buffer, on its device or on the host, that the next replay will use. The caller can use it for work of its
// own on the stream of Options.Origin, before or after a replay. Device buffers that share bytes hold what was written last, so plan with
// planner.Options.Keep if you need a buffer's contents after a replay. Address is 0 if there is no such buffer.
func (p *Program) Address(buffer dag.BufferID) cudart.Ptr { return p.inner().Address(buffer) }

// Read copies a buffer's contents of the last replay into memory, which must have its size. It waits for replays first.
func (p *Program) Read(ctx context.Context, buffer dag.BufferID, memory []byte) (err error) {
	return p.inner().Read(ctx, buffer, memory)
}

// Finish checks every buffer with save or expect, computes its checksum and writes its file. A buffer that fails its expectation is
// saved too, so that it can be examined.
func (p *Program) Finish(ctx context.Context) (*Results, error) { return p.inner().Finish(ctx) }

// Loops returns what the loops and branches did in the last replay, those of a body after the one around it. It waits for that replay.
func (p *Program) Loops(ctx context.Context) ([]Loop, error) { return p.inner().Loops(ctx) }

// CheckCalls returns a *CallError for the first library call, in declaration order, that failed in the last replay.
func (p *Program) CheckCalls(ctx context.Context) error { return p.inner().CheckCalls(ctx) }

// Results is what Finish did with the buffers after a run.
type Results = engine.Results

// Saved is a file that was written.
type Saved = engine.Saved

// Checksum identifies a buffer's contents: equal sums, equal bits.
type Checksum = engine.Checksum

// CompareResults compares every saved or expected buffer of two programs of the same graph, element by element. The tolerance follows from
// the element type: none for integers, a few units in the last place for floats, unless the buffer declares one.
func CompareResults(ctx context.Context, got, want *Program) ([]Check, error) {
	return engine.CompareResults(ctx, got.inner(), want.inner())
}

// Difference is the first node whose results differ between two programs.
type Difference = engine.Difference

// CompareNodes replays two programs of the same graph node by node, both from their present state, and compares what each node wrote
// before the next one runs. Both must have the same order of nodes, as two serial plans have, and no buffers that share bytes. It returns
// the first difference, or nil. The tolerance is that of CompareResults.
func CompareNodes(ctx context.Context, got, want *Program, replays int) (found *Difference, err error) {
	return engine.CompareNodes(ctx, got.inner(), want.inner(), replays)
}
