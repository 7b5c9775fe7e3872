// Shared flags: the flags of most commands, their defaults, and the options made from their values.

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/spread"
	"github.com/dagrun/dagrun/runtime"
)

// Each of these methods adds one group of flags; a command adds the groups that it uses.

// deviceRunFlags are what all commands take that run a pipeline on a device.
func (a *app) deviceRunFlags(c *cobra.Command) {
	a.outputFlags(c)
	a.paramFlags(c)
	a.loadFlags(c)
	a.planFlags(c, "")
	a.deviceFlags(c)
}

func (a *app) outputFlags(c *cobra.Command) {
	f, values := c.Flags(), a.values(c)
	f.StringVar(&values.output, "output", "text", "output `format`: text or json")
	f.StringVar(&values.color, "color", "auto", "`when` to use colours: auto, always or never")
	f.BoolVarP(&values.quiet, "quiet", "q", false, "print errors and failed expectations only")
	f.BoolVarP(&values.verbose, "verbose", "v", false, "explain decisions")
}

func (a *app) paramFlags(c *cobra.Command) {
	f, values := c.Flags(), a.values(c)
	f.StringArrayVarP(&values.params, "param", "p", nil, "set a pipeline parameter, `name=value`; can be repeated")
	f.BoolVar(&values.confined, "confined", false, "for pipelines of others: no files outside of the pipeline's folder, and compilers without network")
	f.IntVar(&values.maxEdges, "max-edges", dag.MaxEdges, "refuse a pipeline of more than `N` dependencies")
}

// planFlags takes "" as machine where the device is planned for.
func (a *app) planFlags(c *cobra.Command, machine string) {
	f, values := c.Flags(), a.values(c)
	f.IntVar(&values.streams, "streams", 8, "at most `N` compute streams per device; if not given, cover takes as many as it needs")
	f.StringVar(&values.strategy, "strategy", "auto", "scheduling `strategy`: auto, list, cover, heft, roundrobin or serial")
	f.StringVar(&values.effort, "effort", planner.Normal.String(), "search `effort` for a good plan: quick, normal or thorough")
	usage := "the `machine` to plan for: h200, clean, unit or a file"
	if machine == "" {
		usage += " (default: the device)"
	}
	f.StringVar(&values.machine, "machine", machine, usage)
	f.StringVar(&values.plan, "plan", "", "use the plan in this JSON `file` instead of planning")
	f.StringVar(&values.profile, "profile", "", "plan with the measured durations in this `file`, from bench --save-profile")
	f.StringVar(&values.devices, "devices", "", "spread the work over `N` devices, or all (default: as the file says)")
	f.StringVar(&values.spread, "spread", "auto", "the `policy` that chooses the devices: auto, heft, mintransfer, roundrobin, owner, chains or one")
	f.StringVar(&values.spill, "spill", spillAuto, "where no plan fits in device memory, copy data to host memory and back: `when` is auto or off")
	f.StringVar(&values.bucket, "bucket", "", "with several ranks: merge all-reduces that follow each other, up to this `size`, such as 25MiB")
	f.StringVar(&values.memoryCap, "memory-cap", "", "plan within this much memory per device, a `size` such as 4GiB")
}

func (a *app) deviceFlags(c *cobra.Command) {
	f, values := c.Flags(), a.values(c)
	f.StringVar(&values.backend, "backend", "auto", "`device` to run on: auto, cuda, cpu, or cpu:N for N CPU devices")
	f.BoolVar(&values.links, "simulate-links", false, "make copies of CPU devices as slow as on the machine that is planned for")
	f.DurationVar(&values.timeout, "timeout", 0, "give up after this long, such as 30s")
	f.Lookup("timeout").DefValue = "never"
}

func (a *app) replayFlags(c *cobra.Command) {
	f, values := c.Flags(), a.values(c)
	a.graphFlag(c, graphAuto, "replay as one CUDA graph: the `mode` is auto (if that is faster), on (--graph alone), off, or built (nodes are added one by one)")
	f.IntVar(&values.iterations, "iterations", 1, "run `N` replays; the result is the state after exactly N")
	f.IntVar(&values.warmup, "warmup", 0, "run `N` warm-up replays first; contents are restored afterwards")
	f.IntVar(&values.inflight, "inflight", 1, "let `K` replays overlap, each with its own buffers")
	f.IntVar(&values.threads, "threads", 1, "submit the streams from `N` threads")
	f.Lookup("threads").DefValue = "as learned, or 1"
	f.StringVar(&values.overlap, "overlap", graphAuto, "let launches begin before the previous one has ended, on GPUs since Hopper: `when` is auto (if learning finds that faster), on or off")
	f.StringVar(&values.memory, "memory", "arena", "allocation `mode` of device memory: arena, or separate for memory checkers")
}

func (a *app) graphFlag(c *cobra.Command, mode, usage string) {
	c.Flags().StringVar(&a.values(c).replay, "graph", mode, usage)
	c.Flags().Lookup("graph").NoOptDefVal = graphOn
}

// The values of --graph. Without a value it means on; captured is another word for on.
const (
	graphOn       = "on"
	graphOff      = "off"
	graphCaptured = "captured"
	graphBuilt    = "built"
	graphAuto     = "auto"
)

// The values of --learn.
const (
	learnAuto  = "auto"
	learnOff   = "off"
	learnAgain = "again"
)

// The values of --sanitize.
const (
	sanitizeAuto = "auto"
	sanitizeFull = "full"
	sanitizeFast = "fast"
	sanitizeOff  = "off"
)

// The values of --spill.
const (
	spillAuto = "auto"
	spillOff  = "off"
)

// joinGraph lets --graph take the next word as its value if it is one of the values, because pflag takes a value of such a flag only after
// an =.
func joinGraph(args []string) []string {
	var joined []string
	for k := 0; k < len(args); k++ {
		if args[k] == "--" {
			return append(joined, args[k:]...)
		}
		if k+1 < len(args) && args[k] == "--graph" && slices.Contains([]string{graphAuto, graphOn, graphOff, graphBuilt, graphCaptured}, args[k+1]) {
			joined = append(joined, args[k]+"="+args[k+1])
			k++
			continue
		}
		joined = append(joined, args[k])
	}
	return joined
}

// oneOf refuses a value that a flag does not accept. "" stands for a flag that the command does not have.
func oneOf(flag, value string, choices ...string) error {
	if value == "" || slices.Contains(choices, value) {
		return nil
	}
	return fmt.Errorf("%s %q: want %s%s", flag, value, strings.Join(choices[:len(choices)-1], ", ")+" or "+choices[len(choices)-1], didYouMean(value, choices))
}

// strategiesOf are the strategies that a command takes: bench takes all of them at once, too.
func strategiesOf(c *cobra.Command) []string {
	if c.Name() == "bench" {
		return append(planner.Strategies(), allStrategies)
	}
	return planner.Strategies()
}

// mostReplays is how many replays a command may be asked for, which take weeks even if each does nothing.
const mostReplays = min(1<<40, math.MaxInt)

// checkFlags refuses values that no command accepts.
func (a *app) checkFlags(c *cobra.Command) error {
	f := a.flags
	has := func(name string) bool { return c.Flags().Lookup(name) != nil }
	f.limited = c.Flags().Changed("streams")
	f.threaded, f.chosen, f.learning = c.Flags().Changed("threads"), c.Flags().Changed("graph"), c.Flags().Changed("learn")
	f.machineSaid = c.Flags().Changed("machine")
	switch {
	case has("streams") && (f.streams < 1 || f.streams > 1024):
		return fmt.Errorf("--streams %d: want 1 to 1024", f.streams)
	case has("max-edges") && (f.maxEdges < 1 || f.maxEdges >= math.MaxInt32):
		return fmt.Errorf("--max-edges %d: want 1 to %d", f.maxEdges, math.MaxInt32-1)
	case f.iterations < 0 || f.iterations > mostReplays:
		return fmt.Errorf("--iterations %d: want 0 to %d", f.iterations, mostReplays)
	case f.warmup < 0 || f.warmup > mostReplays:
		return fmt.Errorf("--warmup %d: want 0 to %d", f.warmup, mostReplays)
	case has("inflight") && (f.inflight < 1 || f.inflight > 1024):
		return fmt.Errorf("--inflight %d: want 1 to 1024", f.inflight)
	case has("threads") && (f.threads < 1 || f.threads > 256):
		return fmt.Errorf("--threads %d: want 1 to 256", f.threads)
	case f.timeout < 0:
		return fmt.Errorf("--timeout %s: want a positive duration", f.timeout)
	}
	output, color := f.output, f.color
	return errors.Join(
		oneOf("--output", output, "text", "json"),
		oneOf("--color", color, "auto", "always", "never"),
		oneOf("--strategy", f.strategy, strategiesOf(c)...),
		oneOf("--spread", f.spread, spread.Policies()...),
		checkDevices(f.devices),
		oneOf("--spill", f.spill, spillAuto, spillOff),
		oneOf("--effort", f.effort, planner.Efforts()...),
		oneOf("--memory", f.memory, "arena", "separate"),
		oneOf("--overlap", f.overlap, graphAuto, graphOn, graphOff),
		oneOf("--graph", f.replay, graphAuto, graphOn, graphOff, graphBuilt, graphCaptured),
		oneOf("--learn", f.learn, learnAuto, learnOff, learnAgain),
		oneOf("--sanitize", f.sanitize, sanitizeAuto, sanitizeFull, sanitizeFast, sanitizeOff),
		checkBackend(f.backend),
	)
}

// planOptions turns the plan flags into the planner's options. device is the machine if --machine names none.
func (a *app) planOptions(ctx context.Context, device *planner.Machine) (planner.Options, error) {
	f := a.flags
	o := planner.Options{Strategy: f.strategy, Streams: f.streams, Machine: device, KeepAll: f.memory == "separate", SingleUseEvents: f.threads > 1}
	o.InOrder, o.InGraph = a.inOrder, a.inGraph
	if !f.limited {
		o.Streams = 0
	}
	var err error
	if o.Effort, err = planner.ParseEffort(f.effort); err != nil {
		return o, err
	}
	if f.machine != "" {
		if o.Machine, err = loadMachine(ctx, f.machine); err != nil {
			return o, err
		}
	}
	if f.profile != "" {
		if o.Profile, err = decodeFile(ctx, f.profile, planner.DecodeProfile); err != nil {
			return o, err
		}
	}
	if o.MemoryCap, err = a.memoryCap(); err != nil {
		return o, err
	}
	if a.network != nil {
		o.MemoryCap = 0 // the network keeps to it
		o.Profile = runtime.MergeProfiles(a.network.Durations(), o.Profile)
	}
	o.Spread = a.spread
	return o, nil
}

// memoryCap is --memory-cap in bytes; 0: there is none.
func (a *app) memoryCap() (int64, error) {
	if a.flags.memoryCap == "" {
		return 0, nil
	}
	most, err := parseSize(a.flags.memoryCap)
	if err != nil {
		return 0, fmt.Errorf("--memory-cap %q: %w", a.flags.memoryCap, err)
	}
	return most, nil
}

// planned returns the part of a command line that leads to the same plan on the same device, with the given strategy and number of
// streams unless the plan comes from a file.
func (f *flags) planned(strategy string, streams int) []string {
	var args []string
	add := func(name, value, usual string) {
		if value != "" && value != usual {
			args = append(args, name, value)
		}
	}
	for _, p := range f.params {
		args = append(args, "-p", p)
	}
	for _, file := range f.load {
		args = append(args, "--load", file)
	}
	for _, file := range f.save {
		args = append(args, "--save", file)
	}
	add("--max-edges", strconv.Itoa(f.maxEdges), strconv.Itoa(dag.MaxEdges))
	add("--backend", f.backend, "auto")
	if f.plan != "" {
		args = append(args, "--plan", f.plan)
	} else {
		args = append(args, "--strategy", strategy)
		if streams > 0 {
			args = append(args, "--streams", strconv.Itoa(streams))
		}
		add("--effort", f.effort, planner.Normal.String())
	}
	add("--machine", f.machine, "")
	add("--devices", f.devices, "")
	add("--spread", f.spread, "auto")
	add("--spill", f.spill, spillAuto)
	add("--profile", f.profile, "")
	add("--memory-cap", f.memoryCap, "")
	add("--bucket", f.bucket, "")
	add("--memory", f.memory, "arena")
	add("--sanitize", f.sanitize, sanitizeAuto)
	add("--cache-dir", f.cacheDir, "")
	if f.confined {
		args = append(args, "--confined")
	}
	if f.links {
		args = append(args, "--simulate-links")
	}
	return args
}

// loadMachine loads a machine by its built-in name or from its file.
func loadMachine(ctx context.Context, name string) (*planner.Machine, error) {
	m, err := planner.MachineByName(name)
	if err == nil {
		return m, nil
	}
	if _, statErr := os.Stat(name); errors.Is(statErr, os.ErrNotExist) && !strings.ContainsAny(name, "/.") {
		return nil, fmt.Errorf("--machine %q: want h200, clean, unit or a file%s", name, didYouMean(name, planner.MachineNames()))
	}
	return decodeFile(ctx, name, planner.DecodeMachine)
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

// allStrategies is the --strategy of bench that stands for every one.
const allStrategies = "all"

// deviceCount is --devices as file.Options has it.
func deviceCount(text string) int {
	if text == "all" {
		return dag.AllDevices
	}
	n, _ := strconv.Atoi(text)
	return n
}

func checkDevices(text string) error {
	if n := deviceCount(text); text != "" && text != "all" && (n < 1 || n > dag.MostDevices) {
		return fmt.Errorf("--devices %q: want 1 to %d, or all", text, dag.MostDevices)
	}
	return nil
}

// cpuDevices is how many CPU devices --backend asks for; 0: it names another backend.
func cpuDevices(backend string, wanted int) (int, error) {
	name, number, counted := strings.Cut(backend, ":")
	if name != "cpu" {
		return 0, nil
	}
	if !counted {
		return wanted, nil
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > 64 {
		return 0, fmt.Errorf("--backend %q: want cpu:1 to cpu:64", backend)
	}
	return n, nil
}

func checkBackend(backend string) error {
	if n, err := cpuDevices(backend, 1); n > 0 || err != nil {
		return err
	}
	if backend == "gpu" {
		return errors.New(`--backend "gpu": want auto, cuda or cpu; did you mean "cuda"?`)
	}
	return oneOf("--backend", backend, "auto", "cuda", "cpu")
}
