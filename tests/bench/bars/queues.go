// Compares replays, and whole processes, with one hardware queue and with the eight that CUDA makes without being asked.

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
)

// measureQueues compares one pipeline after the other, and prints each as soon as it is measured: the best row of bench that replays as a graph.
func measureQueues(ctx context.Context, s *settings) error {
	files, err := s.files("gemm", "heat", "microbatches", "taskbench-stencil", "strassen", "uneven-stages")
	if err != nil {
		return err
	}
	best, err := readRows(s.rows)
	if err != nil {
		return err
	}
	const line = "%-20s %-24s %9s %-16s %9s %-16s %7s %-15s %8s %8s\n"
	fmt.Printf(line, "pipeline", "row of bench", "us with 1", "of runs", "with 8", "of runs", "ratio", "of pairs", "ms, 1", "ms, 8")
	var ratios, sooner []float64
	for _, file := range files {
		row := best[baseName(file)]
		if row == nil {
			if row, err = s.bestRow(ctx, file, "--graph"); err != nil {
				fmt.Printf("%-20s %v\n", baseName(file), err)
				continue
			}
		} else if row.Replay != "graph" {
			continue
		}
		c, err := s.compareQueues(ctx, file, row)
		if err != nil {
			fmt.Printf("%-20s %v\n", baseName(file), err)
			continue
		}
		ratios, sooner = append(ratios, median(c.ratios)), append(sooner, median(c.ms[1])-median(c.ms[0]))
		fmt.Printf(line, baseName(file), fmt.Sprintf("%s %d, %s", row.Strategy, row.Streams, row.Replay), fmt.Sprintf("%.1f", median(c.us[0])),
			spread(c.us[0]), fmt.Sprintf("%.1f", median(c.us[1])), spread(c.us[1]),
			fmt.Sprintf("%.3f", median(c.ratios)), spread(c.ratios), fmt.Sprintf("%.0f", median(c.ms[0])), fmt.Sprintf("%.0f", median(c.ms[1])))
	}
	if len(ratios) == 0 {
		return fmt.Errorf("no pipeline ran")
	}
	bar("graphs with one hardware queue / with eight, geometric mean", geometricMean(ratios), 1,
		"median %.3f, %s; processes take %.0f ms less; %d pipelines, %d pairs each",
		median(ratios), spread(ratios), median(sooner), len(ratios), s.pairs)
	return nil
}

// queued is what replays and processes took with one queue and with eight.
type queued struct {
	us, ms [2][]float64
	ratios []float64 // of each pair
}

func (s *settings) compareQueues(ctx context.Context, file string, r *row) (c queued, err error) {
	args := append([]string{file, "--learn", "off", "--iterations", strconv.Itoa(s.iterations), "--warmup", "20", "--cache-dir", "off"}, r.asks()...)
	compiled := "CUDA_CACHE_PATH=" + filepath.Join(s.work, "queues")
	for k := range s.pairs + 1 {
		var pair [2]float64
		for i, queues := range []string{"1", "8"} {
			ran := &ran{}
			wall, _, err := s.answerIn(ctx, ran, []string{compiled, "CUDA_DEVICE_MAX_CONNECTIONS=" + queues}, args...)
			if err != nil {
				return c, err
			}
			if pair[i] = ran.EachUS; k > 0 { // in the first pair the driver compiles
				c.us[i], c.ms[i] = append(c.us[i], ran.EachUS), append(c.ms[i], milliseconds(wall))
			}
		}
		if k > 0 {
			c.ratios = append(c.ratios, pair[0]/pair[1])
		}
	}
	return c, nil
}
