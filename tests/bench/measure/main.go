// Measures dagrun and hand-written C++: the GrCUDA workloads, host cost per node, Task Bench patterns. Prints tables and writes
// them to a folder with the raw numbers. There are no thresholds: slow results do not make it fail.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/driver"
	"github.com/dagrun/dagrun/cudart/host"
)

func main() {
	var s settings
	flag.StringVar(&s.pipelines, "pipelines", "pipelines", "`folder` of the pipeline files")
	flag.StringVar(&s.suite, "suite", "", "the C++ `program` made of baseline/suite.cpp; none: no comparison")
	flag.StringVar(&s.out, "out", "results", "`folder` for the results")
	flag.BoolVar(&s.small, "small", false, "use the sizes in the files")
	flag.IntVar(&s.rounds, "rounds", 15, "paired `rounds`")
	flag.StringVar(&s.only, "only", "", "comma-separated `names` of workloads, of patterns and tasks, to measure; empty: all")
	flag.StringVar(&s.backend, "backend", "cuda", "cuda or cpu")
	flag.IntVar(&s.streams, "streams", 8, "compute `streams` that plans may use")
	flag.Parse()
	if err := measure(context.Background(), s, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

// measurements are the tables by name.
var measurements = map[string]func(ctx context.Context, s settings, p cudart.Platform) (any, []table, error){
	"suite":    measureSuite,
	"patterns": measurePatterns,
}

func measure(ctx context.Context, s settings, names []string) (err error) {
	if len(names) == 0 {
		return errors.New("say what to measure: suite or patterns")
	}
	if err := os.MkdirAll(s.out, 0o755); err != nil {
		return err
	}
	p, err := openPlatform(s.backend)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	for _, name := range names {
		m := measurements[name]
		if m == nil {
			return fmt.Errorf("no measurement %q: want suite or patterns", name)
		}
		raw, tables, err := m(ctx, s, p)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		text, err := json.MarshalIndent(raw, "", "  ")
		if err != nil {
			return err
		}
		var printed strings.Builder
		for _, t := range tables {
			printed.WriteString(t.markdown())
		}
		fmt.Print(printed.String())
		if err := errors.Join(os.WriteFile(filepath.Join(s.out, name+".json"), append(text, '\n'), 0o644),
			os.WriteFile(filepath.Join(s.out, name+".md"), []byte(printed.String()), 0o644)); err != nil {
			return err
		}
	}
	return nil
}

func openPlatform(backend string) (cudart.Platform, error) {
	switch backend {
	case "cuda":
		return driver.Open(driver.Options{})
	case "cpu":
		return host.Open(host.Options{})
	}
	return nil, fmt.Errorf("-backend %q: want cuda or cpu", backend)
}
