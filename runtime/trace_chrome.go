// Traces as files for Perfetto and chrome://tracing, of one program or of several ranks.

package runtime

import (
	"errors"
	"fmt"
	"io"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/runtime/internal/chrome"
	"github.com/dagrun/dagrun/runtime/internal/engine"
)

// WriteChrome writes the trace in the Trace Event Format: one track per stream and one or more per engine (an engine that runs several nodes
// at once gets several), the host's submissions, an arrow for every wait, and counters of busy streams, bytes being copied and memory in use.
// A predicted timeline is shown beside the first replay; predicted may be nil.
func (t *Trace) WriteChrome(w io.Writer, g *dag.Graph, plan *planner.Plan, predicted *plan.Timeline) error {
	if t == nil || w == nil {
		return errors.New("a trace and a writer are needed to write one")
	}
	recorded := t.recording(g, plan, predicted)
	return chrome.Write(w, &recorded)
}

func (t *Trace) recording(g *dag.Graph, plan *planner.Plan, predicted *plan.Timeline) chrome.Recording {
	return chrome.Recording{Graph: g, Plan: plan, Predicted: predicted, Mode: t.Mode, MeasuredBy: t.Source, PlainUS: t.PlainUS, TracedUS: t.TracedUS,
		Bodies: t.Bodies == engine.TracedNodes, Replays: t.Replays}
}

// RankTrace is the trace of one rank, for a file with those of all ranks.
type RankTrace struct {
	Name      string // "rank 1 (host gpu-07)"
	Trace     *Trace
	Graph     *dag.Graph
	Plan      *planner.Plan
	Predicted *plan.Timeline // nil for none
	Began     []float64      // by replay: when its first node started, in microseconds by a clock that all ranks share
}

// WriteChromeRanks writes the traces of several ranks like WriteChrome, each with processes of its own, at the times of the clock that they share.
func WriteChromeRanks(w io.Writer, ranks []RankTrace) error {
	if w == nil || len(ranks) == 0 {
		return errors.New("traces and a writer are needed to write them")
	}
	recorded := make([]chrome.Recording, len(ranks))
	for k := range ranks {
		r := &ranks[k]
		if r.Trace == nil {
			return fmt.Errorf("%s: a trace is needed to write one", r.Name)
		}
		recorded[k] = r.Trace.recording(r.Graph, r.Plan, r.Predicted)
		recorded[k].Name, recorded[k].Began = r.Name, r.Began
	}
	return chrome.WriteRanks(w, recorded)
}
