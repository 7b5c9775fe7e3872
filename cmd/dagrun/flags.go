// Shared flags: what most commands take, their defaults and what they turn into.

package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/planner"
)

// flags holds the values of the shared flags.
type flags struct {
	params     []string
	backend    string
	streams    int
	strategy   string
	machine    string
	plan       string
	profile    string
	memoryCap  string
	output     string
	color      string
	quiet      bool
	verbose    bool
	graph      bool
	iterations int
	warmup     int
	inflight   int
	timeout    time.Duration
}

// Each of these adds one group of flags; a command takes the groups that mean something to it.

func (a *app) outputFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&a.flags.output, "output", "text", "text or json")
	f.StringVar(&a.flags.color, "color", "auto", "auto, always or never")
	f.BoolVarP(&a.flags.quiet, "quiet", "q", false, "print errors and failed expectations only")
	f.BoolVarP(&a.flags.verbose, "verbose", "v", false, "say what was decided and why")
}

func (a *app) paramFlags(c *cobra.Command) {
	c.Flags().StringArrayVarP(&a.flags.params, "param", "p", nil, "set a parameter of the pipeline, `name=value`; may be given again")
}

func (a *app) planFlags(c *cobra.Command, machine string) {
	f := c.Flags()
	f.IntVar(&a.flags.streams, "streams", 8, "compute streams per device")
	f.StringVar(&a.flags.strategy, "strategy", "auto", "auto, list, cover, roundrobin or serial")
	f.StringVar(&a.flags.machine, "machine", machine, "model that planning uses: h200, unit or a `file`")
	f.StringVar(&a.flags.plan, "plan", "", "use the plan in this JSON `file` instead of planning")
	f.StringVar(&a.flags.profile, "profile", "", "measured durations, a `file` of bench --save-profile")
	f.StringVar(&a.flags.memoryCap, "memory-cap", "", "plan within this much memory per device, such as `4GiB`")
}

func (a *app) deviceFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&a.flags.backend, "backend", "auto", "auto, cuda, cpu, or cpu:`N` for N CPU devices")
	f.DurationVar(&a.flags.timeout, "timeout", 0, "give up after this long, such as 30s; 0: never")
}

func (a *app) replayFlags(c *cobra.Command) {
	f := c.Flags()
	f.BoolVar(&a.flags.graph, "graph", false, "replay as one CUDA graph")
	f.IntVar(&a.flags.iterations, "iterations", 1, "replays; the result is the state after exactly so many")
	f.IntVar(&a.flags.warmup, "warmup", 0, "replays before those; contents are restored afterwards")
	f.IntVar(&a.flags.inflight, "inflight", 1, "replays that may overlap, each with its own buffers")
}

// checkFlags finds values that no command takes.
func (a *app) checkFlags() error {
	f := &a.flags
	switch {
	case f.output != "" && f.output != "text" && f.output != "json":
		return fmt.Errorf("--output %q: want text or json", f.output)
	case f.color != "" && f.color != "auto" && f.color != "always" && f.color != "never":
		return fmt.Errorf("--color %q: want auto, always or never", f.color)
	case f.streams < 0:
		return fmt.Errorf("--streams %d: want 1 or more", f.streams)
	case f.iterations < 0:
		return fmt.Errorf("--iterations %d: want 0 or more", f.iterations)
	case f.warmup < 0:
		return fmt.Errorf("--warmup %d: want 0 or more", f.warmup)
	case f.inflight < 0:
		return fmt.Errorf("--inflight %d: want 1 or more", f.inflight)
	case f.timeout < 0:
		return fmt.Errorf("--timeout %s: want a positive duration", f.timeout)
	}
	return nil
}

// planOptions turns the plan flags into the planner's options.
func (a *app) planOptions() (planner.Options, error) {
	f := &a.flags
	o := planner.Options{Strategy: f.strategy, Streams: f.streams}
	var err error
	if o.Machine, err = loadMachine(f.machine); err != nil {
		return o, err
	}
	if f.profile != "" {
		if o.Profile, err = decodeFile(f.profile, planner.DecodeProfile); err != nil {
			return o, err
		}
	}
	if f.memoryCap != "" {
		if o.MemoryCap, err = parseSize(f.memoryCap); err != nil {
			return o, fmt.Errorf("--memory-cap %q: %w", f.memoryCap, err)
		}
	}
	return o, nil
}

// loadMachine takes the name of a built-in machine or the file of one.
func loadMachine(name string) (*planner.Machine, error) {
	m, err := planner.MachineByName(name)
	if err == nil {
		return m, nil
	}
	if _, statErr := os.Stat(name); errors.Is(statErr, os.ErrNotExist) && !strings.ContainsAny(name, "/.") {
		return nil, fmt.Errorf("--machine: %w", err)
	}
	return decodeFile(name, planner.DecodeMachine)
}

// parseSize reads 4GiB, 512MB, 1e9 or a plain number of bytes.
func parseSize(text string) (int64, error) {
	units := []struct {
		suffix string
		bytes  float64
	}{
		{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
		{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1},
	}
	number, scale := strings.TrimSpace(text), 1.0
	for _, u := range units {
		if rest, ok := strings.CutSuffix(number, u.suffix); ok {
			number, scale = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !(v*scale > 0) || v*scale >= 1<<62 {
		return 0, errors.New("want a size such as 4GiB, 512MiB or 1000000")
	}
	return int64(v * scale), nil
}
