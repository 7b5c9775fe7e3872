// Tests of costs and their sources: how they are summed up, written and read back.

package plan_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
)

// fourSources has one node for each source of costs, if the profile contains "measured".
func fourSources(t *testing.T) *dag.Graph {
	t.Helper()
	b := dag.New("sources")
	b.Use(kernels.Library())
	d := b.Device("d", dag.F32, 1024)
	b.Kernel("spin", "spin", dag.Args{20.0})
	b.Task("measured", b.InOut(d))
	b.At(b.Task("declared", b.InOut(d))).HasCost = true
	b.Task("unknown", b.InOut(d))
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

func TestCostsHaveSources(t *testing.T) {
	g := fourSources(t)
	profile := &planner.Profile{Nodes: map[string]float64{"measured": 7}}
	costs := model.Costs(g, planner.H200(), profile)
	require.Equal(t, []plan.Cost{{US: 20, Source: plan.FormulaCost}, {US: 7, Source: plan.MeasuredCost}, {US: 0, Source: plan.DeclaredCost}, {US: 0.1, Source: plan.UnknownCost}}, costs)
	require.Equal(t, "1 declared, 1 measured, 1 by formula, 1 unknown: unknown", plan.CostText(g, costs))
	profile.Nodes["declared"] = 9
	require.Equal(t, plan.Cost{US: 9, Source: plan.MeasuredCost}, model.Costs(g, planner.H200(), profile)[2], "a profile counts more than a declaration")
	require.Equal(t, plan.Cost{US: 1, Source: plan.FormulaCost}, model.Costs(g, planner.Unit(), nil)[3], "on the unit machine nothing is unknown")
}

func TestCostTextNamesAFewUnknownNodes(t *testing.T) {
	b := dag.New("many")
	d := b.Device("d", dag.F32, 4)
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		b.Task(name, b.InOut(d))
	}
	g, err := b.Graph()
	require.NoError(t, err)
	require.Equal(t, "7 unknown: a, b, c, d, e and 2 more", plan.CostText(g, model.Costs(g, planner.H200(), nil)))
	require.Empty(t, plan.CostText(g, nil))
}

func TestCostsAreWrittenAndReadBack(t *testing.T) {
	g := fourSources(t)
	p, err := planner.New(context.Background(), g, planner.Options{Profile: &planner.Profile{Nodes: map[string]float64{"measured": 7}}})
	require.NoError(t, err)
	var text bytes.Buffer
	require.NoError(t, p.EncodeJSON(&text, g))
	require.Contains(t, text.String(), `{"node": "measured", "us": 7, "source": "measured"}`)
	again, err := plan.DecodePlan(&text, g)
	require.NoError(t, err)
	require.Equal(t, p.Costs, again.Costs)
}

func TestWrongCostsAreRefused(t *testing.T) {
	g := fourSources(t)
	p, err := planner.New(context.Background(), g, planner.Options{})
	require.NoError(t, err)
	var text bytes.Buffer
	require.NoError(t, p.EncodeJSON(&text, g))
	for _, c := range []struct{ old, new, message string }{
		{`"source": "unknown"}`, `"source": "guess"}`, `unknown "guess"; it must be one of unknown, formula, measured, declared`},
		{`{"node": "measured", "us": `, `{"node": "spin", "us": `, "costs are in declaration order: entry 1 is of another node"},
		{`{"node": "measured", "us": `, `{"node": "nobody", "us": `, `this graph has no node "nobody"`},
		{`"us": 20,`, `"us": -1,`, "costs[0].us"},
	} {
		wrong := strings.Replace(text.String(), c.old, c.new, 1)
		require.NotEqual(t, text.String(), wrong, c.old)
		_, err := plan.DecodePlan(strings.NewReader(wrong), g)
		require.ErrorContains(t, err, c.message)
	}
	p.Costs = p.Costs[:1]
	require.EqualError(t, p.EncodeJSON(&text, g), "malformed plan: costs for 1 nodes, but the graph has 4")
}

func TestNodesOfBodiesHaveCosts(t *testing.T) {
	b := dag.New("loop")
	b.Use(kernels.Library())
	d := b.Device("d", dag.F32, 1024)
	b.Repeat("loop", dag.Loop{Times: 3}, func() {
		b.Task("unknown", b.InOut(d))
		b.Kernel("spin", "spin", dag.Args{20.0})
	})
	g, err := b.Graph()
	require.NoError(t, err)
	for _, c := range []struct {
		profile *planner.Profile
		loop    plan.CostSource
		text    string
	}{
		{nil, plan.UnknownCost, "costs: 1 by formula, 1 unknown: unknown"},
		{&planner.Profile{Nodes: map[string]float64{"unknown": 7}}, plan.FormulaCost, "costs: 1 measured, 1 by formula"},
		{&planner.Profile{Nodes: map[string]float64{"loop": 7}}, plan.MeasuredCost, "costs: 1 measured, 1 by formula, 1 unknown: unknown"},
	} {
		p, err := planner.New(t.Context(), g, planner.Options{Profile: c.profile})
		require.NoError(t, err)
		require.Equal(t, c.loop, p.Costs[0].Source)
		var text strings.Builder
		require.NoError(t, p.WriteText(&text, g, nil))
		require.Contains(t, text.String(), c.text+"\n")
		var names []string
		p.EachCost(g, func(n *dag.Node, _ *plan.Cost, depth int) { names = append(names, strings.Repeat(" ", depth)+n.Name) })
		require.Equal(t, []string{"loop", " unknown", " spin"}, names)
		unknown, _ := c.profile.Match(g)
		require.Empty(t, unknown, "names of nodes of bodies are known")
	}
}
