// Compares the plain command with the best that bench finds, and the first run of a pipeline with the second.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

const (
	mostPlain     = 1.03 // times the best row of bench
	mostPlainMean = 1.01 // geometric mean of all pipelines
)

// compared is what the plain command, the best row of bench and the first run took for one pipeline.
type compared struct {
	best                *row
	pairs, rows, plains []float64     // of each pair: plain / row, and the microseconds of both
	way                 string        // that the second run took
	chosen              float64       // microseconds that it took when it was chosen; 0 if ways were not compared
	first, second       float64       // milliseconds of whole processes
	find, took          time.Duration // to find the best row, and in all
	err                 error         // why it was not measured, or not in all pairs
}

// over is by how much the first run takes longer than the second, as a part of what it may: of two bars the more generous one counts, 150 ms or a
// quarter of the second run.
func (c *compared) over() float64 { return (c.first - c.second) / max(150, c.second/4) }

// measurePlain compares one pipeline after the other, and prints each as soon as it is measured.
func measurePlain(ctx context.Context, s *settings) error {
	files, err := s.files("gemm", "heat", "microbatches", "taskbench-stencil", "inception", "saxpy")
	if err != nil {
		return err
	}
	best, err := readRows(s.rows)
	if err != nil {
		return err
	}
	const line = "%-20s %-24s %9s %9s %9s %7s %-22s %8s %7s %6s %6s %s\n"
	fmt.Printf(line, "pipeline", "best row of bench", "bench us", "plain us", "learned", "ratio", "of pairs", "first ms", "second", "find s", "s", "way of the plain command")
	var ratios, extra []float64
	late, pairs, worst, latest, began := 0, 0, "", "", time.Now()
	for k, file := range files {
		if s.within > 0 && time.Since(began) > s.within {
			fmt.Printf("no time was left for %d of %d pipelines\n", len(files)-k, len(files))
			break
		}
		c := s.comparePlain(ctx, file, best[baseName(file)])
		if c.err != nil {
			fmt.Printf("%-20s %v\n", baseName(file), c.err)
		}
		if len(c.pairs) == 0 {
			continue
		}
		if best[baseName(file)] = c.best; s.rows != "" {
			if err := writeRows(s.rows, best); err != nil {
				return err
			}
		}
		ratio := median(c.pairs)
		pairs += len(c.pairs)
		if ratios = append(ratios, ratio); ratio >= quantile(ratios, 1) {
			worst = baseName(file)
		}
		if extra = append(extra, c.over()); c.over() > 1 {
			late++
		}
		if c.over() >= quantile(extra, 1) {
			latest = baseName(file)
		}
		fmt.Printf(line, baseName(file), fmt.Sprintf("%s %d, %s", c.best.Strategy, c.best.Streams, c.best.Replay), fmt.Sprintf("%.1f", median(c.rows)), fmt.Sprintf("%.1f", median(c.plains)), fmt.Sprintf("%.1f", c.chosen),
			fmt.Sprintf("%.3f", ratio), fmt.Sprintf("%d: %s", len(c.pairs), spread(c.pairs)), fmt.Sprintf("%.0f", c.first), fmt.Sprintf("%.0f", c.second), fmt.Sprintf("%.1f", c.find.Seconds()), fmt.Sprintf("%.1f", c.took.Seconds()), c.way)
	}
	if len(ratios) == 0 {
		return fmt.Errorf("no pipeline ran")
	}
	missed := 0
	for _, ratio := range ratios {
		if ratio > mostPlain {
			missed++
		}
	}
	what := "plain command"
	if s.control {
		what = "best row of bench again"
	}
	bar(what+" / best row of bench, worst", quantile(ratios, 1), mostPlain, "%s; median %.3f; %d of %d pipelines missed it", worst, median(ratios), missed, len(ratios))
	bar(what+" / best row of bench, geometric mean", geometricMean(ratios), mostPlainMean, "%d of %d pipelines, %.1f pairs each", len(ratios), len(files), float64(pairs)/float64(len(ratios)))
	if !s.control {
		bar("first run, part of what it may take longer", quantile(extra, 1), 1, "%s; of 150 ms or a quarter of the second run; %d of %d took longer", latest, late, len(extra))
	}
	return nil
}

// comparePlain runs bench once to find its best row, unless it is known, the plain command once, and then the plain command and that row in turn,
// until more pairs cannot change whether their median meets the bar. As a control, the row is compared with itself, without the plain command.
func (s *settings) comparePlain(ctx context.Context, file string, best *row) (c compared) {
	began := time.Now()
	defer func() { c.took = time.Since(began) }()
	cache := filepath.Join(s.work, "plain", baseName(file))
	if c.best = best; best == nil {
		if c.best, c.err = s.bestRow(ctx, file); c.err != nil {
			return c
		}
		c.find = time.Since(began)
	}
	again := func() (us float64, err error) { return s.plainAgain(ctx, file, cache, &c) }
	if s.control {
		again = func() (us float64, err error) { return s.sameRow(ctx, file, c.best) }
	} else {
		first, err := s.run(ctx, file, cache)
		if err != nil {
			c.err = err
			return c
		}
		c.first = milliseconds(first.wall)
	}
	for len(c.pairs) < s.pairs && !c.decided(s.pairs) {
		us, err := again()
		if err != nil {
			c.err = err
			return c
		}
		row, err := s.sameRow(ctx, file, c.best)
		if err != nil {
			c.err = err
			return c
		}
		c.pairs, c.rows, c.plains = append(c.pairs, us/row), append(c.rows, row), append(c.plains, us)
	}
	return c
}

// plainAgain runs the plain command after the first time, and notes of its second run what is printed. It returns the microseconds of a replay.
func (s *settings) plainAgain(ctx context.Context, file, cache string, c *compared) (us float64, err error) {
	plain, err := s.run(ctx, file, cache)
	if err != nil {
		return 0, err
	}
	if len(c.pairs) == 0 {
		c.second, c.way = milliseconds(plain.wall), plain.way()
		if ways := plain.Learning.Ways; len(ways) > 0 {
			c.chosen = ways[0].Each.Median
		}
	}
	return plain.EachUS, nil
}

// decided reports whether the median of so many pairs meets the bar, or does not, whatever the ratios of those are that have not been measured.
func (c *compared) decided(pairs int) bool {
	meet := 0
	for _, ratio := range c.pairs {
		if ratio <= mostPlain {
			meet++
		}
	}
	return max(meet, len(c.pairs)-meet) > pairs/2
}

// bestRow returns the best row of bench, run with these arguments too, that can be measured again: not what the plain command does.
func (s *settings) bestRow(ctx context.Context, file string, args ...string) (*row, error) {
	var b benched
	find := s.find
	if find == 0 {
		find = s.iterations
	}
	args = append([]string{"bench", file, "--iterations", strconv.Itoa(find), "--warmup", strconv.Itoa(find / 10), "--learn", "off"}, args...)
	if _, err := s.answer(ctx, &b, args...); err != nil {
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

// readRows reads the best rows, by pipeline, that an earlier run wrote to a file; none if there is no file.
func readRows(name string) (map[string]*row, error) {
	best := map[string]*row{}
	if name == "" {
		return best, nil
	}
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return best, nil
	} else if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &best); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return best, nil
}

// writeRows writes them.
func writeRows(name string, best map[string]*row) error {
	text, err := json.Marshal(best)
	if err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o644)
}

// sameRow measures a row again and returns the microseconds of a replay.
func (s *settings) sameRow(ctx context.Context, file string, r *row) (float64, error) {
	args := []string{"bench", file, "--strategy", r.Strategy, "--streams", strconv.Itoa(r.Asked), "--iterations", strconv.Itoa(s.iterations), "--warmup", "20", "--cache-dir", "off"}
	if r.Replay == "graph" {
		args = append(args, "--graph")
	} else {
		args = append(args, "--graph=off")
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
