// Package flags has the flags that commands share: their values, their defaults, and what is refused. A command adds the groups that it uses.
package flags

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/cudart/world"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/effort"
	"github.com/dagrun/dagrun/planner/spread"
	"github.com/dagrun/dagrun/runtime/cache"
)

// Sets are the values of the shared flags: of each command, because flags of the same name have other defaults in other commands.
type Sets struct {
	Flags *Values                    // of the command that runs
	of    map[*cobra.Command]*Values // of all
}

// New has no values yet.
func New() *Sets { return &Sets{Flags: &Values{}, of: map[*cobra.Command]*Values{}} }

// Values holds the values of the shared flags.
type Values struct {
	Params      []string
	Load        []string
	Save        []string
	MaxEdges    int
	Confined    bool
	Backend     string
	Streams     int
	Limited     bool // whether --streams was given
	Strategy    string
	Effort      string
	Machine     string
	Sanitize    string
	Steps       uint64 // of a kernel on the CPU device; 0 sets no limit
	Plan        string
	Profile     string
	MemoryCap   string
	Bucket      string
	Devices     string
	Spread      string
	Spill       string
	Output      string
	Color       string
	Quiet       bool
	Verbose     bool
	Replay      string // --graph: auto, on (also captured), off or built
	Chosen      bool   // whether --graph was given
	MachineSaid bool   // whether --machine was given
	Threaded    bool   // whether --threads was given
	Learn       string
	Learning    bool // whether --learn was given
	CacheDir    string
	Iterations  int
	Warmup      int
	Inflight    int
	Threads     int
	Overlap     string
	Memory      string
	Timeout     time.Duration
	Ranks       world.Flags
	Arrive      time.Duration
}

// ValuesOf returns a command's own flag values, because flags of the same name have other defaults in other commands.
func (s *Sets) ValuesOf(c *cobra.Command) *Values {
	if s.of[c] == nil {
		s.of[c] = &Values{}
	}
	return s.of[c]
}

// LoadFlags belong to commands that plan or run a pipeline.
func (s *Sets) LoadFlags(c *cobra.Command) {
	c.Flags().StringArrayVar(&s.ValuesOf(c).Load, "load", nil, "fill a host buffer from a .npy or .bin file, `buffer=file`; can be repeated")
}

// SaveFlags belong to commands that save results, or plan for one that does.
func (s *Sets) SaveFlags(c *cobra.Command) {
	c.Flags().StringArrayVar(&s.ValuesOf(c).Save, "save", nil, "save a host buffer to a .npy or .bin file, `buffer=file`; can be repeated")
}

// DeviceRunFlags are what all commands take that run a pipeline on a device.
func (s *Sets) DeviceRunFlags(c *cobra.Command) {
	s.OutputFlags(c)
	s.ParamFlags(c)
	s.LoadFlags(c)
	s.PlanFlags(c, "")
	s.DeviceFlags(c)
}

func (s *Sets) OutputFlags(c *cobra.Command) {
	f, values := c.Flags(), s.ValuesOf(c)
	f.StringVar(&values.Output, "output", "text", "output `format`: text or json")
	f.StringVar(&values.Color, "color", "auto", "`when` to use colours: auto, always or never")
	f.BoolVarP(&values.Quiet, "quiet", "q", false, "print errors and failed expectations only")
	f.BoolVarP(&values.Verbose, "verbose", "v", false, "explain decisions")
}

func (s *Sets) ParamFlags(c *cobra.Command) {
	f, values := c.Flags(), s.ValuesOf(c)
	f.StringArrayVarP(&values.Params, "param", "p", nil, "set a pipeline parameter, `name=value`; can be repeated")
	f.BoolVar(&values.Confined, "confined", false, "for pipelines of others: no files outside of the pipeline's folder, and compilers without network")
	f.IntVar(&values.MaxEdges, "max-edges", dag.MaxEdges, "refuse a pipeline of more than `N` dependencies")
}

// PlanFlags takes "" as machine where the device is planned for.
func (s *Sets) PlanFlags(c *cobra.Command, machine string) {
	f, values := c.Flags(), s.ValuesOf(c)
	f.IntVar(&values.Streams, "streams", 8, "at most `N` compute streams per device; if not given, cover takes as many as it needs")
	f.StringVar(&values.Strategy, "strategy", "auto", "scheduling `strategy`: auto, list, cover, heft, roundrobin or serial")
	f.StringVar(&values.Effort, "effort", planner.Normal.String(), "search `effort` for a good plan: quick, normal or thorough")
	usage := "the `machine` to plan for: h200, clean, unit or a file"
	if machine == "" {
		usage += " (default: the device)"
	}
	f.StringVar(&values.Machine, "machine", machine, usage)
	f.StringVar(&values.Plan, "plan", "", "use the plan in this JSON `file` instead of planning")
	f.StringVar(&values.Profile, "profile", "", "plan with the measured durations in this `file`, from bench --save-profile")
	f.StringVar(&values.Devices, "devices", "", "spread the work over `N` devices, or all (default: as the file says)")
	f.StringVar(&values.Spread, "spread", "auto", "the `policy` that chooses the devices: auto, heft, mintransfer, roundrobin, owner, chains or one")
	f.StringVar(&values.Spill, "spill", SpillAuto, "where no plan fits in device memory, copy data to host memory and back: `when` is auto or off")
	f.StringVar(&values.Bucket, "bucket", "", "with several ranks: merge all-reduces that follow each other, up to this `size`, such as 25MiB")
	f.StringVar(&values.MemoryCap, "memory-cap", "", "plan within this much memory per device, a `size` such as 4GiB")
}

func (s *Sets) DeviceFlags(c *cobra.Command) {
	f, values := c.Flags(), s.ValuesOf(c)
	f.StringVar(&values.Backend, "backend", "auto", "`device` to run on: auto, cuda, cpu, or cpu:N for N CPU devices")
	f.DurationVar(&values.Timeout, "timeout", 0, "give up after this long, such as 30s")
	f.Lookup("timeout").DefValue = "never"
}

func (s *Sets) ReplayFlags(c *cobra.Command) {
	f, values := c.Flags(), s.ValuesOf(c)
	s.GraphFlag(c, GraphAuto, "replay as one CUDA graph: the `mode` is auto (if that is faster), on (--graph alone), off, or built (nodes are added one by one)")
	f.IntVar(&values.Iterations, "iterations", 1, "run `N` replays; the result is the state after exactly N")
	f.IntVar(&values.Warmup, "warmup", 0, "run `N` warm-up replays first; contents are restored afterwards")
	f.IntVar(&values.Inflight, "inflight", 1, "let `K` replays overlap, each with its own buffers")
	f.IntVar(&values.Threads, "threads", 1, "submit the streams from `N` threads")
	f.Lookup("threads").DefValue = "as learned, or 1"
	f.StringVar(&values.Overlap, "overlap", GraphAuto,
		"let launches begin before the previous one has ended, on GPUs since Hopper: `when` is auto (if learning finds that faster), on or off")
	f.StringVar(&values.Memory, "memory", "arena", "allocation `mode` of device memory: arena, or separate for memory checkers")
}

func (s *Sets) GraphFlag(c *cobra.Command, mode, usage string) {
	c.Flags().StringVar(&s.ValuesOf(c).Replay, "graph", mode, usage)
	c.Flags().Lookup("graph").NoOptDefVal = GraphOn
}

// The values of --graph. Without a value it means on; captured is another word for on.
const (
	GraphOn       = "on"
	GraphOff      = "off"
	GraphCaptured = "captured"
	GraphBuilt    = "built"
	GraphAuto     = "auto"
)

// The values of --learn.
const (
	LearnAuto  = "auto"
	LearnOff   = "off"
	LearnAgain = "again"
)

// The values of --sanitize.
const (
	SanitizeAuto = "auto"
	SanitizeFull = "full"
	SanitizeFast = "fast"
	SanitizeOff  = "off"
)

// The values of --spill.
const (
	SpillAuto = "auto"
	SpillOff  = "off"
)

// JoinGraph lets --graph take the next word as its value if it is one of the values, because pflag takes a value of such a flag only after
// an =.
func JoinGraph(args []string) []string {
	var joined []string
	for k := 0; k < len(args); k++ {
		if args[k] == "--" {
			return append(joined, args[k:]...)
		}
		if k+1 < len(args) && args[k] == "--graph" && slices.Contains([]string{GraphAuto, GraphOn, GraphOff, GraphBuilt, GraphCaptured}, args[k+1]) {
			joined = append(joined, args[k]+"="+args[k+1])
			k++
			continue
		}
		joined = append(joined, args[k])
	}
	return joined
}

// OneOf refuses a value that a flag does not accept. "" stands for a flag that the command does not have.
func OneOf(flag, value string, choices ...string) error {
	if value == "" || slices.Contains(choices, value) {
		return nil
	}
	return fmt.Errorf("%s %q: want %s%s", flag, value, strings.Join(choices[:len(choices)-1], ", ")+" or "+choices[len(choices)-1], DidYouMean(value, choices))
}

// strategiesOf are the strategies that a command takes: bench takes all of them at once, too.
func strategiesOf(c *cobra.Command) []string {
	if c.Name() == "bench" {
		return append(planner.Strategies(), AllStrategies)
	}
	return planner.Strategies()
}

// mostReplays is how many replays a command may be asked for, which take weeks even if each does nothing.
const mostReplays = min(1<<40, math.MaxInt)

// CheckFlags refuses values that no command accepts.
func (s *Sets) CheckFlags(c *cobra.Command) error {
	f := s.Flags
	has := func(name string) bool { return c.Flags().Lookup(name) != nil }
	f.Limited = c.Flags().Changed("streams")
	f.Threaded, f.Chosen, f.Learning = c.Flags().Changed("threads"), c.Flags().Changed("graph"), c.Flags().Changed("learn")
	f.MachineSaid = c.Flags().Changed("machine")
	switch {
	case has("streams") && (f.Streams < 1 || f.Streams > 1024):
		return fmt.Errorf("--streams %d: want 1 to 1024", f.Streams)
	case has("max-edges") && (f.MaxEdges < 1 || f.MaxEdges >= math.MaxInt32):
		return fmt.Errorf("--max-edges %d: want 1 to %d", f.MaxEdges, math.MaxInt32-1)
	case f.Iterations < 0 || f.Iterations > mostReplays:
		return fmt.Errorf("--iterations %d: want 0 to %d", f.Iterations, mostReplays)
	case f.Warmup < 0 || f.Warmup > mostReplays:
		return fmt.Errorf("--warmup %d: want 0 to %d", f.Warmup, mostReplays)
	case has("inflight") && (f.Inflight < 1 || f.Inflight > 1024):
		return fmt.Errorf("--inflight %d: want 1 to 1024", f.Inflight)
	case has("threads") && (f.Threads < 1 || f.Threads > 256):
		return fmt.Errorf("--threads %d: want 1 to 256", f.Threads)
	case f.Timeout < 0:
		return fmt.Errorf("--timeout %s: want a positive duration", f.Timeout)
	}
	output, color := f.Output, f.Color
	return errors.Join(
		OneOf("--output", output, "text", "json"),
		OneOf("--color", color, "auto", "always", "never"),
		OneOf("--strategy", f.Strategy, strategiesOf(c)...),
		OneOf("--spread", f.Spread, spread.Policies()...),
		checkDevices(f.Devices),
		OneOf("--spill", f.Spill, SpillAuto, SpillOff),
		OneOf("--effort", f.Effort, effort.Names()...),
		OneOf("--memory", f.Memory, "arena", "separate"),
		OneOf("--overlap", f.Overlap, GraphAuto, GraphOn, GraphOff),
		OneOf("--graph", f.Replay, GraphAuto, GraphOn, GraphOff, GraphBuilt, GraphCaptured),
		OneOf("--learn", f.Learn, LearnAuto, LearnOff, LearnAgain),
		OneOf("--sanitize", f.Sanitize, SanitizeAuto, SanitizeFull, SanitizeFast, SanitizeOff),
		checkBackend(f.Backend),
	)
}

// MemoryCap is --memory-cap in bytes; 0: there is none.
func (s *Sets) MemoryCap() (int64, error) {
	if s.Flags.MemoryCap == "" {
		return 0, nil
	}
	most, err := ParseSize(s.Flags.MemoryCap)
	if err != nil {
		return 0, fmt.Errorf("--memory-cap %q: %w", s.Flags.MemoryCap, err)
	}
	return most, nil
}

// Planned returns the part of a command line that leads to the same plan on the same device, with the given strategy and number of
// streams unless the plan comes from a file.
func (f *Values) Planned(strategy string, streams int) []string {
	var args []string
	add := func(name, value, usual string) {
		if value != "" && value != usual {
			args = append(args, name, value)
		}
	}
	for _, p := range f.Params {
		args = append(args, "-p", p)
	}
	for _, file := range f.Load {
		args = append(args, "--load", file)
	}
	for _, file := range f.Save {
		args = append(args, "--save", file)
	}
	add("--max-edges", strconv.Itoa(f.MaxEdges), strconv.Itoa(dag.MaxEdges))
	add("--backend", f.Backend, "auto")
	if f.Plan != "" {
		args = append(args, "--plan", f.Plan)
	} else {
		args = append(args, "--strategy", strategy)
		if streams > 0 {
			args = append(args, "--streams", strconv.Itoa(streams))
		}
		add("--effort", f.Effort, planner.Normal.String())
	}
	add("--machine", f.Machine, "")
	add("--devices", f.Devices, "")
	add("--spread", f.Spread, "auto")
	add("--spill", f.Spill, SpillAuto)
	add("--profile", f.Profile, "")
	add("--memory-cap", f.MemoryCap, "")
	add("--bucket", f.Bucket, "")
	add("--memory", f.Memory, "arena")
	add("--sanitize", f.Sanitize, SanitizeAuto)
	add("--cache-dir", f.CacheDir, "")
	if f.Confined {
		args = append(args, "--confined")
	}
	return args
}

// AllStrategies is the --strategy of bench that stands for every one.
const AllStrategies = "all"

// DeviceCount is --devices as file.Options has it.
func DeviceCount(text string) int {
	if text == "all" {
		return dag.AllDevices
	}
	n, _ := strconv.Atoi(text)
	return n
}

func checkDevices(text string) error {
	if n := DeviceCount(text); text != "" && text != "all" && (n < 1 || n > dag.MostDevices) {
		return fmt.Errorf("--devices %q: want 1 to %d, or all", text, dag.MostDevices)
	}
	return nil
}

// CPUDevices is how many CPU devices --backend asks for; 0: it names another backend.
func CPUDevices(backend string, wanted int) (int, error) {
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
	if n, err := CPUDevices(backend, 1); n > 0 || err != nil {
		return err
	}
	if backend == "gpu" {
		return errors.New(`--backend "gpu": want auto, cuda or cpu; did you mean "cuda"?`)
	}
	return OneOf("--backend", backend, "auto", "cuda", "cpu")
}

func (s *Sets) LearnFlags(c *cobra.Command) {
	f, values := c.Flags(), s.ValuesOf(c)
	f.StringVar(&values.Learn, "learn", LearnAuto, "learn `how` long nodes take and which plan is fastest: auto, off, or again to forget what is known")
	s.CacheFlag(c)
}

func (s *Sets) CacheFlag(c *cobra.Command) {
	c.Flags().StringVar(&s.ValuesOf(c).CacheDir, "cache-dir", "",
		"keep what is learned in this `folder` (default: $"+cache.Variable+", or dagrun in your cache folder); off keeps nothing")
}

// RankFlags says by hand what a launcher says in the environment.
func (s *Sets) RankFlags(c *cobra.Command) {
	f, values := c.Flags(), s.ValuesOf(c)
	f.IntVar(&values.Ranks.Rank, "rank", -1, "this process is rank `R` of --ranks")
	f.Lookup("rank").DefValue = "as the launcher says, or 0"
	f.IntVar(&values.Ranks.Ranks, "ranks", -1, "this process is one of `N` that run the pipeline together")
	f.Lookup("ranks").DefValue = "as the launcher says, or 1"
	f.StringVar(&values.Ranks.Rendezvous, "rendezvous", "", "meet the other ranks at this `host:port` of rank 0")
	f.DurationVar(&values.Arrive, "arrive", time.Minute, "wait this long for the other ranks to arrive")
}

// RecallFlags are the flags of commands that plan as runs would.
func (s *Sets) RecallFlags(c *cobra.Command) {
	f, values := c.Flags(), s.ValuesOf(c)
	f.StringVar(&values.Learn, "learn", LearnOff, "`how` to use what earlier runs learned: auto plans with it, as a run on this computer would; off does not")
	f.StringVar(&values.Backend, "backend", "auto", "plan for this `device` in place of --machine, with --learn=auto as its runs would: auto, cuda, cpu, or cpu:N")
	s.CacheFlag(c)
}

func (s *Sets) SanitizeFlag(c *cobra.Command) {
	c.Flags().StringVar(&s.ValuesOf(c).Sanitize, "sanitize", SanitizeAuto,
		"check your own kernels on the CPU device: `how` is full, fast, off, or auto (see docs/kernel-bugs.md)")
}
