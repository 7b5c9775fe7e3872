// The keys of a plan file, where some of them are kept, and what writes and reads their values.

package plan

import (
	"bufio"
	"math"
	"strconv"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/jsontext"
)

// maxPlanBytes caps what DecodePlan reads, whatever the size of the graph.
const maxPlanBytes = 4 << 30

// The comments are the meanings of the keys in docs/json.md. Keys that a file may lack come last.
var (
	planKeys = []string{
		"version",            // 1
		"name",               // that of the pipeline
		"graph",              // a hash of nodes, the byte ranges that they use, buffers and dependencies
		"strategy",           // the one used
		"requested_strategy", // the one asked for
		"machine",            // what the costs are for
		"streams",            // each with its ops in order
		"order",              // the order of submission: for each op, the id of the stream whose next op it is. A wait waits for the latest record of its event
		"edges",              // every dependency of the graph
		"memory",             // where each device buffer lies, in declaration order
		"stats",              // totals and predictions
		"kept",               // the device buffers that share their bytes with no other
		"work",               // a hash of what the nodes do: kernels, scalar arguments, launch shapes and costs. A plan for other work is refused
		"note",               // on how the plan was made; usually absent
		"costs",              // the time that each node was taken to take alone; hand-made plans need none
		"modules",            // those hashed into `work`; absent if there are none
		"works",              // what was hashed into `work`, each work once, as a list of `name=value`
		"bodies",             // the plans of loops and branches; absent without them
		"spread",             // over [several devices](scaling.md#devices) or to host memory; absent if it is planned as declared
	}
	streamKeys = []string{
		"id",       // its place in the list, from 0
		"device",   // where it runs
		"priority", // `high`, `normal` or `low`
		"ops",      // its ops, in order
	}
	opKeys = []string{
		"op",    // `launch` a node, `record` an event after the last launched node, or `wait` for an event
		"node",  // the node that is launched; for a record, the node it follows; for a wait, the node it waits for
		"event", // of a record or a wait: the event
		"work",  // of a launch: what the node does, as an index into `works`; absent for a node of which nothing is known
	}
	edgeKeys = []string{
		"from",  // the earlier node, or a *join*, given by its number: all that comes after a join depends on all that leads to it
		"to",    // the later node, or a join
		"why",   // the reason, in the units of the pipeline file
		"bytes", // the bytes that both use; absent for a dependency that comes only from `after:`. Of a tile, from its first byte to its last
		"box",   // of a tile: its rows and its columns: `[[0, 8], [16, 32]]`
	}
	memoryKeys = []string{
		"buffer", // its name
		"device", // the device
		"offset", // where it begins in the arena
		"bytes",  // its size
	}
	statsKeys = []string{
		"nodes",             // how many
		"edges",             // how many dependencies
		"streams",           // how many
		"records",           // how many
		"waits",             // how many
		"events",            // how many are needed, after reuse
		"fork_join",         // those of the fork and the join, which are added when the plan runs
		"makespan_us",       // the predicted duration of a replay
		"lower_bound_us",    // no plan on this machine can take less
		"critical_path_us",  // the longest chain of dependencies, with unlimited streams
		"peak_device_bytes", // of the arenas of all devices
		"sum_device_bytes",  // of all device buffers, without sharing
		"lower_bound_by",    // what the lower bound comes from
		"above_lower_bound", // by which part the prediction is above the lower bound
	}
	costKeys = []string{
		"node",        // its name
		"us",          // microseconds
		"source",      // of the figure: `declared`, `measured`, `formula` or `unknown` ([machines.md](machines.md))
		"passes",      // of a loop with a condition, if the figure depends on them
		"passes_from", // `learned` from an earlier run, or `most` that the loop may make
	}
	forkKeys = []string{
		"records", // how many
		"waits",   // how many
	}
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

func (e *planEncoder) key(name string) {
	e.WriteByte('"')
	e.WriteString(name)
	e.WriteString(`": `)
}

func (e *planEncoder) string(s string) {
	e.scratch = jsontext.AppendString(e.scratch[:0], s)
	e.Write(e.scratch)
}

func (e *planEncoder) int(v int64) {
	e.scratch = strconv.AppendInt(e.scratch[:0], v, 10)
	e.Write(e.scratch)
}

// statsOrder is the places of statsKeys as they are written: what a file may lack is not at the end there.
var statsOrder = [...]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 12, 10, 11}

// held is where stats keep what statsKeys say, in the order of those.
func (s *Stats) held() []any {
	above := aboveBound(s.MakespanUS, s.LowerBoundUS) // what a file says of it is not kept
	return []any{&s.Nodes, &s.Edges, &s.Streams, &s.Records, &s.Waits, &s.Events, []any{&s.ForkRecords, &s.ForkWaits}, &s.MakespanUS,
		&s.LowerBoundUS, &s.CriticalPathUS, &s.PeakDeviceBytes, &s.SumDeviceBytes, &s.LowerBoundBy, &above}
}

// values writes the keys of an object that begin a list of them.
func (e *planEncoder) values(keys []string, held []any) {
	for k := range held {
		if k > 0 {
			e.WriteString(", ")
		}
		e.key(keys[k])
		e.value(held[k])
	}
}

// value writes what a key holds.
func (e *planEncoder) value(held any) {
	switch v := held.(type) {
	case *int:
		e.int(int64(*v))
	case *int64:
		e.int(*v)
	case *dag.BufferID:
		e.int(int64(*v))
	case *dag.NodeID:
		e.int(int64(*v))
	case *float64:
		e.scratch = jsontext.AppendFloat(e.scratch[:0], *v)
		e.Write(e.scratch)
	case *string:
		e.string(*v)
	case *bool:
		e.WriteString(strconv.FormatBool(*v))
	case []any: // fork_join
		e.WriteByte('{')
		e.values(forkKeys, v)
		e.WriteByte('}')
	}
}

// readValue reads what value writes.
func readValue(r *jsontext.Reader, held any) {
	switch v := held.(type) {
	case *int:
		*v = int(r.Int(0, math.MaxInt32))
	case *int64:
		*v = r.Int(0, math.MaxInt64)
	case *dag.BufferID:
		*v = dag.BufferID(r.Int(0, math.MaxInt32))
	case *dag.NodeID:
		*v = dag.NodeID(r.Int(0, math.MaxInt32))
	case *float64:
		*v = r.Float(math.MaxFloat64)
	case *string:
		*v = r.Label()
	case *bool:
		*v = r.Bool()
	case []any:
		r.Object(forkKeys, 0, func(key int) { readValue(r, v[key]) })
	}
}
