// Compares invocations of the plain command with each other, and with longer ones: what differs there is the machine's, since the plan is the same.

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
)

const (
	invocations = 5  // that are compared
	leastUS     = 20 // of a replay: shorter ones are mostly what a launch takes
	longer      = 20 // times as many replays, for the pipelines that differed
)

// measureSteady runs each pipeline until it is learned, and then five times.
func measureSteady(ctx context.Context, s *settings) error {
	files, err := s.files("gemm", "heat", "microbatches", "taskbench-stencil", "inception", "images")
	if err != nil {
		return err
	}
	fmt.Printf("%-20s %8s  %s\n", "pipeline", "ratio", "us of each invocation")
	ratios := &ratios{}
	for _, file := range files {
		cache := filepath.Join(s.work, "steady", baseName(file))
		if _, err := s.run(ctx, file, cache); err != nil {
			fmt.Printf("%-20s %v\n", baseName(file), err)
			continue
		}
		each, err := s.invoke(ctx, file, cache)
		if err != nil {
			return err
		}
		if slices.Min(each) < leastUS {
			continue
		}
		ratio := slices.Max(each) / slices.Min(each)
		fmt.Printf("%-20s %8.3f  %.1f\n", baseName(file), ratio, each)
		ratios.add(baseName(file), []float64{ratio})
		if ratio > 1.15 {
			more := *s
			more.iterations *= longer
			if each, err = more.invoke(ctx, file, cache); err != nil {
				return err
			}
			fmt.Printf("%-20s %8.3f  %.1f\n", fmt.Sprintf("  %d replays", more.iterations), slices.Max(each)/slices.Min(each), each)
		}
	}
	if len(ratios.medians) == 0 {
		return fmt.Errorf("no pipeline takes %d us", leastUS)
	}
	bar("largest over smallest of five invocations with one plan", quantile(ratios.medians, 1), 1.15, "%s; median %.3f; %d of %d differ more", ratios.worst,
		median(ratios.medians), above(ratios.medians, 1.15), len(ratios.medians))
	return nil
}

// invoke runs a pipeline some times, and returns the microseconds of a replay in each.
func (s *settings) invoke(ctx context.Context, file, cache string) ([]float64, error) {
	var each []float64
	for range invocations {
		r, err := s.run(ctx, file, cache)
		if err != nil {
			return nil, err
		}
		each = append(each, r.EachUS)
	}
	return each, nil
}
