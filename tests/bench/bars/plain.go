// Compares the plain command with the best that bench finds, and the first run of a pipeline with the second.

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
)

// measurePlain runs bench once to find its best row, and then the plain command and that row in turn.
func measurePlain(ctx context.Context, s *settings) error {
	files, err := s.files("gemm", "heat", "microbatches", "taskbench-stencil", "inception", "saxpy")
	if err != nil {
		return err
	}
	fmt.Printf("%-22s %-22s %10s %10s %8s %-14s %9s %9s\n", "pipeline", "best row of bench", "bench us", "plain us", "ratio", "of pairs", "first ms", "second")
	var ratios, extra []float64
	late, worst := 0, ""
	for _, file := range files {
		name := baseName(file)
		cache := filepath.Join(s.work, "plain", name)
		best, err := s.bestRow(ctx, file)
		if err != nil {
			fmt.Printf("%-22s %v\n", name, err)
			continue
		}
		first, err := s.run(ctx, file, cache)
		if err != nil {
			fmt.Printf("%-22s %v\n", name, err)
			continue
		}
		var pairs, rows, plains []float64
		second := 0.0
		for k := range s.pairs {
			row, err := s.sameRow(ctx, file, best)
			if err != nil {
				return err
			}
			plain, err := s.run(ctx, file, cache)
			if err != nil {
				return err
			}
			if k == 0 {
				second = milliseconds(plain.wall)
			}
			pairs, rows, plains = append(pairs, plain.EachUS/row), append(rows, row), append(plains, plain.EachUS)
		}
		ratio := median(pairs)
		if ratios = append(ratios, ratio); ratio >= quantile(ratios, 1) {
			worst = name
		}
		// Of two bars the more generous one counts: 150 ms, or a quarter of the second run.
		over := (milliseconds(first.wall) - second) / max(150, second/4)
		if extra = append(extra, over); over > 1 {
			late++
		}
		fmt.Printf("%-22s %-22s %10.1f %10.1f %8.3f %-14s %9.0f %9.0f\n", name, fmt.Sprintf("%s %d, %s", best.Strategy, best.Streams, best.Replay), median(rows), median(plains), ratio, spread(pairs), milliseconds(first.wall), second)
	}
	if len(ratios) == 0 {
		return fmt.Errorf("no pipeline ran")
	}
	bar("plain command / best row of bench, worst", quantile(ratios, 1), 1.03, "%s; median %.3f of %d pipelines", worst, median(ratios), len(ratios))
	bar("plain command / best row of bench, geometric mean", geometricMean(ratios), 1.01, "%d pipelines, %d pairs each", len(ratios), s.pairs)
	bar("first run, part of what it may take longer", quantile(extra, 1), 1, "of 150 ms or a quarter of the second run; %d of %d took longer", late, len(extra))
	return nil
}

// bestRow returns the best row of bench that can be measured again: not what the plain command does.
func (s *settings) bestRow(ctx context.Context, file string) (*row, error) {
	var b benched
	if _, err := s.answer(ctx, &b, "bench", file, "--iterations", strconv.Itoa(s.iterations), "--warmup", "20", "--cache-dir", "off"); err != nil {
		return nil, err
	}
	var best *row
	for k := range b.Rows {
		if r := &b.Rows[k]; r.Strategy != "auto" && (best == nil || r.Timing.Wall < best.Timing.Wall) {
			best = r
		}
	}
	if best == nil {
		return nil, fmt.Errorf("bench has no row")
	}
	return best, nil
}

// sameRow measures a row again and returns the microseconds of a replay.
func (s *settings) sameRow(ctx context.Context, file string, r *row) (float64, error) {
	args := []string{"bench", file, "--strategy", r.Strategy, "--streams", strconv.Itoa(r.Asked), "--iterations", strconv.Itoa(s.iterations), "--warmup", "20", "--cache-dir", "off"}
	if r.Replay == "graph" {
		args = append(args, "--graph")
	}
	var b benched
	if _, err := s.answer(ctx, &b, args...); err != nil {
		return 0, err
	}
	for k := range b.Rows {
		if b.Rows[k].Replay == r.Replay && b.Rows[k].Strategy == r.Strategy {
			return b.Rows[k].Timing.Wall, nil
		}
	}
	return 0, fmt.Errorf("%s: bench did not measure %s on %d streams again", baseName(file), r.Strategy, r.Streams)
}
