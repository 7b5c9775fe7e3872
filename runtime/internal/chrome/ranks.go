// Traces of several ranks in one file.

package chrome

import (
	"bufio"
	"fmt"
	"io"
)

// WriteRanks writes the traces of several ranks, each with processes of its own, at the times of the clock that they share.
func WriteRanks(w io.Writer, ranks []Recording) error {
	for k := range ranks {
		if err := ranks[k].timed(); err != nil {
			return fmt.Errorf("%s: %w", ranks[k].Name, err)
		}
	}
	c := &writer{Writer: bufio.NewWriter(w)}
	c.WriteString(`{"displayTimeUnit":"ns","otherData":` + quoted(map[string]any{"pipeline": ranks[0].Graph.Name, "mode": ranks[0].Mode,
		"measured_by": ranks[0].MeasuredBy, "ranks": len(ranks)}) + `,"traceEvents":[`)
	for k := range ranks {
		r := &ranks[k]
		c.g, c.plan, c.lanes, c.first, c.prefix = r.Graph, r.Plan, make([]int, r.Graph.Len()), k*processes, r.Name+": "
		c.tracks(r.Predicted != nil, r.besides())
		c.passTracks(r)
		for i := range r.Replays {
			c.replay(&r.Replays[i], i, r.Began[i])
		}
		c.predicted(r.Predicted)
	}
	c.WriteString("]}\n")
	return c.Flush()
}

// timed returns an error for a trace that cannot be drawn at the times at which its replays began.
func (t *Recording) timed() error {
	if len(t.Began) != len(t.Replays) || !finite(t.Began...) {
		return fmt.Errorf("the trace has %d replays, which began at %v us", len(t.Replays), t.Began)
	}
	return t.drawable()
}
