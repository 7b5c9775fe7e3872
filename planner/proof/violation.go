// Violations: what is wrong with a plan, as values for callers and as one line of text for people.

package proof

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// What a Violation can be, besides ErrPlanShape, ErrOtherGraph and ErrMemory; errors.Is tells them apart.
var (
	// ErrWrongStream: a node is on a stream of another device or priority, or not on the stream it is bound to.
	ErrWrongStream = errors.New("node on a wrong stream")
	// ErrEvent: a wait refers to a wrong record: its event is recorded later, never, or again in between.
	ErrEvent = errors.New("wait for a wrong record")
	// ErrDeadlock: waits form a cycle.
	ErrDeadlock = errors.New("waits form a cycle")
	// ErrHazard: a dependency is not enforced.
	ErrHazard = errors.New("unenforced dependency")
	// ErrRace: a data hazard that a pipeline with sync: explicit leaves unenforced. It is an ErrHazard too.
	ErrRace = errors.New("data race")
)

// Violation is one thing that is wrong with a plan. Ids are -1 and names empty where they do not apply.
type Violation struct {
	Fault        error      // ErrHazard and the like
	Node         dag.NodeID // the node that starts too early, or where the fault is
	Before       dag.NodeID // the node that must have finished
	NodeName     string     // as declared
	BeforeName   string
	Stream       int32 // of Node
	BeforeStream int32
	Op           int32 // index into Plan.Order
	Event        int32
	Buffer       dag.BufferID // what both nodes touch; for ErrMemory the buffer of Before
	Other        dag.BufferID // ErrMemory: the buffer of Node
	BufferName   string
	OtherName    string
	Lo, Hi       int64 // half-open bytes of Buffer; for ErrMemory bytes of the arena
	Tile         bool  // the bytes are a tile, of which these are the hull
	Why          dag.Why
	Access       dag.Mode // what Node does with the bytes
	BeforeAccess dag.Mode
	Problem      string // what is wrong
	Fix          string // what would fix it
	Line         string // ErrHazard: the line to add to Node's declaration, such as "after: [up_x]"
}

// Error tells what is wrong and what would fix it.
func (v *Violation) Error() string {
	if v.Fix == "" {
		return v.Problem
	}
	return v.Problem + ": " + v.Fix
}

// Is makes a race match ErrHazard as well as ErrRace.
func (v *Violation) Is(target error) bool {
	return target == v.Fault || target == ErrHazard && v.Fault == ErrRace
}

func newViolation(fault error, format string, args ...any) *Violation {
	return &Violation{
		Fault: fault, Node: -1, Before: -1, Stream: -1, BeforeStream: -1, Op: -1, Event: -1, Buffer: -1, Other: -1,
		Problem: fmt.Sprintf(format, args...),
	}
}

func (v *Violation) at(op int, stream int32) *Violation {
	v.Op, v.Stream = int32(op), stream
	return v
}

func (v *Violation) node(g *dag.Graph, node dag.NodeID) *Violation {
	v.Node, v.NodeName = node, plan.NodeName(g, node)
	return v
}

func (v *Violation) fix(format string, args ...any) *Violation {
	v.Fix = fmt.Sprintf(format, args...)
	return v
}

// afterLine returns the after: line of a node's declaration with before added.
func afterLine(g *dag.Graph, node, before int32) string {
	var names []string
	for _, a := range g.Nodes[node].After {
		names = append(names, plan.NodeName(g, a))
	}
	return "after: [" + strings.Join(append(names, plan.NodeName(g, dag.NodeID(before))), ", ") + "]"
}

// modeOn returns how a node accesses the bytes of an edge.
func modeOn(g *dag.Graph, node dag.NodeID, e dag.Edge) dag.Mode {
	var mode dag.Mode
	for _, a := range g.Accesses(node) {
		if _, ok := shared(a.Range, g.EdgeRange(e)); ok {
			mode |= a.Mode
		}
	}
	return mode
}

// violationError returns nil for a nil *Violation, which would otherwise become an error that is not nil.
func violationError(v *Violation) error {
	if v == nil {
		return nil
	}
	return v
}
