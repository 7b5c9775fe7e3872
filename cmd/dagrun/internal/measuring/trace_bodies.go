// dagrun trace of pipelines with loops and branches: what they did in the last replay, and how long their passes and the nodes in them took.

package measuring

import (
	"strconv"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

// mostTraced is how many nodes the table shows; the file has all.
const mostTraced = 40

// tracedBodyNode is a node in the body of a loop or branch.
type tracedBodyNode struct {
	Node      string         `json:"node"`                  // its name
	In        string         `json:"in"`                    // the loop or branch
	Took      runtime.Series `json:"took"`                  // of the passes that are shown
	Predicted float64        `json:"predicted_duration_us"` // of one pass
}

// tracedBodies returns the nodes of bodies that were measured in a replay, in declaration order.
func tracedBodies(g *dag.Graph, plan *planner.Plan, replay *runtime.TracedReplay) []tracedBodyNode {
	took := map[string][]float64{}
	for k := range replay.Passes {
		for _, n := range replay.Passes[k].Nodes {
			took[n.Node] = append(took[n.Node], n.End-n.Start)
		}
	}
	var nodes []tracedBodyNode
	var look func(g *dag.Graph, plan *planner.Plan, in string)
	look = func(g *dag.Graph, plan *planner.Plan, in string) {
		for i := range g.Nodes {
			n := &g.Nodes[i]
			if samples := took[n.Name]; in != "" && len(samples) > 0 {
				t := tracedBodyNode{Node: n.Name, In: in, Took: runtime.Summarize(samples)}
				if i < len(plan.Costs) {
					t.Predicted = plan.Costs[i].US
				}
				nodes = append(nodes, t)
			}
			if n.Control == nil {
				continue
			}
			for k, body := range n.Control.Bodies {
				look(body, plan.BodyOf(dag.NodeID(i), k), n.Name)
			}
		}
	}
	look(g, plan, "")
	return nodes
}

// printBodies prints the loops and branches of the last replay of a trace, and the nodes in them.
func (u *Commands) printBodies(t *runtime.Trace, nodes []tracedBodyNode) error {
	last := &t.Replays[len(t.Replays)-1]
	if len(last.Loops) == 0 {
		return nil
	}
	table := cli.NewTable("loop or branch", "in the last replay", "shown", "pass us", "least us", "most us")
	for k := range last.Loops {
		l := &last.Loops[k]
		var took []float64
		for i := range last.Passes {
			if p := &last.Passes[i]; p.Node == l.Node && !p.LeftOut && p.End > p.Start {
				took = append(took, p.End-p.Start)
			}
		}
		cells := []string{l.Node, l.Text(), strconv.FormatInt(l.Shown, 10), "-", "-", "-"}
		if s := runtime.Summarize(took); s.Count > 0 {
			cells[3], cells[4], cells[5] = cli.Fixed(s.Median), cli.Fixed(s.Min), cli.Fixed(took[len(took)-1])
		}
		table.Row(cells...)
	}
	if err := table.Write(u.Stdout, u.LineWidth()); err != nil {
		return err
	}
	if err := u.Stdout.Printf("\n"); err != nil {
		return err
	}
	if len(nodes) == 0 {
		if t.Bodies == "passes" {
			return u.Stdout.Printf("%s\n\n", words.Line("A graph tells when passes began and ended, but not when the nodes in them ran; --graph=off measures those too."))
		}
		return nil
	}
	table = cli.NewTable("takes us", "least us", "times", "predicted us", "in", "node")
	for k := range nodes[:min(len(nodes), mostTraced)] {
		n := &nodes[k]
		table.Row(cli.Fixed(n.Took.Median), cli.Fixed(n.Took.Min), strconv.Itoa(n.Took.Count), cli.Fixed(n.Predicted), n.In, n.Node)
	}
	if err := table.Write(u.Stdout, u.LineWidth()); err != nil {
		return err
	}
	if more := len(nodes) - mostTraced; more > 0 {
		if err := u.Stdout.Printf("and %s more\n", cli.Counted(more, "node")); err != nil {
			return err
		}
	}
	return u.Stdout.Printf("\n")
}
