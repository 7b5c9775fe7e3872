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
	"slices"
	"time"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/driver"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

// measurePrediction learns each pipeline, plans it in other ways with what was learned, and measures those.
func measurePrediction(ctx context.Context, s *settings) (err error) {
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
	fmt.Printf("%-22s %6s %9s %9s  %s\n", "pipeline", "ways", "median", "worst", "the worst: measured and predicted us")
	var all []float64
	for _, file := range files {
		errs, worst, err := s.predictions(ctx, platform, machine, file)
		if err != nil {
			fmt.Printf("%-22s %v\n", baseName(file), err)
			continue
		}
		if len(errs) > 0 {
			fmt.Printf("%-22s %6d %8.1f%% %8.1f%%  %s\n", baseName(file), len(errs), 100*median(errs), 100*quantile(errs, 1), worst)
		}
		all = append(all, errs...)
	}
	if len(all) == 0 {
		return errors.New("no pipeline ran")
	}
	bar("prediction after learning, median error", median(all), 0.05, "%d ways to replay", len(all))
	bar("prediction after learning, 95th percentile", quantile(all, 0.95), 0.15, "worst %.0f%%", 100*quantile(all, 1))
	return nil
}

// predictions returns the relative errors of all ways that were not learned from.
func (s *settings) predictions(ctx context.Context, platform cudart.Platform, machine *planner.Machine, file string) (errs []float64, worst string, err error) {
	source, err := os.ReadFile(file)
	if err != nil {
		return nil, "", err
	}
	g, err := dag.Parse(source, dag.Options{Name: file, Dir: filepath.Dir(file), Library: kernels.Library(), ReadFile: os.ReadFile})
	if err != nil {
		return nil, "", errors.New("has modules of its own, or does not parse")
	}
	options := planner.Options{Machine: machine}
	learned, err := runtime.Learn(ctx, g, platform, runtime.LearnOptions{Plan: options, Replays: 10_000, For: time.Second})
	if err != nil {
		return nil, "", err
	}
	options.Profile, options.Machine = learned.Profile, learned.Machine
	var plans []*planner.Plan
	for _, strategy := range []string{"list", "roundrobin", "heft", "cover", "serial"} {
		for _, streams := range []int{1, 2, 3, 4, 6, 8} {
			options.Strategy, options.Streams = strategy, streams
			if plan, err := planner.New(ctx, g, options); err == nil {
				plans = append(plans, plan)
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
			if ran {
				continue
			}
			predicted, err := planner.Repeated(g, plan, options.Machine, options.Profile, mode == runtime.Captured)
			if err != nil {
				return nil, "", err
			}
			ways = append(ways, &predictedWay{plan: plan, predicted: predicted})
		}
		// The ways take turns, because the host submits at other speeds at other times, up to twice as slowly for a tenth of a second.
		for range rounds {
			for _, w := range ways {
				if err := w.measure(ctx, platform, g, mode, max(10, s.iterations/5)); err != nil {
					return nil, "", err
				}
			}
		}
		for _, w := range ways {
			measured := median(w.walls)
			e := math.Abs(w.predicted/measured - 1)
			if errs = append(errs, e); e >= quantile(errs, 1) {
				worst = fmt.Sprintf("%s %d as %s, %.1f and %.1f", w.plan.Strategy, len(w.plan.Streams), mode, measured, w.predicted)
			}
			if s.each {
				fmt.Printf("  %-12s %2d as %-7s %8.1f measured %8.1f predicted %6.2f  rounds %.1f\n", w.plan.Strategy, len(w.plan.Streams), mode, measured, w.predicted, w.predicted/measured, w.walls)
			}
		}
	}
	return errs, worst, nil
}

// rounds is how many times each way to replay is measured.
const rounds = 5

// predictedWay is a plan that learning did not run in the mode that is being measured.
type predictedWay struct {
	plan      *planner.Plan
	predicted float64
	walls     []float64 // microseconds of a replay, by round
}

// measure replays the plan for one round.
func (w *predictedWay) measure(ctx context.Context, platform cudart.Platform, g *dag.Graph, mode runtime.Mode, iterations int) (err error) {
	program, err := runtime.New(ctx, g, w.plan, platform, runtime.Options{Mode: mode})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, program.Close()) }()
	timing, err := program.Measure(ctx, 5, iterations)
	if err != nil {
		return err
	}
	w.walls = append(w.walls, timing.Wall)
	return nil
}
