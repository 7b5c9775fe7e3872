// Ways to replay: a plan and how it is submitted, in words and in JSON.

package runs

import (
	"fmt"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/runtime"
	"github.com/dagrun/dagrun/runtime/learn"
)

type WayReport struct {
	Strategy  string         `json:"strategy"`
	Streams   int            `json:"streams"`
	Waits     int            `json:"waits"`
	Replay    string         `json:"replay"`
	Threads   int            `json:"threads"`
	Overlap   bool           `json:"overlap,omitempty"` // launches overlap
	Each      runtime.Series `json:"each"`
	Runs      []float64      `json:"runs_us,omitempty"` // of a replay, in earlier runs that took it from the start
	BuildUS   float64        `json:"build_us"`
	Predicted float64        `json:"predicted_us"`
}

func ReportWay(w *learn.Way) WayReport {
	return WayReport{w.Plan.Strategy, len(w.Plan.Streams), w.Plan.Stats.Waits, w.Mode.String(), w.Threads, w.Overlap, w.Each, w.Took, w.BuildUS, w.Predicted}
}

// Text is the way in words, without times.
func (w *WayReport) Text() string {
	text := fmt.Sprintf("%s on %s", w.Strategy, cli.Counted(w.Streams, "stream"))
	if w.Replay != runtime.Streams.String() {
		text += ", as a " + w.Replay
	}
	if w.Threads > 1 {
		text += fmt.Sprintf(", submitted by %d threads", w.Threads)
	}
	if w.Overlap {
		text += ", with launches that overlap"
	}
	return text
}

// ReplayText is how a way replays, in a table.
func (w *WayReport) ReplayText() string {
	if w.Overlap {
		return w.Replay + ", overlapping"
	}
	return w.Replay
}
