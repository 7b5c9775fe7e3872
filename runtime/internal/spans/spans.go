// When each node of a replay ran.

// Package spans holds what a replay was seen to do: when each node ran, and what loops and branches did.
package spans

import (
	"time"

	"github.com/dagrun/dagrun/dag"
)

// TracedReplay is one replay.
type TracedReplay struct {
	Spans    []Span  `json:"spans"`     // by node id
	SubmitUS float64 `json:"submit_us"` // host time for submitting everything

	HelpedUS []float64 `json:"helped_us,omitempty"` // by node: what other cores of a CPU worked on it too; nil if the device does not tell

	Loops  []TracedLoop `json:"loops,omitempty"`  // what each loop and branch did, those of a body after the one around it
	Passes []TracedPass `json:"passes,omitempty"` // of those loops and branches, in the same order, as many as are shown

	began    time.Time
	recorded bool // the spans are of CUPTI's records
}

// Began is when the first node started, by this process's clock. It is only known with several ranks.
func (r *TracedReplay) Began() time.Time {
	if r == nil {
		return time.Time{}
	}
	return r.began
}

// BeginAt notes when the first node started.
func BeginAt(r *TracedReplay, began time.Time) { r.began = began }

// ByRecords makes a replay of spans that CUPTI recorded.
func ByRecords(spans []Span, submitUS float64) *TracedReplay {
	return &TracedReplay{Spans: spans, SubmitUS: submitUS, recorded: true}
}

// IsRecorded reports whether the spans are of CUPTI's records.
func IsRecorded(r *TracedReplay) bool { return r.recorded }

// Span is one node's time on its device.
type Span struct {
	Node   dag.NodeID `json:"node"`     // its number, from 0
	Stream int32      `json:"stream"`   // that it ran on
	Start  float64    `json:"start_us"` // from the start of the first node
	End    float64    `json:"end_us"`   // from the start of the first node
}

// Loop is what a loop or branch did in the last replay. One in the body of another may have run several times in it.
type Loop struct {
	Node      string `json:"node"`               // its name
	Kind      string `json:"kind"`               // repeat or if
	Runs      int64  `json:"runs"`               // how often it was reached in the replay
	Passes    int64  `json:"passes"`             // of a repeat, over all runs
	Most      int64  `json:"most"`               // passes of one run
	Missed    int64  `json:"missed"`             // runs that took Most passes although the condition asked for more
	Then      int64  `json:"then"`               // of an if: runs in which the condition held
	Otherwise int64  `json:"otherwise"`          // and in which it did not
	Expected  *int64 `json:"expected,omitempty"` // passes, where expect says so
	OK        bool   `json:"ok"`                 // the condition was met, and the passes are those expected
	text      string
}

// Text says what the loop or branch did, such as "37 passes, at most 500".
func (l Loop) Text() string { return l.text }

// Describe notes what Text says.
func Describe(l *Loop, text string) { l.text = text }

// TracedLoop is what a loop or branch did in one traced replay.
type TracedLoop struct {
	Loop
	Shown int64 `json:"shown"` // passes, or runs of a branch, that are shown one by one; the others are left out, because there are too many
}

// TracedPass is one pass of a loop, or one run of a branch.
type TracedPass struct {
	Node    string     `json:"node"`               // the loop or branch
	Within  int        `json:"within"`             // the pass around it, by its place in the list; -1 if it is in no other loop or branch
	Run     int64      `json:"run"`                // of the loop or branch in this replay, from 1
	First   int64      `json:"first"`              // the number of the pass in this run, from 1
	Last    int64      `json:"last"`               // the same; of passes that are left out, the number of the last of them
	LeftOut bool       `json:"left_out,omitempty"` // the passes from First to Last are not shown one by one, because there are too many
	Body    string     `json:"body"`               // what ran: repeat, then, else, or none if the condition did not hold and there is no else
	Start   float64    `json:"start_us"`           // from the start of the first node
	End     float64    `json:"end_us"`             // from the start of the first node
	Nodes   []BodySpan `json:"nodes,omitempty"`    // of the body, in declaration order; missing if they were not measured
}

// BodySpan is the time of one node of a body in one pass.
type BodySpan struct {
	Node   string  `json:"node"`     // its name
	Stream int32   `json:"stream"`   // of the body, that it ran on
	Start  float64 `json:"start_us"` // from the start of the first node of the replay
	End    float64 `json:"end_us"`   // from the start of the first node of the replay
}

// Bodies of a TracedPass.
const (
	BodyRepeat = "repeat"
	BodyNone   = "none"
)

// BodyName is the name of the k-th body of a loop or branch.
func BodyName(n *dag.Node, k int) string {
	if n.Kind == dag.Repeat {
		return BodyRepeat
	}
	return [...]string{"then", "else"}[k]
}
