// When each node of a replay ran.

package runtime

import (
	"time"

	"github.com/dagrun/dagrun/dag"
)

// TracedReplay is one replay.
type TracedReplay struct {
	Spans    []Span  `json:"spans"`     // by node id
	SubmitUS float64 `json:"submit_us"` // host time for submitting everything

	HelpedUS []float64 `json:"helped_us,omitempty"` // by node: what other cores of a CPU worked on it too; nil if the device does not tell

	began time.Time
}

// Began is when the first node started, by this process's clock. It is only known with several ranks.
func (r *TracedReplay) Began() time.Time {
	if r == nil {
		return time.Time{}
	}
	return r.began
}

// Span is one node's time on its device.
type Span struct {
	Node   dag.NodeID `json:"node"`     // its number, from 0
	Stream int32      `json:"stream"`   // that it ran on
	Start  float64    `json:"start_us"` // from the start of the first node
	End    float64    `json:"end_us"`   // from the start of the first node
}
