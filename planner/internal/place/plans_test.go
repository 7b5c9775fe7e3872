// Plans of drawn graphs as they were reviewed: a change of any strategy that changes a plan shows here, in its waits, events and order.
// -rewrite writes them anew.

package place

import (
	"context"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/crowd"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
)

var rewrite = flag.Bool("rewrite", false, "write golden files anew instead of comparing with them")

// strategies make assignments in every way there is.
var strategies = []struct {
	name string
	make func(p *Problem) (*Assignment, error)
}{
	{"serial", Serial},
	{"round robin", RoundRobin},
	{"heft", Heft},
	{"cover", func(p *Problem) (*Assignment, error) {
		wide := *p
		wide.streams = 100
		return Cover(&wide)
	}},
	{"list", func(p *Problem) (*Assignment, error) { return List(p, false) }},
	{"list, copies in line", func(p *Problem) (*Assignment, error) { return List(p, true) }},
	{"few bytes alive", func(p *Problem) (*Assignment, error) {
		return InOrder(p, LowMemoryOrder(p, deviceBuffers(p.g)), p.streams), nil
	}},
	{"shop", func(p *Problem) (*Assignment, error) {
		if !CanSearch(p) {
			return nil, nil
		}
		return Shop(p, [][]int32{p.order}, 0, 20*p.len())
	}},
	{"polished", func(p *Problem) (*Assignment, error) {
		a, err := List(p, false)
		if err != nil {
			return nil, err
		}
		made := &plan.Plan{}
		if err := Finish(p, a, false, made); err != nil {
			return nil, err
		}
		from := FromPlan(p, made)
		if from == nil {
			return nil, nil
		}
		return Polish(p, from, 40*p.len())
	}},
}

// described says what a strategy makes of a problem: streams, waits, events, and a sum over all ops in their order.
func described(t *testing.T, p *Problem, strategy func(p *Problem) (*Assignment, error)) string {
	t.Helper()
	a, err := strategy(p)
	if err != nil {
		return err.Error()
	}
	if a == nil {
		return "none"
	}
	made := &plan.Plan{}
	require.NoError(t, Finish(p, a, false, made))
	sum, waits := fnv.New32a(), 0
	plantest.EachOp(made, func(_ int, stream int32, op *plan.Op) {
		fmt.Fprintln(sum, stream, op.Kind, op.Node, op.Event)
		if op.Kind == plan.Wait {
			waits++
		}
	})
	nodes, records := 0, 0
	for _, s := range made.Streams {
		fmt.Fprintln(sum, s.Device, s.Priority)
		for _, op := range s.Ops {
			switch op.Kind {
			case plan.Launch:
				nodes++
			case plan.Record:
				records++
			}
		}
	}
	stats := plan.Stats{Nodes: nodes, Edges: len(p.g.Edges()), Streams: len(made.Streams), Waits: waits, Records: records, Events: int(made.Events)}
	stats.ForkRecords, stats.ForkWaits = made.CountForkJoin()
	require.Equal(t, stats, made.Stats)
	return fmt.Sprintf("%d streams, %d waits, %d events, %08x", len(made.Streams), waits, made.Events, sum.Sum32())
}

// crowded makes a graph whose nodes access parts of two buffers that overlap.
func crowded(t *testing.T, seed uint64) *dag.Graph {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 17))
	const bytes = 24
	b := dag.New("crowded")
	buffers := []dag.BufferID{b.Device("x", dag.U8, bytes), b.Device("y", dag.U8, bytes)}
	for i := range 40 {
		lo := rng.Int64N(bytes)
		hi := lo + 1
		if rng.IntN(3) == 0 {
			lo, hi = 0, bytes
		}
		r := dag.Range{Buffer: buffers[rng.IntN(2)], Lo: lo, Hi: hi}
		b.Cost(b.Task(fmt.Sprintf("n%d", i), []dag.Access{r.In(), r.Out(), r.InOut()}[rng.IntN(3)]), float64(1+rng.IntN(4)))
	}
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

func TestPlansAreThoseThatWereReviewed(t *testing.T) {
	var text strings.Builder
	sample := func(name string, g *dag.Graph, m *model.Machine, streams int) {
		p, err := NewProblem(context.Background(), g, m, model.Durations(g, m, nil), streams)
		if err != nil {
			fmt.Fprintf(&text, "%s: %v\n\n", name, err)
			return
		}
		fmt.Fprintf(&text, "%s, %s, at most %d streams: at least %.2f us, a crowd of %d\n", name, m.Name, streams, p.goal(), Crowd(p))
		for _, s := range strategies {
			fmt.Fprintf(&text, "  %-20s %s\n", s.name, described(t, p, s.make))
		}
		text.WriteString("\n")
		p.Release()
	}
	for family := range plantest.Families {
		for k, n := range []int{14, 70} {
			s := plantest.RandomShape(family, n, uint64(family))
			sample(s.Name, s.Graph(t), []*model.Machine{model.Unit(), model.H200()}[(family+k)%2], 3+2*k)
		}
	}
	for seed := range uint64(24) {
		sample(fmt.Sprintf("mixed %d", seed), plantest.MixedGraph(t, seed, 50, false), model.H200(), 2+int(seed)%3+int(seed)/8)
	}
	for family := range plantest.Families {
		s := plantest.RandomShape(family, 30, 7).Shuffled(uint64(family))
		sample(s.Name, s.Ordered(t), model.Unit(), 2+family%3)
	}
	sample("mixed, explicit", plantest.MixedGraph(t, 3, 50, true), model.H200(), 3)
	pieces, _ := plantest.Pieces(t, 6)
	sample("pieces", pieces, plantest.Model(), 3)
	sample("chains", plantest.Chains(6, 7).Graph(t), model.Unit(), 4)
	sample("many streams", plantest.RandomShape(0, 200, 9).Graph(t), model.H200(), 70)
	engines := *model.H200()
	engines.Name, engines.CopyEngines = "one copy engine", 1
	for seed := range uint64(6) {
		g := plantest.MixedGraph(t, 40+seed, 120, seed%2 == 1)
		sample(fmt.Sprintf("mixed %d", 40+seed), g, []*model.Machine{model.Unit(), &engines, plantest.Free()}[seed%3], 1+int(seed))
	}
	for k, n := range []int{60, 68, 600, 640} {
		s := plantest.RandomShape(3*k, n, 5)
		sample(s.Name, s.Graph(t), model.H200(), 4)
	}
	sample("cholesky", plantest.RandomShape(6, 2200, 1).Graph(t), model.H200(), 6)
	defer crowd.Early(false)()
	for family := 0; family < len(plantest.Families); family += 3 {
		s := plantest.RandomShape(family, 40, 2)
		sample(s.Name+" with joins", s.Graph(t), model.H200(), 4)
	}
	sample("mixed with joins", plantest.MixedGraph(t, 5, 50, false), model.H200(), 4)
	for seed := range uint64(6) {
		g := crowded(t, seed)
		require.NotEmpty(t, g.Joins())
		sample(fmt.Sprintf("crowded %d", seed), g, model.Unit(), 2+int(seed)%3)
	}
	const file = "testdata/plans.txt"
	if *rewrite {
		require.NoError(t, os.WriteFile(file, []byte(text.String()), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), text.String(), "%s is out of date; if the change is meant: go test ./planner/internal/place -run %s -rewrite, and review the diff", file, t.Name())
}
