// Tests of the timeline of a recorded program: what it says of times, that no name can leave the page, and what is refused.

package picture

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/planner/plan"
)

// twoStreams is a program of one thread: a kernel, a record, a wait on another stream, a kernel there, and a synchronisation.
func twoStreams() *Calls {
	return &Calls{Title: "python a.py", Note: "times of the host", Findings: []Finding{{"verdict", "1 race"}}, Threads: []string{"thread 0"}, Streams: []string{"stream 1", "stream 2"},
		Calls: []Call{
			{Name: "fill", Kind: "launch", Stream: 0, BeganUS: 0, Place: "a.py:1"},
			{Name: "record", Kind: "record", Engine: plan.PeerCopy, Stream: 0, BeganUS: 5},
			{Name: "wait", Kind: "wait", Engine: plan.PeerCopy, Stream: 1, BeganUS: 7.5},
			{Name: "copy", Kind: "copy", Engine: plan.Download, Stream: 1, BeganUS: 9, WaitedUS: 100, Bytes: 64},
			{Name: "waits for the device", Kind: "context sync", Engine: plan.HostCopy, Stream: -1, BeganUS: 200, WaitedUS: 50},
		},
		Waits: []CallPair{{1, 2, "the event recorded by"}}, Races: []CallPair{{0, 3, "RAW on 64 bytes"}}}
}

func TestPageOfCalls(t *testing.T) {
	c := twoStreams()
	c.Calls[0].Name = "</script><b>"
	var page bytes.Buffer
	require.NoError(t, c.WritePage(&page))
	require.NotContains(t, page.String(), "</script><b>")
	_, rest, found := strings.Cut(page.String(), `id="data">`)
	require.True(t, found)
	text, _, _ := strings.Cut(rest, "</script>")
	var d struct {
		Plans []struct {
			Summary string
			Streams []string
		}
		Courses  []struct{ Makespan float64 }
		Recorded struct {
			Threads []string
			Races   []recordedRace
		}
	}
	require.NoError(t, json.Unmarshal([]byte(text), &d))
	require.Equal(t, "times of the host", d.Plans[0].Summary)
	require.Equal(t, []string{"stream 1", "stream 2"}, d.Plans[0].Streams)
	require.Equal(t, []string{"thread 0"}, d.Recorded.Threads)
	require.Equal(t, []recordedRace{{0, 3, "RAW on 64 bytes"}}, d.Recorded.Races)
	require.Equal(t, 250.0, d.Courses[0].Makespan)
}

// A stream has moments only: what the host waited is on the track of its thread.
func TestTraceOfCalls(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, twoStreams().WriteChrome(&out))
	var d struct {
		Other  map[string]string `json:"otherData"`
		Events []struct {
			Phase string         `json:"ph"`
			Group int            `json:"pid"`
			Name  string         `json:"name"`
			At    float64        `json:"ts"`
			Takes float64        `json:"dur"`
			Flow  string         `json:"bind_id"`
			Out   bool           `json:"flow_out"`
			In    bool           `json:"flow_in"`
			Color string         `json:"cname"`
			More  map[string]any `json:"args"`
		} `json:"traceEvents"`
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &d))
	require.Equal(t, "times of the host", d.Other["note"])
	onThreads, onStreams := 0, 0
	for _, e := range d.Events {
		switch {
		case e.Phase != "X":
			continue
		case e.Group == chromeStreams:
			onStreams++
			require.Zero(t, e.Takes, e.Name)
			require.NotContains(t, e.More, "the host waited")
		default:
			onThreads++
		}
		switch e.Name {
		case "record":
			require.Equal(t, e.Group == chromeStreams, e.Out)
		case "wait":
			require.Equal(t, e.Group == chromeStreams, e.In && e.Flow == "2")
			require.Equal(t, 7.5, e.At)
		case "waits for the device":
			require.Equal(t, 50.0, e.Takes)
			require.Equal(t, "at most as long", e.More["the host waited"])
		case "fill":
			require.Equal(t, "terrible", e.Color)
			require.Equal(t, "RAW on 64 bytes", e.More["race"])
			require.Equal(t, "a.py:1", e.More["place"])
		}
	}
	require.Equal(t, 5, onThreads)
	require.Equal(t, 4, onStreams)
}

func TestCallsThatCannotBeDrawn(t *testing.T) {
	for want, change := range map[string]func(c *Calls){
		"call 1 has thread 1, stream 0 and engine 3, which there are not":  func(c *Calls) { c.Calls[1].Thread = 1 },
		"call 1 has thread 0, stream 2 and engine 3, which there are not":  func(c *Calls) { c.Calls[1].Stream = 2 },
		"call 1 has thread 0, stream 0 and engine 99, which there are not": func(c *Calls) { c.Calls[1].Engine = 99 },
		"call 1 began at NaN us and waited for 0 us":                       func(c *Calls) { c.Calls[1].BeganUS = math.NaN() },
		"call 1 began at 5 us and waited for -1 us":                        func(c *Calls) { c.Calls[1].WaitedUS = -1 },
		"calls 1 and 5 of 5 cannot be drawn as a pair":                     func(c *Calls) { c.Waits[0].To = 5 },
		"calls -1 and 3 of 5 cannot be drawn as a pair":                    func(c *Calls) { c.Races[0].From = -1 },
	} {
		c := twoStreams()
		change(c)
		require.EqualError(t, c.WritePage(&bytes.Buffer{}), want)
		require.EqualError(t, c.WriteChrome(&bytes.Buffer{}), want)
	}
	require.EqualError(t, (*Calls)(nil).WritePage(&bytes.Buffer{}), "there are no calls to draw")
	require.Error(t, twoStreams().WritePage(nil))
	require.Error(t, twoStreams().WriteChrome(nil))
}
