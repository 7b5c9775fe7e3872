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
	machine, err := runtime.MeasureMachine(ctx, platform, nil)
	if err != nil {
		return err
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
	options.Profile = learned.Profile
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
			predicted, measured, err := s.compareWay(ctx, platform, g, plan, mode, options)
			if err != nil {
				return nil, "", err
			}
			e := math.Abs(predicted/measured - 1)
			if errs = append(errs, e); e >= quantile(errs, 1) {
				worst = fmt.Sprintf("%s %d as %s, %.1f and %.1f", plan.Strategy, len(plan.Streams), mode, measured, predicted)
			}
			if s.each {
				fmt.Printf("  %-12s %2d as %-7s %8.1f measured %8.1f predicted %6.2f\n", plan.Strategy, len(plan.Streams), mode, measured, predicted, predicted/measured)
			}
		}
	}
	return errs, worst, nil
}

// compareWay predicts and measures one plan, replayed one way.
func (s *settings) compareWay(ctx context.Context, platform cudart.Platform, g *dag.Graph, plan *planner.Plan, mode runtime.Mode, options planner.Options) (predicted, measured float64, err error) {
	simulate := planner.Simulate
	if mode == runtime.Captured {
		simulate = planner.SimulateGraph
	}
	t, err := simulate(g, plan, options.Machine, options.Profile)
	if err != nil {
		return 0, 0, err
	}
	program, err := runtime.New(ctx, g, plan, platform, runtime.Options{Mode: mode})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, program.Close()) }()
	const rounds = 3
	var walls []float64
	for range rounds {
		timing, err := program.Measure(ctx, 10, max(10, s.iterations/4))
		if err != nil {
			return 0, 0, err
		}
		walls = append(walls, timing.Wall)
	}
	return t.MakespanUS, median(walls), nil
}
