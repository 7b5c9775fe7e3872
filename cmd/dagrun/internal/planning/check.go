// dagrun check FILE: everything that can be known without running.

package planning

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/exported"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/pictures"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/recordings"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/session"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/planner"
)

func (u *Commands) CheckCommand() *cobra.Command {
	var target exported.TargetFlags
	var recorded recordings.RecordingFlags
	var own checkFlags
	c := &cobra.Command{
		Use:   "check FILE...",
		Short: "Find mistakes and races without running",
		Long: `Check pipelines without a device: their declaration, the plan and its proof, and for a schedule
of your own (sync: explicit) the pairs of accesses that nothing orders, each with the line
that would order it. The exit status is 1 if there is a race, 2 if a file is wrong.

Check a recording (dagrun record): the pairs of accesses that nothing orders, and the wait that
would. The exit status is 0 if all are proved ordered, 1 if there is a race, 3 if none was found
but something is assumed or was not covered, which is listed.`,
		Example: `  dagrun check pipelines/saxpy.yaml
  dagrun check infer.rec                           a recording of dagrun record
  dagrun check one.rec two.rec --merge             one program with two inputs
  dagrun check pipelines/*.yaml
  dagrun check mine.yaml --plan plan.json          does this plan fit this pipeline?
  dagrun check pipelines/halo.yaml --ranks 64      can 64 ranks run this together?
  dagrun check mine.yaml --arch sm_80              can a GPU of this compute capability run this?`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("no pipeline file given; usage: %s", c.UseLine())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := u.CheckFlags(c); err != nil {
				return err
			}
			if recording.Recognize(args[0]) {
				return u.Recordings.CheckRecordings(c, args, &recorded)
			}
			if len(args) == 1 && recording.RecognizePlanned(args[0]) {
				return u.Exported.CheckPlanned(c, args[0])
			}
			if recorded.Since > 0 {
				return fmt.Errorf("--since is for recordings, and %s is none", cli.ShownName(args[0]))
			}
			if recorded.Merge {
				return fmt.Errorf("--merge is for recordings, and %s is none", cli.ShownName(args[0]))
			}
			if err := target.Apply(u.Exported, c); err != nil {
				return err
			}
			u.Progress.BeginUntil(u.Stdout)
			if err := u.AssumeRanks(); err != nil {
				return err
			}
			if len(args) > 1 {
				return u.checkFiles(c, args, &target, own)
			}
			report, err := u.checkFile(c.Context(), args[0], &target, own)
			if err != nil {
				return err
			}
			if u.Flags.Output != "json" {
				u.printChecked(report)
			} else if err := u.Answer(report); err != nil {
				return err
			}
			return report.failure()
		},
		ValidArgsFunction: cli.ManyPipelines,
	}
	u.OutputFlags(c)
	u.ParamFlags(c)
	u.LoadFlags(c)
	u.SaveFlags(c)
	u.PlanFlags(c, "h200")
	target.Flags(c)
	u.RecallFlags(c)
	c.Flags().BoolVar(&own.all, "all", false, "list every pair that nothing orders, also those that are in order once others are")
	c.Flags().IntVar(&u.ValuesOf(c).Ranks.Ranks, "ranks", 1, "prove that `N` ranks can run the pipeline together")
	c.Flags().BoolVar(&recorded.Possible, "possible", false, "of a recording: count races that rest on assumed accesses as races")
	c.Flags().BoolVar(&recorded.Strict, "strict", false,
		"of a recording: also list what nothing needs (waits, synchronisations, edges), and bytes read before they are written")
	c.Flags().BoolVar(&recorded.HostAccesses, "host-copies", false,
		"of a recording: copies access pageable memory of the host too, for the thread that makes them")
	c.Flags().BoolVar(&recorded.Merge, "merge", false, "of recordings of one program: check the first with what kernels touched in any of them")
	c.Flags().Uint64Var(&recorded.Since, "since", 0, "of a process that goes on: report only what began at this `moment` or later (for the Python package)")
	c.Flags().BoolVar(&recorded.StrictThreads, "strict-threads", false, "of a recording: calls of two threads are in no order just because one was over first")
	return c
}

// checkFlags are the flags of check alone.
type checkFlags struct {
	all bool // list every pair that nothing orders
}

// Checked is the JSON document of check.
type Checked struct {
	Version  int                      `json:"version"`
	Command  string                   `json:"command"`
	Name     string                   `json:"name"`
	Nodes    int                      `json:"nodes"`
	Edges    int                      `json:"dependencies"`
	Streams  int                      `json:"streams"`
	Waits    int                      `json:"waits"`
	Carried  []string                 `json:"carried_buffers"`
	Access   []session.KernelAccess   `json:"kernel_access"`
	Blind    []session.Unconfirmed    `json:"unconfirmed_modules"`
	Memory   int64                    `json:"peak_device_bytes"`
	Warnings []cli.DiagnosticDocument `json:"warnings"`
	Unfit    []unfit                  `json:"does_not_fit"`
	Beyond   []exported.Beyond        `json:"beyond_device,omitempty"` // launches that the device of --arch or --machine cannot run
	Ranks    *session.CheckedRanks    `json:"ranks,omitempty"`
	Races    []session.Race           `json:"races"`
	MoreRace int                      `json:"more_races"`
	Pairs    int                      `json:"unordered_pairs"`         // all of them, also those that are in order once the races of the list are
	Partial  bool                     `json:"races_partial,omitempty"` // there may be still more
	Fallback []exported.Fallback      `json:"not_in_graphs"`           // loops and branches that make the pipeline run as streams
}

// unfit is a device that has less memory than the plan needs.
type unfit struct {
	Device  int32  `json:"device"`
	Needs   int64  `json:"needs_bytes"`
	Has     int64  `json:"has_bytes"`
	Machine string `json:"machine"`
	Largest string `json:"largest_buffer"`
}

// unfits finds the devices of a machine that the plan does not fit.
func unfits(g *dag.Graph, plan *planner.Plan, machine *planner.Machine) ([]unfit, error) {
	list := []unfit{}
	if machine.DeviceBytes == 0 {
		return list, nil
	}
	peaks, err := planner.PeakBuffers(g, plan)
	for _, p := range peaks {
		if p.Arena > machine.DeviceBytes {
			list = append(list, unfit{p.Device, p.Arena, machine.DeviceBytes, machine.Name, p.Buffers[0].Name})
		}
	}
	return list, err
}

// checkedFile is the JSON of one of several files.
type checkedFile struct {
	File   string       `json:"file"`
	Status int          `json:"status"` // the exit status of a check of this file alone
	Report *Checked     `json:"report,omitempty"`
	Error  *cli.Failure `json:"error,omitempty"`
}

// checkFiles checks one file after another, even if one is wrong; the exit status is the worst of all.
func (u *Commands) checkFiles(c *cobra.Command, names []string, target *exported.TargetFlags, own checkFlags) error {
	files := make([]checkedFile, len(names))
	worst, shown := cli.StatusOK, false
	for k, name := range names {
		u.Warnings, u.Inputs = nil, nil
		report, err := u.checkFile(c.Context(), name, target, own)
		if c.Context().Err() != nil {
			return err
		}
		files[k] = checkedFile{File: cli.ShownName(name), Report: report, Status: cli.StatusOf(err)}
		if err != nil {
			err = u.WordError(c, err)
			if seen := (*cli.Reported)(nil); !errors.As(err, &seen) {
				u.PrintError(err)
			}
			files[k].Error = u.FailureOf(err, files[k].Status)
		} else {
			files[k].Status = cli.StatusOf(report.failure())
		}
		if err == nil && u.Flags.Output != "json" {
			shown = u.printCheckedOf(cli.ShownName(name), report, shown) || shown
		}
		worst = max(worst, files[k].Status)
	}
	return cli.AnswerFiles(u.Console, files, worst)
}

// printCheckedOf prints what was found in one of several files, under the file's name, and reports whether there was anything to print.
func (u *Commands) printCheckedOf(name string, r *Checked, apart bool) bool {
	if u.Flags.Quiet && r.failure() == nil {
		return false
	}
	if apart {
		fmt.Fprintln(u.Stdout)
	}
	_ = u.Stdout.Printf("%s\n", u.Paint(u.Stdout, cli.Bold, name))
	u.printChecked(r)
	return true
}

// checkFile checks one file.
func (u *Commands) checkFile(ctx context.Context, name string, target *exported.TargetFlags, own checkFlags) (*Checked, error) {
	g, err := u.LoadGraph(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := u.CheckOutputs(g, nil, u.SavedFiles(g)); err != nil {
		return nil, err
	}
	if g, err = u.SpreadUnseen(ctx, g); err != nil {
		return nil, err
	}
	plan, options, err := u.Planned(ctx, g)
	if err != nil {
		return nil, err
	}
	report, err := u.checked(g, plan, options.Machine, own)
	if err == nil {
		report.Beyond = target.Beyond(g, options.Machine)
		report.Ranks, err = u.CheckRanks()
	}
	return report, err
}

// failure is the error that ends a check of a pipeline that has been reported on; nil: nothing is wrong.
func (r *Checked) failure() error {
	switch {
	case len(r.Unfit) > 0, len(r.Beyond) > 0:
		return &cli.Reported{Status: cli.StatusWrong}
	case len(r.Races) > 0, r.Ranks != nil && len(r.Ranks.Violations) > 0:
		return &cli.Reported{Status: cli.StatusExpectation}
	}
	return nil
}

func (u *Commands) checked(g *dag.Graph, plan *planner.Plan, machine *planner.Machine, own checkFlags) (*Checked, error) {
	found, err := session.Unenforced(g, plan, session.MostRaces)
	if err != nil {
		return nil, err
	}
	every, err := session.EveryPair(g, plan, found, own.all)
	if err != nil {
		return nil, err
	}
	if own.all {
		found = every
	}
	report := Checked{Version: cli.JSONVersion, Command: "check", Name: g.Name, Nodes: g.Len(), Edges: len(g.Edges()), Streams: len(plan.Streams),
		Waits:   plan.Stats.Waits,
		Carried: []string{}, Access: session.KernelAccesses(g), Blind: session.UnconfirmedModules(g), Warnings: u.Warnings, Memory: plan.Stats.PeakDeviceBytes,
		Races: session.RacesOf(g, found.Violations), MoreRace: found.Roots - len(found.Violations), Pairs: every.Total, Partial: found.Partial || every.Partial,
		Fallback: exported.FallbacksOf(g)}
	if report.Unfit, err = unfits(g, plan, machine); err != nil {
		return nil, err
	}
	for _, id := range g.Carried() {
		report.Carried = append(report.Carried, g.Buffers[id].Name)
	}
	return &report, nil
}

func (u *Commands) printChecked(r *Checked) {
	for _, race := range r.Races {
		_ = u.Stdout.Printf("%s on %s: nothing orders these two (%s)\n", u.Paint(u.Stdout, cli.Red, "race"), race.Place, race.Why)
		for _, side := range []session.RaceSide{race.First, race.Second} {
			fmt.Fprintf(u.Stdout, "  %-5s %s on stream %d%s\n", side.Access, side.Node, side.Stream, lineText(side.Line))
		}
		fmt.Fprintf(u.Stdout, "  add to %s: %s\n", race.Second.Node, race.Fix)
	}
	atLeast := ""
	if r.Partial {
		atLeast = "at least "
	}
	if r.MoreRace > 0 {
		fmt.Fprintf(u.Stdout, "and %s%d more of %s%d races\n", atLeast, r.MoreRace, atLeast, r.MoreRace+len(r.Races))
	}
	if r.Pairs > len(r.Races)+r.MoreRace {
		fmt.Fprintf(u.Stdout, "nothing orders %s%d pairs in all: the others are in order once these are; --all lists them\n", atLeast, r.Pairs)
	}
	for _, device := range r.Unfit {
		_ = u.Stdout.Printf("%s device %d needs %s, and %s has %s; the largest buffer at that time is %s\n", u.Paint(u.Stdout, cli.Red, "does not fit:"),
			device.Device, words.Bytes(device.Needs), device.Machine, words.Bytes(device.Has), device.Largest)
	}
	u.Exported.PrintBeyond(r.Beyond)
	r.Ranks.Print(u.Session)
	if u.Flags.Quiet {
		return
	}
	if len(r.Races) == 0 && len(r.Unfit) == 0 && len(r.Beyond) == 0 {
		_ = u.Stdout.Printf("%s: %s; %s and %s, all enforced on %s with %s\n", r.Name, u.Paint(u.Stdout, cli.Green, "ok"),
			cli.Counted(r.Nodes, "node"), pictures.Dependencies(r.Edges), cli.Counted(r.Streams, "stream"), cli.Counted(r.Waits, "wait"))
	}
	for _, name := range r.Carried {
		fmt.Fprintf(u.Stdout, "carried: %s is read before it is written, so each replay depends on the one before it\n", name)
	}
	u.Exported.PrintFallbacks(r.Fallback)
	u.PrintAccess(r.Access)
	for _, m := range r.Blind {
		_ = u.Stdout.Printf("access: kernels of %s are taken at their word: %s\n", m.Module, m.Why)
	}
	fmt.Fprintf(u.Stdout, "device memory: %s\n", words.Bytes(r.Memory))
}

func lineText(line int32) string {
	if line == 0 {
		return ""
	}
	return fmt.Sprintf(", line %d", line)
}
