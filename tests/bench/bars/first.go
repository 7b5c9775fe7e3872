// Compares the first run of a pipeline with the second.

package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// measureFirst compares one pipeline after the other, and prints each as soon as it is measured.
func measureFirst(ctx context.Context, s *settings) error {
	files, err := s.files("gemm", "heat", "microbatches", "taskbench-stencil", "inception", "saxpy")
	if err != nil {
		return err
	}
	const line = "%-20s %8s %-14s %9s %-14s %7s %-19s %s\n"
	fmt.Printf(line, "pipeline", "first ms", "of runs", "second ms", "of runs", "longer", "part of what it may", "phases that took longer, ms")
	extra := &ratios{}
	for _, file := range files {
		var firsts, seconds, longer, parts []float64
		phases := map[string][]float64{}
		for k := range s.pairs + 1 {
			both, more, err := s.start(ctx, file, filepath.Join(s.work, "first", baseName(file)+strconv.Itoa(k)))
			if err != nil {
				fmt.Printf("%-20s %v\n", baseName(file), err)
				break
			}
			if k == 0 {
				continue // the files of compilers and libraries came from the disk
			}
			firsts, seconds = append(firsts, both.first), append(seconds, both.second)
			longer, parts = append(longer, both.first-both.second), append(parts, both.over())
			for name, ms := range more {
				phases[name] = append(phases[name], ms)
			}
		}
		if len(parts) == 0 {
			continue
		}
		extra.add(baseName(file), parts)
		fmt.Printf(line, baseName(file), fmt.Sprintf("%.0f", median(firsts)), spread(firsts), fmt.Sprintf("%.0f", median(seconds)), spread(seconds),
			fmt.Sprintf("%.0f", median(longer)), fmt.Sprintf("%.2f", median(parts)), longest(phases))
	}
	if len(extra.medians) == 0 {
		return fmt.Errorf("no pipeline ran")
	}
	bar("first run with files of libraries in memory, part of what it may take longer", quantile(extra.medians, 1), 1,
		"%s; median %.2f; of 150 ms or a quarter of the second run; %d of %d took longer, %d pairs each",
		extra.worst, median(extra.medians), above(extra.medians, 1), len(extra.medians), s.pairs)
	return nil
}

// longest names the phases that took longer by 5 ms and more in the median, those first that took longest.
func longest(phases map[string][]float64) string {
	more := map[string]float64{}
	var names []string
	for name, values := range phases {
		if more[name] = median(values); more[name] >= 5 {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(more[b], more[a]), cmp.Compare(a, b)) })
	for k, name := range names {
		names[k] = fmt.Sprintf("%s %.0f", name, more[name])
	}
	return strings.Join(names, ", ")
}

// start runs a pipeline twice with caches that are empty before, and also returns by how many milliseconds each phase of the first run took longer.
func (s *settings) start(ctx context.Context, file, cache string) (both compared, more map[string]float64, err error) {
	first, err := s.run(ctx, file, cache, "-v")
	if err != nil {
		return both, nil, err
	}
	second, err := s.run(ctx, file, cache, "-v")
	if err != nil {
		return both, nil, err
	}
	both.first, both.second = milliseconds(first.wall), milliseconds(second.wall)
	more = map[string]float64{}
	for name, took := range first.phases {
		more[name] = milliseconds(took - second.phases[name])
	}
	return both, more, nil
}
