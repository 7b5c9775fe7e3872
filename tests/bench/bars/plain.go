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
	"reflect"
	"slices"
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
	controls            []float64     // as a control: of each pair, the row once more / row
	ways                []string      // that the plain command took in each pair
	own                 int           // of the pairs: the plain command took the row's own plan, as it replays
	timed               string        // the ways that the first run timed
	chosen              float64       // microseconds that it took when it was chosen; 0 if ways were not compared
	first, second       float64       // milliseconds of whole processes
	find, took          time.Duration // to find the best row, and in all
	err                 error         // why it was not measured, or not in all pairs
}

// over is by how much the first run takes longer than the second, as a part of what it may: of two bars the more generous one counts, 150 ms or a
// quarter of the second run.
func (c *compared) over() float64 { return (c.first - c.second) / max(150, c.second/4) }

// plainTable prints what was compared, pipeline by pipeline, and keeps what the bars are about.
type plainTable struct {
	each  bool   // print every pair
	plain ratios // plain command / best row
	same  ratios // of those pipelines whose plain command always took the row's own plan
	again ratios // that row again / best row
	first ratios // the part of what the first run may take longer
}

const plainLine = "%-20s %-24s %9s %9s %9s %7s %-22s %-14s %7s %7s %8s %7s %6s %6s %s\n"

func (t *plainTable) title() {
	fmt.Printf(plainLine, "pipeline", "best row of bench", "bench us", "plain us", "learned", "ratio", "of pairs", "surely within", "control", "same",
		"first ms", "second", "find s", "s", "way that the plain command took last")
}

func (t *plainTable) add(name string, c *compared) {
	if t.each {
		fmt.Printf("  %s timed %s\n", name, c.timed)
		for k := range c.pairs {
			fmt.Printf("  pair %d: %.1f us and %.1f, %.3f: %s\n", k+1, c.plains[k], c.rows[k], c.pairs[k], c.ways[k])
		}
	}
	controlled := ""
	t.plain.add(name, c.pairs)
	t.first.add(name, []float64{c.over()})
	if c.own == len(c.pairs) {
		t.same.add(name, c.pairs)
	}
	if len(c.controls) > 0 {
		t.again.add(name, c.controls)
		controlled = fmt.Sprintf("%.3f", median(c.controls))
	}
	within := ""
	if low, high := surely(c.pairs); low > 0 {
		within = fmt.Sprintf("%.3f to %.3f", low, high)
	}
	fmt.Printf(plainLine, name, fmt.Sprintf("%s %d, %s", c.best.Strategy, c.best.Streams, c.best.Replay), fmt.Sprintf("%.1f", median(c.rows)),
		fmt.Sprintf("%.1f", median(c.plains)), fmt.Sprintf("%.1f", c.chosen),
		fmt.Sprintf("%.3f", median(c.pairs)), fmt.Sprintf("%d: %s", len(c.pairs), spread(c.pairs)), within, controlled, fmt.Sprintf("%d/%d", c.own, len(c.pairs)),
		fmt.Sprintf("%.0f", c.first), fmt.Sprintf("%.0f", c.second), fmt.Sprintf("%.1f", c.find.Seconds()), fmt.Sprintf("%.1f",
			c.took.Seconds()), c.ways[len(c.ways)-1])
}

// bars prints the bars of so many pipelines.
func (t *plainTable) bars(of int) {
	for _, part := range []struct {
		name string
		*ratios
	}{{"plain command", &t.plain}, {"where it always took that row's own plan: plain command", &t.same}, {"as a control: that row again", &t.again}} {
		r := part.ratios
		if len(r.medians) == 0 {
			continue
		}
		bar(part.name+" / best row of bench, worst", quantile(r.medians, 1), mostPlain, "%s; median %.3f; %d of %d pipelines missed it, %d surely", r.worst,
			median(r.medians), above(r.medians, mostPlain), len(r.medians), above(r.least, mostPlain))
		bar(part.name+" / best row of bench, geometric mean", geometricMean(r.medians), mostPlainMean, "%d of %d pipelines, %.1f pairs each",
			len(r.medians), of, float64(r.pairs)/float64(len(r.medians)))
	}
	bar("first run, part of what it may take longer", quantile(t.first.medians, 1), 1,
		"%s; of 150 ms or a quarter of the second run; %d of %d took longer", t.first.worst, above(t.first.medians, 1), len(t.first.medians))
}

// measurePlain compares one pipeline after the other, and prints each as soon as it is measured. Then it compares those again that missed the bar, if
// that was asked for: few pairs cannot tell which of them did by chance.
func measurePlain(ctx context.Context, s *settings) error {
	files, err := s.files("gemm", "heat", "microbatches", "taskbench-stencil", "inception", "saxpy")
	if err != nil {
		return err
	}
	best, err := readRows(s.rows)
	if err != nil {
		return err
	}
	missed, err := s.comparePlains(ctx, "plain", files, best)
	if err != nil || s.again == 0 || len(missed) == 0 {
		return err
	}
	fmt.Printf("\nthose that missed it again, with empty caches and up to %d pairs each\n", s.again)
	again := *s
	again.pairs = s.again
	_, err = again.comparePlains(ctx, "again", missed, best)
	return err
}

// comparePlains compares pipelines, with caches in a folder of that name, and returns those that missed the bar. It adds to best, the best rows by
// pipeline, those that it lacks.
func (s *settings) comparePlains(ctx context.Context, folder string, files []string, best map[string]*row) (missed []string, err error) {
	folder = filepath.Join(s.work, folder)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	t := &plainTable{each: s.each}
	t.title()
	began := time.Now()
	for k, file := range files {
		if s.within > 0 && time.Since(began) > s.within {
			fmt.Printf("no time was left for %d of %d pipelines\n", len(files)-k, len(files))
			break
		}
		name := baseName(file)
		c := s.comparePlain(ctx, file, filepath.Join(folder, name), best[name])
		if c.err != nil {
			fmt.Printf("%-20s %v\n", name, c.err)
		}
		if len(c.pairs) == 0 {
			continue
		}
		if best[name] = c.best; s.rows != "" {
			if err := writeRows(s.rows, best); err != nil {
				return nil, err
			}
		}
		if t.add(name, &c); median(c.pairs) > mostPlain {
			missed = append(missed, file)
		}
	}
	if len(t.plain.medians) == 0 {
		return nil, fmt.Errorf("no pipeline ran")
	}
	t.bars(len(files))
	return missed, nil
}

// comparePlain runs bench once to find its best row, unless it is known, the plain command once, and then the plain command and that row in turn,
// until more pairs cannot change whether their median meets the bar; cache is the folder of the plain command's cache. As a control, the row is measured a
// second time in each pair: how much noise
// there is.
func (s *settings) comparePlain(ctx context.Context, file, cache string, best *row) (c compared) {
	began := time.Now()
	defer func() { c.took = time.Since(began) }()
	if c.best = best; best == nil {
		if c.best, c.err = s.bestRow(ctx, file); c.err != nil {
			return c
		}
		c.find = time.Since(began)
	}
	first, err := s.run(ctx, file, cache, "--save-plan", cache+".plain.json")
	if err != nil {
		c.err = err
		return c
	}
	c.first, c.timed = milliseconds(first.wall), first.timed()
	plan, err := s.planOf(ctx, file, cache+".row.json", c.best.asks()...)
	if err != nil {
		c.err = err
		return c
	}
	for len(c.pairs) < s.pairs && !(decided(c.pairs, s.pairs) && (!s.control || decided(c.controls, s.pairs))) {
		if c.err = s.pair(ctx, file, cache, plan, &c); c.err != nil {
			return c
		}
	}
	return c
}

// pair measures the plain command, the row, and as a control the row again; every other time in the opposite order, because a process may take
// longer after one command than after another. plan is that of the row.
func (s *settings) pair(ctx context.Context, file, cache string, plan *issued, c *compared) (err error) {
	var plain, row, again float64
	turns := []func() error{
		func() error { plain, err = s.plainAgain(ctx, file, cache, plan, c); return err },
		func() error { row, err = s.sameRow(ctx, file, c.best); return err },
	}
	if s.control {
		turns = append(turns, func() error { again, err = s.sameRow(ctx, file, c.best); return err })
	}
	if len(c.pairs)%2 == 1 {
		slices.Reverse(turns)
	}
	for _, measure := range turns {
		if err := measure(); err != nil {
			return err
		}
	}
	if s.control {
		c.controls = append(c.controls, again/row)
	}
	c.pairs, c.rows, c.plains = append(c.pairs, plain/row), append(c.rows, row), append(c.plains, plain)
	return nil
}

// plainAgain runs the plain command after the first time, and notes of its second run what is printed. It returns the microseconds of a replay.
func (s *settings) plainAgain(ctx context.Context, file, cache string, row *issued, c *compared) (float64, error) {
	saved := cache + ".plain.json"
	plain, err := s.run(ctx, file, cache, "--save-plan", saved)
	if err != nil {
		return 0, err
	}
	plan, err := readIssued(saved)
	if err != nil {
		return 0, err
	}
	if plain.Replay == c.best.Replay && plain.likeBench() && reflect.DeepEqual(plan, row) {
		c.own++
	}
	if c.ways = append(c.ways, plain.way()); len(c.pairs) == 0 {
		c.second = milliseconds(plain.wall)
		if ways := plain.Learning.Ways; len(ways) > 0 {
			c.chosen = ways[0].Each.Median
		}
	}
	return plain.EachUS, nil
}

// decided reports whether the median of so many pairs meets the bar, or does not, whatever the ratios of those are that have not been measured.
func decided(ratios []float64, pairs int) bool {
	missed := above(ratios, mostPlain)
	return max(missed, len(ratios)-missed) > pairs/2
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
	args := append([]string{"bench", file, "--iterations", strconv.Itoa(s.iterations), "--warmup", "20", "--cache-dir", "off"}, r.asks()...)
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

// asks returns the arguments that ask for the plan and the replays of a row.
func (r *row) asks() []string {
	graph := "--graph=off"
	if r.Replay == "graph" {
		graph = "--graph"
	}
	return []string{"--strategy", r.Strategy, "--streams", strconv.Itoa(r.Asked), graph}
}
