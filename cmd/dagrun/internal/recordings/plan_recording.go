// dagrun plan FILE, where the file is a recording of a program: new plans for the graphs that it captured. Other commands of pipelines take them too.

package recordings

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/replan"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/session"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/runtime/cache"
)

// ReplanFlags are what plan takes for recordings only.
type ReplanFlags struct {
	Graph string // file with a captured graph as the Python package describes it, - for standard input
	Stay  bool
	Keep  []int
}

// largestGraph is how long the description of a graph may be.
const largestGraph = 1 << 30

// PlanRecording plans the graphs of a recording again. With --graph it plans one in the process that captured it, for the Python package.
func (u *Recordings) PlanRecording(ctx context.Context, name string, own *ReplanFlags, show func(context.Context, *dag.Graph) error) error {
	if own.Graph != "" {
		return u.planCaptured(ctx, name, own)
	}
	known, err := u.KnownGraphs(name)
	if err != nil {
		return err
	}
	if u.Flags.Output != "json" {
		for _, graph := range known {
			fmt.Fprint(u.Stdout, graph.Text())
		}
	}
	if err := u.ChooseGraph(ctx, name, known, own); err != nil {
		return err
	}
	if u.Flags.Output != "json" {
		fmt.Fprintf(u.Stdout, "%s\n\n", u.Captured.Bounds(u.Captured.Durations()).Text())
	}
	return show(ctx, u.Captured.Graph())
}

// keptPlans is what is found of a captured graph that was planned before.
type keptPlans struct {
	Plans  *replan.Plans `json:"plans"`         // with the plan that was chosen, or with none; null: there is nothing that can be used
	Report string        `json:"report"`        // what the program was told
	Why    string        `json:"why,omitempty"` // why what is kept is not used
}

// planCaptured answers the process that captured the graph that --graph describes. With durations it writes plans; with what was chosen of them it keeps
// that for later processes; with neither it looks for what an earlier process chose.
func (u *Recordings) planCaptured(ctx context.Context, name string, own *ReplanFlags) error {
	options, err := u.graphOptions(ctx, own)
	if err != nil {
		return err
	}
	asked, err := readGraph(own.Graph)
	if err != nil {
		return cli.WithStatus(cli.StatusWrong, err)
	}
	switch {
	case asked.Chosen != nil:
		return u.keepPlans(ctx, name, asked, options)
	case len(asked.US) == 0:
		return json.NewEncoder(u.Stdout).Encode(u.earlierPlans(name, asked, options))
	}
	known, err := u.KnownGraphs(name)
	if err != nil {
		return err
	}
	closest := error(nil)
	for _, graph := range known {
		plans, err := replan.Make(ctx, graph, asked, options)
		var other *replan.ErrOther
		if errors.As(err, &other) { // perhaps another graph of the program is meant
			if before := (*replan.ErrOther)(nil); closest == nil || errors.As(closest, &before) && other.Node > before.Node {
				closest = err
			}
			continue
		}
		if err != nil {
			return err
		}
		return json.NewEncoder(u.Stdout).Encode(plans)
	}
	return cli.WithStatus(cli.StatusWrong, closest)
}

// keptKey names a captured graph in the cache, with what changes the plans of it.
func keptKey(g *replan.Graph, o replan.Options) string {
	return cache.Key("captured", g.Signature(), fmt.Sprint(o.Stay, o.Cap))
}

// environment is what plans for a captured graph depend on besides the graph.
func environment(name string, g *replan.Graph) (replan.Environment, error) {
	info, err := os.Stat(name)
	if err != nil {
		return replan.Environment{}, err
	}
	state := fmt.Sprint(info.Size(), " ", info.ModTime().UnixNano())
	return replan.Environment{Driver: g.Driver, Device: g.Device, Torch: g.Torch, Dagrun: cli.ThisBuild().String(), Recording: state}, nil
}

func (u *Recordings) keepPlans(ctx context.Context, name string, g *replan.Graph, o replan.Options) error {
	made, err := environment(name, g)
	if err != nil {
		return err
	}
	kept, err := g.Keep(made)
	if err != nil {
		return err
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	return u.OpenCache().KeepGraph(ctx, keptKey(g, o), text)
}

// measuredBefore returns what a program found out about a captured graph when it planned it; nil if nothing is kept.
func (u *Recordings) measuredBefore(g *replan.Graph, o replan.Options) (*replan.Kept, error) {
	text, err := u.OpenCache().Graph(keptKey(g, o))
	if text == nil {
		return nil, err
	}
	return replan.DecodeKept(text)
}

func (u *Recordings) earlierPlans(name string, g *replan.Graph, o replan.Options) *keptPlans {
	found := &keptPlans{}
	is, err := environment(name, g)
	if err != nil {
		return &keptPlans{Why: err.Error()}
	}
	kept, err := u.measuredBefore(g, o)
	if err == nil && kept == nil {
		return found
	}
	if err == nil {
		err = kept.Made.Same(&is)
	}
	if err == nil {
		found.Plans, err = kept.In(g)
	}
	if err != nil {
		return &keptPlans{Why: err.Error()}
	}
	found.Report = kept.Report
	return found
}

// KnownGraphs reads what a recording tells of the graphs that its program passed to dagrun.replan: of FILE#N, the Nth of them.
func (u *Recordings) KnownGraphs(name string) ([]*replan.Known, error) {
	file, number := recording.CutGraph(name)
	archive, err := u.OpenRecording(file)
	if err != nil {
		return nil, err
	}
	defer archive.Close()
	var all []*replan.Known
	for k := range archive.Processes() {
		p, err := archive.Process(k)
		if err != nil {
			return nil, cli.WithStatus(cli.StatusWrong, err)
		}
		for _, note := range p.Notes {
			if note.Code != recording.NoteGraph {
				continue
			}
			known, err := replan.Learn(p, note)
			if err != nil {
				return nil, cli.WithStatus(cli.StatusWrong, fmt.Errorf("%s: %w", cli.ShownName(name), err))
			}
			all = append(all, known)
		}
	}
	switch {
	case len(all) == 0:
		return nil, cli.WithStatus(cli.StatusWrong, fmt.Errorf("%s has no graph that can be planned again: call dagrun.replan(graph, FILE) in the program, and record it with its accesses measured", cli.ShownName(file)))
	case number > len(all):
		return nil, cli.WithStatus(cli.StatusWrong, fmt.Errorf("%s has %s, so there is no %s", cli.ShownName(file), cli.Counted(len(all), "graph"),
			cli.ShownName(name)))
	case number > 0:
		return all[number-1 : number], nil
	}
	return all, nil
}

// graphOptions are the flags of plan for captured graphs.
func (u *Recordings) graphOptions(ctx context.Context, own *ReplanFlags) (o replan.Options, err error) {
	u.Flags.Machine = cmp.Or(u.Flags.Machine, "h200")
	if o.Machine, err = session.LoadMachine(ctx, u.Flags.Machine); err != nil {
		return o, err
	}
	o.Cap, err = u.MemoryCap()
	o.Stay, o.Keep = own.Stay, own.Keep
	return o, err
}

// ChooseGraph lets a command of pipelines work on a captured graph: the largest of those that are known.
func (u *Recordings) ChooseGraph(ctx context.Context, name string, known []*replan.Known, own *ReplanFlags) error {
	u.NoteInput("the recording", name)
	largest := known[0]
	for _, graph := range known[1:] {
		if len(graph.Nodes) > len(largest.Nodes) {
			largest = graph
		}
	}
	if len(known) > 1 {
		u.Note("%s has %d graphs; this is the largest, and %s is the first", cli.ShownName(name), len(known), cli.ShownName(name+"#1"))
	}
	o, err := u.graphOptions(ctx, own)
	if err != nil {
		return err
	}
	o.Name = filepath.Base(name)
	g := largest.Graph(nil)
	if u.Flags.Learn == flags.LearnAuto {
		if u.Earlier, err = u.measuredBefore(g, o); err != nil {
			u.Warn("%v", err)
		}
		if u.Earlier != nil {
			g = largest.Graph(u.Earlier.US)
			u.Note("durations are those that a program measured on %s when it planned this graph", u.Earlier.Made.Device)
		}
	}
	if len(g.US) == 0 {
		u.Note("a recording does not hold how long kernels take, so times are guessed from the bytes that they touch; " +
			"the program measures them when it plans its graph on a GPU, and --learn=auto uses them")
	}
	u.Captured, err = replan.NewCapturedGraph(largest, g, o)
	return err
}

func readGraph(name string) (*replan.Graph, error) {
	in := io.Reader(os.Stdin)
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, largestGraph))
	if err != nil {
		return nil, err
	}
	return replan.DecodeGraph(text)
}
