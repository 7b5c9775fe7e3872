// The calls of a program as a Chrome trace, for Perfetto and chrome://tracing.

package picture

import (
	"bufio"
	"encoding/json"
	"io"
	"strconv"

	"github.com/dagrun/dagrun/internal/words"
)

// The groups of tracks of such a trace.
const (
	chromeThreads = 1
	chromeStreams = 2
)

// chromeCall is an entry of a trace. Keys that do not apply are missing.
type chromeCall struct {
	Phase string          `json:"ph"`
	Group int             `json:"pid"`
	Track int             `json:"tid"`
	Name  string          `json:"name"`
	At    json.RawMessage `json:"ts,omitempty"`
	Takes json.RawMessage `json:"dur,omitempty"`
	Flow  string          `json:"bind_id,omitempty"`
	Out   bool            `json:"flow_out,omitempty"`
	In    bool            `json:"flow_in,omitempty"`
	Color string          `json:"cname,omitempty"`
	More  map[string]any  `json:"args,omitempty"`
}

// WriteChrome writes the calls in the Trace Event Format: a track for each thread with all its calls, and one for each stream with
// those that were enqueued on it.
// An entry begins when its call began. It has a length only on the track of a thread that waited in it; others have none, because none was recorded.
func (c *Calls) WriteChrome(w io.Writer) error {
	if w == nil {
		return words.ErrNoWriter
	}
	if err := c.Check(); err != nil {
		return err
	}
	out := &chromeCalls{Writer: bufio.NewWriter(w)}
	head, err := json.Marshal(map[string]string{"program": c.Title, "note": c.Note})
	if err != nil {
		return err
	}
	out.WriteString(`{"displayTimeUnit":"ns","otherData":` + string(head) + `,"traceEvents":[`)
	out.tracks(chromeThreads, "threads of the host: when their calls began", c.Threads)
	out.tracks(chromeStreams, "streams: when the host enqueued their calls", c.Streams)
	leads, follows := map[int]bool{}, map[int]int{}
	for _, wait := range c.Waits {
		leads[wait.From], follows[wait.To] = true, wait.From
	}
	races := map[int]string{}
	for _, race := range c.Races {
		races[race.From], races[race.To] = race.Text, race.Text
	}
	for k := range c.Calls {
		call := &c.Calls[k]
		entry := chromeCall{Phase: "X", Group: chromeThreads, Track: call.Thread, Name: call.Name, At: micros(call.BeganUS), Takes: micros(call.WaitedUS),
			More: map[string]any{"kind": call.Kind}}
		if call.Place != "" {
			entry.More["place"] = call.Place
		}
		if call.Bytes > 0 {
			entry.More["bytes"] = call.Bytes
		}
		if call.WaitedUS > 0 {
			entry.More["the host waited"] = "at most as long"
		}
		if text, racy := races[k]; racy {
			entry.Color, entry.More["race"] = "terrible", text
		}
		if call.Stream >= 0 {
			entry.More["stream"] = c.Streams[call.Stream]
			out.entry(entry)
			entry.Group, entry.Track, entry.Takes = chromeStreams, call.Stream, micros(0)
			delete(entry.More, "the host waited")
		}
		entry.Out = leads[k]
		if entry.Out {
			entry.Flow = strconv.Itoa(k + 1)
		}
		if from, ok := follows[k]; ok {
			entry.In, entry.Flow = true, strconv.Itoa(from+1)
		}
		out.entry(entry)
	}
	out.WriteString("]}\n")
	if out.wrong != nil {
		return out.wrong
	}
	return out.Flush()
}

type chromeCalls struct {
	*bufio.Writer
	some  bool
	wrong error
}

func (c *chromeCalls) entry(e chromeCall) {
	text, err := json.Marshal(e)
	if err != nil {
		c.wrong = err
	}
	if c.some {
		c.WriteByte(',')
	}
	c.some = true
	c.WriteByte('\n')
	c.Write(text)
}

func (c *chromeCalls) tracks(group int, what string, names []string) {
	c.entry(chromeCall{Phase: "M", Group: group, Name: "process_name", More: map[string]any{"name": what}})
	c.entry(chromeCall{Phase: "M", Group: group, Name: "process_sort_index", More: map[string]any{"sort_index": group}})
	for k, name := range names {
		c.entry(chromeCall{Phase: "M", Group: group, Track: k, Name: "thread_name", More: map[string]any{"name": name}})
		c.entry(chromeCall{Phase: "M", Group: group, Track: k, Name: "thread_sort_index", More: map[string]any{"sort_index": k}})
	}
}

// micros is a time in microseconds, rounded to nanoseconds.
func micros(us float64) json.RawMessage {
	return json.RawMessage(strconv.FormatFloat(us, 'f', 3, 64))
}
