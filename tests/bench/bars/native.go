// Compares dagrun with C++ programs: how long a short run takes, and how fast wide plans are submitted.

package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// measureStartup runs saxpy and the C++ program in turn, each as a process of its own. The runs before fill all caches.
func measureStartup(ctx context.Context, s *settings) error {
	const warm, pairs = 4, 7
	program, err := s.compiled(ctx, "startup")
	if err != nil {
		return err
	}
	cache := filepath.Join(s.work, "startup-cache")
	saxpy := func() (float64, error) {
		start := time.Now()
		out, err := exec.CommandContext(ctx, s.dagrun, filepath.Join(s.pipelines, "saxpy.yaml"), "--backend", "cuda", "--cache-dir", cache, "-v").CombinedOutput()
		if err != nil {
			return 0, fmt.Errorf("saxpy: %w: %s", err, out)
		}
		for line := range strings.Lines(string(out)) {
			if _, times, found := strings.Cut(line, "took: "); found {
				fmt.Printf("dagrun: %s", times)
			}
		}
		return milliseconds(time.Since(start)), nil
	}
	native := func() (float64, error) {
		start := time.Now()
		out, err := exec.CommandContext(ctx, program).CombinedOutput()
		if err != nil {
			return 0, fmt.Errorf("startup: %w: %s", err, out)
		}
		fmt.Printf("C++:    %s", out)
		return milliseconds(time.Since(start)), nil
	}
	for range warm {
		if _, err := saxpy(); err != nil {
			return err
		}
	}
	ratios, ours, theirs, err := inTurn(pairs, saxpy, native)
	if err != nil {
		return err
	}
	bar("saxpy warm / C++", median(ratios), 1.2, "%.0f ms and %.0f ms, pairs %s", median(ours), median(theirs), spread(ratios))
	return nil
}

// inTurn measures two things in turn, the second one first in every other pair, and returns the ratios of the pairs and all values.
func inTurn(pairs int, one, other func() (float64, error)) (ratios, ones, others []float64, err error) {
	for k := range pairs {
		var a, b float64
		if k%2 == 0 {
			if a, err = one(); err != nil {
				return nil, nil, nil, err
			}
		}
		if b, err = other(); err != nil {
			return nil, nil, nil, err
		}
		if k%2 == 1 {
			if a, err = one(); err != nil {
				return nil, nil, nil, err
			}
		}
		ratios, ones, others = append(ratios, a/b), append(ones, a), append(others, b)
	}
	return ratios, ones, others, nil
}

// measureWide runs wide patterns of empty kernels as streams, with no other flag, and submits the same work from one thread in C++.
func measureWide(ctx context.Context, s *settings) error {
	const width, steps = 8, 64
	program, err := s.compiled(ctx, "wide")
	if err != nil {
		return err
	}
	for _, pattern := range []string{"trivial", "stencil"} {
		cache, way := filepath.Join(s.work, "wide-"+pattern), ""
		dagrun := func() (float64, error) {
			r, err := s.run(ctx, filepath.Join(s.pipelines, "taskbench-"+pattern+".yaml"), cache, "-p", fmt.Sprint("width=", width), "-p",
				fmt.Sprint("steps=", steps), "--graph=off", "--backend", "cuda")
			if err != nil {
				return 0, err
			}
			way = r.way()
			return r.EachUS, nil
		}
		native := func() (float64, error) {
			out, err := exec.CommandContext(ctx, program, pattern, strconv.Itoa(width), strconv.Itoa(steps), strconv.Itoa(s.iterations)).Output()
			if err != nil {
				return 0, fmt.Errorf("wide: %w", err)
			}
			return strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
		}
		if _, err := dagrun(); err != nil { // learns
			return err
		}
		ratios, ours, theirs, err := inTurn(max(5, s.pairs), dagrun, native)
		if err != nil {
			return err
		}
		bar("streams, "+pattern+" 8 wide / C++ on one thread", median(ratios), 0.6, "%.0f us and %.0f us, %s, pairs %s", median(ours), median(theirs), way,
			spread(ratios))
	}
	return nil
}
