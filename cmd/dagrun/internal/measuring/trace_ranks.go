// dagrun trace with several ranks: rank 0 gets the traces of all, and writes one file and one page.

package measuring

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/pictures"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/runs"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/picture"
	"github.com/dagrun/dagrun/runtime"
)

// sentTrace is what a rank sends to rank 0.
type sentTrace struct {
	Trace *runtime.Trace  `json:"trace"`
	Plan  json.RawMessage `json:"plan"`
	Began []int64         `json:"began"` // by replay, in nanoseconds by the clock of rank 0
	Local int             `json:"local"` // its local rank
}

// gatherTraces gives rank 0 the traces of all ranks, at times of its own clock. Other ranks get none.
func (u *Commands) gatherTraces(ctx context.Context, p *runs.Prepared, trace *runtime.Trace) ([]runtime.RankTrace, error) {
	offset, within, err := u.World.Clock(ctx)
	if err != nil {
		return nil, err
	}
	u.Log.Info("compared the clock with that of rank 0", "offset", offset.String(), "within", within.Round(100*time.Nanosecond).String())
	sent := sentTrace{Trace: trace, Local: u.Place.LocalRank}
	for k := range trace.Replays {
		sent.Began = append(sent.Began, trace.Replays[k].Began().Add(offset).UnixNano())
	}
	var plan bytes.Buffer
	if err := p.Plan.EncodeJSON(&plan, p.Graph); err != nil {
		return nil, err
	}
	sent.Plan = plan.Bytes()
	text, err := json.Marshal(sent)
	if err != nil {
		return nil, err
	}
	texts, err := u.World.Barrier(ctx, "trace", string(text))
	if err != nil || u.Place.Rank > 0 {
		return nil, err
	}
	all := make([]sentTrace, len(texts))
	for rank, text := range texts {
		if err := json.Unmarshal([]byte(text), &all[rank]); err != nil {
			return nil, fmt.Errorf("the trace of rank %d: %w", rank, err)
		}
	}
	return u.alignTraces(all, p.Options)
}

// alignTraces reads what the ranks have sent. Times count from the first replay of the rank that began first.
func (u *Commands) alignTraces(all []sentTrace, options planner.Options) ([]runtime.RankTrace, error) {
	var first int64
	for k := range all {
		for i, at := range all[k].Began {
			if k == 0 && i == 0 || at < first {
				first = at
			}
		}
	}
	ranks := make([]runtime.RankTrace, len(all))
	for rank := range all {
		sent := &all[rank]
		g, err := u.Reread(rank, sent.Local)
		if err != nil {
			return nil, err
		}
		r := &ranks[rank]
		*r = runtime.RankTrace{Name: fmt.Sprintf("rank %d", rank), Trace: sent.Trace, Graph: g}
		if r.Plan, err = planner.DecodePlan(bytes.NewReader(sent.Plan), g); err != nil {
			return nil, fmt.Errorf("the plan of rank %d: %w", rank, err)
		}
		predict := planner.Simulate
		if sent.Trace.Mode != runtime.Streams.String() {
			predict = model.SimulateGraph
		}
		if r.Predicted, err = predict(g, r.Plan, options.Machine, options.Profile); err != nil {
			return nil, err
		}
		for _, at := range sent.Began {
			r.Began = append(r.Began, float64(at-first)/1e3)
		}
	}
	return ranks, nil
}

// saveRanksPage writes the page of --html with a band for each rank. All ranks are predicted and explained with the machine of rank 0.
func saveRanksPage(ctx context.Context, name string, all []runtime.RankTrace, device string, predictedOn, machine *planner.Machine) error {
	ranks := make([]picture.Rank, len(all))
	for k := range all {
		r := &all[k]
		schedule, err := picture.New(r.Graph, r.Plan, r.Predicted)
		if err != nil {
			return err
		}
		ranks[k] = picture.Rank{Name: r.Name, Schedule: schedule, Machine: predictedOn, Measured: pictures.CourseOf(r.Trace, device, machine), Began: r.Began}
	}
	return cli.WriteOut(ctx, name, func(w io.Writer) error { return picture.WriteRanksPage(w, ranks) })
}
