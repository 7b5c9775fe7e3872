// dagrun plan FILE: the schedule as people read it, as JSON, or every strategy side by side.

package planning

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/pictures"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/recordings"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/session"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/planner/spread"
)

func (u *Commands) PlanCommand() *cobra.Command {
	var compare, explain, ascii bool
	var save, html, against, calls string
	var again recordings.ReplanFlags
	show := func(ctx context.Context, g *dag.Graph) error {
		if err := u.CheckOutputs(g, []cli.NamedFile{{Role: "--save-plan", Name: save}, {Role: "--html", Name: html}}, nil); err != nil {
			return err
		}
		if err := flags.OneOf("--calls", calls, callsStreams, callsCaptured); err != nil {
			return err
		}
		if calls != "" && (compare || explain) {
			return errors.New("--calls is a JSON document of its own: leave out --compare and --explain")
		}
		if compare {
			if explain && u.Flags.Output == "json" {
				return errors.New("--compare and --explain are two JSON documents; ask for one of them")
			}
			if err := u.printComparison(ctx, g); err != nil || !explain && save == "" && html == "" {
				return err
			}
			if explain {
				fmt.Fprintln(u.Stdout)
			}
		}
		u.InGraph = calls == callsCaptured
		plan, options, err := u.Planned(ctx, g)
		if err != nil {
			return err
		}
		other, err := u.Against(ctx, g, against, html, options)
		if err != nil {
			return err
		}
		if save != "" {
			if err := u.SavePlan(ctx, save, plan, g); err != nil {
				return err
			}
		}
		if calls != "" {
			return u.printCalls(plan)
		}
		u.Progress.Report("predict how long it takes", 0, 0)
		timeline, err := u.Simulate(g, plan, options)
		if err != nil {
			return err
		}
		if html != "" {
			if err := pictures.SavePage(ctx, html, g, plan, timeline, options.Machine, nil, other); err != nil {
				return err
			}
			if err := u.Wrote(html); err != nil {
				return err
			}
		}
		switch {
		case explain:
			return u.printExplanation(g, plan, options)
		case compare:
			return nil
		}
		return u.printPlan(g, plan, timeline, ascii)
	}
	c := &cobra.Command{
		Use:   "plan FILE",
		Short: "Show the schedule: streams, ops, and why each wait is there",
		Long: `Show which node runs on which stream, where streams wait for each other and why, the device memory
that is needed, and how long it should take. Plans are the same everywhere: they are made for the
machine that --machine names, and no device is opened. Only --learn=auto plans as a run on this
computer would.

Of a recording (dagrun record) it says what is known of the graphs that the program passed to
dagrun.replan: how many values can be moved, what stays, and what binds the largest, which it then
plans. A recording does not hold how long kernels take: those times are guesses.`,
		Example: `  dagrun plan pipelines/saxpy.yaml
  dagrun plan pipelines/saxpy.yaml --compare          every strategy side by side
  dagrun plan pipelines/saxpy.yaml --explain          how each dependency is enforced
  dagrun plan pipelines/saxpy.yaml --save-plan p.json  keep it; run it with --plan p.json
  dagrun plan pipelines/saxpy.yaml --html saxpy.html  a page to look at
  dagrun plan pipelines/saxpy.yaml --learn=auto       with what earlier runs learned
  dagrun plan pipelines/saxpy.yaml --html saxpy.html --against serial  two schedules on one page
  dagrun plan pipelines/saxpy.yaml --output json | jq .stats
  dagrun plan net.rec --explain                       a captured graph`,
		Args: flags.OneFile,
		RunE: func(c *cobra.Command, args []string) error {
			if recording.Recognize(args[0]) {
				if err := u.CheckFlags(c); err != nil {
					return err
				}
				if compare {
					return fmt.Errorf("--compare is for pipelines: dagrun bench %s has every plan of its graph side by side", cli.ShownName(args[0]))
				}
				if err := cli.OnlyFlags(c, args[0], "explain", "strategy", "streams", "effort", "machine", "profile", "html", "against", "save-plan", "plan", "ascii",
					"graph", "keep", "stay", "memory-cap", "confined", "learn", "cache-dir"); err != nil {
					return err
				}
				return u.Recordings.PlanRecording(c.Context(), args[0], &again, show)
			}
			if recording.RecognizePlanned(args[0]) {
				return u.Exported.ListPlanned(c, args[0])
			}
			return u.OnGraph(show)(c, args)
		},
	}
	u.OutputFlags(c)
	u.ParamFlags(c)
	u.LoadFlags(c)
	u.SaveFlags(c)
	u.PlanFlags(c, "h200")
	c.Flags().IntVar(&u.ValuesOf(c).Ranks.Ranks, "ranks", 1, "plan for rank 0 of `N`")
	u.RecallFlags(c)
	c.Flags().BoolVar(&compare, "compare", false, "compare all strategies at several stream counts")
	c.Flags().BoolVar(&explain, "explain", false, "show how the plan enforces each dependency")
	c.Flags().StringVar(&calls, "calls", "", "print the calls of a replay as JSON, for a program that makes them: `how` is streams, or captured as a CUDA graph")
	c.Flags().Lookup("calls").NoOptDefVal = callsStreams
	c.Flags().StringVar(&save, "save-plan", "", "write the plan as JSON to this `file`")
	c.Flags().StringVar(&html, "html", "", "write a page with the predicted timeline to this `file`")
	c.Flags().StringVar(&against, "against", "", pictures.AgainstUsage)
	c.Flags().StringVar(&again.Graph, "graph", "", "of a recording, plan the captured graph that this `file` describes (for the Python package)")
	c.Flags().IntSliceVar(&again.Keep, "keep", nil, "of a recording, `nodes` to which it matters what lay in memory before (for the Python package)")
	c.Flags().BoolVar(&again.Stay, "stay", false, "of a recording, move no values")
	c.Flags().BoolVar(&ascii, "ascii", false, "draw the chart in ASCII")
	return c
}

func (u *Commands) printPlan(g *dag.Graph, plan *planner.Plan, timeline *plan.Timeline, ascii bool) error {
	if u.Flags.Output == "json" {
		u.Answered = true
		return plan.EncodeJSON(u.Stdout, g)
	}
	if err := plan.WriteText(u.Stdout, g, timeline); err != nil {
		return err
	}
	if err := u.RecallHint(plan); err != nil {
		return err
	}
	return u.PrintGantt(g, plan, timeline, ascii)
}

// The values of --calls: what the program does with the calls.
const (
	callsStreams  = "streams"
	callsCaptured = "captured"
)

// replayCalls is the JSON document of plan --calls.
type replayCalls struct {
	Version    int        `json:"version"` // 1
	Command    string     `json:"command"` // plan --calls
	Name       string     `json:"name"`
	Streams    int        `json:"streams"`     // stream 0 is the caller's
	Events     int32      `json:"events"`      // event objects that the calls need
	Waits      int        `json:"waits"`       // without those of fork and join
	MakespanUS float64    `json:"makespan_us"` // predicted
	Calls      [][3]int32 `json:"calls"`       // what (plan.OpKind), the node or the event, and the stream
}

// printCalls prints the calls in one line: they may be many.
func (u *Commands) printCalls(made *planner.Plan) error {
	replay := made.Replay(1)
	document := replayCalls{cli.JSONVersion, "plan --calls", made.Name, len(made.Streams), replay.Events, made.Stats.Waits, made.Stats.MakespanUS, nil}
	document.Calls = make([][3]int32, len(replay.Ops))
	for k, op := range replay.Ops {
		document.Calls[k] = [3]int32{int32(op.Kind), op.Event, op.Stream}
		if op.Kind == plan.Launch {
			document.Calls[k][1] = int32(op.Node)
		}
	}
	u.Progress.Clear()
	u.Answered = true
	return json.NewEncoder(u.Stdout).Encode(document)
}

// explanation is the JSON document of plan --explain.
type explanation struct {
	Version      int                    `json:"version"`       // 1
	Command      string                 `json:"command"`       // plan --explain
	Name         string                 `json:"name"`          // the pipeline
	Dependencies []Explained            `json:"dependencies"`  // how each is enforced
	Costs        []nodeCost             `json:"costs"`         // what each node was taken to take, those of bodies after their loop or branch
	Access       []session.KernelAccess `json:"kernel_access"` // what kernels of modules read and write
}

// Explained is one dependency in JSON.
type Explained struct {
	From  string `json:"from"`  // the earlier node
	To    string `json:"to"`    // the later node
	Why   string `json:"why"`   // the data, or after
	How   string `json:"how"`   // same stream, wait, already ordered, or not enforced
	Text  string `json:"text"`  // the same in a sentence
	Waits int    `json:"waits"` // that lead from one to the other
}

func (u *Commands) printExplanation(g *dag.Graph, plan *planner.Plan, o planner.Options) error {
	enforcements, err := planner.Explain(g, plan)
	if err != nil {
		return err
	}
	costs := u.filled(nodeCosts(g, plan, o.Profile), g, o.Machine)
	table := cli.NewTable("from", "to", "why", "enforced by")
	list := make([]Explained, 0, len(enforcements))
	for i := range enforcements {
		e := &enforcements[i]
		edge := g.Edges()[e.Edge]
		from, to, why, text := g.Nodes[e.From].Name, g.Nodes[e.To].Name, g.EdgeText(edge), e.Text(g)
		table.Row(from, to, why, text)
		list = append(list, Explained{from, to, why, e.How.String(), text, len(e.Waits)})
	}
	if u.Flags.Output == "json" {
		return u.Answer(explanation{cli.JSONVersion, "plan --explain", g.Name, list, costs, session.KernelAccesses(g)})
	}
	if err := table.Write(u.Stdout, u.LineWidth()); err != nil {
		return err
	}
	if err := u.printCosts(costs); err != nil {
		return err
	}
	u.PrintAccess(session.KernelAccesses(g))
	return nil
}

// nodeCost is the assumed duration of a node, in JSON.
type nodeCost struct {
	Node   string   `json:"node"`                  // its name
	US     float64  `json:"us"`                    // how long it was taken to take
	Spread *float64 `json:"spread_us,omitempty"`   // standard deviation of what was measured, if the profile tells
	Fills  *float64 `json:"fills,omitempty"`       // of a captured graph: the part of the GPU that its blocks take while it runs
	Source string   `json:"source"`                // where that comes from
	Passes *int64   `json:"passes,omitempty"`      // of a loop with a condition, if the time depends on them
	From   string   `json:"passes_from,omitempty"` // learned, or most
	text   string
	depth  int // in how many loops and branches the node is
}

// nodeCosts lists the costs of a plan, those of the nodes of a body after the loop or branch that has it. The profile that it was made with may be nil.
func nodeCosts(g *dag.Graph, made *planner.Plan, profile *planner.Profile) []nodeCost {
	list := make([]nodeCost, 0, len(made.Costs))
	made.EachCost(g, func(n *dag.Node, c *plan.Cost, depth int) {
		cost := nodeCost{Node: n.Name, US: c.US, Source: c.Source.String(), text: c.Source.String(), depth: depth}
		if text := c.Passes.Text(); text != "" {
			cost.Passes, cost.From, cost.text = &c.Passes.Count, c.Passes.Source.String(), cost.text+", "+text
		}
		if profile != nil && c.Source == plan.MeasuredCost {
			if spread, ok := profile.Spreads[cost.Node]; ok {
				cost.Spread = &spread
			}
		}
		list = append(list, cost)
	})
	return list
}

// filled adds to the costs of a captured graph how much of the GPU each kernel fills: those that fill it gain nothing side by side.
func (u *Commands) filled(costs []nodeCost, g *dag.Graph, m *planner.Machine) []nodeCost {
	if u.Captured != nil {
		for k := range costs {
			share := m.Share(&g.Nodes[k])
			costs[k].Fills = &share
		}
	}
	return costs
}

// printCosts lists the assumed duration of each node and its source. Older plan files do not contain these.
func (u *Commands) printCosts(costs []nodeCost) error {
	if len(costs) == 0 {
		return nil
	}
	spread := slices.ContainsFunc(costs, func(c nodeCost) bool { return c.Spread != nil })
	columns := []string{"node", "cost us"}
	if spread {
		columns = append(columns, "spread us")
	}
	if costs[0].Fills != nil {
		columns = append(columns, "fills")
	}
	table := cli.NewTable(append(columns, "cost from")...)
	for _, c := range costs {
		cells := []string{strings.Repeat("  ", c.depth) + c.Node, cli.Fixed(c.US)}
		if spread {
			text := ""
			if c.Spread != nil {
				text = cli.Fixed(*c.Spread)
			}
			cells = append(cells, text)
		}
		if c.Fills != nil {
			cells = append(cells, fmt.Sprintf("%.0f %%", 100**c.Fills))
		}
		table.Row(append(cells, c.text)...)
	}
	if err := u.Stdout.Printf("\n"); err != nil {
		return err
	}
	return table.Write(u.Stdout, u.LineWidth())
}

func (u *Commands) printComparison(ctx context.Context, g *dag.Graph) error {
	r, err := u.OptionsFor(ctx, g)
	if err != nil {
		return err
	}
	options := r.Options
	u.Progress.Report("compare strategies", 0, 0)
	comparison, err := planner.Compare(ctx, g, options)
	if err != nil {
		return err
	}
	if u.Spread != nil && len(u.Spread.At) > 0 {
		if comparison.Spreads, err = spread.Compare(ctx, u.Declared, spread.Options{Options: options, Devices: u.Spread.Devices}); err != nil {
			return err
		}
	}
	if u.Flags.Output == "json" {
		u.Answered = true
		return comparison.EncodeJSON(u.Stdout)
	}
	return u.writeComparison(comparison)
}

// writeComparison writes the tables of a comparison, within the width of a terminal.
func (u *Commands) writeComparison(c *planner.Comparison) error {
	width := u.LineWidth()
	if width == 0 {
		return c.WriteText(u.Stdout)
	}
	rows, notes := c.Table()
	table := cli.NewTable(rows[0]...)
	table.Keys = 3
	for _, row := range rows[1:] {
		table.Row(row...)
	}
	if err := u.Stdout.Printf("%s\n", words.Line(c.Head())); err != nil {
		return err
	}
	if err := table.Write(u.Stdout, width); err != nil {
		return err
	}
	for _, note := range notes {
		if err := u.Stdout.Printf("%s\n", strings.Join(cli.Wrap(words.Line(note), width), "\n")); err != nil {
			return err
		}
	}
	return c.WriteSpreads(u.Stdout)
}
