// dagrun trace FILE, where the file is a recording of a program: its calls by the clock of the host, as a page or for Perfetto.

package recordings

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/internal/recording/order"
	drawn "github.com/dagrun/dagrun/internal/recording/picture"
	"github.com/dagrun/dagrun/planner/picture"
	"github.com/dagrun/dagrun/planner/plan"
)

// hostTimes is what the first line of every timeline of a recording says.
const hostTimes = "These are times of the host: when each call of the driver began. A recording does not hold how long anything ran on the device, so no box is device time. " +
	"Where the host waited in a call, its box ends when the next call begins that is known to come after it."

// RecordedTrace is the JSON document of trace for a recording.
type RecordedTrace struct {
	Version int         `json:"version"`
	Command string      `json:"command"`
	Program []string    `json:"program"`
	Process uint32      `json:"process"` // the one that is shown
	Others  int         `json:"other_processes"`
	Note    string      `json:"note"`
	File    string      `json:"file"`
	Page    string      `json:"page,omitempty"`
	Calls   int         `json:"calls"`
	Waits   int         `json:"waits"`
	Races   int         `json:"races"`
	Rows    []tracedRow `json:"rows"`
}

// tracedRow is a thread or a stream.
type tracedRow struct {
	Name  string  `json:"name"`
	Calls int     `json:"calls"`
	First float64 `json:"first_us"` // when its first call began, from the first of all
	Last  float64 `json:"last_us"`
	Held  float64 `json:"waited_us_at_most"` // of a thread: how long it waited in calls
}

// TraceRecording writes the timeline of what a program enqueued.
func (u *Recordings) TraceRecording(ctx context.Context, name, out, html string) error {
	archive, err := u.OpenRecording(name)
	if err != nil {
		return err
	}
	defer archive.Close()
	shown, err := ShowProcess(archive, name)
	if err != nil {
		return err
	}
	calls, err := shown.timeline()
	if err != nil {
		return cli.WithStatus(cli.StatusWrong, fmt.Errorf("%s: %w", cli.ShownName(name), err))
	}
	if err := calls.Check(); err != nil {
		return cli.WithStatus(cli.StatusWrong, fmt.Errorf("%s: %w", cli.ShownName(name), err))
	}
	if out == "" {
		out = strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)) + ".trace.json"
	}
	if html != "" {
		if err := cli.WriteOut(ctx, html, calls.WritePage); err != nil {
			return err
		}
	}
	if out == "-" {
		u.Answered = true
		return calls.WriteChrome(u.Stdout)
	}
	if err := cli.WriteOut(ctx, out, calls.WriteChrome); err != nil {
		return err
	}
	report := RecordedTrace{Version: cli.JSONVersion, Command: "trace", Program: shown.Command, Process: shown.ID, Others: shown.others, Note: hostTimes,
		File: out, Page: html, Calls: len(calls.Calls), Waits: len(calls.Waits), Races: len(calls.Races), Rows: rowsOf(calls)}
	if u.Flags.Output == "json" {
		return u.Answer(report)
	}
	if u.Flags.Quiet {
		return nil
	}
	return u.printRecordedTrace(shown, &report)
}

func (u *Recordings) printRecordedTrace(shown *shownProcess, r *RecordedTrace) error {
	_ = u.Stdout.Printf("%s: %s; %s\n%s\n\n", u.Paint(u.Stdout, cli.Bold, shown.heading()), cli.Counted(r.Calls, "call"), shown.Report.Verdict(), r.Note)
	table := cli.NewTable("calls", "first us", "last us", "waited us at most", "on")
	for _, row := range r.Rows {
		held := ""
		if row.Held > 0 {
			held = cli.Fixed(row.Held)
		}
		table.Row(strconv.Itoa(row.Calls), cli.Fixed(row.First), cli.Fixed(row.Last), held, row.Name)
	}
	if err := table.Write(u.Stdout, u.LineWidth()); err != nil {
		return err
	}
	fmt.Fprintln(u.Stdout)
	if r.Page != "" {
		fmt.Fprintf(u.Stdout, "wrote %s; open it in a browser\n", r.Page)
	}
	_, err := fmt.Fprintf(u.Stdout, "wrote %s; open it at https://ui.perfetto.dev\n", r.File)
	return err
}

// rowsOf sums up threads and streams.
func rowsOf(c *picture.Calls) []tracedRow {
	var rows []tracedRow
	of := map[string]int{}
	add := func(name string, call *picture.Call, held float64) {
		at, known := of[name]
		if !known {
			at = len(rows)
			of[name] = at
			rows = append(rows, tracedRow{Name: name, First: math.MaxFloat64})
		}
		row := &rows[at]
		row.Calls++
		row.First, row.Last, row.Held = min(row.First, call.BeganUS), max(row.Last, call.BeganUS), row.Held+held
	}
	for k := range c.Calls {
		add(c.Threads[c.Calls[k].Thread], &c.Calls[k], c.Calls[k].WaitedUS)
	}
	for k := range c.Calls {
		if s := c.Calls[k].Stream; s >= 0 {
			add(c.Streams[s], &c.Calls[k], 0)
		}
	}
	return rows
}

// timeline is what the process enqueued.
func (s *shownProcess) timeline() (*picture.Calls, error) {
	steps, err := order.Steps(s.Process)
	if err != nil {
		return nil, err
	}
	c := &picture.Calls{Title: s.heading(), Note: hostTimes, Findings: s.findings()}
	times := newCallTimes(s.Process)
	threads := threadRows(s.Process, c)
	at := make([]int, len(s.Calls)) // the number of each call on the timeline
	for k := range s.Calls {
		call := &s.Calls[k]
		at[k] = -1
		if call.Kind == recording.NodeAccess { // no call: what a node of a graph touched
			continue
		}
		at[k] = len(c.Calls)
		entry := picture.Call{Name: drawn.CallName(s.Process, call), Kind: call.Kind.String(), Place: s.PlaceText(call.Place), Engine: engineOf(call),
			Thread: threads[call.Thread], Stream: -1, BeganUS: times.began(k), Bytes: bytesOf(call)}
		if hostWaits(call) {
			entry.WaitedUS = times.waited(k)
		}
		if call.Result != 0 {
			entry.Kind += fmt.Sprintf(", failed with %d", call.Result)
		}
		c.Calls = append(c.Calls, entry)
	}
	streams := map[string]int{}
	for _, step := range steps {
		k := at[step.Call]
		if k < 0 || step.Stream == drawn.HostRow || c.Calls[k].Stream >= 0 {
			continue
		}
		row, known := streams[step.Stream]
		if !known {
			row = len(c.Streams)
			streams[step.Stream] = row
			c.Streams = append(c.Streams, step.Stream)
		}
		c.Calls[k].Stream = row
		for _, record := range step.For {
			if record >= 0 && at[record] >= 0 {
				c.Waits = append(c.Waits, picture.CallPair{From: at[record], To: k, Text: "the event recorded by"})
			}
		}
	}
	numbers := make(map[*recording.Call]int, len(s.Report.Races))
	for k := range s.Calls {
		numbers[&s.Calls[k]] = at[k]
	}
	for _, race := range s.Report.Races {
		from, known := numbers[race.First.Call]
		to, also := numbers[race.Second.Call]
		if known && also && min(from, to) >= 0 {
			c.Races = append(c.Races, picture.CallPair{From: from, To: to, Text: fmt.Sprintf("%s on %d bytes", race.Kinds, race.Bytes)})
		}
	}
	return c, nil
}

// threadRows gives each thread that calls a row, and returns their numbers.
func threadRows(p *recording.Process, c *picture.Calls) map[uint32]int {
	names := map[uint32]string{}
	for _, t := range p.Threads {
		names[t.Index] = fmt.Sprintf("thread %d (%s)", t.Index, t.Name)
	}
	rows := map[uint32]int{}
	for k := range p.Calls {
		thread := p.Calls[k].Thread
		if _, known := rows[thread]; known {
			continue
		}
		name := names[thread]
		if name == "" {
			name = fmt.Sprintf("thread %d", thread)
		}
		rows[thread] = len(c.Threads)
		c.Threads = append(c.Threads, name)
	}
	return rows
}

// mostFindings is how many races are put in words above a timeline.
const mostFindings = 20

// findings is what check says, in lines.
func (s *shownProcess) findings() []picture.Finding {
	list := []picture.Finding{{Head: "verdict", Text: s.Report.Verdict()}}
	side := func(side *order.Side) string {
		text := strings.TrimSpace(recording.PlainName(side.Name)+" "+side.Mode) + " on " + side.Stream
		if side.Where != "" {
			text += ", " + side.Where
		}
		return text
	}
	for k := range s.Report.Races {
		if k == mostFindings {
			list = append(list, picture.Finding{Head: "and more", Text: fmt.Sprintf("%d races; dagrun check lists them", len(s.Report.Races)-k)})
			break
		}
		r := &s.Report.Races[k]
		list = append(list, picture.Finding{Head: "race",
			Text: fmt.Sprintf("%s on %d bytes: first %s, then %s; mend: %s", r.Kinds, r.Bytes, side(&r.First), side(&r.Second), r.Fix.Text)})
	}
	return list
}

// callTimes are the times of a process's calls. Only when a call began is recorded; that one was over before another began is known from their numbers.
type callTimes struct {
	calls []recording.Call
	first int64
	next  []int64 // by call: the earliest time at which it or a later one began
}

func newCallTimes(p *recording.Process) *callTimes {
	t := &callTimes{calls: p.Calls, first: math.MaxInt64, next: make([]int64, len(p.Calls)+1)}
	t.next[len(p.Calls)] = math.MaxInt64
	for k := len(p.Calls) - 1; k >= 0; k-- {
		t.first = min(t.first, p.Calls[k].Time)
		t.next[k] = min(t.next[k+1], p.Calls[k].Time)
	}
	return t
}

// began is when a call began, in microseconds from the first.
func (t *callTimes) began(k int) float64 { return microsBetween(t.first, t.calls[k].Time) }

// waited is how long a call took at most; 0 if no later call is known to have begun after its end.
func (t *callTimes) waited(k int) float64 {
	call := &t.calls[k]
	after, _ := slices.BinarySearchFunc(t.calls, call.End, func(c recording.Call, end uint64) int {
		if c.Begin > end {
			return 1
		}
		return -1
	})
	if after == len(t.calls) || t.next[after] < call.Time {
		return 0
	}
	return microsBetween(call.Time, t.next[after])
}

// microsBetween is exact for any two times in nanoseconds, of which the first is not later.
func microsBetween(from, to int64) float64 { return float64(uint64(to)-uint64(from)) / 1e3 }

// hostWaits says whether the host waits in a call until the device has done something.
func hostWaits(call *recording.Call) bool {
	switch call.Kind {
	case recording.EventSync, recording.StreamSync, recording.ContextSync:
		return true
	case recording.Copy:
		return call.Args[2] != 0
	}
	return false
}

// engineOf says which engine a call is for.
func engineOf(call *recording.Call) plan.Engine {
	const host, toKind, fromKind = 1, 12, 13 // format.h: MEMORY_HOST, and the words of a copy
	switch call.Kind {
	case recording.Launch, recording.GraphLaunch:
		return plan.Compute
	case recording.EventRecord, recording.StreamWait, recording.MemoryWait, recording.MemoryWrite:
		return plan.PeerCopy
	case recording.Copy:
		switch {
		case call.Args[fromKind] == host:
			return plan.Upload
		case call.Args[toKind] == host:
			return plan.Download
		}
		return plan.LocalCopy
	case recording.Set, recording.Alloc, recording.Free, recording.Prefetch:
		return plan.LocalCopy
	}
	return plan.HostCopy
}

// bytesOf is how much a copy, a memset or an allocation is about; 0 if it is nothing, or too much to be true.
func bytesOf(call *recording.Call) int64 {
	product := uint64(1)
	factors := map[recording.Kind][]int{recording.Copy: {5, 6, 7}, recording.Set: {4, 5}, recording.Alloc: {1}}[call.Kind]
	for _, at := range factors {
		high, low := bits.Mul64(product, call.Args[at])
		if high != 0 || low > math.MaxInt64 {
			return 0
		}
		product = low
	}
	if len(factors) == 0 {
		return 0
	}
	return int64(product)
}
