// Tests of machines and profiles: writing and reading files, and the exact text of errors.

package model_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
)

func TestMachineRoundTrip(t *testing.T) {
	for _, name := range append(model.MachineNames(), "") {
		m, err := model.MachineByName(name)
		require.NoError(t, err)
		require.NoError(t, m.Validate())
		var b bytes.Buffer
		require.NoError(t, m.Encode(&b))
		text := b.String()
		back, err := model.DecodeMachine(&b)
		require.NoError(t, err)
		assert.Equal(t, m, back)
		var again bytes.Buffer
		require.NoError(t, back.Encode(&again))
		assert.Equal(t, text, again.String())
	}
	_, err := model.MachineByName("h100")
	require.EqualError(t, err, `unknown machine "h100": the built-in ones are h200, clean, unit`)
	require.ErrorIs(t, err, model.ErrUnknownMachine)
	m, err := model.DecodeMachine(strings.NewReader(`{"version": 1, "name": "mine", "unit": true}`))
	require.NoError(t, err)
	assert.Equal(t, &model.Machine{Name: "mine", Unit: true}, m)
	var b bytes.Buffer
	require.NoError(t, model.H200().Encode(&b))
	m, err = model.DecodeMachine(strings.NewReader(strings.NewReplacer("  \"step_us\": 0.1,\n", "", "  \"both_ways\": 0.917,\n", "", "  \"copy_switch_us\": 3,\n", "",
		"  \"graph_edge_us\": 0.5,\n", "", "  \"engine_us\": 4,\n", "", "  \"fill_us\": 0.4,\n", "", "  \"graph_switch_us\": 1.5,\n", "", "  \"memory_per_sm\": 127000,\n", "",
		"  \"copy_launch_us\": 0,\n", "", "  \"graph_launch_us\": 0,\n", "").Replace(b.String())))
	require.NoError(t, err, "files from before these were measured")
	want := model.H200()
	want.StepUS, want.BothWays, want.CopySwitchUS = 0, 0, 0
	want.GraphEdgeUS, want.EngineUS, want.FillUS, want.GraphSwitchUS, want.MemoryPerSM = 0, 0, 0, 0, 0
	assert.Equal(t, want, m)
}

func TestMachineRefusals(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, model.H200().Encode(&b))
	good := b.String()
	for _, c := range []struct{ want, text string }{
		{"machine: 1:1: expected an object, found the end of the file", ""},
		{`machine: 1:1: key "version" is missing`, "{}"},
		{"machine: 2:14: version: this is version 2; only version 1 can be read", strings.Replace(good, `"version": 1`, `"version": 2`, 1)},
		{`machine: 1:1: key "gap_us" is missing`, strings.Replace(good, "  \"gap_us\": 1.6,\n", "", 1)},
		{`machine: 5:3: key "unit" is given twice`, strings.Replace(good, `"unit": false`, "\"unit\": false,\n  \"unit\": true", 1)},
		{`machine: 4:11: unit: expected true or false, found a number`, strings.Replace(good, `"unit": false`, `"unit": 0`, 1)},
		{`machine: 5:16: launch_us: -1 is out of range: it must be from 0 to 1e+15`, strings.Replace(good, `"launch_us": 2.65`, `"launch_us": -1`, 1)},
		{`machine: 34:19: busy_threads: 0.5 is not an integer`, strings.Replace(good, `"busy_threads": 512`, `"busy_threads": 0.5`, 1)},
		{`bad machine "h200": flops is 0: it must be above 0`, strings.Replace(good, `"flops": 67000000`, `"flops": 0`, 1)},
		{`bad machine "h200": graph_issue_us is 9: it is part of graph_node_us, which is 0.55`, strings.Replace(good, `"graph_issue_us": 0.19`, `"graph_issue_us": 9`, 1)},
		{`bad machine "h200": both_ways is 1.5: it is a fraction of the copy rates, at most 1`, strings.Replace(good, `"both_ways": 0.917`, `"both_ways": 1.5`, 1)},
		{`bad machine "": its name must have 1 to 4096 bytes of UTF-8`, strings.Replace(good, `"name": "h200"`, `"name": ""`, 1)},
		{`machine: 3:11: name: longer than 4096 bytes`, strings.Replace(good, "h200", strings.Repeat("x", 4097), 1)},
		{"machine: 40:1: there is more text after the end", good + "x"},
	} {
		_, err := model.DecodeMachine(strings.NewReader(c.text))
		require.EqualError(t, err, c.want)
		require.ErrorIs(t, err, model.ErrBadMachine)
	}
	_, err := model.DecodeMachine(strings.NewReader(strings.Repeat(" ", 1<<20+1)))
	require.EqualError(t, err, "machine: larger than 1048576 bytes")
	_, err = model.DecodeMachine(strings.NewReader(strings.Replace(good, "launch_us", "lunch_us", 1)))
	require.ErrorContains(t, err, `machine: 5:3: unknown key "lunch_us"; the keys are version, name, unit, launch_us, `)
	require.Error(t, (&model.Machine{}).Encode(&b))
}

func TestProfile(t *testing.T) {
	p := &model.Profile{Machine: "h200", Nodes: map[string]float64{"b": 2.5, "a": 1, "ü\"": 0}}
	var b bytes.Buffer
	require.NoError(t, p.Encode(&b))
	assert.Equal(t, "{\n  \"version\": 1,\n  \"machine\": \"h200\",\n  \"nodes_us\": {\n    \"a\": 1,\n    \"b\": 2.5,\n    \"ü\\\"\": 0\n  }\n}\n", b.String())
	back, err := model.DecodeProfile(&b)
	require.NoError(t, err)
	assert.Equal(t, p, back)

	merged := p.Merge(&model.Profile{Nodes: map[string]float64{"a": 7, "c": 3}})
	assert.Equal(t, &model.Profile{Machine: "h200", Nodes: map[string]float64{"a": 7, "b": 2.5, "c": 3, "ü\"": 0}}, merged)
	assert.Equal(t, 1.0, p.Nodes["a"], "merging changes neither")

	g := plantest.KernelGraph(t, plantest.KernelSpec{}, plantest.KernelSpec{}, plantest.KernelSpec{})
	g.Nodes[0].HasCost, g.Nodes[1].HasCost = false, false
	unknown, missing := (&model.Profile{Nodes: map[string]float64{"b": 1, "z": 1, "y": 1}}).Match(g)
	assert.Equal(t, []string{"y", "z"}, unknown)
	assert.Equal(t, []dag.NodeID{0}, missing)

	for _, c := range []struct{ want, text string }{
		{`profile: 1:57: nodes_us.a: -1 is out of range: it must be from 0 to 1e+15`, `{"version": 1, "machine": "", "nodes_us": {"b": 1, "a": -1, "c": -2}}`},
		{`profile: 1:1: key "version" is missing`, `{"nodes_us": {}, "machine": ""}`},
		{`profile: 1:52: nodes_us: key "b" is given twice`, `{"version": 1, "machine": "", "nodes_us": {"b": 1, "b": 1}}`},
		{`profile: 1:16: unknown key "nodes"; the keys are version, machine, nodes_us, shares, spreads_us`, `{"version": 1, "nodes": {}}`},
		{`profile: 1:13: version: this is version 3; only versions 1 to 2 can be read`, `{"version": 3, "machine": "", "nodes_us": {}}`},
		{`profile: 1:69: shares.b: 1.5 is out of range: it must be from 0 to 1`, `{"version": 2, "machine": "", "nodes_us": {"b": 1}, "shares": {"b": 1.5}}`},
		{`profile: 1:42: nodes_us: expected an object, found a list`, `{"version": 1, "machine":"", "nodes_us": []}`},
		{`profile: 1:50: nodes_us: expected ':', found '}'`, `{"version": 1, "machine": "", "nodes_us": {"b"   }}`},
	} {
		_, err := model.DecodeProfile(strings.NewReader(c.text))
		assert.EqualError(t, err, c.want)
		assert.ErrorIs(t, err, model.ErrBadProfile)
	}
	empty, err := model.DecodeProfile(strings.NewReader(`{"version": 1, "machine": "", "nodes_us": {}}`))
	require.NoError(t, err)
	b.Reset()
	require.NoError(t, empty.Encode(&b))
	assert.Equal(t, "{\n  \"version\": 1,\n  \"machine\": \"\",\n  \"nodes_us\": {}\n}\n", b.String())
	require.EqualError(t, (&model.Profile{Nodes: map[string]float64{"b": -1, "a": -2}}).Validate(), `bad profile: node "a" takes -2 us: it must be from 0 to 1e+15`)
	require.Error(t, (&model.Profile{Nodes: map[string]float64{"a": -1}}).Encode(&b))
}

func TestProfilesHoldShares(t *testing.T) {
	p := &model.Profile{Machine: "cpu", Nodes: map[string]float64{"a": 1, "b": 2}, Shares: map[string]float64{"b": 0.5, "a": 1}}
	var b strings.Builder
	require.NoError(t, p.Encode(&b))
	require.Equal(t, "{\n  \"version\": 2,\n  \"machine\": \"cpu\",\n  \"nodes_us\": {\n    \"a\": 1,\n    \"b\": 2\n  },\n  \"shares\": {\n    \"a\": 1,\n    \"b\": 0.5\n  }\n}\n", b.String())
	back, err := model.DecodeProfile(strings.NewReader(b.String()))
	require.NoError(t, err)
	require.Equal(t, p, back)
	merged := p.Merge(&model.Profile{Shares: map[string]float64{"b": 0.25, "c": 1}})
	require.Equal(t, map[string]float64{"a": 1, "b": 0.25, "c": 1}, merged.Shares)
	require.Equal(t, 0.5, p.Shares["b"], "merging changes neither")
	require.EqualError(t, (&model.Profile{Shares: map[string]float64{"b": 2, "a": math.NaN()}}).Validate(), `bad profile: node "a" takes the part NaN of its device: it must be from 0 to 1`)
}

// The built-in machine must reproduce the measurements it was made from to within 25%, because it has few, rounded numbers.
func TestH200ReproducesItsMeasurements(t *testing.T) {
	chains := func(count, length int, us float64) (*dag.Graph, *planner.Plan) {
		b := dag.New("chains")
		p := &planner.Plan{Streams: make([]plan.Stream, count)}
		for i := range count * length {
			id := b.Node(dag.Node{Name: fmt.Sprint(i), Kind: dag.Task, HasCost: us > 0, CostUS: us, Work: dag.Work{Blocks: 1, Threads: 32}})
			k := int32(i % count)
			p.Streams[k].Ops = append(p.Streams[k].Ops, plan.Op{Kind: plan.Launch, Node: id, Event: -1})
			p.Order = append(p.Order, k)
		}
		g, err := b.Graph()
		require.NoError(t, err)
		return g, p
	}
	for _, c := range []struct {
		what          string
		count, length int
		us            float64
		graph         bool
		measured      float64 // us per node
	}{
		{"no-op kernels on one stream", 1, 512, 0, false, 2.65},
		{"64 kernels of 20 us on 1 stream", 1, 64, 20, false, 21.6},
		{"on 2", 2, 32, 20, false, 10.9},
		{"on 4", 4, 16, 20, false, 5.9},
		{"on 8", 8, 8, 20, false, 3.4},
		{"as a graph on 1", 1, 64, 20, true, 20.8},
		{"as a graph on 2", 2, 32, 20, true, 10.4},
		{"as a graph on 4", 4, 16, 20, true, 5.3},
		{"as a graph on 8", 8, 8, 20, true, 2.8},
		{"a graph of one chain", 1, 512, 0, true, 0.53},
		{"of 2 chains", 2, 256, 0, true, 0.416},
		{"of 4", 4, 128, 0, true, 0.249},
		{"of 8", 8, 64, 0, true, 0.189},
	} {
		g, p := chains(c.count, c.length, c.us)
		timeline, err := simulateAs(g, p, model.H200(), c.graph)
		require.NoError(t, err)
		assert.InEpsilon(t, c.measured, timeline.MakespanUS/float64(g.Len()), 0.25, c.what)
	}
}

func TestProfilesHoldSpreads(t *testing.T) {
	p := &model.Profile{Machine: "gpu", Nodes: map[string]float64{"a": 10, "b": 20}, Spreads: map[string]float64{"b": 0.5, "a": 1}}
	var b bytes.Buffer
	require.NoError(t, p.Encode(&b))
	require.Equal(t, "{\n  \"version\": 2,\n  \"machine\": \"gpu\",\n  \"nodes_us\": {\n    \"a\": 10,\n    \"b\": 20\n  },\n  \"spreads_us\": {\n    \"a\": 1,\n    \"b\": 0.5\n  }\n}\n", b.String())
	again, err := model.DecodeProfile(&b)
	require.NoError(t, err)
	require.Equal(t, p, again)
	merged := p.Merge(&model.Profile{Nodes: map[string]float64{"b": 21, "c": 3}, Spreads: map[string]float64{"c": 0.1}})
	require.Equal(t, map[string]float64{"a": 1, "c": 0.1}, merged.Spreads, "the spread of b was that of another duration")
	require.EqualError(t, (&model.Profile{Spreads: map[string]float64{"b": -2, "a": math.Inf(1)}}).Validate(), `bad profile: node "a" has a spread of +Inf us: it must be from 0 to 1e+15`)
}

// Figures kept by another program may be valid but absurd: replays predicted with them would take years.
func TestMeasuredMachines(t *testing.T) {
	for _, name := range model.MachineNames() {
		m, err := model.MachineByName(name)
		require.NoError(t, err)
		require.NoError(t, m.ValidateMeasured())
	}
	for want, change := range map[string]func(*model.Machine){
		`bad machine "h200": sync_us is 1e+07: no device takes more than 1e+06`: func(m *model.Machine) { m.SyncUS = 1e7 },
		`bad machine "h200": host_to_device is 1e-300: no device is so slow`:    func(m *model.Machine) { m.HostToDevice = 1e-300 },
		`bad machine "h200": memory_per_sm is 0.5: no device is so slow`:        func(m *model.Machine) { m.MemoryPerSM = 0.5 },
		`bad machine "h200": both_ways is 1e-09: no device is so slow`:          func(m *model.Machine) { m.BothWays = 1e-9 },
		`bad machine "h200": flops is -1: it must be from 0 to 1e+15`:           func(m *model.Machine) { m.Flops = -1 },
		`bad machine "h200": the rate of bus "b" is 1e-05: no bus is so slow`: func(m *model.Machine) {
			m.Buses = []model.Bus{{Name: "b", Devices: []int32{0}, Rate: 1e-5}}
		},
	} {
		m := model.H200()
		change(m)
		err := m.ValidateMeasured()
		require.EqualError(t, err, want)
		require.ErrorIs(t, err, model.ErrBadMachine)
	}
	m := model.H200()
	m.BothWays, m.MemoryPerSM = 0, 0 // unknown
	require.NoError(t, m.ValidateMeasured())
}
