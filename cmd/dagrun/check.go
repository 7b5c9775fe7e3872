// dagrun check FILE: everything that can be known without running.

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/planner"
)

func (a *app) checkCommand() *cobra.Command {
	var target targetFlags
	var recorded recordingFlags
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
			if err := a.checkFlags(c); err != nil {
				return err
			}
			if recording.Recognize(args[0]) {
				return a.checkRecordings(c, args, &recorded)
			}
			if len(args) == 1 && recording.RecognizePlanned(args[0]) {
				return a.checkPlanned(c, args[0])
			}
			if recorded.since > 0 {
				return fmt.Errorf("--since is for recordings, and %s is none", shownName(args[0]))
			}
			if recorded.merge {
				return fmt.Errorf("--merge is for recordings, and %s is none", shownName(args[0]))
			}
			if err := target.apply(a, c); err != nil {
				return err
			}
			a.progress.beginUntil(a.stdout)
			if err := a.assumeRanks(); err != nil {
				return err
			}
			if len(args) > 1 {
				return a.checkFiles(c, args, &target, own)
			}
			report, err := a.checkFile(c.Context(), args[0], &target, own)
			if err != nil {
				return err
			}
			if a.flags.output != "json" {
				a.printChecked(report)
			} else if err := a.answer(report); err != nil {
				return err
			}
			return report.failure()
		},
		ValidArgsFunction: manyPipelines,
	}
	a.outputFlags(c)
	a.paramFlags(c)
	a.loadFlags(c)
	a.saveFlags(c)
	a.planFlags(c, "h200")
	target.flags(c)
	a.recallFlags(c)
	c.Flags().BoolVar(&own.all, "all", false, "list every pair that nothing orders, also those that are in order once others are")
	c.Flags().IntVar(&a.values(c).ranks.Ranks, "ranks", 1, "prove that `N` ranks can run the pipeline together")
	c.Flags().BoolVar(&recorded.possible, "possible", false, "of a recording: count races that rest on assumed accesses as races")
	c.Flags().BoolVar(&recorded.strict, "strict", false, "of a recording: also list what nothing needs (waits, synchronisations, edges), and bytes read before they are written")
	c.Flags().BoolVar(&recorded.hostAccesses, "host-copies", false, "of a recording: copies access pageable memory of the host too, for the thread that makes them")
	c.Flags().BoolVar(&recorded.merge, "merge", false, "of recordings of one program: check the first with what kernels touched in any of them")
	c.Flags().Uint64Var(&recorded.since, "since", 0, "of a process that goes on: report only what began at this `moment` or later (for the Python package)")
	c.Flags().BoolVar(&recorded.strictThreads, "strict-threads", false, "of a recording: calls of two threads are in no order just because one was over first")
	return c
}

// checkFlags are the flags of check alone.
type checkFlags struct {
	all bool // list every pair that nothing orders
}

// checked is the JSON document of check.
type checked struct {
	Version  int                  `json:"version"`
	Command  string               `json:"command"`
	Name     string               `json:"name"`
	Nodes    int                  `json:"nodes"`
	Edges    int                  `json:"dependencies"`
	Streams  int                  `json:"streams"`
	Waits    int                  `json:"waits"`
	Carried  []string             `json:"carried_buffers"`
	Access   []kernelAccess       `json:"kernel_access"`
	Blind    []unconfirmed        `json:"unconfirmed_modules"`
	Memory   int64                `json:"peak_device_bytes"`
	Warnings []diagnosticDocument `json:"warnings"`
	Unfit    []unfit              `json:"does_not_fit"`
	Beyond   []beyond             `json:"beyond_device,omitempty"` // launches that the device of --arch or --machine cannot run
	Ranks    *checkedRanks        `json:"ranks,omitempty"`
	Races    []race               `json:"races"`
	MoreRace int                  `json:"more_races"`
	Pairs    int                  `json:"unordered_pairs"`         // all of them, also those that are in order once the races of the list are
	Partial  bool                 `json:"races_partial,omitempty"` // there may be still more
	Fallback []fallback           `json:"not_in_graphs"`           // loops and branches that make the pipeline run as streams
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
	File   string   `json:"file"`
	Status int      `json:"status"` // the exit status of a check of this file alone
	Report *checked `json:"report,omitempty"`
	Error  *failure `json:"error,omitempty"`
}

// checkFiles checks one file after another, even if one is wrong; the exit status is the worst of all.
func (a *app) checkFiles(c *cobra.Command, names []string, target *targetFlags, own checkFlags) error {
	files := make([]checkedFile, len(names))
	worst, shown := statusOK, false
	for k, name := range names {
		a.warnings, a.inputs = nil, nil
		report, err := a.checkFile(c.Context(), name, target, own)
		if c.Context().Err() != nil {
			return err
		}
		files[k] = checkedFile{File: shownName(name), Report: report, Status: statusOf(err)}
		if err != nil {
			err = a.explain(c, err)
			if seen := (*reported)(nil); !errors.As(err, &seen) {
				a.printError(err)
			}
			files[k].Error = a.failure(err, files[k].Status)
		} else {
			files[k].Status = statusOf(report.failure())
		}
		if err == nil && a.flags.output != "json" {
			shown = a.printCheckedOf(shownName(name), report, shown) || shown
		}
		worst = max(worst, files[k].Status)
	}
	return answerFiles(a, files, worst)
}

// printCheckedOf prints what was found in one of several files, under the file's name, and reports whether there was anything to print.
func (a *app) printCheckedOf(name string, r *checked, apart bool) bool {
	if a.flags.quiet && r.failure() == nil {
		return false
	}
	if apart {
		fmt.Fprintln(a.stdout)
	}
	_ = a.stdout.printf("%s\n", a.paint(a.stdout, bold, name))
	a.printChecked(r)
	return true
}

// checkFile checks one file.
func (a *app) checkFile(ctx context.Context, name string, target *targetFlags, own checkFlags) (*checked, error) {
	g, err := a.loadGraph(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := a.checkOutputs(g, nil, a.savedFiles(g)); err != nil {
		return nil, err
	}
	if g, err = a.spreadUnseen(ctx, g); err != nil {
		return nil, err
	}
	plan, options, err := a.planned(ctx, g)
	if err != nil {
		return nil, err
	}
	report, err := a.checked(g, plan, options.Machine, own)
	if err == nil {
		report.Beyond = target.beyond(g, options.Machine)
		report.Ranks, err = a.checkRanks()
	}
	return report, err
}

// failure is the error that ends a check of a pipeline that has been reported on; nil: nothing is wrong.
func (r *checked) failure() error {
	switch {
	case len(r.Unfit) > 0, len(r.Beyond) > 0:
		return &reported{status: statusWrong}
	case len(r.Races) > 0, r.Ranks != nil && len(r.Ranks.Violations) > 0:
		return &reported{status: statusExpectation}
	}
	return nil
}

func (a *app) checked(g *dag.Graph, plan *planner.Plan, machine *planner.Machine, own checkFlags) (*checked, error) {
	found, err := unenforced(g, plan, mostRaces)
	if err != nil {
		return nil, err
	}
	every, err := everyPair(g, plan, found, own.all)
	if err != nil {
		return nil, err
	}
	if own.all {
		found = every
	}
	report := checked{Version: jsonVersion, Command: "check", Name: g.Name, Nodes: g.Len(), Edges: len(g.Edges()), Streams: len(plan.Streams), Waits: plan.Stats.Waits,
		Carried: []string{}, Access: kernelAccesses(g), Blind: unconfirmedModules(g), Warnings: a.warnings, Memory: plan.Stats.PeakDeviceBytes, Races: racesOf(g, found.Violations), MoreRace: found.Roots - len(found.Violations), Pairs: every.Total, Partial: found.Partial || every.Partial, Fallback: fallbacksOf(g)}
	if report.Unfit, err = unfits(g, plan, machine); err != nil {
		return nil, err
	}
	for _, id := range g.Carried() {
		report.Carried = append(report.Carried, g.Buffers[id].Name)
	}
	return &report, nil
}

func (a *app) printChecked(r *checked) {
	for _, race := range r.Races {
		_ = a.stdout.printf("%s on %s: nothing orders these two (%s)\n", a.paint(a.stdout, red, "race"), race.place, race.Why)
		for _, side := range []raceSide{race.First, race.Second} {
			fmt.Fprintf(a.stdout, "  %-5s %s on stream %d%s\n", side.Access, side.Node, side.Stream, lineText(side.Line))
		}
		fmt.Fprintf(a.stdout, "  add to %s: %s\n", race.Second.Node, race.Fix)
	}
	atLeast := ""
	if r.Partial {
		atLeast = "at least "
	}
	if r.MoreRace > 0 {
		fmt.Fprintf(a.stdout, "and %s%d more of %s%d races\n", atLeast, r.MoreRace, atLeast, r.MoreRace+len(r.Races))
	}
	if r.Pairs > len(r.Races)+r.MoreRace {
		fmt.Fprintf(a.stdout, "nothing orders %s%d pairs in all: the others are in order once these are; --all lists them\n", atLeast, r.Pairs)
	}
	for _, u := range r.Unfit {
		_ = a.stdout.printf("%s device %d needs %s, and %s has %s; the largest buffer at that time is %s\n", a.paint(a.stdout, red, "does not fit:"),
			u.Device, words.Bytes(u.Needs), u.Machine, words.Bytes(u.Has), u.Largest)
	}
	a.printBeyond(r.Beyond)
	r.Ranks.print(a)
	if a.flags.quiet {
		return
	}
	if len(r.Races) == 0 && len(r.Unfit) == 0 && len(r.Beyond) == 0 {
		_ = a.stdout.printf("%s: %s; %s and %s, all enforced on %s with %s\n", r.Name, a.paint(a.stdout, green, "ok"),
			counted(r.Nodes, "node"), dependencies(r.Edges), counted(r.Streams, "stream"), counted(r.Waits, "wait"))
	}
	for _, name := range r.Carried {
		fmt.Fprintf(a.stdout, "carried: %s is read before it is written, so each replay depends on the one before it\n", name)
	}
	a.printFallbacks(r.Fallback)
	a.printAccess(r.Access)
	for _, m := range r.Blind {
		_ = a.stdout.printf("access: kernels of %s are taken at their word: %s\n", m.Module, m.Why)
	}
	fmt.Fprintf(a.stdout, "device memory: %s\n", words.Bytes(r.Memory))
}

func lineText(line int32) string {
	if line == 0 {
		return ""
	}
	return fmt.Sprintf(", line %d", line)
}
