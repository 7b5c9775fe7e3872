// Tests that Verify finds every fault planted in a plan that New made.

package planner

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/planner/proof"
)

// drawPlan draws a graph and plans it with New.
func drawPlan(t *rapid.T, maxNodes int) (*dag.Graph, *Plan) {
	var g *dag.Graph
	if rapid.Bool().Draw(t, "family") {
		rng := plantest.DrawSource(t)
		g = drawnShape(t, plantest.RandomShape(rng.IntN(len(plantest.Families)), plantest.Between(rng, 4, maxNodes), rng.Uint64()))
	} else {
		g = plantest.DrawGraph(t, maxNodes, rapid.Bool().Draw(t, "bind"))
	}
	rng := plantest.DrawSource(t)
	o := Options{
		Strategy:        []string{"auto", "list", "roundrobin", "serial", "list", "cover"}[rng.IntN(6)],
		Streams:         plantest.Between(rng, 1, 5),
		SingleUseEvents: rng.IntN(4) == 0,
	}
	if o.Strategy == "cover" {
		o.Streams = 0 // it needs as many streams as there are nodes that can run at once
	}
	p, err := New(context.Background(), g, o)
	if err != nil {
		t.Fatal(err)
	}
	require.NoError(t, Verify(g, p))
	return g, p
}

// drawnShape is Graph for rapid's tests, which do not implement testing.TB.
func drawnShape(t *rapid.T, s *plantest.Shape) *dag.Graph {
	b := dag.New(s.Name)
	for i := range s.Preds {
		b.Device(fmt.Sprintf("d%d", i), dag.U8, s.Bytes[i])
	}
	for i, preds := range s.Preds {
		var accesses []dag.Access
		for _, q := range preds {
			accesses = append(accesses, b.In(dag.BufferID(q)))
		}
		s.Declare(b, i, append(accesses, b.Out(dag.BufferID(i)))...)
	}
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// wholeOps reports whether every record follows the launch it names and every wait waits for the node it names.
func wholeOps(p *Plan) bool {
	whole := true
	last := map[int32]int32{}
	recorded := map[int32]int32{}
	plantest.EachOp(p, func(_ int, stream int32, op *plan.Op) {
		switch op.Kind {
		case plan.Launch:
			last[stream] = int32(op.Node)
		case plan.Record:
			node, ok := last[stream]
			whole = whole && ok && dag.NodeID(node) == op.Node
			recorded[op.Event] = int32(op.Node)
		case plan.Wait:
			node, ok := recorded[op.Event]
			whole = whole && ok && dag.NodeID(node) == op.Node
		}
	})
	return whole
}

// judge compares Verify with brute force and reports whether the plan is correct.
func judge(t *rapid.T, g *dag.Graph, p *Plan, what string) bool {
	err := Verify(g, p)
	if !wholeOps(p) {
		if !errors.Is(err, proof.ErrEvent) && !errors.Is(err, proof.ErrDeadlock) {
			t.Fatalf("%s: Verify says %v, but a record or wait does not mean what it names", what, err)
		}
		return false
	}
	right := plantest.BruteRight(g, p)
	if (err == nil) != right {
		t.Fatalf("%s: Verify says %v, brute force %v", what, err, right)
	}
	return right
}

func TestNoWaitOfAPlanIsRemovable(t *testing.T) {
	removed := 0
	rapid.Check(t, func(t *rapid.T) {
		g, p := drawPlan(t, 24)
		for s := range p.Streams {
			for i, op := range p.Streams[s].Ops {
				if op.Kind != plan.Wait {
					continue
				}
				cut := plantest.WithoutOp(p, s, i)
				cut = withoutUnusedRecords(cut)
				removed++
				err := Verify(g, cut)
				if !errors.Is(err, proof.ErrHazard) && !errors.Is(err, plan.ErrMemory) {
					t.Fatalf("without the wait at stream %d, op %d Verify says %v", s, i, err)
				}
			}
		}
	})
	require.Positive(t, removed)
}

// withoutUnusedRecords removes records that no wait waits for.
func withoutUnusedRecords(p *Plan) *Plan {
	latest := map[int32]int{}
	used := map[int]bool{}
	plantest.EachOp(p, func(at int, _ int32, op *plan.Op) {
		switch op.Kind {
		case plan.Record:
			latest[op.Event] = at
		case plan.Wait:
			used[latest[op.Event]] = true
		}
	})
	c := &Plan{Name: p.Name, Events: p.Events, Memory: p.Memory, Kept: p.Kept, Stats: p.Stats}
	for _, s := range p.Streams {
		s.Ops = nil
		c.Streams = append(c.Streams, s)
	}
	records := int32(0)
	plantest.EachOp(p, func(at int, stream int32, op *plan.Op) {
		if op.Kind == plan.Record && !used[at] {
			return
		}
		if op.Kind == plan.Record {
			records++
		}
		c.Streams[stream].Ops = append(c.Streams[stream].Ops, *op)
		c.Order = append(c.Order, stream)
	})
	if records < c.Events {
		// Events that nothing records any more are dropped, so the others are renumbered.
		c.Events = 0
		number := map[int32]int32{}
		plantest.EachOp(c, func(_ int, _ int32, op *plan.Op) {
			if op.Kind == plan.Launch {
				return
			}
			if _, ok := number[op.Event]; !ok {
				number[op.Event] = c.Events
				c.Events++
			}
			op.Event = number[op.Event]
		})
	}
	return c
}

func TestSwappedOpsAreCaught(t *testing.T) {
	verdicts := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		g, p := drawPlan(t, 16)
		for s := range p.Streams {
			for i := 1; i < len(p.Streams[s].Ops); i++ {
				c := plantest.ClonePlan(p)
				ops := c.Streams[s].Ops
				ops[i-1], ops[i] = ops[i], ops[i-1]
				verdicts[judge(t, g, c, fmt.Sprintf("ops %d and %d of stream %d swapped", i-1, i, s))]++
			}
		}
		for k := 1; k < len(p.Order); k++ {
			if p.Order[k] != p.Order[k-1] {
				c := plantest.ClonePlan(p)
				c.Order[k-1], c.Order[k] = c.Order[k], c.Order[k-1]
				verdicts[judge(t, g, c, fmt.Sprintf("submissions %d and %d swapped", k-1, k))]++
			}
		}
	})
	require.Positive(t, verdicts[false])
	require.Positive(t, verdicts[true], "some neighbours are independent")
}

func TestEarlyReuseOfEventsIsCaught(t *testing.T) {
	verdicts := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		g, p := drawPlan(t, 24)
		for e := range p.Events {
			c := plantest.ClonePlan(p)
			into := (e + 1) % p.Events
			if into == e {
				continue
			}
			plantest.EachOp(c, func(_ int, _ int32, op *plan.Op) {
				if op.Kind != plan.Launch && op.Event == e {
					op.Event = into
				}
			})
			verdicts[judge(t, g, c, fmt.Sprintf("event %d made one with %d", e, into))]++
		}
	})
	require.Positive(t, verdicts[false])
}

func TestOverlapOfLiveBuffersIsCaught(t *testing.T) {
	verdicts := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		g, p := drawPlan(t, 16)
		for k := range p.Memory {
			for q := range p.Memory {
				if k == q || p.Memory[k].Device != p.Memory[q].Device || p.Memory[q].Bytes == 0 {
					continue
				}
				c := plantest.ClonePlan(p)
				c.Memory[k].Offset = c.Memory[q].Offset
				c.Stats.PeakDeviceBytes = 1 << 40
				verdicts[judge(t, g, c, fmt.Sprintf("%d moved onto %d", k, q))]++
			}
		}
	})
	require.Positive(t, verdicts[false])
	require.Positive(t, verdicts[true])
}

// VerifyEdges accepts the edges of every plan, and Explain agrees with them.
func TestEdgesOfPlansPass(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, p := drawPlan(t, 24)
		edges, err := GraphEdges(g, p)
		require.NoError(t, err)
		require.NoError(t, proof.VerifyEdges(g, p, edges))
		list, err := Explain(g, p)
		require.NoError(t, err)
		for _, e := range list {
			require.NotEqual(t, proof.NotEnforced, e.How)
		}
		u, err := Violations(g, p, 0)
		require.NoError(t, err)
		require.Equal(t, &proof.Unenforced{}, u)
	})
}
