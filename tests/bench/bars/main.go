// Measures everything that learning, predictions and start-up are held to, and prints each beside its bar.

// Command bars runs dagrun as a user would, and prints a line for each bar: what was measured, the bar, and whether it was met. It needs
// a built dagrun, the pipelines, and nothing of Go; the comparisons with C++ need nvcc.
//
//	tests/gpu/build && build/gpu/bench/bars                      # on a machine with a GPU
//	build/gpu/bench/bars -quick                                  # some of the pipelines, fewer pairs: under 100 s
//	build/gpu/bench/bars -only cpu                               # on any machine
//
// Where two things are compared, they take turns, and the ratio is the median of the pairs. Nothing fails because something is slow.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// parts are what can be measured, in the order in which they are.
var parts = []struct {
	name    string
	measure func(ctx context.Context, s *settings) error
}{
	{"startup", measureStartup}, {"wide", measureWide}, {"first", measureFirst}, {"plain", measurePlain}, {"steady", measureSteady},
	{"queues", measureQueues}, {"unknown",
		measureUnknown}, {"formulas", measureFormulas}, {"prediction", measurePrediction},
	{"cpu", measureCPU},
}

func main() {
	self, err := os.Executable()
	here := filepath.Dir(self)
	if err != nil {
		here = "."
	}
	var s settings
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	flag.StringVar(&s.dagrun, "dagrun", filepath.Join(here, "..", "dagrun"), "the `command` to measure")
	flag.StringVar(&s.pipelines, "pipelines", filepath.Join(here, "..", "pipelines"), "`folder` of the pipeline files")
	flag.StringVar(&s.baseline, "baseline", filepath.Join(here, "baseline"), "`folder` of the C++ programs")
	flag.StringVar(&s.only, "only", strings.Join(names, ","), "comma-separated `parts` to measure")
	flag.StringVar(&s.names, "names", "", "comma-separated `pipelines` to measure (default all)")
	flag.StringVar(&s.part, "part", "", "one `part` of the pipelines, such as 1/2")
	flag.DurationVar(&s.within, "within", 0, "begin no more pipelines of the plain command after this `time`")
	flag.BoolVar(&s.each, "each", false, "print each prediction, and of the plain command what its first run timed and each pair")
	flag.StringVar(&s.record, "record", "", "write what predictions were made from and what was measured to this `folder`, a file for each pipeline")
	flag.StringVar(&s.replay, "replay", "", "predict again from the files of this `folder`, which -record wrote, and measure nothing; needs no GPU")
	flag.BoolVar(&s.quick, "quick", false, "measure some of the pipelines, with fewer pairs")
	flag.IntVar(&s.pairs, "pairs", 5, "`pairs` of each comparison")
	flag.IntVar(&s.again, "again", 0, "measure the pipelines whose plain command misses the bar again, with empty caches and this many `pairs`")
	flag.IntVar(&s.iterations, "iterations", 200, "`replays` of each run")
	flag.IntVar(&s.find, "find", 0, "`replays` of each row of bench while the best is looked for, which is measured again then (default as many as of each run)")
	flag.BoolVar(&s.control, "control", false, "compare the best row of bench with itself too: what noise alone does")
	flag.StringVar(&s.rows, "rows", "", "take the best rows of bench from this `file`, and write those to it that it does not have, for later runs")
	flag.Int64Var(&s.seed, "seed", 1, "`seed` of the graphs that are made")
	flag.Parse()
	if s.quick {
		s.pairs = min(s.pairs, 3)
	}
	if err := measure(context.Background(), &s, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "bars:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, s *settings, args []string) (err error) {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q", args[0])
	}
	wanted := strings.Split(s.only, ",")
	for _, name := range wanted {
		if !slices.ContainsFunc(parts, func(p struct {
			name    string
			measure func(ctx context.Context, s *settings) error
		}) bool {
			return p.name == name
		}) {
			return fmt.Errorf("-only %s: there is no such part", name)
		}
	}
	if s.work, err = os.MkdirTemp("", "bars"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.work)) }()
	for _, p := range parts {
		if !slices.Contains(wanted, p.name) {
			continue
		}
		fmt.Printf("\n== %s\n", p.name)
		if err := p.measure(ctx, s); err != nil {
			fmt.Printf("BAR %s: not measured: %v\n", p.name, err)
		}
	}
	return nil
}
