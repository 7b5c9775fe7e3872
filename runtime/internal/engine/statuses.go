// What library calls say about their success: tested after a run, before anything is saved.

package engine

import (
	"context"
	"fmt"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/runtime/internal/arrays"
)

// CallError is returned by Finish, Trace, Measure and CheckCalls if a library call of the last replay could not compute its result, such as the
// factor of a matrix that is not positive definite. Nothing is saved then.
type CallError struct {
	Node   string
	Call   string // "cusolver.potrf"
	Status int32  // as the library's documentation explains it
	Why    string
}

func (e *CallError) Error() string {
	return fmt.Sprintf("node %q: %s: %s (status %d); no results are saved", e.Node, e.Call, e.Why, e.Status)
}

// CheckCalls returns a *CallError for the first library call, in declaration order, that failed in the last replay.
func (p *Program) CheckCalls(ctx context.Context) error {
	if err := p.usable(ctx); err != nil {
		return err
	}
	return p.checkStatuses(ctx)
}

// checkStatuses returns a *CallError for the first call, in declaration order, that failed.
func (p *Program) checkStatuses(ctx context.Context) error {
	for i := range p.graph.Buffers {
		name, ok := p.graph.Buffers[i].Status()
		if !ok {
			continue
		}
		var status int32
		if err := p.contents(ctx, int32(i), func(memory []byte) error {
			status = int32(p.graph.Buffers[i].DType.Load(memory, 0))
			return nil
		}); err != nil {
			return err
		}
		if status == 0 {
			continue
		}
		e := &CallError{Node: name, Status: status, Why: "it failed"}
		for _, q := range p.family() {
			if id, ok := q.node(name); ok {
				if l := q.graph.Nodes[id].Launch; l != nil {
					e.Call = l.Name
					if k, ok := l.Kernel.(interface{ Failure(status int32) string }); ok {
						e.Why = k.Failure(status)
					}
				}
			}
		}
		return e
	}
	return nil
}

// isResult reports whether a buffer is one that the user wants to see after a run.
func isResult(b *dag.Buffer) bool {
	_, status := b.Status()
	return !status && (b.Save != "" || b.Expect != nil)
}

// tolerant is implemented by calls whose results differ from those of their Go versions in rounding.
type tolerant interface {
	// Tolerance is how large the difference may be, relative to the largest element of the result.
	Tolerance(args []dag.Arg) float64
}

// judgeCalls makes the comparison of a buffer of floats with another device's one of the whole, in a graph that has library calls: sums of many
// products that nearly cancel differ by more than their own last digits. A buffer that declares a tolerance keeps it.
func (p *Program) judgeCalls(c *arrays.Check, b *dag.Buffer) {
	if e := b.Expect; !b.DType.Component().Float() || e != nil && (e.RTol != 0 || e.ATol != 0 || e.Norm != dag.NoNorm || e.Differing > 0) {
		return
	}
	worst := 0.0
	for _, q := range p.family() {
		for i := range q.graph.Nodes {
			if l := q.graph.Nodes[i].Launch; l != nil {
				if k, ok := l.Kernel.(tolerant); ok {
					worst = max(worst, k.Tolerance(l.Args))
				}
			}
		}
	}
	if worst > 0 {
		c.Norm, c.RTol, c.ATol = dag.NormMax.String(), worst, 0
	}
}
