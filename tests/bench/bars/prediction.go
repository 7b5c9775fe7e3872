// Compares predictions after learning with measurements, on plans and ways to replay that learning did not run.

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	goruntime "runtime"
	"slices"
	"time"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/driver"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
	"github.com/dagrun/dagrun/runtime/learn"
)

// measurePrediction learns each pipeline, plans it in other ways with what was learned, and measures those.
func measurePrediction(ctx context.Context, s *settings) (err error) {
	if s.replay != "" {
		return s.replayPrediction()
	}
	if s.record != "" {
		if err := os.MkdirAll(s.record, 0o755); err != nil {
			return err
		}
	}
	goruntime.LockOSThread() // the host submits more slowly for a while after the Go scheduler moved it to another thread
	defer goruntime.UnlockOSThread()
	files, err := s.files("gemm", "heat", "microbatches", "taskbench-stencil", "inception", "chunks", "dl")
	if err != nil {
		return err
	}
	platform, err := driver.Open(driver.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, platform.Close()) }()
	var machine *planner.Machine
	for range 2 { // the first measurement is of a process that has not replayed on several streams yet: graphs are faster then
		if machine, err = runtime.MeasureMachine(ctx, platform, nil); err != nil {
			return err
		}
	}
	var all predictionErrors
	all.title()
	for _, file := range files {
		r, err := s.learnAndMeasure(ctx, platform, machine, file)
		if err == nil && s.record != "" {
			err = r.write(s.record)
		}
		if err != nil {
			fmt.Printf("%-22s %v\n", baseName(file), err)
			continue
		}
		all.add(r, s.each)
	}
	return all.bars()
}

// replayPrediction predicts the ways of all records again.
func (s *settings) replayPrediction() error {
	paths, err := s.records()
	if err != nil {
		return err
	}
	var all predictionErrors
	all.title()
	for _, path := range paths {
		r, err := readRecord(path)
		if err != nil {
			return err
		}
		g, err := parsePipeline(filepath.Join(s.pipelines, r.Pipeline+".yaml"))
		if err != nil {
			return err
		}
		if err := r.predictAgain(g); err != nil {
			return fmt.Errorf("%s: %w", r.Pipeline, err)
		}
		all.add(r, s.each)
	}
	return all.bars()
}

// parsePipeline reads a pipeline that needs no modules of its own.
func parsePipeline(name string) (*dag.Graph, error) {
	source, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	g, err := file.Parse(source, file.Options{Name: name, Dir: filepath.Dir(name), Library: kernels.Library(), ReadFile: os.ReadFile})
	if err != nil {
		return nil, errors.New("has modules of its own, or does not parse")
	}
	return g, nil
}

// learnAndMeasure learns a pipeline, plans it in other ways, predicts those and measures them.
func (s *settings) learnAndMeasure(ctx context.Context, platform cudart.Platform, machine *planner.Machine, file string) (*record, error) {
	g, err := parsePipeline(file)
	if err != nil {
		return nil, err
	}
	options := planner.Options{Machine: machine}
	learned, err := learn.Learn(ctx, g, platform, learn.Options{Plan: options, Replays: 100_000, For: time.Second})
	if err != nil {
		return nil, err
	}
	r := &record{Pipeline: baseName(file), Given: learned.Given, Learned: learned.Ways}
	options.Profile, options.Machine = learned.Profile, learned.Machine
	var plans []*planner.Plan
	var asked []string
	for _, strategy := range []string{"list", "roundrobin", "heft", "cover", "serial"} {
		for _, streams := range []int{1, 2, 3, 4, 6, 8} {
			options.Strategy, options.Streams = strategy, streams
			if plan, err := planner.New(ctx, g, options); err == nil {
				plans, asked = append(plans, plan), append(asked, fmt.Sprint(strategy, " ", streams))
			}
		}
	}
	// Graphs come first: they replay more slowly in a process that has replayed on several streams.
	for _, mode := range []runtime.Mode{runtime.Captured, runtime.Streams} {
		var ways []*predictedWay
		for k, plan := range plans {
			same := func(other *planner.Plan) bool {
				return reflect.DeepEqual(other.Streams, plan.Streams) && reflect.DeepEqual(other.Order, plan.Order)
			}
			ran := slices.ContainsFunc(plans[:k], same)
			for i := range learned.Ways {
				ran = ran || learned.Ways[i].Mode == mode && same(learned.Ways[i].Plan)
			}
			if !ran {
				ways = append(ways, &predictedWay{Plan: plan, Asked: asked[k], Mode: mode})
			}
		}
		// The ways take turns, because the host submits at other speeds at other times, for tenths of a second to seconds.
		for range rounds {
			for _, w := range ways {
				if err := w.measure(ctx, platform, g, learned, max(10, s.iterations/6)); err != nil {
					return nil, err
				}
			}
		}
		r.Ways = append(r.Ways, ways...)
	}
	return r, r.predict(g, learned)
}

// rounds is how many times each way to replay is measured.
const rounds = 5

// awake is how long the plan is replayed at least before it is timed, as runs of known plans are: a GPU that was idle, as it is while a program is
// made, copies more slowly.
const awake = 20 * time.Millisecond

// measure replays the plan for one round, and before that for a while. Just before, a way that learning timed tells how fast the host is.
func (w *predictedWay) measure(ctx context.Context, platform cudart.Platform, g *dag.Graph, learned *learn.Learned, iterations int) (err error) {
	if w.Mode == runtime.Streams {
		now, err := learned.Now(ctx, g, platform)
		if err != nil {
			return err
		}
		w.Hosts = append(w.Hosts, now.Host)
	}
	program, err := runtime.New(ctx, g, w.Plan, platform, runtime.Options{Mode: w.Mode})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, program.Close()) }()
	for began := time.Now(); time.Since(began) < awake; {
		if err := program.Run(ctx, iterations); err != nil {
			return err
		}
	}
	start := time.Now()
	if err := program.Run(ctx, iterations); err != nil {
		return err
	}
	w.Rounds = append(w.Rounds, &runtime.Timing{Wall: float64(time.Since(start).Nanoseconds()) / 1e3 / float64(iterations)})
	return nil
}

// predictionErrors are relative errors of all pipelines.
type predictionErrors struct {
	graphs, streams []float64
	learned         []float64 // of all, for the host as it was when learning timed other ways
	noise           []float64 // of taking one round of a way for its median
}

func (e *predictionErrors) title() {
	fmt.Printf("%-22s %6s %9s %9s  %s\n", "pipeline", "ways", "median", "worst", "the worst: measured and predicted us")
}

// add takes in the errors of a pipeline and prints a line, or with each one for every way.
func (e *predictionErrors) add(r *record, each bool) {
	var errs []float64
	worst := ""
	for _, w := range r.Ways {
		walls := w.walls()
		measured := median(walls)
		off := math.Abs(w.Now/measured - 1)
		e.learned = append(e.learned, math.Abs(w.Predicted/measured-1))
		if errs = append(errs, off); off >= quantile(errs, 1) {
			worst = fmt.Sprintf("%s as %s, %.1f and %.1f", w.Asked, w.Mode, measured, w.Now)
		}
		for _, us := range walls {
			e.noise = append(e.noise, math.Abs(us/measured-1))
		}
		if w.Mode == runtime.Streams {
			e.streams = append(e.streams, off)
		} else {
			e.graphs = append(e.graphs, off)
		}
		if each {
			fmt.Printf("  %-12s as %-7s %8.1f measured %8.1f predicted %6.2f  rounds %.1f  host %.2f\n", w.Asked, w.Mode, measured, w.Now, w.Now/measured,
				walls, w.Hosts)
		}
	}
	if len(errs) > 0 {
		fmt.Printf("%-22s %6d %8.1f%% %8.1f%%  %s\n", r.Pipeline, len(errs), 100*median(errs), 100*quantile(errs, 1), worst)
	}
}

// bars prints the bars, and beside them what rounds differ by themselves.
func (e *predictionErrors) bars() error {
	all := slices.Concat(e.graphs, e.streams)
	if len(all) == 0 {
		return errors.New("no pipeline ran")
	}
	for _, part := range []struct {
		name string
		errs []float64
	}{{"as graphs", e.graphs}, {"as streams", e.streams}, {"for the host as it was while learning",
		e.learned}, {"of one round, if it predicted the median", e.noise}} {
		if len(part.errs) > 0 {
			fmt.Printf("%s: median %.1f%%, 95th percentile %.1f%%\n", part.name, 100*median(part.errs), 100*quantile(part.errs, 0.95))
		}
	}
	bar("prediction after learning, median error", median(all), 0.05, "%d ways to replay", len(all))
	bar("prediction after learning, 95th percentile", quantile(all, 0.95), 0.15, "worst %.0f%%", 100*quantile(all, 1))
	return nil
}
