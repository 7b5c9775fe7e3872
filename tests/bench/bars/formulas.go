// Compares the formulas of the library's kernels with how long the device takes for them.

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/cupti"
	"github.com/dagrun/dagrun/cudart/driver"
	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/runtime"
)

// launchUS is what CUPTI counts of every kernel that the model counts between nodes: an empty kernel takes so long by its records.
const launchUS = 0.54

// kernelTimes holds what was measured of one kernel, and its formula.
type kernelTimes struct {
	measured, formula []float64
}

// measureFormulas runs every pipeline one node after the other, and compares each kernel's median with its formula.
func measureFormulas(ctx context.Context, s *settings) (err error) {
	files, err := s.files()
	if err != nil {
		return err
	}
	recorder, err := cupti.Prepare() // before the driver is opened
	if err != nil {
		return err
	}
	platform, err := driver.Open(driver.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, platform.Close()) }()
	times := map[string]*kernelTimes{}
	var names []string
	for _, file := range files {
		if err := s.timeKernels(ctx, platform, recorder, file, func(kernel string, measured, formula float64) {
			t := times[kernel]
			if t == nil {
				t = &kernelTimes{}
				times[kernel], names = t, append(names, kernel)
			}
			t.measured, t.formula = append(t.measured, measured), append(t.formula, formula)
		}); err != nil {
			fmt.Printf("%-22s %v\n", baseName(file), err)
		}
	}
	if len(names) == 0 {
		return errors.New("no pipeline ran")
	}
	slices.Sort(names)
	fmt.Printf("%-36s %6s %12s %12s %9s\n", "kernel", "nodes", "measured us", "formula us", "ratio")
	var off []float64
	for _, name := range names {
		t := times[name]
		var ratios []float64
		for k := range t.measured {
			ratios = append(ratios, t.measured[k]/t.formula[k])
		}
		ratio := median(ratios)
		off = append(off, math.Exp(math.Abs(math.Log(ratio))))
		fmt.Printf("%-36s %6d %12.2f %12.2f %9.2f\n", name, len(ratios), median(t.measured), median(t.formula), ratio)
	}
	fmt.Printf("formulas are off by a factor of %.2f (median of %d kernels), at most %.2f\n", median(off), len(off), quantile(off, 1))
	return nil
}

// timeKernels traces one pipeline and reports each of its library kernels.
func (s *settings) timeKernels(ctx context.Context, platform cudart.Platform, recorder runtime.Recorder, name string,
	each func(kernel string, measured, formula float64)) (err error) {
	source, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	g, err := file.Parse(source, file.Options{Name: name, Dir: filepath.Dir(name), Library: kernels.Library(), ReadFile: os.ReadFile})
	if err != nil {
		return errors.New("has modules of its own, or does not parse")
	}
	machine := runtime.MachineOf(platform)
	plan, err := planner.New(ctx, g, planner.Options{Machine: machine, Strategy: "serial"})
	if err != nil {
		return err
	}
	program, err := runtime.New(ctx, g, plan, platform, runtime.Options{Recorder: recorder})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, program.Close()) }()
	trace, err := program.Trace(ctx, 5)
	if err != nil {
		return err
	}
	if trace.Source != "cupti" {
		return errors.New(trace.Fallback)
	}
	durations := model.Durations(g, machine, nil)
	for i := range g.Nodes {
		if g.Nodes[i].Launch == nil {
			continue
		}
		var took []float64
		for _, r := range trace.Replays {
			took = append(took, r.Spans[i].End-r.Spans[i].Start)
		}
		each(g.Nodes[i].Launch.Kernel.Entry(), max(0.05, median(took)-launchUS), durations[i])
	}
	return nil
}
