// Options: how to plan, and the names of strategies.

package planner

import (
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// Options says how to plan. The zero value plans with little effort; `dagrun plan` uses Effort: Normal.
type Options struct {
	Strategy        string         // "auto" (also ""), "list", "cover", "heft", "roundrobin", "serial"
	Streams         int            // compute streams per device, at most 65536; 0: 8, or for cover as many as it needs, up to 128
	Effort          Effort         // how hard to search: Quick (also 0), Normal, Thorough
	Machine         *Machine       // nil: H200
	Profile         *Profile       // measured durations; nil: none
	MemoryCap       int64          // bytes per device; 0: no cap
	KeepAll         bool           // no two buffers share bytes (--verify, --memory separate)
	Keep            []dag.BufferID // buffers that share bytes with no other, such as those that an embedder reads
	Spread          *plan.Spread   // what planner/spread made the graph of, if it did; a plan of a spilled graph takes its memory cap and offsets from it
	SingleUseEvents bool           // one event per record, for programs submitted by several threads
	InGraph         bool           // times are predicted for one CUDA graph, which captures what is submitted to the streams
	// nodes are submitted in declared order, for a program that makes the calls itself; of plans that take within 1% as long, the one with
	// the fewest waits; not with Spread
	InOrder bool
}

// Cap returns the bytes that a plan may need of a device: MemoryCap, or what the graph was spilled for; 0: there is no cap.
func (o Options) Cap() int64 {
	if s := o.Spread; o.MemoryCap == 0 && s != nil {
		return s.MemoryCap
	}
	return o.MemoryCap
}

// strategies holds the names that Options.Strategy accepts.
var strategies = []string{"serial", "roundrobin", "heft", "cover", "list", "auto"}

// Strategies lists the names that Options.Strategy accepts.
func Strategies() []string { return slices.Clone(strategies) }
