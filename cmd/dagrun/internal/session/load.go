// Loading: reading, parsing and planning a pipeline file, and printing what is wrong with it.

package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/tasks"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/internal/files"
	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
)

// ModuleExtensions are those of files with kernels.
var ModuleExtensions = []string{".cu", ".cuh", ".h", ".hh", ".hpp", ".hxx", ".inl", ".inc", ".c", ".cc", ".cpp", ".cxx", ".ptx", ".cubin", ".fatbin"}

// IsModule reports whether an argument is a file of kernels, not a kernel of the library.
func IsModule(name string) bool {
	return slices.Contains(ModuleExtensions, strings.ToLower(filepath.Ext(name)))
}

// ReadSource reads a pipeline file; - is standard input. A file that is too large is read only up to the limit.
func (u *Session) ReadSource(ctx context.Context, name string) ([]byte, error) {
	if u.Source != nil {
		return u.Source, nil
	}
	if name != "-" && recording.Recognize(name) {
		return nil, noPipeline(name)
	}
	if err := u.confine(folderOf(name)); err != nil {
		return nil, err
	}
	if IsModule(name) {
		return nil, fmt.Errorf("%s is a file of kernels, not a pipeline; dagrun kernels %s lists them, with what to paste into a pipeline", name, name)
	}
	input, err := u.openInput(ctx, name)
	if err != nil {
		return nil, &cli.MissingFile{Name: name, Err: err}
	}
	defer input.Close()
	source, err := io.ReadAll(io.LimitReader(input, file.MaxBytes+1))
	if err != nil {
		return nil, &cli.MissingFile{Name: name, Err: err}
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

// openInput opens the pipeline file; - is standard input. It and its reads end with the context, whatever is at the other end.
func (u *Session) openInput(ctx context.Context, name string) (io.ReadCloser, error) {
	if name != "-" {
		u.NoteInput("the pipeline", name)
		return u.folder.Open(ctx, name)
	}
	if file, ok := u.Stdin.(*os.File); ok {
		u.Inputs = append(u.Inputs, cli.Input{NamedFile: cli.NamedFile{Role: "the pipeline", Name: name}, Place: files.PlaceOfOpen(file)})
	}
	return files.Reader(ctx, u.Stdin), nil
}

// LoadGraph reads a pipeline file and makes its graph. Mistakes are printed with their places and become one reported error.
func (u *Session) LoadGraph(ctx context.Context, name string) (*dag.Graph, error) {
	g, err := u.Parse(ctx, name)
	if ctx.Err() != nil { // the command may have been stopped while waiting for a module's file
		return nil, context.Cause(ctx)
	}
	if wrong := (*file.ParseError)(nil); errors.As(err, &wrong) {
		if err := u.PrintDiagnostics(&wrong.Diagnostics); err != nil {
			return nil, err
		}
		return nil, &cli.Reported{Status: cli.StatusWrong, Err: err}
	}
	if err != nil {
		return nil, err
	}
	if err := u.checkLoaded(ctx, g); err != nil {
		return nil, err
	}
	if !u.Flags.Quiet && u.Place.Rank == 0 { // the other ranks have the same ones
		if err := u.PrintDiagnostics(g.Warnings()); err != nil {
			return nil, err
		}
	}
	u.Warnings = cli.DiagnosticDocuments(g.Warnings())
	return g, nil
}

// confine keeps the pipeline's file, which may be a link, and the files that it names in its folder, with --confined.
func (u *Session) confine(dir string) (err error) {
	if !u.Flags.Confined {
		return nil
	}
	if err := u.folder.Close(); err != nil { // of the file before, where check has several
		return err
	}
	if u.folder, err = files.OpenFolder(dir); err != nil {
		return files.CannotRead(dir, err)
	}
	if u.Compilers != nil {
		u.Compilers.Confined = true
	}
	return nil
}

// Parse reads a pipeline file. Mistakes in it are a *file.ParseError.
func (u *Session) Parse(ctx context.Context, name string) (*dag.Graph, error) {
	u.Progress.Report("read "+cli.ShownName(name), 0, 0)
	source, err := u.ReadSource(ctx, name)
	if err != nil {
		return nil, err
	}
	if tasks.Recognize(source) {
		if len(u.Flags.Params)+len(u.Flags.Load)+len(u.Flags.Save) > 0 {
			return nil, fmt.Errorf("%s is a graph of tasks, which has no params and no contents: leave out --param, --load and --save", cli.ShownName(name))
		}
		u.inOrder = true
		return tasks.Decode(cli.ShownName(name), source)
	}
	options := file.Options{Name: cli.ShownName(name), Dir: folderOf(name), Library: kernels.Library(), MaxEdges: u.Flags.MaxEdges,
		Devices: flags.DeviceCount(u.Flags.Devices)}
	options.Rank, options.Ranks, options.LocalRank = u.Place.Rank, u.Place.Ranks, u.Place.LocalRank
	options.OpenModule = u.ModuleOpener(ctx, options.Dir)
	options.Outside = func(name string) bool { return files.Foreign(options.Dir, name) }
	options.ReadFile = func(name string) ([]byte, error) {
		u.NoteInput("a file of the pipeline", name)
		return u.folder.Regular(ctx, name, file.MaxBytes)
	}
	for _, p := range u.Flags.Params {
		key, value, ok := strings.Cut(p, "=")
		if key = strings.TrimSpace(key); !ok || key == "" {
			return nil, fmt.Errorf("-p %s: want name=value", p)
		}
		options.Params = append(options.Params, file.Override{Name: key, Value: value})
	}
	if options.Load, err = FileBindings("load", u.Flags.Load); err != nil {
		return nil, err
	}
	if options.Save, err = FileBindings("save", u.Flags.Save); err != nil {
		return nil, err
	}
	u.Reread = func(rank, local int) (*dag.Graph, error) {
		other := options
		other.Rank, other.LocalRank = rank, local
		return u.bucketed(file.ParseContext(ctx, source, other))
	}
	u.family = func(n int, local []int) (*file.Family, error) {
		all := options
		all.LocalRanks = local
		return u.bucketedFamily(file.ParseFamilyContext(ctx, source, all, n))
	}
	return u.bucketed(file.ParseContext(ctx, source, options))
}

// LoadPlan plans the graph as the flags say, or reads the plan that --plan names.
func (u *Session) LoadPlan(ctx context.Context, g *dag.Graph, o planner.Options) (*planner.Plan, error) {
	if u.Flags.Plan != "" {
		plan, err := cli.DecodeFile(ctx, u.Flags.Plan, func(r io.Reader) (*planner.Plan, error) { return planner.DecodePlan(r, g) })
		if err != nil {
			return nil, err
		}
		return plan, u.withinCap(plan)
	}
	u.Progress.Report("plan", 0, 0)
	plan, err := u.NewPlan(ctx, g, o)
	if err != nil {
		return nil, err
	}
	u.Log.Info("planned", "strategy", plan.Strategy, "machine", plan.Machine, "streams", len(plan.Streams), "waits", plan.Stats.Waits,
		"predicted_us", fmt.Sprintf("%.1f", plan.Stats.MakespanUS))
	if plan.Note != "" {
		u.Log.Info(plan.Note)
	}
	return plan, nil
}

// withinCap refuses a plan from a file that needs more memory of a device than --memory-cap allows.
func (u *Session) withinCap(plan *planner.Plan) error {
	most, err := u.MemoryCap()
	if most == 0 {
		return err
	}
	needs := int64(0)
	for _, m := range plan.Memory {
		needs = max(needs, m.Offset+m.Bytes)
	}
	if needs > most {
		return fmt.Errorf("%s needs %s of a device, more than the %s that --memory-cap allows; without --plan, another plan is made", u.Flags.Plan,
			words.Bytes(needs), words.Bytes(most))
	}
	return nil
}

// MatchProfile warns of names in a profile that the pipeline does not have: the profile belongs to another file or an older version.
func (u *Session) MatchProfile(g *dag.Graph, profile *planner.Profile) {
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
		u.Warn("%s in the profile %s not in the pipeline: %s%s", cli.Counted(n, "name"), cli.Verb(n, "is", "are"), strings.Join(unknown[:min(n, most)], ", "), more)
	}
	if n := len(missing); n > 0 {
		u.Log.Info("the profile is not complete", "nodes_without_duration", n)
	}
}
