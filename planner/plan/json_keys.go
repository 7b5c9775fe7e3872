// The keys of a plan file, and the writer of its values.

package plan

import (
	"bufio"
	"strconv"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/jsontext"
)

// maxPlanBytes caps what DecodePlan reads, whatever the size of the graph.
const maxPlanBytes = 4 << 30

var (
	planKeys   = []string{"version", "name", "graph", "strategy", "requested_strategy", "machine", "streams", "order", "edges", "memory", "stats", "kept", "work", "note", "costs", "modules", "works", "bodies", "spread"}
	streamKeys = []string{"id", "device", "priority", "ops"}
	opKeys     = []string{"op", "node", "event", "work"}
	edgeKeys   = []string{"from", "to", "why", "bytes", "box"}
	memoryKeys = []string{"buffer", "device", "offset", "bytes"}
	statsKeys  = []string{"nodes", "edges", "streams", "records", "waits", "events", "fork_join", "makespan_us", "lower_bound_us", "critical_path_us",
		"peak_device_bytes", "sum_device_bytes", "lower_bound_by", "above_lower_bound"}
	costKeys = []string{"node", "us", "source"}
	forkKeys = []string{"records", "waits"}
)

// planEncoder writes text; bufio keeps the first error for Flush.
type planEncoder struct {
	*bufio.Writer
	g       *dag.Graph
	quoted  []byte  // the nodes' names as JSON, concatenated
	names   []int32 // where each starts in quoted
	scratch []byte
	modules []string // module entries of the work, as in the plan or the graph
	works   []string // the distinct works, as JSON
	workOf  []int32  // by node: index into works, -1 for none
}

func (e *planEncoder) string(s string) {
	e.scratch = jsontext.AppendString(e.scratch[:0], s)
	e.Write(e.scratch)
}

func (e *planEncoder) int(v int64) {
	e.scratch = strconv.AppendInt(e.scratch[:0], v, 10)
	e.Write(e.scratch)
}
