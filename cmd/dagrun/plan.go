// dagrun plan FILE: the schedule as people read it, as JSON, or every strategy side by side.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/spread"
)

func (a *app) planCommand() *cobra.Command {
	var compare, explain, ascii bool
	var save, html, against, calls string
	var again replanFlags
	show := func(ctx context.Context, g *dag.Graph) error {
		if err := a.checkOutputs(g, []namedFile{{role: "--save-plan", name: save}, {role: "--html", name: html}}, nil); err != nil {
			return err
		}
		if err := oneOf("--calls", calls, callsStreams, callsCaptured); err != nil {
			return err
		}
		if calls != "" && (compare || explain) {
			return errors.New("--calls is a JSON document of its own: leave out --compare and --explain")
		}
		if compare {
			if explain && a.flags.output == "json" {
				return errors.New("--compare and --explain are two JSON documents; ask for one of them")
			}
			if err := a.printComparison(ctx, g); err != nil || !explain && save == "" && html == "" {
				return err
			}
			if explain {
				fmt.Fprintln(a.stdout)
			}
		}
		a.inGraph = calls == callsCaptured
		plan, options, err := a.planned(ctx, g)
		if err != nil {
			return err
		}
		other, err := a.against(ctx, g, against, html, options)
		if err != nil {
			return err
		}
		if save != "" {
			if err := a.savePlan(ctx, save, plan, g); err != nil {
				return err
			}
		}
		if calls != "" {
			return a.printCalls(plan)
		}
		a.progress.report("predict how long it takes", 0, 0)
		timeline, err := a.simulate(g, plan, options)
		if err != nil {
			return err
		}
		if html != "" {
			if err := savePage(ctx, html, g, plan, timeline, options.Machine, nil, other); err != nil {
				return err
			}
			if err := a.wrote(html); err != nil {
				return err
			}
		}
		switch {
		case explain:
			return a.printExplanation(g, plan, options)
		case compare:
			return nil
		}
		return a.printPlan(g, plan, timeline, ascii)
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
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			if recording.Recognize(args[0]) {
				if err := a.checkFlags(c); err != nil {
					return err
				}
				if compare {
					return fmt.Errorf("--compare is for pipelines: dagrun bench %s has every plan of its graph side by side", shownName(args[0]))
				}
				if err := onlyFlags(c, args[0], "explain", "strategy", "streams", "effort", "machine", "profile", "html", "against", "save-plan", "plan", "ascii", "graph", "keep", "stay", "memory-cap", "confined", "learn", "cache-dir"); err != nil {
					return err
				}
				return a.planRecording(c.Context(), args[0], &again, show)
			}
			if recording.RecognizePlanned(args[0]) {
				return a.listPlanned(c, args[0])
			}
			return a.onGraph(show)(c, args)
		},
	}
	a.outputFlags(c)
	a.paramFlags(c)
	a.loadFlags(c)
	a.saveFlags(c)
	a.planFlags(c, "h200")
	c.Flags().IntVar(&a.values(c).ranks.Ranks, "ranks", 1, "plan for rank 0 of `N`")
	a.recallFlags(c)
	c.Flags().BoolVar(&compare, "compare", false, "compare all strategies at several stream counts")
	c.Flags().BoolVar(&explain, "explain", false, "show how the plan enforces each dependency")
	c.Flags().StringVar(&calls, "calls", "", "print the calls of a replay as JSON, for a program that makes them: `how` is streams, or captured as a CUDA graph")
	c.Flags().Lookup("calls").NoOptDefVal = callsStreams
	c.Flags().StringVar(&save, "save-plan", "", "write the plan as JSON to this `file`")
	c.Flags().StringVar(&html, "html", "", "write a page with the predicted timeline to this `file`")
	c.Flags().StringVar(&against, "against", "", againstUsage)
	c.Flags().StringVar(&again.graph, "graph", "", "of a recording, plan the captured graph that this `file` describes (for the Python package)")
	c.Flags().IntSliceVar(&again.keep, "keep", nil, "of a recording, `nodes` to which it matters what lay in memory before (for the Python package)")
	c.Flags().BoolVar(&again.stay, "stay", false, "of a recording, move no values")
	c.Flags().BoolVar(&ascii, "ascii", false, "draw the chart in ASCII")
	return c
}

func (a *app) printPlan(g *dag.Graph, plan *planner.Plan, timeline *planner.Timeline, ascii bool) error {
	if a.flags.output == "json" {
		a.answered = true
		return plan.EncodeJSON(a.stdout, g)
	}
	if err := plan.WriteText(a.stdout, g, timeline); err != nil {
		return err
	}
	if err := a.recallHint(plan); err != nil {
		return err
	}
	return a.printGantt(g, plan, timeline, ascii)
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
func (a *app) printCalls(plan *planner.Plan) error {
	replay := plan.Replay(1)
	document := replayCalls{jsonVersion, "plan --calls", plan.Name, len(plan.Streams), replay.Events, plan.Stats.Waits, plan.Stats.MakespanUS, nil}
	document.Calls = make([][3]int32, len(replay.Ops))
	for k, op := range replay.Ops {
		document.Calls[k] = [3]int32{int32(op.Kind), op.Event, op.Stream}
		if op.Kind == planner.Launch {
			document.Calls[k][1] = int32(op.Node)
		}
	}
	a.progress.clear()
	a.answered = true
	return json.NewEncoder(a.stdout).Encode(document)
}

// explanation is the JSON document of plan --explain.
type explanation struct {
	Version      int            `json:"version"`       // 1
	Command      string         `json:"command"`       // plan --explain
	Name         string         `json:"name"`          // the pipeline
	Dependencies []explained    `json:"dependencies"`  // how each is enforced
	Costs        []nodeCost     `json:"costs"`         // what each node was taken to take, those of bodies after their loop or branch
	Access       []kernelAccess `json:"kernel_access"` // what kernels of modules read and write
}

// explained is one dependency in JSON.
type explained struct {
	From  string `json:"from"`  // the earlier node
	To    string `json:"to"`    // the later node
	Why   string `json:"why"`   // the data, or after
	How   string `json:"how"`   // same stream, wait, already ordered, or not enforced
	Text  string `json:"text"`  // the same in a sentence
	Waits int    `json:"waits"` // that lead from one to the other
}

func (a *app) printExplanation(g *dag.Graph, plan *planner.Plan, o planner.Options) error {
	enforcements, err := planner.Explain(g, plan)
	if err != nil {
		return err
	}
	costs := a.filled(nodeCosts(g, plan, o.Profile), g, o.Machine)
	table := newTable("from", "to", "why", "enforced by")
	list := make([]explained, 0, len(enforcements))
	for i := range enforcements {
		e := &enforcements[i]
		edge := g.Edges()[e.Edge]
		from, to, why, text := g.Nodes[e.From].Name, g.Nodes[e.To].Name, g.EdgeText(edge), e.Text(g)
		table.row(from, to, why, text)
		list = append(list, explained{from, to, why, e.How.String(), text, len(e.Waits)})
	}
	if a.flags.output == "json" {
		return a.answer(explanation{jsonVersion, "plan --explain", g.Name, list, costs, kernelAccesses(g)})
	}
	if err := table.write(a.stdout, a.lineWidth()); err != nil {
		return err
	}
	if err := a.printCosts(costs); err != nil {
		return err
	}
	a.printAccess(kernelAccesses(g))
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
func nodeCosts(g *dag.Graph, plan *planner.Plan, profile *planner.Profile) []nodeCost {
	list := make([]nodeCost, 0, len(plan.Costs))
	plan.EachCost(g, func(n *dag.Node, c *planner.Cost, depth int) {
		cost := nodeCost{Node: n.Name, US: c.US, Source: c.Source.String(), text: c.Source.String(), depth: depth}
		if text := c.Passes.Text(); text != "" {
			cost.Passes, cost.From, cost.text = &c.Passes.Count, c.Passes.Source.String(), cost.text+", "+text
		}
		if profile != nil && c.Source == planner.MeasuredCost {
			if spread, ok := profile.Spreads[cost.Node]; ok {
				cost.Spread = &spread
			}
		}
		list = append(list, cost)
	})
	return list
}

// filled adds to the costs of a captured graph how much of the GPU each kernel fills: those that fill it gain nothing side by side.
func (a *app) filled(costs []nodeCost, g *dag.Graph, m *planner.Machine) []nodeCost {
	if a.network != nil {
		for k := range costs {
			share := m.Share(&g.Nodes[k])
			costs[k].Fills = &share
		}
	}
	return costs
}

// printCosts lists the assumed duration of each node and its source. Older plan files do not contain these.
func (a *app) printCosts(costs []nodeCost) error {
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
	table := newTable(append(columns, "cost from")...)
	for _, c := range costs {
		cells := []string{strings.Repeat("  ", c.depth) + c.Node, fixed(c.US)}
		if spread {
			text := ""
			if c.Spread != nil {
				text = fixed(*c.Spread)
			}
			cells = append(cells, text)
		}
		if c.Fills != nil {
			cells = append(cells, fmt.Sprintf("%.0f %%", 100**c.Fills))
		}
		table.row(append(cells, c.text)...)
	}
	if err := a.stdout.printf("\n"); err != nil {
		return err
	}
	return table.write(a.stdout, a.lineWidth())
}

func (a *app) printComparison(ctx context.Context, g *dag.Graph) error {
	r, err := a.optionsFor(ctx, g)
	if err != nil {
		return err
	}
	options := r.options
	a.progress.report("compare strategies", 0, 0)
	comparison, err := planner.Compare(ctx, g, options)
	if err != nil {
		return err
	}
	if a.spread != nil && len(a.spread.At) > 0 {
		if comparison.Spreads, err = spread.Compare(ctx, a.declared, spread.Options{Options: options, Devices: a.spread.Devices}); err != nil {
			return err
		}
	}
	if a.flags.output == "json" {
		a.answered = true
		return comparison.EncodeJSON(a.stdout)
	}
	return a.writeComparison(comparison)
}

// writeComparison writes the tables of a comparison, within the width of a terminal.
func (a *app) writeComparison(c *planner.Comparison) error {
	width := a.lineWidth()
	if width == 0 {
		return c.WriteText(a.stdout)
	}
	rows, notes := c.Table()
	table := newTable(rows[0]...)
	table.keys = 3
	for _, row := range rows[1:] {
		table.row(row...)
	}
	if err := a.stdout.printf("%s\n", words.Line(c.Head())); err != nil {
		return err
	}
	if err := table.write(a.stdout, width); err != nil {
		return err
	}
	for _, note := range notes {
		if err := a.stdout.printf("%s\n", strings.Join(wrap(words.Line(note), width), "\n")); err != nil {
			return err
		}
	}
	return c.WriteSpreads(a.stdout)
}
