// Errors shared by making, reading and verifying plans.

package plan

import (
	"errors"
)

var (
	// ErrPlanShape: the plan is not a schedule at all: an id out of range, an order that does not match the streams.
	ErrPlanShape = errors.New("malformed plan")
	// ErrOtherGraph: the plan was made for another graph.
	ErrOtherGraph = errors.New("plan of another graph")
	// ErrMemory: a buffer lies outside its arena, or overlaps a buffer that is alive at the same time.
	ErrMemory = errors.New("bad memory layout")
)
