// The calls of a program that was recorded: what its threads enqueued on which stream and when, by the clock of the host. No time in it is one of a device.

package picture

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/planner/plan"
)

// Calls are the calls of a program, for a page or a trace.
type Calls struct {
	Title    string
	Note     string // what the times are; a page begins with it
	Findings []Finding
	Threads  []string
	Streams  []string
	Calls    []Call
	Waits    []CallPair // from the call that recorded an event to the one that waits for it
	Races    []CallPair
}

// Finding is a line above the timeline.
type Finding struct{ Head, Text string }

// Call is one call. Engine is the engine that its work is for; HostCopy if it enqueues nothing.
type Call struct {
	Name, Kind, Place string
	Engine            plan.Engine
	Thread            int
	Stream            int // -1: none
	BeganUS           float64
	WaitedUS          float64 // for how long at most the host waited in it; 0 if it did not, or if that is not known
	Bytes             int64
}

// CallPair is two calls.
type CallPair struct {
	From, To int
	Text     string
}

// Check says what is wrong with calls that cannot be drawn.
func (c *Calls) Check() error {
	if c == nil {
		return errors.New("there are no calls to draw")
	}
	for k := range c.Calls {
		call := &c.Calls[k]
		switch {
		case call.Thread < 0 || call.Thread >= len(c.Threads), call.Stream < -1 || call.Stream >= len(c.Streams), call.Engine > plan.HostCopy:
			return fmt.Errorf("call %d has thread %d, stream %d and engine %d, which there are not", k, call.Thread, call.Stream, call.Engine)
		case !(call.BeganUS >= 0 && call.BeganUS <= longestUS && call.WaitedUS >= 0 && call.WaitedUS <= longestUS):
			return fmt.Errorf("call %d began at %v us and waited for %v us", k, call.BeganUS, call.WaitedUS)
		}
	}
	for _, list := range [][]CallPair{c.Waits, c.Races} {
		for _, pair := range list {
			if min(pair.From, pair.To) < 0 || max(pair.From, pair.To) >= len(c.Calls) {
				return fmt.Errorf("calls %d and %d of %d cannot be drawn as a pair", pair.From, pair.To, len(c.Calls))
			}
		}
	}
	return nil
}

// WritePage writes a page with a row for each stream and each thread, waits as arrows and races in red.
func (c *Calls) WritePage(w io.Writer) error {
	if w == nil {
		return words.ErrNoWriter
	}
	if err := c.Check(); err != nil {
		return err
	}
	return c.pageData().write(w, c.Title)
}

func (c *Calls) pageData() *pageData {
	d := &pageData{Name: clean(c.Title), Unit: "thread", Lower: -1, Causes: []string{"", "wait"},
		Recorded: &recordedPage{Words: []string{"kernel or graph", "copy to device", "copy to host", "record or wait",
			"memset, allocation or copy on a device", "the host itself"}}}
	for e := plan.Compute; e <= plan.HostCopy; e++ {
		d.Engines = append(d.Engines, e.String())
	}
	for _, name := range c.Threads {
		d.Recorded.Threads = append(d.Recorded.Threads, clean(name))
	}
	plan := pagePlan{Summary: clean(c.Note)}
	for _, name := range c.Streams {
		plan.Streams = append(plan.Streams, clean(name))
		plan.Band = append(plan.Band, 0)
	}
	course := pageCourse{Title: "from the first call to the last", Short: "host", Gaps: []pageGap{}, Memory: []pageMemory{}, Lines: []analysisLine{}}
	for k := range c.Calls {
		call := &c.Calls[k]
		d.Nodes.Name = append(d.Nodes.Name, clean(call.Name))
		d.Nodes.Action = append(d.Nodes.Action, d.number(clean(call.Place)))
		d.Nodes.Kind = append(d.Nodes.Kind, d.number(clean(call.Kind)))
		d.Nodes.Engine = append(d.Nodes.Engine, int32(call.Engine))
		d.Nodes.Device = append(d.Nodes.Device, int32(call.Thread))
		d.Nodes.Bytes = append(d.Nodes.Bytes, call.Bytes)
		plan.Stream = append(plan.Stream, int32(call.Stream))
		course.Start = append(course.Start, nano(call.BeganUS))
		course.Duration = append(course.Duration, nano(call.WaitedUS))
		course.By = append(course.By, -1)
		course.Cause = append(course.Cause, 0)
		course.Makespan = max(course.Makespan, nano(call.BeganUS+call.WaitedUS))
	}
	for _, wait := range c.Waits {
		plan.Waits.From = append(plan.Waits.From, int32(wait.From))
		plan.Waits.To = append(plan.Waits.To, int32(wait.To))
		plan.Waits.Event = append(plan.Waits.Event, 0)
		plan.Waits.Why = append(plan.Waits.Why, d.number(clean(wait.Text)))
		course.By[wait.To], course.Cause[wait.To] = int32(wait.From), 1
		course.Held = append(course.Held, 0)
	}
	racy := map[int]bool{}
	d.Recorded.Races = []recordedRace{}
	for _, race := range c.Races {
		d.Recorded.Races = append(d.Recorded.Races, recordedRace{race.From, race.To, clean(race.Text)})
		for _, call := range []int{race.From, race.To} {
			if !racy[call] {
				racy[call] = true
				course.Path = append(course.Path, dag.NodeID(call))
			}
		}
	}
	slices.SortFunc(course.Path, func(a, b dag.NodeID) int { return cmp.Compare(course.Start[a], course.Start[b]) })
	for _, f := range c.Findings {
		course.Lines = append(course.Lines, analysisLine{Head: clean(f.Head), Text: clean(f.Text)})
	}
	course.sort()
	d.Plans, d.Courses = []pagePlan{plan}, []pageCourse{course}
	return d
}
