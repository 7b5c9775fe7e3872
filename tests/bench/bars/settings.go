// What all parts of the measurement share: the values of the command line, the pipeline files, and the printed bar.

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// settings holds the values of the command line, and what all parts use.
type settings struct {
	dagrun     string
	pipelines  string
	baseline   string // folder of the C++ programs
	only       string
	names      string // of pipelines, if not all are measured
	part       string // of the pipelines, such as 1/2
	within     time.Duration
	quick      bool
	each       bool   // print each prediction and each pair
	record     string // folder for records of predictions, or ""
	replay     string // folder of records to predict again, or ""
	pairs      int
	again      int // pairs of the plain command for pipelines that missed its bar; 0: they are not measured again
	iterations int
	find       int    // replays of each row of bench while the best is looked for; 0: as many as of each run
	control    bool   // the best row of bench is compared with itself too
	rows       string // file of the best rows of bench, or ""
	seed       int64
	work       string // a folder of this run
}

// files returns the pipeline files: those that were asked for, or else all that have one device and no races. Quick keeps the named ones.
func (s *settings) files(quick ...string) ([]string, error) {
	all, err := filepath.Glob(filepath.Join(s.pipelines, "*.yaml"))
	if err != nil || len(all) == 0 {
		return nil, fmt.Errorf("no pipelines in %s", s.pipelines)
	}
	all = slices.DeleteFunc(all, func(file string) bool {
		name := baseName(file)
		if s.names != "" {
			return !s.asksFor(name)
		}
		if s.quick && len(quick) > 0 && !slices.Contains(quick, name) {
			return true
		}
		return name == "race" || name == "two-devices" || strings.HasSuffix(name, "-published")
	})
	if s.part == "" {
		return all, nil
	}
	var k, of int
	if n, err := fmt.Sscanf(s.part, "%d/%d", &k, &of); err != nil || n != 2 || k < 1 || k > of {
		return nil, fmt.Errorf("-part %s: want one of several parts, such as 1/2", s.part)
	}
	var own []string
	for i := k - 1; i < len(all); i += of {
		own = append(own, all[i])
	}
	return own, nil
}

// asksFor reports whether -names asks for a pipeline; it asks for all if it is not given.
func (s *settings) asksFor(name string) bool {
	return s.names == "" || slices.Contains(strings.Split(s.names, ","), name)
}

func baseName(file string) string { return strings.TrimSuffix(filepath.Base(file), ".yaml") }

// compiled compiles one of the C++ programs and returns its path.
func (s *settings) compiled(ctx context.Context, name string) (string, error) {
	nvcc, err := exec.LookPath("nvcc")
	if err != nil {
		nvcc = filepath.Join(cudaHome(), "bin", "nvcc")
	}
	program := filepath.Join(s.work, name)
	out, err := exec.CommandContext(ctx, nvcc, "-O2", "-std=c++17", "-o", program, filepath.Join(s.baseline, name+".cpp"), "-lcuda").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s.cpp cannot be compiled: %w: %s", name, err, strings.TrimSpace(string(out)))
	}
	return program, nil
}

func cudaHome() string {
	for _, variable := range []string{"CUDA_HOME", "CUDA_PATH"} {
		if folder := os.Getenv(variable); folder != "" {
			return folder
		}
	}
	return "/usr/local/cuda"
}

// bar prints one line: a value against its bar, with what else there is to say.
func bar(name string, value, most float64, format string, args ...any) {
	verdict := "met"
	if !(value <= most) {
		verdict = "MISSED"
	}
	fmt.Printf("BAR %s: %.3g, bar <= %.3g: %s (%s)\n", name, value, most, verdict, fmt.Sprintf(format, args...))
}
