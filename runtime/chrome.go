// Chrome traces: a measured course as the JSON that Perfetto and chrome://tracing show. Measures nothing.

package runtime

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
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
)

// replayGap separates replays in the trace: they were measured one by one.
const replayGap = 20.0

// WriteChrome writes the trace in the Trace Event Format: one track per stream and one per engine, the host's submissions, an arrow
// for every wait, and the predicted course beside the first replay where there is one (predicted may be nil).
func (t *Trace) WriteChrome(w io.Writer, g *dag.Graph, plan *planner.Plan, predicted *planner.Timeline) error {
	c := &chromeWriter{Writer: bufio.NewWriter(w), g: g, plan: plan}
	c.WriteString(`{"displayTimeUnit":"ns","otherData":` + quoted(map[string]string{
		"pipeline": g.Name, "mode": t.Mode, "measured_by": t.Source, "plain_us": micro(t.PlainUS), "traced_us": micro(t.TracedUS),
	}) + `,"traceEvents":[`)
	c.tracks(predicted != nil)
	base := 0.0
	for k := range t.Replays {
		base = c.replay(&t.Replays[k], k, base) + replayGap
	}
	if predicted != nil {
		for i := range predicted.Nodes {
			s := &predicted.Nodes[i]
			c.span(chromePredicted, int(s.Stream), g.Nodes[i].Name, "predicted", s.Start, s.End, map[string]string{"cause": s.Cause.String()})
		}
	}
	c.WriteString("]}\n")
	return c.Flush()
}

type chromeWriter struct {
	*bufio.Writer
	g     *dag.Graph
	plan  *planner.Plan
	some  bool
	flows int
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

func (c *chromeWriter) tracks(predicted bool) {
	name := func(process int, text string) {
		c.event(`{"ph":"M","pid":%d,"name":"process_name","args":{"name":%s}}`, process, quoted(text))
		c.event(`{"ph":"M","pid":%d,"name":"process_sort_index","args":{"sort_index":%d}}`, process, process)
	}
	track := func(process, track int, text string) {
		c.event(`{"ph":"M","pid":%d,"tid":%d,"name":"thread_name","args":{"name":%s}}`, process, track, quoted(text))
		c.event(`{"ph":"M","pid":%d,"tid":%d,"name":"thread_sort_index","args":{"sort_index":%d}}`, process, track, track)
	}
	name(chromeHost, "host")
	track(chromeHost, 0, "submission")
	name(chromeStreams, "streams")
	for s := range c.plan.Streams {
		stream := &c.plan.Streams[s]
		track(chromeStreams, s, fmt.Sprintf("stream %d (device %d, %s)", s, stream.Device, stream.Priority))
	}
	name(chromeEngines, "engines")
	seen := map[int]bool{}
	for i := range c.g.Nodes {
		if k, text := c.engine(int32(i)); !seen[k] {
			seen[k] = true
			track(chromeEngines, k, text)
		}
	}
	if predicted {
		name(chromePredicted, "predicted")
		for s := range c.plan.Streams {
			track(chromePredicted, s, fmt.Sprintf("stream %d", s))
		}
	}
}

// engine is the track of a node's engine.
func (c *chromeWriter) engine(id int32) (track int, name string) {
	device, e := int(c.g.Nodes[id].Device), planner.EngineOf(c.g, id)
	return device*16 + int(e), fmt.Sprintf("device %d %s", device, e)
}

// replay writes one replay that starts at base and returns its end.
func (c *chromeWriter) replay(r *TracedReplay, number int, base float64) float64 {
	replay := strconv.Itoa(number)
	c.span(chromeHost, 0, "submit", "host", base, base+r.SubmitUS, map[string]string{"replay": replay})
	end := base + r.SubmitUS
	for i := range r.Spans {
		s := &r.Spans[i]
		n := &c.g.Nodes[i]
		args := map[string]string{"replay": replay, "kind": n.Kind.String(), "stream": strconv.Itoa(int(s.Stream))}
		if n.Work.Bytes > 0 && s.End > s.Start {
			args["GB/s"] = strconv.FormatFloat(float64(n.Work.Bytes)/(s.End-s.Start)/1e3, 'f', 1, 64)
		}
		c.span(chromeStreams, int(s.Stream), n.Name, n.Kind.String(), base+s.Start, base+s.End, args)
		track, _ := c.engine(int32(i))
		c.span(chromeEngines, track, n.Name, n.Kind.String(), base+s.Start, base+s.End, args)
		end = max(end, base+s.End)
	}
	for s := range c.plan.Streams {
		ops := c.plan.Streams[s].Ops
		for k, op := range ops {
			if op.Kind != planner.Wait {
				continue
			}
			for _, later := range ops[k+1:] {
				if later.Kind == planner.Launch {
					c.arrow(&r.Spans[op.Node], &r.Spans[later.Node], base)
					break
				}
			}
		}
	}
	return end
}

func (c *chromeWriter) span(process, track int, name, category string, start, end float64, args map[string]string) {
	c.event(`{"ph":"X","pid":%d,"tid":%d,"name":%s,"cat":%s,"ts":%s,"dur":%s,"args":%s}`, process, track, quoted(name), quoted(category), micro(start), micro(max(0, end-start)), quoted(args))
}

// arrow runs from the end of the node that is waited for to the start of the node that the wait holds.
func (c *chromeWriter) arrow(from, to *Span, base float64) {
	c.flows++
	c.event(`{"ph":"s","id":%d,"pid":%d,"tid":%d,"name":"wait","cat":"wait","ts":%s}`, c.flows, chromeStreams, from.Stream, micro(base+from.End))
	c.event(`{"ph":"f","bp":"e","id":%d,"pid":%d,"tid":%d,"name":"wait","cat":"wait","ts":%s}`, c.flows, chromeStreams, to.Stream, micro(base+to.Start))
}

// micro is a time in microseconds to the nanosecond.
func micro(us float64) string { return strconv.FormatFloat(us, 'f', 3, 64) }

// quoted is a value as JSON; maps come out sorted.
func quoted(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and maps of strings always have a JSON form
	}
	return string(text)
}
