// Loading: reading, parsing and planning a pipeline file, and printing what is wrong with it.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/tasks"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/internal/files"
	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
)

// readSource reads a pipeline file; - is standard input. A file that is too large is read only up to the limit.
func (a *app) readSource(ctx context.Context, name string) ([]byte, error) {
	if a.source != nil {
		return a.source, nil
	}
	if name != "-" && recording.Recognize(name) {
		return nil, noPipeline(name)
	}
	if err := a.confine(folderOf(name)); err != nil {
		return nil, err
	}
	if isModule(name) {
		return nil, fmt.Errorf("%s is a file of kernels, not a pipeline; dagrun kernels %s lists them, with what to paste into a pipeline", name, name)
	}
	input, err := a.openInput(ctx, name)
	if err != nil {
		return nil, &missingFile{name, err}
	}
	defer input.Close()
	source, err := io.ReadAll(io.LimitReader(input, file.MaxBytes+1))
	if err != nil {
		return nil, &missingFile{name, err}
	}
	return source, nil
}

// noPipeline is the error of a command that takes pipelines only.
func noPipeline(name string) error {
	return fmt.Errorf("%[1]s is a recording of a program, not a pipeline: dagrun check %[1]s proves its order or names its races, dagrun trace %[1]s --html FILE and dagrun dot %[1]s show what it did, "+
		"dagrun kernels %[1]s lists its kernels, and dagrun plan %[1]s its graphs", name)
}

// folderOf is the folder that the names in a pipeline file start from.
func folderOf(name string) string {
	if name == "-" {
		return "."
	}
	return filepath.Dir(name)
}

// shownName is a pipeline file's name in messages.
func shownName(name string) string {
	if name == "-" {
		return "<stdin>"
	}
	return name
}

// loadGraph reads a pipeline file and makes its graph. Mistakes are printed with their places and become one reported error.
func (a *app) loadGraph(ctx context.Context, name string) (*dag.Graph, error) {
	g, err := a.parse(ctx, name)
	if ctx.Err() != nil { // the command may have been stopped while waiting for a module's file
		return nil, context.Cause(ctx)
	}
	if wrong := (*file.ParseError)(nil); errors.As(err, &wrong) {
		if err := a.printDiagnostics(&wrong.Diagnostics); err != nil {
			return nil, err
		}
		return nil, &reported{statusWrong, err}
	}
	if err != nil {
		return nil, err
	}
	if err := a.checkLoaded(ctx, g); err != nil {
		return nil, err
	}
	if !a.flags.quiet && a.place.Rank == 0 { // the other ranks have the same ones
		if err := a.printDiagnostics(g.Warnings()); err != nil {
			return nil, err
		}
	}
	a.warnings = diagnosticDocuments(g.Warnings())
	return g, nil
}

// confine keeps the pipeline's file, which may be a link, and the files that it names in its folder, with --confined.
func (a *app) confine(dir string) (err error) {
	if !a.flags.confined {
		return nil
	}
	if err := a.folder.Close(); err != nil { // of the file before, where check has several
		return err
	}
	if a.folder, err = files.OpenFolder(dir); err != nil {
		return files.CannotRead(dir, err)
	}
	if a.compilers != nil {
		a.compilers.Confined = true
	}
	return nil
}

// parse reads a pipeline file. Mistakes in it are a *file.ParseError.
func (a *app) parse(ctx context.Context, name string) (*dag.Graph, error) {
	a.progress.report("read "+shownName(name), 0, 0)
	source, err := a.readSource(ctx, name)
	if err != nil {
		return nil, err
	}
	if tasks.Recognize(source) {
		if len(a.flags.params)+len(a.flags.load)+len(a.flags.save) > 0 {
			return nil, fmt.Errorf("%s is a graph of tasks, which has no params and no contents: leave out --param, --load and --save", shownName(name))
		}
		a.inOrder = true
		return tasks.Decode(shownName(name), source)
	}
	options := file.Options{Name: shownName(name), Dir: folderOf(name), Library: kernels.Library(), MaxEdges: a.flags.maxEdges, Devices: deviceCount(a.flags.devices)}
	options.Rank, options.Ranks, options.LocalRank = a.place.Rank, a.place.Ranks, a.place.LocalRank
	options.OpenModule = a.moduleOpener(ctx, options.Dir)
	options.Outside = func(name string) bool { return files.Foreign(options.Dir, name) }
	options.ReadFile = func(name string) ([]byte, error) {
		a.noteInput("a file of the pipeline", name)
		return a.folder.Regular(ctx, name, file.MaxBytes)
	}
	for _, p := range a.flags.params {
		key, value, ok := strings.Cut(p, "=")
		if key = strings.TrimSpace(key); !ok || key == "" {
			return nil, fmt.Errorf("-p %s: want name=value", p)
		}
		options.Params = append(options.Params, file.Override{Name: key, Value: value})
	}
	if options.Load, err = fileBindings("load", a.flags.load); err != nil {
		return nil, err
	}
	if options.Save, err = fileBindings("save", a.flags.save); err != nil {
		return nil, err
	}
	a.reread = func(rank, local int) (*dag.Graph, error) {
		other := options
		other.Rank, other.LocalRank = rank, local
		return a.bucketed(file.ParseContext(ctx, source, other))
	}
	a.family = func(n int, local []int) (*file.Family, error) {
		all := options
		all.LocalRanks = local
		return a.bucketedFamily(file.ParseFamilyContext(ctx, source, all, n))
	}
	return a.bucketed(file.ParseContext(ctx, source, options))
}

// loadPlan plans the graph as the flags say, or reads the plan that --plan names.
func (a *app) loadPlan(ctx context.Context, g *dag.Graph, o planner.Options) (*planner.Plan, error) {
	if a.flags.plan != "" {
		plan, err := decodeFile(ctx, a.flags.plan, func(r io.Reader) (*planner.Plan, error) { return planner.DecodePlan(r, g) })
		if err != nil {
			return nil, err
		}
		return plan, a.withinCap(plan)
	}
	a.progress.report("plan", 0, 0)
	plan, err := a.newPlan(ctx, g, o)
	if err != nil {
		return nil, err
	}
	a.log.Info("planned", "strategy", plan.Strategy, "machine", plan.Machine, "streams", len(plan.Streams), "waits", plan.Stats.Waits,
		"predicted_us", fmt.Sprintf("%.1f", plan.Stats.MakespanUS))
	if plan.Note != "" {
		a.log.Info(plan.Note)
	}
	return plan, nil
}

// withinCap refuses a plan from a file that needs more memory of a device than --memory-cap allows.
func (a *app) withinCap(plan *planner.Plan) error {
	most, err := a.memoryCap()
	if most == 0 {
		return err
	}
	needs := int64(0)
	for _, m := range plan.Memory {
		needs = max(needs, m.Offset+m.Bytes)
	}
	if needs > most {
		return fmt.Errorf("%s needs %s of a device, more than the %s that --memory-cap allows; without --plan, another plan is made", a.flags.plan, words.Bytes(needs), words.Bytes(most))
	}
	return nil
}

// planned plans a graph, or reads its plan, for the machine that the flags name. No device is opened without --learn=auto.
func (a *app) planned(ctx context.Context, g *dag.Graph) (*planner.Plan, planner.Options, error) {
	r, err := a.optionsFor(ctx, g)
	if err != nil {
		return nil, planner.Options{}, err
	}
	a.matchProfile(g, r.options.Profile)
	kept := r.plan != nil
	if !kept {
		if r.plan, err = a.loadPlan(ctx, g, r.options); err != nil {
			return nil, r.options, err
		}
	}
	if machine := r.options.Machine; kept || a.flags.plan != "" && (r.options.Profile != nil || machine != nil && machine.Name != r.plan.Machine) {
		err = predictAgain(g, r.plan, r.options, a.flags.streams)
	}
	return r.plan, r.options, err
}

// predictAgain gives a plan that was made earlier the costs, the prediction and the bound of the durations that are known now.
func predictAgain(g *dag.Graph, plan *planner.Plan, o planner.Options, streams int) error {
	for _, b := range plan.Bodies {
		if err := predictAgain(g.Nodes[b.Node].Control.Bodies[b.Body], b.Plan, o, streams); err != nil {
			return err
		}
	}
	return planner.Predict(g, plan, o.Machine, o.Profile, max(streams, len(plan.Streams)))
}

// onGraph runs a command that needs one pipeline and no device: it checks the flags, loads the pipeline, and calls do.
func (a *app) onGraph(do func(context.Context, *dag.Graph) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		if err := a.checkFlags(c); err != nil {
			return err
		}
		a.progress.beginUntil(a.stdout)
		if c.Flags().Lookup("ranks") != nil {
			if err := a.assumeRanks(); err != nil {
				return err
			}
		}
		g, err := a.loadGraph(c.Context(), args[0])
		if err != nil {
			return err
		}
		if g, err = a.spreadUnseen(c.Context(), g); err != nil {
			return err
		}
		return do(c.Context(), g)
	}
}

// matchProfile warns of names in a profile that the pipeline does not have: the profile belongs to another file or an older version.
func (a *app) matchProfile(g *dag.Graph, profile *planner.Profile) {
	const most = 5
	if profile == nil {
		return
	}
	unknown, missing := profile.Match(g)
	if n := len(unknown); n > 0 {
		more := ""
		if n > most {
			more = fmt.Sprintf(" and %d more", n-most)
		}
		a.warn("%s in the profile %s not in the pipeline: %s%s", counted(n, "name"), verb(n, "is", "are"), strings.Join(unknown[:min(n, most)], ", "), more)
	}
	if n := len(missing); n > 0 {
		a.log.Info("the profile is not complete", "nodes_without_duration", n)
	}
}

// verb is the form of a verb for a count.
func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
