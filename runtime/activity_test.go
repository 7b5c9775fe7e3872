// Tests of assigning CUPTI records to nodes: each node gets its own records, or none. A fake recorder plays what a GPU would record.

package runtime

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/cupti"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime/internal/spans"
)

// played is a recorder that plays back what a device would have recorded of a program's replay, changed by spoil.
type played struct {
	program *Program
	spoil   func(records []cupti.Record) []cupti.Record
	enabled bool
	plain   bool // it was switched off at least once
	fails   string
	replay  uint64
}

func (r *played) Enable() error {
	if r.fails == "enable" {
		return errors.New("another tool")
	}
	r.enabled = true
	return nil
}

func (r *played) Disable() error { r.enabled, r.plain = false, true; return nil }

func (r *played) Flush(want int) ([]cupti.Record, error) {
	if want == 0 {
		return nil, nil
	}
	if r.fails == "flush" {
		return nil, errors.New("no buffers")
	}
	r.replay++
	p := r.program
	var records []cupti.Record
	for i, e := range p.expectedRecords(p.instances[0]) {
		start := r.replay*1e6 + uint64(i)*1000
		record := cupti.Record{Kind: e.kind, Start: start, End: start + 500 + uint64(i), Name: e.name, Bytes: e.bytes, Stream: 40 + uint32(e.stream), Correlation: uint32(i)}
		if p.mode != Streams {
			record.Correlation, record.GraphNode, record.Stream = 7, 1<<32+uint64(i), 99
		}
		records = append(records, record)
	}
	if r.spoil != nil {
		records = r.spoil(records)
	}
	return records, nil
}

// traced makes a program with every kind of node, including one that does nothing and a memset of eight-byte patterns, and traces it.
func traced(t *testing.T, mode Mode, r *played) (*Program, *Trace) {
	t.Helper()
	ctx := context.Background()
	b := dag.New("kinds")
	b.Use(kernels.Library())
	const n = 64
	in, out := b.Host("in", dag.F32, n), b.Host("out", dag.F32, n)
	d, wide := b.Device("d", dag.F32, n), b.Device("wide", dag.F64, n)
	b.Copy("up", b.Whole(d), b.Whole(in))
	b.Memset("set", b.Part(d, 0, 2), 1)
	b.Memset("wide", b.Whole(wide), 1.5)
	b.Kernel("nothing", "scale", dag.Args{0, 2, b.Part(d, 1, 2)})
	b.Kernel("scale", "scale", dag.Args{n, 2, b.Whole(d)})
	b.Copy("down", b.Whole(out), b.Whole(d))
	g, err := b.Graph()
	require.NoError(t, err)
	plan, err := planner.New(ctx, g, planner.Options{Streams: 3})
	require.NoError(t, err)
	platform, err := host.Open(host.Options{})
	require.NoError(t, err)
	p, err := New(ctx, g, plan, platform, Options{Mode: mode, Recorder: r})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, p.Close())
		require.NoError(t, platform.Close())
	})
	r.program = p
	trace, err := p.Trace(ctx, 2)
	require.NoError(t, err)
	return p, trace
}

func TestRecordsBecomeSpans(t *testing.T) {
	for _, mode := range []Mode{Streams, Captured, Built} {
		t.Run(mode.String(), func(t *testing.T) {
			r := &played{}
			p, trace := traced(t, mode, r)
			require.Equal(t, "cupti", trace.Source)
			require.Empty(t, trace.Fallback)
			require.True(t, r.plain, "recording was off while the plain replay was timed")
			require.False(t, r.enabled, "recording is off again")
			require.Positive(t, trace.PlainUS)
			require.Len(t, trace.Replays, 2)
			list := p.expectedRecords(p.instances[0])
			require.Len(t, list, p.graph.Len()-1, "the launch of nothing leaves no record")
			for _, replay := range trace.Replays {
				for i, e := range list {
					require.Equal(t, spans.Span{Node: dag.NodeID(e.node), Stream: e.stream, Start: float64(i), End: float64(i) + 0.5 + float64(i)/1000}, replay.Spans[e.node])
				}
				nothing, _ := p.node("nothing")
				span := replay.Spans[nothing]
				require.Equal(t, dag.NodeID(nothing), span.Node)
				require.Equal(t, span.Start, span.End)
			}
			require.InDelta(t, float64(len(list)-1)+0.5+float64(len(list)-1)/1000, trace.TracedUS, 1e-9)
		})
	}
}

func TestRecordsOfKernelsThatCompilersName(t *testing.T) {
	want := []expected{
		{node: 0, kind: cupti.Kernel, name: "filters::mean<8>", mapped: true},
		{node: 1, kind: cupti.Kernel, name: "twice", mapped: true},
		{node: 2, kind: cupti.Kernel, name: "filters::mean<8>", mapped: true},
	}
	name := func(node dag.NodeID) string { return fmt.Sprint("node ", node) }
	records := func(names ...string) (all []cupti.Record) {
		for i, n := range names {
			all = append(all, cupti.Record{Kind: cupti.Kernel, Name: n, Start: uint64(i), End: uint64(i)})
		}
		return all
	}
	require.NoError(t, matchRecords(want, records("_ZN7filters4meanILi8EEEv", "_Z5twicev", "_ZN7filters4meanILi8EEEv"), false, name))
	require.EqualError(t, matchRecords(want, records("_ZN7filters4meanILi8EEEv", "_Z5twicev", "_Z5twicev"), false, name),
		`record 2 (kind 1, "_Z5twicev", 0 bytes) does not belong to node "node 2"`)
}

func TestRecordsThatDoNotFitAreNotUsed(t *testing.T) {
	for _, c := range []struct {
		name   string
		modes  []Mode
		spoil  func([]cupti.Record) []cupti.Record
		fails  string
		reason string
	}{
		{name: "none", spoil: func(r []cupti.Record) []cupti.Record { return nil }, reason: "0 records for 5 commands"},
		{name: "one more", spoil: func(r []cupti.Record) []cupti.Record { return append(r, r[0]) }, reason: "6 records for 5 commands"},
		{name: "another kernel", spoil: func(r []cupti.Record) []cupti.Record { r[3].Name = "theirs"; return r }, reason: `record 3 (kind 1, "theirs", 0 bytes) does not belong to node "scale"`},
		{name: "another size", spoil: func(r []cupti.Record) []cupti.Record { r[4].Bytes++; return r }, reason: `record 4 (kind 2, "", 257 bytes) does not belong to node "down"`},
		{name: "another kind", spoil: func(r []cupti.Record) []cupti.Record { r[0].Kind = cupti.Set; return r }, reason: `record 0 (kind 3, "", 256 bytes) does not belong to node "up"`},
		{name: "another replay", spoil: func(r []cupti.Record) []cupti.Record { r[4].GraphNode ^= r[4].GraphNode | 1; return r }, modes: []Mode{Streams}, reason: `record 4, of node "down", was not made by this replay`},
		{name: "another stream", spoil: func(r []cupti.Record) []cupti.Record { r[4].Stream = 3; return r }, modes: []Mode{Streams}, reason: `record 4, of node "down", is from another stream`},
		{name: "out of order", spoil: func(r []cupti.Record) []cupti.Record { r[4].Start = 1; return r }, reason: `record 4 shows that node "down" started before the previous node on its stream`},
		{name: "flush fails", fails: "flush", reason: "no buffers"},
		{name: "busy", fails: "enable", reason: "another tool"},
	} {
		modes := c.modes
		if modes == nil {
			modes = []Mode{Streams, Captured, Built}
		}
		for _, mode := range modes {
			t.Run(fmt.Sprint(c.name, " ", mode), func(t *testing.T) {
				_, trace := traced(t, mode, &played{spoil: c.spoil, fails: c.fails})
				require.Equal(t, "events", trace.Source)
				require.Equal(t, c.reason, trace.Fallback)
				require.Len(t, trace.Replays, 2)
				for _, s := range trace.Replays[0].Spans {
					require.GreaterOrEqual(t, s.End, s.Start)
				}
			})
		}
	}
}
