// Traces of several ranks in one file.

package runtime

import (
	"bufio"
	"fmt"
	"io"
)

// writeChromeRanks writes the traces of several ranks, each with processes of its own, at the times of the clock that they share.
func writeChromeRanks(w io.Writer, ranks []recording) error {
	for k := range ranks {
		if err := ranks[k].timed(); err != nil {
			return fmt.Errorf("%s: %w", ranks[k].name, err)
		}
	}
	c := &chromeWriter{Writer: bufio.NewWriter(w)}
	c.WriteString(`{"displayTimeUnit":"ns","otherData":` + quoted(map[string]any{"pipeline": ranks[0].graph.Name, "mode": ranks[0].mode,
		"measured_by": ranks[0].measuredBy, "ranks": len(ranks)}) + `,"traceEvents":[`)
	for k := range ranks {
		r := &ranks[k]
		c.g, c.plan, c.lanes, c.first, c.prefix = r.graph, r.plan, make([]int, r.graph.Len()), k*chromeProcesses, r.name+": "
		c.tracks(r.predicted != nil, r.besides())
		c.passTracks(r)
		for i := range r.replays {
			c.replay(&r.replays[i], i, r.began[i])
		}
		c.predicted(r.predicted)
	}
	c.WriteString("]}\n")
	return c.Flush()
}

// timed returns an error for a trace that cannot be drawn at the times at which its replays began.
func (t *recording) timed() error {
	if len(t.began) != len(t.replays) || !finite(t.began...) {
		return fmt.Errorf("the trace has %d replays, which began at %v us", len(t.replays), t.began)
	}
	return t.drawable()
}
