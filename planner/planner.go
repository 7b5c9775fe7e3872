// Aliases for what users of the planner need from the packages below it. Code inside the planner imports those packages directly.

// Package planner decides on which stream each node of a graph runs and where streams must wait for each other, and proves
// it. It is pure: no I/O, no CUDA, no clocks.
package planner

import (
	"io"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/jsontext"
	"github.com/dagrun/dagrun/planner/effort"
	"github.com/dagrun/dagrun/planner/internal/place"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/planner/proof"
)

// The plan and what describes it.
type (
	Plan      = plan.Plan // its fields: go doc github.com/dagrun/dagrun/planner/plan.Plan
	Stream    = plan.Stream
	Band      = plan.Band
	Op        = plan.Op
	OpKind    = plan.OpKind
	Placement = plan.Placement
	Body      = plan.Body
	Replay    = plan.Replay
	ReplayOp  = plan.ReplayOp
	Stats     = plan.Stats
	GraphEdge = plan.GraphEdge
	Engine    = plan.Engine
	Timeline  = plan.Timeline
	Span      = plan.Span
	HostSpan  = plan.HostSpan
	Cause     = plan.Cause
	Busy      = plan.Busy
	Gap       = plan.Gap
	FileError = jsontext.FileError
	Spread    = plan.Spread

	Cost       = plan.Cost
	Passes     = plan.Passes
	CostSource = plan.CostSource
)

const (
	Launch = plan.Launch
	Record = plan.Record
	Wait   = plan.Wait

	Compute   = plan.Compute
	Upload    = plan.Upload
	Download  = plan.Download
	PeerCopy  = plan.PeerCopy
	LocalCopy = plan.LocalCopy
	HostCopy  = plan.HostCopy

	NoCause    = plan.NoCause
	AfterOrder = plan.AfterOrder
	AfterWait  = plan.AfterWait
	AfterQueue = plan.AfterQueue
	AfterHost  = plan.AfterHost
	AfterIssue = plan.AfterIssue

	GraphRoot = plan.GraphRoot

	UnknownCost  = plan.UnknownCost
	FormulaCost  = plan.FormulaCost
	MeasuredCost = plan.MeasuredCost
	DeclaredCost = plan.DeclaredCost
)

// The machine model and its predictions.
type (
	Machine       = model.Machine
	Profile       = model.Profile
	Bus           = model.Bus
	BusTraffic    = model.BusTraffic
	Bound         = model.Bound
	Occupancy     = model.Occupancy
	OccupancyStep = model.OccupancyStep
)

// Which copies use a bus.
const (
	CarriesAll  = model.CarriesAll
	CarriesHost = model.CarriesHost
	CarriesPeer = model.CarriesPeer
)

// Effort is how hard to search. It is measured in steps, never in time, so the same graph and options give the same plan everywhere.
type Effort = effort.Effort

const (
	Quick    = effort.Quick
	Normal   = effort.Normal
	Thorough = effort.Thorough
)

// The proof.
type (
	Violation   = proof.Violation
	Unenforced  = proof.Unenforced
	Enforcement = proof.Enforcement
	How         = proof.How
	WaitLink    = proof.WaitLink
)

const (
	NotEnforced  = proof.NotEnforced
	BySameStream = proof.BySameStream
	ByWait       = proof.ByWait
	ByEarlier    = proof.ByEarlier
)

// Memory at a plan's peak.
type (
	Peak       = plan.Peak
	LiveBuffer = plan.LiveBuffer
)

// Errors that callers branch on with errors.Is; each is described where it is declared.
var (
	ErrPlanShape   = plan.ErrPlanShape
	ErrOtherGraph  = plan.ErrOtherGraph
	ErrMemory      = plan.ErrMemory
	ErrWrongStream = proof.ErrWrongStream
	ErrEvent       = proof.ErrEvent
	ErrDeadlock    = proof.ErrDeadlock
	ErrHazard      = proof.ErrHazard
	ErrRace        = proof.ErrRace
	ErrEarly       = proof.ErrEarly

	ErrUnknownStrategy = place.ErrUnknownStrategy
	ErrTooManyStreams  = place.ErrTooManyStreams
	ErrGraphTooLarge   = place.ErrGraphTooLarge
	ErrStreamConflict  = place.ErrStreamConflict
	ErrBadOption       = place.ErrBadOption
	ErrUnknownEffort   = effort.ErrEffort

	ErrUnknownMachine = model.ErrUnknownMachine
	ErrBadMachine     = model.ErrBadMachine
	ErrBadProfile     = model.ErrBadProfile
)

// Efforts lists the names of efforts, from the least effort to the most.
func Efforts() []string { return effort.Names() }

// ParseEffort returns the effort with this name; "" is quick.
func ParseEffort(name string) (Effort, error) { return effort.Parse(name) }

// Action describes what node i of g does: h2d x -> d_x, set d, kernel scale, map y = a*x.
func Action(g *dag.Graph, i dag.NodeID) string { return plan.Action(g, i) }

// EngineOf returns the engine that node i of g runs on.
func EngineOf(g *dag.Graph, i dag.NodeID) Engine { return plan.EngineOf(g, i) }

// WriteGraphDOT writes a graph for Graphviz; see [plan.WriteGraphDOT].
func WriteGraphDOT(w io.Writer, g *dag.Graph) error { return plan.WriteGraphDOT(w, g) }

// DecodePlan reads a plan of g from its JSON form; see [plan.DecodePlan].
func DecodePlan(r io.Reader, g *dag.Graph) (*plan.Plan, error) { return plan.DecodePlan(r, g) }

// H200 is an NVIDIA H200; see [model.H200].
func H200() *Machine { return model.H200() }

// Clean is the H200 with nothing between one node and the next; see [model.Clean].
func Clean() *Machine { return model.Clean() }

// Unit is the machine of textbooks; see [model.Unit].
func Unit() *Machine { return model.Unit() }

// MachineNames lists the built-in machines, the default first.
func MachineNames() []string { return model.MachineNames() }

// MachineByName returns a built-in machine. The empty name is the default.
func MachineByName(name string) (*Machine, error) { return model.MachineByName(name) }

// DecodeMachine reads a machine file; see [model.DecodeMachine].
func DecodeMachine(r io.Reader) (*Machine, error) { return model.DecodeMachine(r) }

// DecodeProfile reads a profile file; see [model.DecodeProfile].
func DecodeProfile(r io.Reader) (*Profile, error) { return model.DecodeProfile(r) }

// Costs returns how long each node takes alone, and where that comes from; see [model.Costs].
func Costs(g *dag.Graph, m *Machine, p *Profile) []Cost { return model.Costs(g, m, p) }

// CostText sums up where costs come from; see [plan.CostText].
func CostText(g *dag.Graph, costs []Cost) string { return plan.CostText(g, costs) }

// Durations returns how long each node takes alone; see [model.Durations].
func Durations(g *dag.Graph, m *Machine, p *Profile) []float64 { return model.Durations(g, m, p) }

// Simulate predicts one replay submitted to streams; see [model.Simulate].
func Simulate(g *dag.Graph, p *Plan, m *Machine, profile *Profile) (*Timeline, error) {
	return model.Simulate(g, p, m, profile)
}

// SimulateGraph predicts one replay of a CUDA graph; see [model.SimulateGraph].
func SimulateGraph(g *dag.Graph, p *Plan, m *Machine, profile *Profile) (*Timeline, error) {
	return model.SimulateGraph(g, p, m, profile)
}

// Repeated predicts how long each of many replays takes; see [model.Repeated].
func Repeated(g *dag.Graph, p *Plan, m *Machine, profile *Profile, graph bool) (float64, error) {
	return model.Repeated(g, p, m, profile, graph)
}

// Predict simulates a plan and fills in its Costs and the times of its Stats; see [model.Predict].
func Predict(g *dag.Graph, p *Plan, m *Machine, profile *Profile, streams int) error {
	return model.Predict(g, p, m, profile, streams)
}

// LowerBound returns what no plan can beat on streams; see [model.LowerBound].
func LowerBound(g *dag.Graph, m *Machine, p *Profile, streams int) Bound {
	return model.LowerBound(g, m, p, streams)
}

// LowerBoundGraph is LowerBound for SimulateGraph.
func LowerBoundGraph(g *dag.Graph, m *Machine, p *Profile, streams int) Bound {
	return model.LowerBoundGraph(g, m, p, streams)
}

// OccupancyOf follows the device buffers of a plan through a predicted run; see [model.OccupancyOf].
func OccupancyOf(g *dag.Graph, p *Plan, t *Timeline) []Occupancy { return model.OccupancyOf(g, p, t) }

// Verify proves that a plan is correct for a graph; see [proof.Verify].
func Verify(g *dag.Graph, p *Plan) error { return proof.Verify(g, p) }

// VerifyEarly proves that launches may begin before the one before them has ended; see [proof.VerifyEarly].
func VerifyEarly(g *dag.Graph, p *Plan, edges []GraphEdge, early []dag.NodeID, waits func(dag.NodeID) bool) error {
	return proof.VerifyEarly(g, p, edges, early, waits)
}

// VerifyEdges proves that a CUDA graph with these edges is correct; see [proof.VerifyEdges].
func VerifyEdges(g *dag.Graph, p *Plan, edges []GraphEdge) error {
	return proof.VerifyEdges(g, p, edges)
}

// VerifyBodyEdges is VerifyEdges for the body of a loop or branch; see [proof.VerifyBodyEdges].
func VerifyBodyEdges(g *dag.Graph, p *Plan, edges []GraphEdge, memory []Placement) error {
	return proof.VerifyBodyEdges(g, p, edges, memory)
}

// VerifyReplay proves that replays of a plan can follow each other; see [proof.Replay].
func VerifyReplay(g *dag.Graph, p *Plan, r *Replay) error { return proof.Replay(g, p, r) }

// VerifySingleUse checks that no event is recorded twice; see [proof.VerifySingleUse].
func VerifySingleUse(g *dag.Graph, p *Plan) error { return proof.VerifySingleUse(g, p) }

// Violations lists the dependencies that a plan does not enforce; see [proof.Violations].
func Violations(g *dag.Graph, p *Plan, most int) (*Unenforced, error) {
	return proof.Violations(g, p, most)
}

// Pairs lists every pair of nodes that a plan leaves unordered; see [proof.Pairs].
func Pairs(g *dag.Graph, p *Plan, most int) (*Unenforced, error) { return proof.Pairs(g, p, most) }

// Explain tells how a plan enforces each dependency; see [proof.Explain].
func Explain(g *dag.Graph, p *Plan) ([]Enforcement, error) { return proof.Explain(g, p) }
