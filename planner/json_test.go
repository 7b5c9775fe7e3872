// Tests of the JSON form: exact round trips, the exact text of every refusal, hostile input. Runs no plan.

package planner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/outline"
	"github.com/dagrun/dagrun/internal/jsontext"
	"github.com/dagrun/dagrun/planner/internal/placement"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
)

// saxpyGraph is the pipeline of the documentation.
func saxpyGraph(tb testing.TB) *dag.Graph {
	b := dag.New("saxpy")
	declareSaxpy(b)
	g, err := b.Graph()
	require.NoError(tb, err)
	return g
}

func declareSaxpy(b *dag.Builder) (dx, dy dag.BufferID) {
	n := int64(1 << 20)
	x, y, out := b.Host("x", dag.F32, n), b.Host("y", dag.F32, n), b.Host("out", dag.F32, n)
	dx, dy = b.Device("d_x", dag.F32, n), b.Device("d_y", dag.F32, n)
	whole := func(buffer dag.BufferID) dag.Range { return dag.Range{Buffer: buffer, Hi: 4 * n} }
	b.Copy("up_x", whole(dx), whole(x))
	b.Copy("up_y", whole(dy), whole(y))
	b.Node(dag.Node{Name: "saxpy", Kind: dag.Task, Work: dag.Work{Bytes: 12 * n, Flops: 2 * n, Blocks: n / 256, Threads: 256}}, b.In(dx), b.InOut(dy))
	b.Copy("down", whole(out), whole(dy))
	return dx, dy
}

func planned(tb require.TestingT, g *dag.Graph, o Options) *Plan {
	p, err := New(context.Background(), g, o)
	require.NoError(tb, err)
	p.GraphHash = g.Hash()
	return p
}

func encoded(tb require.TestingT, g *dag.Graph, p *Plan) string {
	var b bytes.Buffer
	require.NoError(tb, p.EncodeJSON(&b, g))
	return b.String()
}

func TestPlanRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := plantest.Mixed(t, rapid.Uint64().Draw(t, "seed"), rapid.IntRange(0, 40).Draw(t, "nodes"))
		p := planned(t, g, Options{Strategy: rapid.SampledFrom([]string{"serial", "roundrobin", "list"}).Draw(t, "strategy"),
			Streams: rapid.IntRange(1, 5).Draw(t, "streams"), Machine: H200()})
		p.Stats.MakespanUS = rapid.Float64Range(0, 1e300).Draw(t, "makespan")
		p.Note = rapid.SampledFrom([]string{"", "auto tried only list", "\"quoted\""}).Draw(t, "note")
		p.Stats.LowerBoundUS = rapid.Float64Range(0, 1e-3).Draw(t, "bound")
		text := encoded(t, g, p)
		require.True(t, json.Valid([]byte(text)), "%s", text)
		back, err := DecodePlan(strings.NewReader(text), g)
		require.NoError(t, err)
		require.Equal(t, text, encoded(t, g, back))
		if g.Sync == dag.SyncAuto {
			require.NoError(t, Verify(g, back))
		}

		// Other white space and another order of keys give the same plan.
		var loose map[string]any
		require.NoError(t, json.Unmarshal([]byte(text), &loose))
		other, err := json.MarshalIndent(loose, "\t", " ")
		require.NoError(t, err)
		back, err = DecodePlan(bytes.NewReader(other), g)
		require.NoError(t, err)
		require.Equal(t, text, encoded(t, g, back))
	})
}

// Every name that a pipeline may have, and some that it may not, survives a round trip.
func TestPlanRoundTripsNames(t *testing.T) {
	names := []string{`"`, `\`, `a"b\c`, "<b>&amp;</b>", "日本語", "🚀", "ünïcode", "a b", "\u2028", "{}[]", "%s", "-", "null"}
	b := dag.New(`p"\` + "\u2029")
	for _, name := range names {
		d := b.Device("d"+name, dag.F32, 8)
		b.Task(name, b.Out(d))
		b.Task(name+"'", b.InOut(d))
	}
	g, err := b.Graph()
	require.NoError(t, err)
	p := planned(t, g, Options{Strategy: "roundrobin", Streams: 3})
	text := encoded(t, g, p)
	require.True(t, json.Valid([]byte(text)))
	back, err := DecodePlan(strings.NewReader(text), g)
	require.NoError(t, err)
	assert.Equal(t, text, encoded(t, g, back))
	assert.Equal(t, p.Name, back.Name)
	var escaped []byte
	for i := range g.Nodes {
		escaped = jsontext.AppendString(escaped[:0], g.Nodes[i].Name+"\n\x7f")
		var name string
		require.NoError(t, json.Unmarshal(escaped, &name))
		assert.Equal(t, g.Nodes[i].Name+"\n\x7f", name)
		r := jsontext.Reader{Data: escaped}
		assert.Equal(t, name, r.Text())
	}
}

func TestPlanFilesSayWhatIsKept(t *testing.T) {
	g := saxpyGraph(t)
	_, dy := declareSaxpy(dag.New("saxpy"))
	p, err := New(context.Background(), g, Options{Keep: []dag.BufferID{dy}})
	require.NoError(t, err)
	require.Equal(t, []dag.BufferID{dy}, p.Kept)
	text := encoded(t, g, p)
	require.Contains(t, text, "\n  \"kept\": [\"d_y\"],\n")
	back, err := DecodePlan(strings.NewReader(text), g)
	require.NoError(t, err)
	require.Equal(t, p.Kept, back.Kept)

	for _, test := range []struct{ from, to, want string }{
		{"  \"kept\": [\"d_y\"],\n", "", `plan: 1:1: key "kept" is missing: an older dagrun wrote this file, which does not say which buffers keep their bytes; plan again`},
		{"[\"d_y\"]", "[\"d_z\"]", `kept[0]: this graph has no buffer "d_z" declared after the previous entry`},
		{"[\"d_y\"]", "[\"d_y\", \"d_y\"]", `kept[1]: this graph has no buffer "d_y" declared after the previous entry`},
		{"[\"d_y\"]", "[\"out\"]", `kept[0]: buffer "out" is in host memory`},
	} {
		_, err := DecodePlan(strings.NewReader(strings.Replace(text, test.from, test.to, 1)), g)
		require.ErrorContains(t, err, test.want)
	}
}

// Plans for different work of the same structure have the same graph hash, and say that the work differs.
func TestPlanFilesSayWhichWorkTheyAreFor(t *testing.T) {
	build := func(us float64) *dag.Graph {
		b := dag.New("spin")
		b.Cost(b.Task("spin", b.Out(b.Device("d", dag.U8, 4))), us)
		g, err := b.Graph()
		require.NoError(t, err)
		return g
	}
	short, long := build(10), build(100_000)
	p := planned(t, short, Options{})
	require.Equal(t, short.WorkHash(), p.Work)
	text := encoded(t, short, p)
	back, err := DecodePlan(strings.NewReader(text), long)
	require.NoError(t, err)
	require.Equal(t, long.Hash(), back.GraphHash)
	require.NotEqual(t, long.WorkHash(), back.Work)
	require.Equal(t, `node "spin" has cost=100000 us, it had cost=10 us`, outline.WorkDifference(long, back.WorkDone))
	require.Equal(t, text, encoded(t, long, back), "a plan for other work says what it was made for, whatever it is written for")

	// A file may leave out the work of the nodes. Then only its hash is known and written.
	bare := strings.NewReplacer("  \"works\": [\n    [\"cost=10 us\"]\n  ],\n", "", `, "work": 0`, "").Replace(text)
	back, err = DecodePlan(strings.NewReader(bare), long)
	require.NoError(t, err)
	require.Nil(t, back.WorkDone)
	require.Equal(t, bare, encoded(t, long, back))
	require.Equal(t, text, encoded(t, short, back))
	for _, test := range []struct{ from, to, want string }{
		{`"work": 0}`, `"work": 1}`, `plan: 14:48: work 1 of 1 (works)`},
		{`"work": 0}`, `"work": -1}`, `streams[0].ops[0].work: -1 is out of range: it must be from 0 to 2147483647`},
		{`["cost=10 us"]`, `"cost=10 us"`, `works[0]: expected a list, found a string`},
		{`["cost=10 us"]`, `[10]`, `works[0][0]: expected a string, found a number`},
		{`"op": "launch", `, `"op": "record", "event": 0, `, `streams[0].ops[0]: a record has no work`},
	} {
		require.Contains(t, text, test.from)
		_, err := DecodePlan(strings.NewReader(strings.Replace(text, test.from, test.to, 1)), short)
		require.ErrorContains(t, err, test.want)
	}
	_, err = DecodePlan(strings.NewReader(strings.Replace(text, "  \"work\": \""+p.Work+"\",\n", "", 1)), short)
	require.EqualError(t, err, `plan: 1:1: key "work" is missing: an older dagrun wrote this file, which does not say what the nodes did; plan again`)
}

func TestDecodePlanRefuses(t *testing.T) {
	g := saxpyGraph(t)
	made := saxpyPlan(t, g)
	good := encoded(t, g, made)
	_, err := DecodePlan(strings.NewReader(good), g)
	require.NoError(t, err)
	replace := func(old, new string) string {
		require.Contains(t, good, old)
		return strings.Replace(good, old, new, 1)
	}
	for _, c := range []struct{ want, text string }{
		{`1:1: expected an object, found the end of the file`, ""},
		{`1:1: expected an object, found a list`, "[]"},
		{`1:2: expected a string, found the end of the file`, "{"},
		{`1:1: key "version" is missing`, "{}"},
		{`1:2: unknown key "verzion"; the keys are version, name, graph, strategy, requested_strategy, machine, streams, order, edges, memory, stats, kept, work, note, costs, modules, works`, `{"verzion": 1}`},
		{`2:14: version: this is version 2; only version 1 can be read`, replace(`"version": 1`, `"version": 2`)},
		{`2:14: version: 1.0 is not an integer`, replace(`"version": 1`, `"version": 1.0`)},
		{`2:14: version: malformed number`, replace(`"version": 1`, `"version": 01`)},
		{`2:14: version: expected a number, found a string`, replace(`"version": 1`, `"version": "1"`)},
		{`2:14: version: expected a number, found 'n'`, replace(`"version": 1`, `"version": null`)},
		{`3:3: key "version" is given twice`, replace(`"version": 1`, "\"version\": 1,\n  \"version\": 1")},
		{`3:11: name: the string is not closed`, replace(`"saxpy"`, `"saxpy`)[:len("{\n  \"version\": 1,\n  \"name\": \"sax")]},
		{`3:12: name: bad escape in a string`, replace(`"saxpy"`, `"\x41"`)},
		{`3:12: name: half a surrogate pair in a string`, replace(`"saxpy"`, `"\ud800x"`)},
		{`3:11: name: the string is not valid UTF-8`, replace(`"saxpy"`, "\"\xff\"")},
		{`14:12: streams[0].id: stream 7 is at position 0: streams must be in order, without gaps`, replace(`{"id": 0`, `{"id": 7`)},
		{`streams[0].priority: unknown "urgent"; it must be one of high, normal, low`, replace(`"normal"`, `"urgent"`)},
		{`streams[0].ops[0].op: unknown "run"; it must be one of launch, record, wait`, replace(`"op": "launch"`, `"op": "run"`)},
		{`streams[0].ops[0].node: this graph has no node "up_z"`, replace(`"node": "up_x"`, `"node": "up_z"`)},
		{`streams[0].ops[0]: unknown key "stream"; the keys are op, node, event`, replace(`"node": "up_x"`, `"stream": "up_x"`)},
		{`streams[0].ops[0]: key "node" is missing`, replace(`, "node": "up_x"`, ``)},
		{`streams[0].ops[0]: a launch has no event`, replace(`"launch", `, `"launch", "event": 0, `)},
		{`streams[0].ops[1]: "up_x" is launched a second time; the first is on stream 0`, replace(`"op": "record", "event": 0`, `"op": "launch"`)},
		{`no stream launches "saxpy"`, replace(`"op": "launch", "node": "saxpy", "work": 1`, `"op": "record", "event": 0, "node": "saxpy"`)},
		{`streams[0].ops[1]: key "event" is missing`, replace(`"record", "event": 0`, `"record"`)},
		{`streams[0].ops[1].event: -1 is out of range: it must be from 0 to 2147483647`, replace(`"event": 0`, `"event": -1`)},
		{`event 2147483647 is out of range`, replace(`"event": 0`, `"event": 2147483647`)},
		{`order: entry 0 is stream 9; the plan has 2 streams`, replace(`"order": [0`, `"order": [9`)},
		{`order: stream 0 appears `, replace(`"order": [0, `, `"order": [`)},
		{`edges[0].to: this graph has no node "saxpie"`, replace(`"to": "saxpy"`, `"to": "saxpie"`)},
		{`edges[0]: dependency 0 is "up_x" -> "saxpy" (WAR d_x); this graph has "up_x" -> "saxpy" (RAW d_x)`, replace(`"RAW d_x"`, `"WAR d_x"`)},
		{`edges[0]: dependency 0, "up_x" -> "saxpy" (RAW d_x), has the bytes [0 4194304] in this graph`, replace(`[0, 4194304]`, `[0, 4194305]`)},
		{`edges[0]: dependency 0, "up_x" -> "saxpy" (RAW d_x), has the bytes [0 4194304] in this graph`, replace(`[0, 4194304]`, `[0, 4194304, 1]`)},
		{`stats: waits is 99; the plan has`, waitsLie(good)},
		{`stats.makespan_us: -1 is out of range: it must be from 0 to 1.7976931348623157e+308`, lie(good, "makespan_us", "-1")},
		{`stats.makespan_us: 1e999 is out of range: it must be from 0 to 1.7976931348623157e+308`, lie(good, "makespan_us", "1e999")},
		{`stats.peak_device_bytes: 99999999999999999999 is out of range: it must be from 0 to 9223372036854775807`, lie(good, "peak_device_bytes", "99999999999999999999")},
		{`there is more text after the end`, good + "{}"},
	} {
		_, err := DecodePlan(strings.NewReader(c.text), g)
		require.ErrorContains(t, err, c.want)
		require.ErrorIs(t, err, plan.ErrPlanShape)
		var file *jsontext.FileError
		require.ErrorAs(t, err, &file)
		require.Positive(t, file.Line)
		require.True(t, strings.HasPrefix(err.Error(), fmt.Sprintf("plan: %d:%d: ", file.Line, file.Column)), err.Error())
	}
	_, err = DecodePlan(&endless{}, g)
	require.ErrorContains(t, err, "plan: larger than ")
}

// A plan for another graph is refused with the first difference, described from the view of the given graph.
func TestDecodePlanOfAnotherGraph(t *testing.T) {
	old := saxpyGraph(t)
	text := encoded(t, old, saxpyPlan(t, old))
	n := int64(1 << 20)
	for _, c := range []struct {
		want    string
		declare func(b *dag.Builder, dx, dy dag.BufferID)
	}{
		{`node "extra" is new`, func(b *dag.Builder, dx, dy dag.BufferID) { b.Task("extra", b.In(dx)) }},
		{`buffer "d_z" is new`, func(b *dag.Builder, dx, dy dag.BufferID) { b.Device("d_z", dag.F32, n) }},
		{`buffer "d_x" is on device 1, it was on 0`, func(b *dag.Builder, dx, dy dag.BufferID) {
			b.OnDevice(dx, 1)
			b.At(0).Device, b.At(2).Peer = 1, true
		}},
		{`something that a plan does not show differs, such as sync:, a stream:, a priority: or a host buffer`, func(b *dag.Builder, dx, dy dag.BufferID) { b.At(0).Stream = dag.OnStream(1) }},
		{`something that a plan does not show differs, such as sync:, a stream:, a priority: or a host buffer`, func(b *dag.Builder, dx, dy dag.BufferID) { b.Host("more", dag.F32, n) }},
	} {
		b := dag.New("saxpy")
		dx, dy := declareSaxpy(b)
		c.declare(b, dx, dy)
		g, err := b.Graph()
		require.NoError(t, err)
		_, err = DecodePlan(strings.NewReader(text), g)
		require.EqualError(t, err, "plan: 4:12: graph: the plan was made for another graph: "+c.want)
		require.ErrorIs(t, err, plan.ErrOtherGraph)
	}
	g := plantest.KernelGraph(t, plantest.KernelSpec{})
	_, err := DecodePlan(strings.NewReader(text), g)
	require.EqualError(t, err, `plan: 4:12: graph: the plan was made for another graph: node "a" is new`)
}

// In plans with tiles too.
func TestDecodePlanOfAnotherGraphWithTiles(t *testing.T) {
	tiles := func(columns int64, extra bool) *dag.Graph {
		b := dag.New("tiles")
		x := b.Device("x", dag.F32, 8, 8)
		b.Task("left", b.Tile(x, 0, 4, 0, columns).Out())
		b.Task("sum", b.Tile(x, 0, 4, 0, 4).In())
		if extra {
			b.Task("extra", b.In(x))
		}
		g, err := b.Graph()
		require.NoError(t, err)
		return g
	}
	old := tiles(4, false)
	text := encoded(t, old, planned(t, old, Options{}))
	require.Contains(t, text, `"box": [[0, 4], [0, 4]]`)
	_, err := DecodePlan(strings.NewReader(text), tiles(4, true))
	require.EqualError(t, err, `plan: 4:12: graph: the plan was made for another graph: node "extra" is new`)
	_, err = DecodePlan(strings.NewReader(text), tiles(3, false))
	require.EqualError(t, err, `plan: 4:12: graph: the plan was made for another graph: node "sum" waits for "left" because of RAW x(0..4)(0..3), it was RAW x(0..4)(0..4)`)
}

// In plans of spread graphs, too, the error names what does not fit the graph.
func TestDecodePlanOfASpreadGraphRefuses(t *testing.T) {
	g := saxpyGraph(t)
	problem, err := placement.NewProblem(g, 2, nil)
	require.NoError(t, err)
	s, err := placement.Transform(problem, make([]int32, g.Len()))
	require.NoError(t, err)
	p := planned(t, s.Graph, Options{})
	p.Spread = s
	text := encoded(t, s.Graph, p)
	_, err = DecodePlan(strings.NewReader(text), s.Graph)
	require.NoError(t, err)
	_, err = DecodePlan(strings.NewReader(strings.Replace(text, `"node": "up_x"`, `"node": "up_z"`, 1)), s.Graph)
	require.ErrorContains(t, err, `ops[0].node: this graph has no node "up_z"`)
	_, err = DecodePlan(strings.NewReader(text), saxpyPlus(t))
	require.EqualError(t, err, `plan: 4:12: graph: the plan was made for another graph: node "extra" is new`)
}

func saxpyPlus(t *testing.T) *dag.Graph {
	b := dag.New("saxpy")
	dx, _ := declareSaxpy(b)
	b.Task("extra", b.In(dx))
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

// The path of an error begins at the top of the file, whatever bodies were read before.
func TestDecodePlanNamesPlacesWithinAndAfterBodies(t *testing.T) {
	b := dag.New("loops")
	x := b.Device("x", dag.F32, 4)
	b.Repeat("outer", dag.Loop{Times: 3}, func() {
		b.Repeat("inner", dag.Loop{Times: 3}, func() { b.Task("step", b.InOut(x)) })
		b.Repeat("other", dag.Loop{Times: 2}, func() { b.Task("more", b.InOut(x)) })
	})
	g, err := b.Graph()
	require.NoError(t, err)
	text := encoded(t, g, planned(t, g, Options{}))
	_, err = DecodePlan(strings.NewReader(text), g)
	require.NoError(t, err)
	_, err = DecodePlan(strings.NewReader(waitsLie(text)), g)
	require.ErrorContains(t, err, ": stats: waits is 99; the plan has ")
	first := strings.Index(text, `"stats"`)
	_, err = DecodePlan(strings.NewReader(text[:first]+lie(text[first:], "nodes", "99")), g)
	require.ErrorContains(t, err, ": bodies[0].plan.bodies[0].plan.stats: nodes is 99; the plan has 1")
}

// lie sets a field of the statistics to a wrong value.
func lie(text, key, value string) string {
	before, after, _ := strings.Cut(text, `"`+key+`": `)
	return before + `"` + key + `": ` + value + after[strings.IndexAny(after, ",}"):]
}

func waitsLie(text string) string {
	at := strings.LastIndex(text, `"stats"`)
	return text[:at] + lie(text[at:], "waits", "99")
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestEncodeRefuses(t *testing.T) {
	g := saxpyGraph(t)
	for _, p := range []*Plan{
		{Streams: []plan.Stream{{Ops: []plan.Op{{Kind: plan.Launch, Node: 9, Event: -1}}}}},
		{Streams: []plan.Stream{{Ops: []plan.Op{{Kind: 7, Node: 0, Event: -1}}}}},
		{Memory: []plan.Placement{{Buffer: 99}}},
		{Name: "\xff"},
	} {
		require.ErrorIs(t, p.EncodeJSON(&bytes.Buffer{}, g), plan.ErrPlanShape)
	}
	failing := errors.New("disk full")
	p := planned(t, g, Options{})
	require.ErrorIs(t, p.EncodeJSON(failer{failing}, g), failing)
	require.ErrorIs(t, p.WriteText(failer{failing}, g, nil), failing)
	require.ErrorIs(t, p.WriteDOT(failer{failing}, g), failing)
	require.EqualError(t, p.WriteText(&bytes.Buffer{}, g, &plan.Timeline{}), "the timeline has 0 nodes, the graph 4")
}

type failer struct{ err error }

func (f failer) Write([]byte) (int, error) { return 0, f.err }

// Plans in memory can be wrong in any way too: every function that takes a plan refuses it or works.
func TestHostilePlansAreSurvived(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := plantest.Mixed(t, rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 12).Draw(t, "nodes"))
		p := plantest.ClonePlan(planned(t, g, Options{Strategy: "roundrobin", Streams: 3, Machine: H200()}))
		wild := rapid.OneOf(rapid.Int32Range(-2, 20), rapid.Int32())
		for range rapid.IntRange(1, 4).Draw(t, "faults") {
			k := rapid.IntRange(0, len(p.Streams)-1).Draw(t, "stream")
			s := &p.Streams[k]
			if len(s.Ops) == 0 {
				continue
			}
			op := &s.Ops[rapid.IntRange(0, len(s.Ops)-1).Draw(t, "op")]
			switch rapid.IntRange(0, 7).Draw(t, "fault") {
			case 0:
				op.Node = dag.NodeID(wild.Draw(t, "node"))
			case 1:
				op.Event = wild.Draw(t, "event")
			case 2:
				op.Kind = plan.OpKind(rapid.IntRange(0, 4).Draw(t, "kind"))
			case 3:
				p.Order[rapid.IntRange(0, len(p.Order)-1).Draw(t, "place")] = wild.Draw(t, "order")
			case 4:
				p.Events = wild.Draw(t, "events")
			case 5:
				s.Ops = s.Ops[:len(s.Ops)-1]
			case 6:
				s.Priority, s.Device = dag.Priority(rapid.Int8().Draw(t, "priority")), wild.Draw(t, "device")
			case 7:
				p.Memory = append(p.Memory, plan.Placement{Buffer: dag.BufferID(wild.Draw(t, "buffer"))})
			}
		}
		simulates := true
		for _, m := range []*Machine{Unit(), H200()} {
			for _, simulate := range []func(*dag.Graph, *Plan, *Machine, *Profile) (*plan.Timeline, error){Simulate, model.SimulateGraph} {
				_, err := simulate(g, p, m, nil)
				simulates = simulates && err == nil
				if err != nil {
					require.ErrorIs(t, err, plan.ErrPlanShape)
				}
			}
		}
		for _, write := range []func() error{
			func() error { return p.EncodeJSON(&bytes.Buffer{}, g) },
			func() error { return p.WriteText(&bytes.Buffer{}, g, nil) },
			func() error { return p.WriteDOT(&bytes.Buffer{}, g) },
		} {
			if err := write(); err != nil {
				require.ErrorIs(t, err, plan.ErrPlanShape)
			}
		}
		if err := Verify(g, p); err == nil {
			require.True(t, simulates, "what is proved can be simulated")
		}
	})
}

// Any input is refused or a correct plan: the reader and Verify never crash, and what both accept is a correct schedule.
func FuzzDecodePlan(f *testing.F) {
	g := saxpyGraph(f)
	for _, strategy := range []string{"serial", "roundrobin", "list"} {
		f.Add([]byte(encoded(f, g, planned(f, g, Options{Strategy: strategy, Streams: 2}))))
	}
	f.Add([]byte(`{"version": 1, "streams": [{"id": 0, "ops": [{"op": "wait", "event": 2147483647}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := DecodePlan(bytes.NewReader(data), g)
		if err != nil {
			return
		}
		text := encoded(t, g, p)
		again, err := DecodePlan(strings.NewReader(text), g)
		require.NoError(t, err)
		require.Equal(t, text, encoded(t, g, again))
		if Verify(g, p) != nil {
			return
		}
		for _, m := range []*Machine{Unit(), H200()} {
			timeline, err := Simulate(g, p, m, nil)
			require.NoError(t, err)
			for _, e := range g.Edges() {
				require.LessOrEqual(t, timeline.Nodes[e.From].End, timeline.Nodes[e.To].Start)
			}
		}
	})
}

func BenchmarkPlanJSON(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		g := plantest.GrowthShape(n).Graph(b)
		p := planned(b, g, Options{Strategy: "list", Streams: 8})
		text := encoded(b, g, p)
		b.Run(fmt.Sprintf("encode/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var w bytes.Buffer
				if err := p.EncodeJSON(&w, g); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/node")
		})
		b.Run(fmt.Sprintf("decode/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := DecodePlan(strings.NewReader(text), g); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/node")
		})
	}
}

// The documentation shows this file as its example.
func TestPlanJSONGolden(t *testing.T) {
	g := saxpyGraph(t)
	golden(t, "testdata/saxpy.plan.json", encoded(t, g, saxpyPlan(t, g)))
}
