// Aliases for what users of the planner need from the packages below it. Code inside the planner imports those packages directly.

// Package planner decides on which stream each node of a graph runs and where streams must wait for each other, and proves
// it. It is pure: no I/O, no CUDA, no clocks.
package planner

import (
	"io"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/effort"
	"github.com/dagrun/dagrun/planner/internal/place"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/planner/proof"
)

// Plan is described where it is declared, with its fields: go doc github.com/dagrun/dagrun/planner/plan.Plan.
type Plan = plan.Plan

// The machine model and its predictions.
type (
	Machine = model.Machine
	Profile = model.Profile
)

// Effort is how hard to search. It is measured in steps, never in time, so the same graph and options give the same plan everywhere.
type Effort = effort.Effort

const (
	Quick    = effort.Quick
	Normal   = effort.Normal
	Thorough = effort.Thorough
)

// Violation is a dependency that a plan does not enforce.
type Violation = proof.Violation

// Errors that callers branch on with errors.Is; each is described where it is declared.
var (
	ErrUnknownStrategy = place.ErrUnknownStrategy
	ErrTooManyStreams  = place.ErrTooManyStreams
	ErrGraphTooLarge   = place.ErrGraphTooLarge
	ErrStreamConflict  = place.ErrStreamConflict
	ErrBadOption       = place.ErrBadOption
)

// DecodePlan reads a plan of g from its JSON form; see [plan.DecodePlan].
func DecodePlan(r io.Reader, g *dag.Graph) (*plan.Plan, error) { return plan.DecodePlan(r, g) }

// H200 is an NVIDIA H200; see [model.H200].
func H200() *Machine { return model.H200() }

// Unit is the machine of textbooks; see [model.Unit].
func Unit() *Machine { return model.Unit() }

// Simulate predicts one replay submitted to streams; see [model.Simulate].
func Simulate(g *dag.Graph, p *Plan, m *Machine, profile *Profile) (*plan.Timeline, error) {
	return model.Simulate(g, p, m, profile)
}

// Verify proves that a plan is correct for a graph; see [proof.Verify].
func Verify(g *dag.Graph, p *Plan) error { return proof.Verify(g, p) }

// Violations lists the dependencies that a plan does not enforce; see [proof.Violations].
func Violations(g *dag.Graph, p *Plan, most int) (*proof.Unenforced, error) {
	return proof.Violations(g, p, most)
}

// Explain tells how a plan enforces each dependency; see [proof.Explain].
func Explain(g *dag.Graph, p *Plan) ([]proof.Enforcement, error) { return proof.Explain(g, p) }
