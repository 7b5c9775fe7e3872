// Costs of nodes: the duration that the planner assumed for each node, where the number comes from, and how far a plan is above its bound.

package plan

import (
	"fmt"
	"math"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
)

// CostSource says where the duration of a node comes from.
type CostSource uint8

const (
	UnknownCost  CostSource = iota // neither declared nor measured, and there is no formula for it: the planner used a default
	FormulaCost                    // from its bytes, operations or arguments and the rates of the machine
	MeasuredCost                   // from a profile
	DeclaredCost                   // with cost: in the pipeline
)

// costSources are the names of the sources, by source.
var costSources = []string{"unknown", "formula", "measured", "declared"}

func (s CostSource) String() string {
	if int(s) < len(costSources) {
		return costSources[s]
	}
	return fmt.Sprintf("CostSource(%d)", uint8(s))
}

// Cost is how long the planner assumed that a node takes when nothing else runs.
type Cost struct {
	US     float64
	Source CostSource
	Passes Passes // of a loop, where US depends on them
}

// mostNamed is the maximum number of nodes of unknown cost that are listed by name.
const mostNamed = 5

// costTally counts costs by their source.
type costTally struct {
	count   [4]int
	unknown []string // the first nodes of unknown cost
}

func (t *costTally) add(n *dag.Node, source CostSource) {
	source &= 3
	t.count[source]++
	if source == UnknownCost && len(t.unknown) < mostNamed {
		t.unknown = append(t.unknown, n.Name)
	}
}

func (t *costTally) text() string {
	var parts []string
	for _, p := range []struct {
		source CostSource
		text   string
	}{{DeclaredCost, "declared"}, {MeasuredCost, "measured"}, {FormulaCost, "by formula"}, {UnknownCost, "unknown"}} {
		if n := t.count[p.source]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, p.text))
		}
	}
	text := strings.Join(parts, ", ")
	if len(t.unknown) > 0 {
		text += ": " + words.Line(strings.Join(t.unknown, ", "))
		if more := t.count[UnknownCost] - len(t.unknown); more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
	}
	return text
}

// CostText sums up where costs come from: "3 measured, 1 unknown: blur". It is empty without nodes.
func CostText(g *dag.Graph, costs []Cost) string {
	var tally costTally
	for i := range costs[:min(len(costs), g.Len())] {
		tally.add(&g.Nodes[i], costs[i].Source)
	}
	return tally.text()
}

// aboveBound returns by how much a makespan exceeds a lower bound, as a fraction of the bound.
func aboveBound(makespan, bound float64) float64 {
	if bound <= 0 {
		return 0
	}
	if above := makespan/bound - 1; above > 1e-9 { // smaller differences are rounding errors
		return min(above, math.MaxFloat64)
	}
	return 0
}
