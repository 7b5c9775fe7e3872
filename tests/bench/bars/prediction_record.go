// Keeps what predictions were made from and compared with in files, so that another model can be judged by the same measurements on a machine
// without a GPU.

package main

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
	"github.com/dagrun/dagrun/runtime/learn"
)

// record is what was learned of a pipeline and measured of it afterwards.
type record struct {
	Pipeline string
	Given    *learn.Unfitted
	Learned  []learn.Way // what learning timed
	Ways     []*predictedWay
}

// predictedWay is a plan that learning did not run in the mode that was measured.
type predictedWay struct {
	Plan      *planner.Plan
	Asked     string // strategy and streams
	Mode      runtime.Mode
	Rounds    []*runtime.Timing
	Hosts     []float64 // by round: how much slower the host was just before than when learning timed other ways; 0 if no way depends on that
	Predicted float64   // for the host as it was when learning timed other ways
	Now       float64   // for the host as it was just before each round
}

// walls are the microseconds of a replay, by round.
func (w *predictedWay) walls() []float64 {
	var walls []float64
	for _, t := range w.Rounds {
		walls = append(walls, t.Wall)
	}
	return walls
}

const recordEnding = ".json.gz"

// write writes the record to a file of the folder.
func (r *record) write(folder string) (err error) {
	file, err := os.Create(filepath.Join(folder, r.Pipeline+recordEnding))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	for k := range r.Learned {
		r.Learned[k].Plan = schedule(r.Learned[k].Plan)
	}
	for _, w := range r.Ways {
		w.Plan = schedule(w.Plan)
	}
	packed := gzip.NewWriter(file)
	return errors.Join(json.NewEncoder(packed).Encode(r), packed.Close())
}

// schedule is the part of a plan that predictions depend on.
func schedule(p *planner.Plan) *planner.Plan {
	return &planner.Plan{Strategy: p.Strategy, Streams: p.Streams, Order: p.Order, Events: p.Events}
}

// readRecord reads a file that write wrote.
func readRecord(path string) (r *record, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	packed, err := gzip.NewReader(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	r = &record{}
	if err := json.NewDecoder(packed).Decode(r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// records returns the paths of all records in the folder of -replay that -names asks for.
func (s *settings) records() ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(s.replay, "*"+recordEnding))
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("no records in %s", s.replay)
	}
	var wanted []string
	for _, path := range paths {
		if s.asksFor(strings.TrimSuffix(filepath.Base(path), recordEnding)) {
			wanted = append(wanted, path)
		}
	}
	return wanted, nil
}

// predictAgain predicts as a fit of the ways that learning timed does now.
func (r *record) predictAgain(g *dag.Graph) error {
	learned, err := learn.Refit(g, r.Given, r.Learned)
	if err != nil {
		return err
	}
	return r.predict(g, learned)
}

// predict predicts the ways that were measured, from what was learned. Each round is compared with what is predicted for the host as it was
// just before; the median of these ratios counts.
func (r *record) predict(g *dag.Graph, learned *learn.Learned) (err error) {
	for _, w := range r.Ways {
		if w.Predicted, err = learned.PredictEach(g, w.Plan, w.Mode); err != nil {
			return err
		}
		w.Now = w.Predicted
		if len(w.Hosts) < len(w.Rounds) {
			continue
		}
		var ratios []float64
		for k, us := range w.walls() {
			now := *learned
			now.Host = w.Hosts[k]
			predicted, err := now.PredictEach(g, w.Plan, w.Mode)
			if err != nil {
				return err
			}
			ratios = append(ratios, predicted/us)
		}
		w.Now = median(ratios) * median(w.walls())
	}
	return nil
}
