// A recorder for tests: it plays back what a GPU would have recorded of a replay.

// Package played is for tests. Its Recorder stands for CUPTI.
package played

import (
	"errors"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// Recorder records what a plan does of a graph without loops, host functions and communication, changed by Spoil.
type Recorder struct {
	Graph *dag.Graph
	// Now returns by which plan the program replays now, and whether as a graph.
	Now     func() (p *plan.Plan, asGraph bool)
	Spoil   func(records []cudart.Activity) []cudart.Activity
	Fails   string // "enable" or "flush"
	Enabled bool
	Plain   bool // it was switched off at least once
	replay  uint64
}

// Enable implements runtime.Recorder.
func (r *Recorder) Enable() error {
	if r.Fails == "enable" {
		return errors.New("another tool")
	}
	r.Enabled = true
	return nil
}

// Disable implements runtime.Recorder.
func (r *Recorder) Disable() error { r.Enabled, r.Plain = false, true; return nil }

// Flush implements runtime.Recorder. Each record begins a microsecond after the one before it.
func (r *Recorder) Flush(want int) ([]cudart.Activity, error) {
	if want == 0 {
		return nil, nil
	}
	if r.Fails == "flush" {
		return nil, errors.New("no buffers")
	}
	r.replay++
	_, asGraph := r.Now()
	var records []cudart.Activity
	for i, c := range r.Commands() {
		record := c.Activity
		record.Start = r.replay*1e6 + uint64(i)*1000
		record.End = record.Start + 500 + uint64(i)
		record.Correlation, record.Stream = uint32(i), 40+uint32(c.Stream)
		if asGraph {
			record.Correlation, record.GraphNode, record.Stream = 7, 1<<32+uint64(i), 99
		}
		records = append(records, record)
	}
	if r.Spoil != nil {
		records = r.Spoil(records)
	}
	return records, nil
}

// Command is a command that leaves a record.
type Command struct {
	Node     dag.NodeID
	Stream   int32 // of the plan
	Activity cudart.Activity
}

// Commands returns the commands of a replay that leave records, in the order in which they are submitted.
func (r *Recorder) Commands() []Command {
	var commands []Command
	p, _ := r.Now()
	next := make([]int32, len(p.Streams))
	for _, stream := range p.Order {
		op := p.Streams[stream].Ops[next[stream]]
		next[stream]++
		if op.Kind != plan.Launch {
			continue
		}
		if a := r.activity(&r.Graph.Nodes[op.Node]); a.Kind != 0 {
			commands = append(commands, Command{op.Node, stream, a})
		}
	}
	return commands
}

// activity is what a node leaves, without its times; of no kind if it does nothing.
func (r *Recorder) activity(n *dag.Node) cudart.Activity {
	switch n.Kind {
	case dag.Memcpy:
		return cudart.Activity{Kind: cudart.CopyActivity, Bytes: n.Copy.Dst.Bytes()}
	case dag.Memset:
		if r.Graph.Buffers[n.Set.Dst.Buffer].DType.Size() == 8 { // by a kernel
			return cudart.Activity{Kind: cudart.KernelActivity, Name: "dagrun_fill_f64"}
		}
		return cudart.Activity{Kind: cudart.SetActivity, Bytes: n.Set.Dst.Bytes()}
	}
	if n.Launch.Grid[0] == 0 {
		return cudart.Activity{}
	}
	return cudart.Activity{Kind: cudart.KernelActivity, Name: n.Launch.Kernel.Entry()}
}
