// Traces of several ranks in one file.

package runtime

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
)

// RankTrace is the trace of one rank, for a file with those of all ranks.
type RankTrace struct {
	Name      string // "rank 1 (host gpu-07)"
	Trace     *Trace
	Graph     *dag.Graph
	Plan      *planner.Plan
	Predicted *planner.Timeline // nil for none
	Began     []float64         // by replay: when its first node started, in microseconds by a clock that all ranks share
}

// WriteChromeRanks writes the traces of several ranks like WriteChrome, each with processes of its own, at the times of the clock that they share.
func WriteChromeRanks(w io.Writer, ranks []RankTrace) error {
	if w == nil || len(ranks) == 0 {
		return errors.New("traces and a writer are needed to write them")
	}
	for k := range ranks {
		if err := ranks[k].check(); err != nil {
			return fmt.Errorf("%s: %w", ranks[k].Name, err)
		}
	}
	c := &chromeWriter{Writer: bufio.NewWriter(w)}
	c.WriteString(`{"displayTimeUnit":"ns","otherData":` + quoted(map[string]any{"pipeline": ranks[0].Graph.Name, "mode": ranks[0].Trace.Mode,
		"measured_by": ranks[0].Trace.Source, "ranks": len(ranks)}) + `,"traceEvents":[`)
	for k := range ranks {
		r := &ranks[k]
		c.g, c.plan, c.lanes, c.first, c.prefix = r.Graph, r.Plan, make([]int, r.Graph.Len()), k*chromeProcesses, r.Name+": "
		c.tracks(r.Predicted != nil, r.Trace.besides(r.Graph))
		c.passTracks(r.Trace)
		for i := range r.Trace.Replays {
			c.replay(&r.Trace.Replays[i], i, r.Began[i])
		}
		c.predicted(r.Predicted)
	}
	c.WriteString("]}\n")
	return c.Flush()
}

func (r *RankTrace) check() error {
	if r.Trace == nil {
		return errors.New("a trace is needed to write one")
	}
	if len(r.Began) != len(r.Trace.Replays) || !finite(r.Began...) {
		return fmt.Errorf("the trace has %d replays, which began at %v us", len(r.Trace.Replays), r.Began)
	}
	return r.Trace.drawable(r.Graph, r.Plan, r.Predicted)
}
