// When each node of a replay ran.

package runtime

import "github.com/dagrun/dagrun/dag"

// TracedReplay is one replay.
type TracedReplay struct {
	Spans    []Span  `json:"spans"`     // by node id
	SubmitUS float64 `json:"submit_us"` // host time for submitting everything

	HelpedUS []float64 `json:"helped_us,omitempty"` // by node: what other cores of a CPU worked on it too; nil if the device does not tell
}

// Span is one node's time on its device.
type Span struct {
	Node   dag.NodeID `json:"node"`
	Stream int32      `json:"stream"`
	Start  float64    `json:"start_us"`
	End    float64    `json:"end_us"`
}
