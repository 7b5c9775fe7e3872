// Transcript tests: each file has a pipeline above and its plan below, for people to review. -rewrite rewrites the plans.

package planner

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/proof"
)

var rewrite = flag.Bool("rewrite", false, "write golden files anew instead of comparing with them")

// golden compares text with a file, or rewrites the file.
func golden(t *testing.T, path, text string) {
	t.Helper()
	if *rewrite {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), text, "%s is out of date; if the change is meant: go test ./planner -run %s -rewrite, and review the diff", path, t.Name())
}

// Each line of a transcript's pipeline declares one thing:
//
//	options list streams=2 machine=unit      how to plan; machine=h200 and strategy auto unless said
//	explicit                                 sync: explicit
//	buffer h host 4096                       also: pageable 4096, device 4096, device:1 4096; u8 elements
//	copy up h(0..2048) -> d(0..2048)         slices in bytes
//	T1[X(w)] T2[X(r), Y(0..512)(rw)]         tasks; a buffer that is not declared is a device buffer of 1024 bytes
//
// A copy or the last task of a line may be followed by cost=5 stream=1 priority=high device=1 after=T1,T2 blocks=1056.
type transcript struct {
	b       *dag.Builder
	options Options
	buffers map[string]int32
	nodes   map[string]int32
	bytes   map[string]int64
}

func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			above, _, _ := strings.Cut(string(data), "----\n")
			golden(t, file, above+"----\n"+runTranscript(t, above))
		})
	}
}

func runTranscript(t *testing.T, text string) string {
	tr := &transcript{b: dag.New(t.Name()[strings.LastIndexByte(t.Name(), '/')+1:]), buffers: map[string]int32{}, nodes: map[string]int32{}, bytes: map[string]int64{}}
	tr.options.Machine = H200()
	for _, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			tr.line(t, line)
		}
	}
	g, err := tr.b.Graph()
	if err != nil {
		return err.Error() + "\n"
	}
	plan, err := New(context.Background(), g, tr.options)
	if err != nil {
		return err.Error() + "\n"
	}
	require.NoError(t, model.Predict(g, plan, tr.options.Machine, nil, tr.options.Streams))
	timeline, err := Simulate(g, plan, tr.options.Machine, nil)
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, plan.WriteText(&out, g, timeline))
	if err := Verify(g, plan); errors.Is(err, proof.ErrRace) {
		fmt.Fprintf(&out, "race: %v\n", err)
	} else {
		require.NoError(t, err)
	}
	return out.String()
}

func (tr *transcript) line(t *testing.T, line string) {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "options":
		for _, o := range strings.Fields(rest) {
			key, value, ok := strings.Cut(o, "=")
			switch {
			case !ok:
				tr.options.Strategy = key
			case key == "streams":
				tr.options.Streams = tr.int(t, value)
			case key == "machine":
				m, err := model.MachineByName(value)
				require.NoError(t, err)
				tr.options.Machine = m
			case key == "cap":
				tr.options.MemoryCap = int64(tr.int(t, value))
			case key == "single-use-events":
				tr.options.SingleUseEvents = value == "true"
			default:
				t.Fatalf("no option %q", o)
			}
		}
	case "explicit":
		tr.b.Sync(dag.SyncExplicit)
	case "buffer":
		fields := strings.Fields(rest)
		require.Len(t, fields, 3, line)
		tr.buffer(t, fields[0], fields[1], int64(tr.int(t, fields[2])))
	case "copy":
		fields := strings.Fields(rest)
		require.GreaterOrEqual(t, len(fields), 4, line)
		require.Equal(t, "->", fields[2], line)
		node := tr.b.Copy(fields[0], tr.slice(t, fields[3]), tr.slice(t, fields[1]))
		tr.nodes[fields[0]] = int32(node)
		tr.attributes(t, node, fields[4:])
	default:
		last := int32(-1)
		for line != "" && strings.Contains(line, "[") {
			name, rest, _ := strings.Cut(line, "[")
			inside, after, ok := strings.Cut(rest, "]")
			require.True(t, ok, line)
			last = tr.task(t, strings.TrimSpace(name), inside)
			line = strings.TrimSpace(after)
		}
		require.GreaterOrEqual(t, last, int32(0), "not understood: %s", line)
		tr.attributes(t, dag.NodeID(last), strings.Fields(line))
	}
}

func (tr *transcript) int(t *testing.T, text string) int {
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

func (tr *transcript) buffer(t *testing.T, name, place string, bytes int64) int32 {
	b := dag.Buffer{Name: name, Place: dag.Device, DType: dag.U8, Shape: []int64{bytes}}
	switch kind, number, _ := strings.Cut(place, ":"); kind {
	case "pageable":
		b.Place, b.Pageable = dag.Host, true
	case "host":
		b.Place = dag.Host
	case "device":
		if number != "" {
			b.Device = int32(tr.int(t, number))
		}
	default:
		t.Fatalf("no place %q", place)
	}
	tr.buffers[name] = int32(tr.b.Buffer(b))
	tr.bytes[name] = bytes
	return tr.buffers[name]
}

// slice reads X or X(lo..hi).
func (tr *transcript) slice(t *testing.T, text string) dag.Range {
	name, bounds, sliced := strings.Cut(text, "(")
	buffer, ok := tr.buffers[name]
	if !ok {
		buffer = tr.buffer(t, name, "device", 1024)
	}
	r := dag.Range{Buffer: dag.BufferID(buffer), Hi: tr.bytes[name]}
	if sliced {
		lo, hi, ok := strings.Cut(strings.TrimSuffix(bounds, ")"), "..")
		require.True(t, ok, text)
		r.Lo, r.Hi = int64(tr.int(t, lo)), int64(tr.int(t, hi))
	}
	return r
}

func (tr *transcript) task(t *testing.T, name, accesses string) int32 {
	var list []dag.Access
	for _, a := range strings.Split(accesses, ",") {
		if a = strings.TrimSpace(a); a == "" {
			continue
		}
		at := strings.LastIndexByte(a, '(')
		require.Positive(t, at, a)
		mode, ok := map[string]dag.Mode{"(r)": dag.Read, "(w)": dag.Write, "(rw)": dag.ReadWrite}[a[at:]]
		require.True(t, ok, a)
		list = append(list, dag.Access{Range: tr.slice(t, a[:at]), Mode: mode})
	}
	tr.nodes[name] = int32(tr.b.Task(name, list...))
	return tr.nodes[name]
}

func (tr *transcript) attributes(t *testing.T, id dag.NodeID, attributes []string) {
	node := tr.b.At(id)
	for _, a := range attributes {
		key, value, _ := strings.Cut(a, "=")
		switch key {
		case "cost":
			us, err := strconv.ParseFloat(value, 64)
			require.NoError(t, err)
			node.HasCost, node.CostUS = true, us
		case "stream":
			node.Stream = dag.OnStream(int32(tr.int(t, value)))
		case "device":
			node.Device = int32(tr.int(t, value))
		case "blocks":
			node.Work.Blocks, node.Work.Threads = int64(tr.int(t, value)), 256
		case "priority":
			node.Priority = map[string]dag.Priority{"high": dag.High, "low": dag.Low}[value]
		case "after":
			for _, name := range strings.Split(value, ",") {
				node.After = append(node.After, dag.NodeID(tr.nodes[name]))
			}
		default:
			t.Fatalf("no attribute %q", a)
		}
	}
}

// The documentation's example; the plan is made by hand, so that it does not change when strategies improve.
func TestPlanTextGolden(t *testing.T) {
	g := saxpyGraph(t)
	p := saxpyPlan(t, g)
	timeline, err := Simulate(g, p, H200(), nil)
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, p.WriteText(&out, g, timeline))
	golden(t, "testdata/saxpy.plan.text", out.String())
}

func BenchmarkPlanText(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		g := plantest.GrowthShape(n).Graph(b)
		p := planned(b, g, Options{Strategy: "list", Streams: 8})
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var w bytes.Buffer
				if err := p.WriteText(&w, g, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/node")
		})
	}
}
