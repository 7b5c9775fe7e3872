// What the parts of a Chrome trace are written from, and what with.

package chrome

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/runtime/internal/spans"
)

// The processes of a Chrome trace, which are its groups of tracks.
const (
	hostProcess      = 1
	streamsProcess   = 2
	enginesProcess   = 3
	predictedProcess = 4
	passesProcess    = 5
	processes        = 8 // room for the processes of a rank
)

// Recording is a measured trace with what is needed to draw it.
type Recording struct {
	Name       string // of the rank, where there are several
	Graph      *dag.Graph
	Plan       *plan.Plan
	Predicted  *plan.Timeline // nil for none
	Mode       string         // "streams" or "graph"
	MeasuredBy string
	PlainUS    float64 // of a replay without tracing
	TracedUS   float64
	Bodies     bool // the nodes of bodies were measured
	Replays    []spans.TracedReplay
	Began      []float64 // by replay: when its first node started, in microseconds by a clock that all ranks share
}

type writer struct {
	*bufio.Writer
	g      *dag.Graph
	plan   *plan.Plan
	some   bool
	flows  int
	bodies bodyTracks
	lanes  []int // of the replay being written, by node: its track among those of its engine, counted from 0

	first  int    // is added to the number of each process, so that several ranks have processes of their own
	prefix string // of the names of processes
}

// bodyTracks are the tracks of loops and branches.
type bodyTracks struct {
	passes map[string]int // by node: the track of its passes
	bodies map[string]int // by node and body: the track of the first stream of the body
}

// event writes one entry of traceEvents; fields are JSON without the braces.
func (c *writer) event(format string, args ...any) {
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

func (c *writer) span(process, track int, name, category string, start, end float64, args map[string]any) {
	c.event(`{"ph":"X","pid":%d,"tid":%d,"name":%s,"cat":%s,"ts":%s,"dur":%s,"args":%s}`, c.first+process, track, quoted(name), quoted(category), micro(start),
		micro(max(0, end-start)), quoted(args))
}

func finite(values ...float64) bool {
	return !slices.ContainsFunc(values, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
}
