// The order of copies: pieces as declared, what is needed soonest first, and the first piece of a result down early.

package planner

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/dag"
)

// pieces is a picture that comes up in pieces, each worked on with its neighbours; one value of the whole; then two steps a piece,
// and the pieces down again. Copies take 1,000 us and kernels 100.
func pieces(tb testing.TB, n int) (*dag.Graph, *Profile) {
	tb.Helper()
	const bytes = 1 << 20
	b := dag.New("pieces")
	whole := int64(n) * bytes
	in, out := b.Host("in", dag.U8, whole), b.Host("out", dag.U8, whole)
	picture, blurred := b.Device("picture", dag.U8, whole), b.Device("blurred", dag.U8, whole)
	first, second := b.Device("first", dag.U8, whole), b.Device("second", dag.U8, whole)
	least := b.Device("least", dag.U8, 1)
	piece := func(buffer int32, from, to int) dag.Range {
		return dag.Range{Buffer: buffer, Lo: int64(max(from, 0)) * bytes, Hi: int64(min(to, n)) * bytes}
	}
	profile := &Profile{Nodes: map[string]float64{}}
	task := func(name string, in, out dag.Range) int32 {
		profile.Nodes[name] = 100
		return b.Node(dag.Node{Name: name, Kind: dag.Task, Stream: -1, Work: dag.Work{Blocks: 1 << 20, Threads: 256}},
			dag.Access{Range: in, Mode: dag.Read}, dag.Access{Range: out, Mode: dag.Write})
	}
	move := func(name string, to, from dag.Range) {
		profile.Nodes[name] = 1000
		b.Copy(name, to, from)
	}
	for k := range n {
		move(fmt.Sprintf("up%d", k), piece(picture, k, k+1), piece(in, k, k+1))
	}
	for k := range n {
		task(fmt.Sprintf("blur%d", k), piece(picture, k-1, k+2), piece(blurred, k, k+1))
	}
	value := task("least", piece(blurred, 0, n), dag.Range{Buffer: least, Hi: 1})
	for k := range n {
		b.After(task(fmt.Sprintf("first%d", k), piece(blurred, k, k+1), piece(first, k, k+1)), value)
		task(fmt.Sprintf("second%d", k), piece(first, k, k+1), piece(second, k, k+1))
		move(fmt.Sprintf("down%d", k), piece(out, k, k+1), piece(second, k, k+1))
	}
	g, err := b.Graph()
	require.NoError(tb, err)
	return g, profile
}

// submitted are the nodes of an engine, as submitted.
func submitted(g *dag.Graph, p *Plan, e Engine) []string {
	var names []string
	forEachOp(p, func(_ int, _ int32, op *Op) {
		if op.Kind == Launch && EngineOf(g, op.Node) == e {
			names = append(names, g.Nodes[op.Node].Name)
		}
	})
	return names
}

func TestPiecesAreCopiedAsDeclaredAndDownEarly(t *testing.T) {
	const n = 8
	g, profile := pieces(t, n)
	for _, strategy := range []string{"list", "auto"} {
		for _, streams := range []int{1, 2, 4, 8} {
			plan, err := New(context.Background(), g, Options{Strategy: strategy, Streams: streams, Profile: profile})
			require.NoError(t, err)
			var up, down []string
			for k := range n {
				up, down = append(up, fmt.Sprintf("up%d", k)), append(down, fmt.Sprintf("down%d", k))
			}
			require.Equal(t, up, submitted(g, plan, Upload))
			require.Equal(t, down, submitted(g, plan, Download))
			// All pieces up, the last one's blur, the value, two steps of the first piece, all pieces down, and what submission and
			// waits take. On several streams kernels that fill the device slow each other down, which only auto looks at.
			if strategy == "auto" {
				timeline, err := Simulate(g, plan, H200(), profile)
				require.NoError(t, err)
				for k := 1; k < n; k++ {
					require.Less(t, timeline.Nodes[k-1].Start, timeline.Nodes[k].Start, "an engine that goes on with a stream keeps the order")
				}
				require.LessOrEqual(t, plan.Stats.MakespanUS, 1.02*(n*1000+400+n*1000), "%d streams", streams)
			}
		}
	}
}

func TestWhatHasTheLongestWayToGoIsCopiedFirst(t *testing.T) {
	b := dag.New("tails")
	profile := &Profile{Nodes: map[string]float64{"up_large": 1000, "up_small": 2, "long": 800, "short": 20}}
	end := func(size int64, name, kernel string) {
		host, device, result := b.Host("h_"+name, dag.U8, size), b.Device("d_"+name, dag.U8, size), b.Device("r_"+name, dag.U8, size)
		b.Copy("up_"+name, dag.Range{Buffer: device, Hi: size}, dag.Range{Buffer: host, Hi: size})
		b.Node(dag.Node{Name: kernel, Kind: dag.Task, Stream: -1}, b.In(device), b.Out(result))
	}
	end(1<<20, "large", "short")
	end(1<<10, "small", "long")
	g, err := b.Graph()
	require.NoError(t, err)
	plan, err := New(context.Background(), g, Options{Strategy: "list", Profile: profile})
	require.NoError(t, err)
	require.Equal(t, []string{"up_small", "up_large"}, submitted(g, plan, Upload))
	require.Less(t, plan.Stats.MakespanUS, 1050.0)
}

func TestQueuedRanksFallAlongDependencies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := mixed(t, rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 60).Draw(t, "nodes"))
		machine := *H200()
		machine.CopyEngines = rapid.IntRange(1, 3).Draw(t, "engines")
		p, err := newProblem(context.Background(), g, &machine, Durations(g, &machine, nil), 4)
		require.NoError(t, err)
		plain := make([]float64, g.Len())
		for k := len(p.order) - 1; k >= 0; k-- {
			i := p.order[k]
			for _, s := range p.succs(i) {
				plain[i] = max(plain[i], plain[s])
				require.GreaterOrEqual(t, p.rank[i], p.rank[s]+p.duration[i])
			}
			plain[i] += p.duration[i]
			require.GreaterOrEqual(t, p.rank[i], plain[i])
		}
	})
}

// Eight chains of three kernels that fill the device, each with a download three times as long as a kernel: the first download must
// not wait until all chains have come as far.
func TestDownloadsBeginBeforeAllKernelsEnd(t *testing.T) {
	const chains, us, bytes = 8, 30.0, 5_000_000
	b := dag.New("chains")
	host, device := b.Host("h", dag.U8, chains*bytes), b.Device("d", dag.U8, chains*bytes)
	for step := range 3 {
		for c := range int64(chains) {
			part := dag.Range{Buffer: device, Lo: c * bytes, Hi: (c + 1) * bytes}
			b.Node(dag.Node{Name: fmt.Sprintf("k%d.%d", step, c), Kind: dag.Task, Stream: -1, HasCost: true, CostUS: us,
				Work: dag.Work{Blocks: 1 << 20, Threads: 256}}, part.InOut())
		}
	}
	for c := range int64(chains) {
		b.Copy(fmt.Sprintf("down.%d", c), dag.Range{Buffer: host, Lo: c * bytes, Hi: (c + 1) * bytes}, dag.Range{Buffer: device, Lo: c * bytes, Hi: (c + 1) * bytes})
	}
	g, err := b.Graph()
	require.NoError(t, err)
	m := H200()
	download := bytes / m.DeviceToHost
	for _, streams := range []int{2, 4, 8} {
		plan, err := New(context.Background(), g, Options{Streams: streams, Machine: m})
		require.NoError(t, err)
		assert.Less(t, plan.Stats.MakespanUS, 3*us+chains*download+6*us, "%d streams", streams)
	}
}

func TestRanksTakeTurnsOfCopies(t *testing.T) {
	b := dag.New("ranks")
	host, device := b.Host("h", dag.U8, 4000), b.Device("d", dag.U8, 4000)
	part := func(buffer int32, k int64) dag.Range {
		return dag.Range{Buffer: buffer, Lo: 1000 * k, Hi: 1000 * (k + 1)}
	}
	for k := range int64(2) {
		b.Copy(fmt.Sprintf("up.%d", k), part(device, k), part(host, k))
	}
	for k := range int64(2) {
		b.Copy(fmt.Sprintf("down.%d", k), part(host, 2+k), part(device, k))
	}
	g, err := b.Graph()
	require.NoError(t, err)
	ranks := func(m *Machine) []float64 {
		p, err := newProblem(context.Background(), g, m, []float64{5, 5, 10, 10}, 8)
		require.NoError(t, err)
		return p.rank
	}
	m := free()
	assert.Equal(t, []float64{25, 15, 20, 10}, ranks(m), "what is declared first is to be ready first")
	m.CopyEngines = 2
	assert.Equal(t, []float64{15, 15, 10, 10}, ranks(m), "an engine for each")
	assert.Equal(t, []float64{15, 15, 10, 10}, ranks(Unit()), "copies of this machine do not contend")
}
