// dagrun plan FILE, where the file is a recording of a program: new plans for the graphs that it captured. Other commands of pipelines take them too.

package main

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

// replanFlags are what plan takes for recordings only.
type replanFlags struct {
	graph string // file with a captured graph as the Python package describes it, - for standard input
	stay  bool
	keep  []int
}

// largestGraph is how long the description of a graph may be.
const largestGraph = 1 << 30

// planRecording plans the graphs of a recording again. With --graph it plans one in the process that captured it, for the Python package.
func (a *app) planRecording(ctx context.Context, name string, own *replanFlags, show func(context.Context, *dag.Graph) error) error {
	if own.graph != "" {
		return a.planCaptured(ctx, name, own)
	}
	known, err := a.knownGraphs(name)
	if err != nil {
		return err
	}
	if a.Flags.Output != "json" {
		for _, graph := range known {
			fmt.Fprint(a.Stdout, graph.Text())
		}
	}
	if err := a.chooseNetwork(ctx, name, known, own); err != nil {
		return err
	}
	if a.Flags.Output != "json" {
		fmt.Fprintf(a.Stdout, "%s\n\n", a.Network.Bounds(a.Network.Durations()).Text())
	}
	return show(ctx, a.Network.Graph())
}

// keptPlans is what is found of a captured graph that was planned before.
type keptPlans struct {
	Plans  *replan.Plans `json:"plans"`         // with the plan that was chosen, or with none; null: there is nothing that can be used
	Report string        `json:"report"`        // what the program was told
	Why    string        `json:"why,omitempty"` // why what is kept is not used
}

// planCaptured answers the process that captured the graph that --graph describes. With durations it writes plans; with what was chosen of them it keeps
// that for later processes; with neither it looks for what an earlier process chose.
func (a *app) planCaptured(ctx context.Context, name string, own *replanFlags) error {
	options, err := a.networkOptions(ctx, own)
	if err != nil {
		return err
	}
	asked, err := readGraph(own.graph)
	if err != nil {
		return cli.WithStatus(cli.StatusWrong, err)
	}
	switch {
	case asked.Chosen != nil:
		return a.keepPlans(ctx, name, asked, options)
	case len(asked.US) == 0:
		return json.NewEncoder(a.Stdout).Encode(a.earlierPlans(name, asked, options))
	}
	known, err := a.knownGraphs(name)
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
		return json.NewEncoder(a.Stdout).Encode(plans)
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

func (a *app) keepPlans(ctx context.Context, name string, g *replan.Graph, o replan.Options) error {
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
	return a.OpenCache().KeepGraph(ctx, keptKey(g, o), text)
}

// measuredBefore returns what a program found out about a captured graph when it planned it; nil if nothing is kept.
func (a *app) measuredBefore(g *replan.Graph, o replan.Options) (*replan.Kept, error) {
	text, err := a.OpenCache().Graph(keptKey(g, o))
	if text == nil {
		return nil, err
	}
	return replan.DecodeKept(text)
}

func (a *app) earlierPlans(name string, g *replan.Graph, o replan.Options) *keptPlans {
	found := &keptPlans{}
	is, err := environment(name, g)
	if err != nil {
		return &keptPlans{Why: err.Error()}
	}
	kept, err := a.measuredBefore(g, o)
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

// knownGraphs reads what a recording tells of the graphs that its program passed to dagrun.replan.
func (a *app) knownGraphs(name string) ([]*replan.Known, error) {
	archive, err := a.openRecording(name)
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
	if len(all) == 0 {
		return nil, cli.WithStatus(cli.StatusWrong, fmt.Errorf("%s has no graph that can be planned again: call dagrun.replan(graph, FILE) in the program, and record it with its accesses measured", cli.ShownName(name)))
	}
	return all, nil
}

// networkOptions are the flags of plan for captured graphs.
func (a *app) networkOptions(ctx context.Context, own *replanFlags) (o replan.Options, err error) {
	a.Flags.Machine = cmp.Or(a.Flags.Machine, "h200")
	if o.Machine, err = session.LoadMachine(ctx, a.Flags.Machine); err != nil {
		return o, err
	}
	o.Cap, err = a.MemoryCap()
	o.Stay, o.Keep = own.stay, own.keep
	return o, err
}

// chooseNetwork lets a command of pipelines work on a captured graph: the largest of a recording.
func (a *app) chooseNetwork(ctx context.Context, name string, known []*replan.Known, own *replanFlags) error {
	a.NoteInput("the recording", name)
	largest := known[0]
	for _, graph := range known[1:] {
		if len(graph.Nodes) > len(largest.Nodes) {
			largest = graph
		}
	}
	if len(known) > 1 {
		a.Note("%s has %d graphs; this is the largest", cli.ShownName(name), len(known))
	}
	o, err := a.networkOptions(ctx, own)
	if err != nil {
		return err
	}
	o.Name = filepath.Base(name)
	g := largest.Graph(nil)
	if a.Flags.Learn == flags.LearnAuto {
		if a.earlier, err = a.measuredBefore(g, o); err != nil {
			a.Warn("%v", err)
		}
		if a.earlier != nil {
			g = largest.Graph(a.earlier.US)
			a.Note("durations are those that a program measured on %s when it planned this graph", a.earlier.Made.Device)
		}
	}
	if len(g.US) == 0 {
		a.Note("a recording does not hold how long kernels take, so times are guessed from the bytes that they touch; " +
			"the program measures them when it plans its graph on a GPU, and --learn=auto uses them")
	}
	a.Network, err = replan.NewNetwork(largest, g, o)
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
