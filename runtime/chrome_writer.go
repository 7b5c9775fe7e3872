// What the parts of a Chrome trace are written with.

package runtime

import (
	"bufio"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
)

// The processes of a Chrome trace, which are its groups of tracks.
const (
	chromeHost      = 1
	chromeStreams   = 2
	chromeEngines   = 3
	chromePredicted = 4
	chromePasses    = 5
	chromeProcesses = 8 // room for the processes of a rank
)

type chromeWriter struct {
	*bufio.Writer
	g      *dag.Graph
	plan   *planner.Plan
	some   bool
	flows  int
	bodies bodyTracks
	lanes  []int // of the replay being written, by node: its track among those of its engine, counted from 0

	first  int    // is added to the number of each process, so that several ranks have processes of their own
	prefix string // of the names of processes
}

// event writes one entry of traceEvents; fields are JSON without the braces.
func (c *chromeWriter) event(format string, args ...any) {
	if c.some {
		c.WriteByte(',')
	}
	c.some = true
	c.WriteByte('\n')
	fmt.Fprintf(c, format, args...)
}

// micro formats a time in microseconds, rounded to nanoseconds.
func micro(us float64) string { return strconv.FormatFloat(us, 'f', 3, 64) }

// quoted returns a value as JSON, with maps sorted. Numbers in it must be finite.
func quoted(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings, finite numbers and maps of them always have a JSON form
	}
	return string(text)
}
