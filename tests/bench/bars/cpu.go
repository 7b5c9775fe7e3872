// Compares predicted and measured times on the CPU device after learning, for all pipelines.

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
)

const (
	cpuRuns   = 3      // of which the prediction is compared, after the runs that learn; their median counts
	cpuBar    = 0.1    // of the pipelines may be predicted worse
	cpuFactor = 1.3    // than by this factor
	cpuWarmup = "50"   // replays; learning lengthens them as it needs
	cpuFewest = 20     // replays of a run
	cpuMost   = 20_000 // replays of a run
	cpuEnough = 2e5    // microseconds of replays of a run, within these limits
)

// measureCPU runs each pipeline several times on the CPU device: the first runs learn, the later ones use the learned plan and are compared
// with its prediction.
func measureCPU(ctx context.Context, s *settings) error {
	files, err := s.files("bs", "chunks", "cholesky", "dl", "heat", "microbatches", "saxpy", "vec")
	if err != nil {
		return err
	}
	cache := filepath.Join(s.work, "cpu")
	fmt.Printf("%-24s %6s %8s %8s %12s %12s %8s  %s\n", "pipeline", "nodes", "streams", "replay", "replay us", "predicted", "ratio", "of runs")
	var factors []float64
	for _, file := range files {
		var last *ran
		var ratios []float64
		replays := cpuFewest
		for k := range 1 + cpuRuns {
			r, err := s.run(ctx, file, cache, "--backend", "cpu", "--iterations", strconv.Itoa(replays), "--warmup", cpuWarmup, "--timeout", "60s")
			if err != nil {
				fmt.Printf("%-24s does not run: %v\n", baseName(file), err)
				last = nil
				break
			}
			if last = r; k > 0 {
				ratios = append(ratios, r.EachUS/r.PredictedUS)
			}
			replays = max(cpuFewest, min(cpuMost, int(cpuEnough/r.EachUS)))
		}
		if last == nil {
			continue
		}
		ratio := median(ratios)
		factors = append(factors, off(ratio))
		fmt.Printf("%-24s %6d %8d %8s %12.1f %12.1f %8.2f  %s\n", baseName(file), last.Nodes, last.Streams, last.Replay, last.EachUS, last.PredictedUS,
			ratio, spread(ratios))
	}
	if len(factors) == 0 {
		return fmt.Errorf("no pipeline ran")
	}
	outside := above(factors, cpuFactor)
	bar("CPU device, part of the pipelines predicted worse than within 30%", float64(outside)/float64(len(factors)), cpuBar,
		"%d of %d within 30%%, median factor %.2f, worst %.2f", len(factors)-outside, len(factors), median(factors), quantile(factors, 1))
	return nil
}
