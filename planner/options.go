// Options: how to plan, and the names of strategies.

package planner

import (
	"slices"

	"github.com/dagrun/dagrun/dag"
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
	Devices         int            // for SpreadGraph: how many devices there are; 0: 1
	Spread          string         // for SpreadGraph: "auto" (also ""), or one of SpreadPolicies
	Spill           bool           // for SpreadGraph: where no placement fits, data may leave the devices for a while
	Offsets         []int64        // by buffer: where it lies on its device, if no two that lie there are in use at once; for graphs of SpillGraph
	SingleUseEvents bool           // one event per record, for programs submitted by several threads
}

// strategies holds the names that Options.Strategy accepts.
var strategies = []string{"serial", "roundrobin", "heft", "cover", "list", "auto"}

// Strategies lists the names that Options.Strategy accepts.
func Strategies() []string { return slices.Clone(strategies) }
