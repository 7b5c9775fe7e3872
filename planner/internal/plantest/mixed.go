// Graphs of kernels and copies, plans written by hand, and machines that are easy to calculate with.

package plantest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
)

// Pieces is a picture that is uploaded in pieces: a kernel per piece that also reads the neighbours, one value of the whole picture,
// then two kernels per piece, and downloads of the pieces. Copies take 1,000 us and kernels 100.
func Pieces(tb testing.TB, n int) (*dag.Graph, *model.Profile) {
	tb.Helper()
	const bytes = 1 << 20
	b := dag.New("pieces")
	whole := int64(n) * bytes
	in, out := b.Host("in", dag.U8, whole), b.Host("out", dag.U8, whole)
	picture, blurred := b.Device("picture", dag.U8, whole), b.Device("blurred", dag.U8, whole)
	first, second := b.Device("first", dag.U8, whole), b.Device("second", dag.U8, whole)
	least := b.Device("least", dag.U8, 1)
	piece := func(buffer dag.BufferID, from, to int) dag.Range {
		return dag.Range{Buffer: buffer, Lo: int64(max(from, 0)) * bytes, Hi: int64(min(to, n)) * bytes}
	}
	profile := &model.Profile{Nodes: map[string]float64{}}
	task := func(name string, in, out dag.Range) dag.NodeID {
		profile.Nodes[name] = 100
		return b.Node(dag.Node{Name: name, Kind: dag.Task, Work: dag.Work{Blocks: 1 << 20, Threads: 256}},
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
		b.After(dag.NodeID(task(fmt.Sprintf("first%d", k), piece(blurred, k, k+1), piece(first, k, k+1))), dag.NodeID(value))
		task(fmt.Sprintf("second%d", k), piece(first, k, k+1), piece(second, k, k+1))
		move(fmt.Sprintf("down%d", k), piece(out, k, k+1), piece(second, k, k+1))
	}
	g, err := b.Graph()
	require.NoError(tb, err)
	return g, profile
}

// MixedGraph makes a graph with copies in all directions, priorities, two devices and bound streams, all at random.
func MixedGraph(t require.TestingT, seed uint64, n int, explicit bool) *dag.Graph {
	rng := rand.New(rand.NewPCG(seed, 11))
	b := dag.New("mixed")
	if explicit {
		b.Sync(dag.SyncExplicit)
	}
	devices := 1 + rng.IntN(2)
	priorities := 1 + rng.IntN(3)
	bound := rng.IntN(4) // numbered streams per device
	var host []dag.BufferID
	device := make([][]dag.BufferID, devices)
	for k := range 4 {
		host = append(host, b.Host(fmt.Sprintf("h%d", k), dag.U8, 65536))
		for d := range devices {
			device[d] = append(device[d], b.Buffer(dag.Buffer{Name: fmt.Sprintf("d%d.%d", d, k), Place: dag.Device, Device: int32(d), DType: dag.U8,
				Shape: []int64{65536}}))
		}
	}
	pick := func(ids []dag.BufferID) dag.Range {
		part := int64(rng.IntN(4)) * 16384
		return dag.Range{Buffer: dag.BufferID(ids[rng.IntN(len(ids))]), Lo: part, Hi: part + 16384}
	}
	for i := range n {
		d := rng.IntN(devices)
		name := fmt.Sprintf("n%d", i)
		var id dag.NodeID
		switch rng.IntN(6) {
		case 0:
			id = b.Copy(name, pick(device[d]), pick(host))
		case 1:
			id = b.Copy(name, pick(host), pick(device[d]))
		case 2:
			to, from := pick(device[rng.IntN(devices)]), pick(device[d])
			if to.Buffer == from.Buffer {
				id = b.Task(name)
			} else {
				id = b.Copy(name, to, from)
			}
		default:
			id = b.Task(name, dag.Access{Range: pick(device[d]), Mode: dag.Read}, dag.Access{Range: pick(device[d]), Mode: dag.ReadWrite})
			b.At(id).Work = dag.Work{Blocks: int64(1 + rng.IntN(300)), Threads: 256}
		}
		node := b.At(id)
		node.Device = int32(d)
		node.HasCost, node.CostUS = true, float64(rng.IntN(30))
		node.Priority = dag.Priority(rng.IntN(priorities) - 1)
		if bound > 0 && rng.IntN(3) == 0 {
			// One stream for each device and priority.
			node.Stream = dag.OnStream(int32((rng.IntN(bound)*devices+d)*3) + int32(node.Priority) + 1)
		}
		if i > 0 && rng.IntN(4) == 0 {
			node.After = []dag.NodeID{dag.NodeID(rng.IntN(i))}
		}
	}
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

// Model is a machine with round figures.
func Model() *model.Machine {
	m := model.H200()
	m.Name = "model"
	m.LaunchUS, m.EventUS, m.SyncUS, m.GapUS, m.GraphNodeUS, m.GraphIssueUS = 2, 0.5, 0.25, 1, 0.5, 0.125
	m.GraphEdgeUS, m.GraphSwitchUS, m.EngineUS, m.FillUS, m.MemoryPerSM = 0, 0, 3, 0, 0
	m.KernelUS, m.CopyUS, m.CopySwitchUS = 1, 1, 0
	m.HostToDevice, m.DeviceToHost = 1000, 1000
	return m
}

// Free is a machine on which submission, waits and gaps cost nothing, but engines take turns.
func Free() *model.Machine {
	m := Model()
	m.LaunchUS, m.EventUS, m.SyncUS, m.GapUS, m.GraphNodeUS, m.GraphIssueUS, m.EngineUS = 0, 0, 0, 0, 0, 0, 0
	return m
}

// ByHand makes a plan from one line per stream, such as "launch a, record 0, wait 1, launch b", and an order of stream numbers.
func ByHand(tb testing.TB, g *dag.Graph, order string, streams ...string) *plan.Plan {
	tb.Helper()
	p := &plan.Plan{Name: g.Name}
	after := map[int32]int32{}
	for _, line := range streams {
		stream := plan.Stream{}
		last := int32(-1)
		for _, text := range strings.Split(line, ", ") {
			word, rest, _ := strings.Cut(text, " ")
			op := plan.Op{Node: -1, Event: -1}
			switch word {
			case "launch":
				for i := range g.Nodes {
					if g.Nodes[i].Name == rest {
						op.Node = dag.NodeID(i)
					}
				}
				require.GreaterOrEqual(tb, op.Node, int32(0), rest)
				last = int32(op.Node)
				stream.Device, stream.Priority = g.Nodes[last].Device, g.Nodes[last].Priority
			case "record", "wait":
				_, err := fmt.Sscan(rest, &op.Event)
				require.NoError(tb, err)
				p.Events = max(p.Events, op.Event+1)
				op.Kind = plan.Wait
				if word == "record" {
					op.Kind, op.Node = plan.Record, dag.NodeID(last)
					after[op.Event] = last
				}
			default:
				tb.Fatalf("no op %q", text)
			}
			stream.Ops = append(stream.Ops, op)
		}
		p.Streams = append(p.Streams, stream)
	}
	for k := range p.Streams {
		for i := range p.Streams[k].Ops {
			if op := &p.Streams[k].Ops[i]; op.Kind == plan.Wait {
				op.Node = dag.NodeID(after[op.Event])
			}
		}
	}
	for _, c := range strings.Fields(order) {
		p.Order = append(p.Order, int32(c[0]-'0'))
	}
	return p
}

// kernels makes one kernel per entry, in one buffer each: declared cost, blocks (of 256 threads), priority.
type KernelSpec struct {
	Us       float64
	Blocks   int64
	Priority dag.Priority
}

func KernelGraph(tb testing.TB, specs ...KernelSpec) *dag.Graph {
	b := dag.New("kernels")
	for i, k := range specs {
		buffer := b.Device(fmt.Sprintf("d%d", i), dag.F32, 1)
		b.Node(dag.Node{Name: string(rune('a' + i)), Kind: dag.Task, Priority: k.Priority, HasCost: true, CostUS: k.Us,
			Work: dag.Work{Blocks: k.Blocks, Threads: 256}}, b.Out(buffer))
	}
	g, err := b.Graph()
	require.NoError(tb, err)
	return g
}

// Mixed makes a random pipeline with copies of all kinds, kernels of all sizes, priorities and two devices.
func Mixed(tb require.TestingT, seed uint64, n int) *dag.Graph {
	rng := rand.New(rand.NewPCG(seed, 0x5eed))
	b := dag.New("mixed")
	const size = 1 << 16
	var hosts, devices [2][]dag.BufferID
	for d := range int32(2) {
		for k := range 3 {
			hosts[d] = append(hosts[d], b.Buffer(dag.Buffer{Name: fmt.Sprintf("h%d.%d", d, k), Place: dag.Host, Pageable: rng.IntN(8) == 0,
				DType: dag.U8, Shape: []int64{size}}))
			devices[d] = append(devices[d], b.Buffer(dag.Buffer{Name: fmt.Sprintf("d%d.%d", d, k), Place: dag.Device, Device: d, DType: dag.U8, Shape: []int64{size}}))
		}
	}
	slice := func(buffer dag.BufferID) dag.Range {
		lo := rng.Int64N(size)
		return dag.Range{Buffer: buffer, Lo: lo, Hi: lo + 1 + rng.Int64N(size-lo)}
	}
	pick := func(of []dag.BufferID) dag.BufferID { return of[rng.IntN(len(of))] }
	for i := range n {
		d := rng.IntN(2)
		node := dag.Node{Name: fmt.Sprintf("n%d", i), Kind: dag.Task, Device: int32(d), Priority: dag.Priority(rng.IntN(3) - 1)}
		if rng.IntN(2) == 0 {
			src := slice(dag.BufferID(pick(hosts[d])))
			from, to := pick(hosts[d]), pick(devices[d])
			switch rng.IntN(5) {
			case 0:
				from, to = to, from
			case 1:
				from, to = pick(devices[d]), pick(devices[1-d])
			case 2:
				from, to = devices[d][0], devices[d][1]
			case 3:
				from, to = hosts[d][0], hosts[d][1]
			}
			src.Buffer = dag.BufferID(from)
			dst := dag.Range{Buffer: dag.BufferID(to), Lo: src.Lo, Hi: src.Hi}
			id := b.Copy(node.Name, dst, src)
			b.At(id).Device, b.At(id).Priority = node.Device, node.Priority
			continue
		}
		node.Work = dag.Work{Bytes: rng.Int64N(1 << 24), Flops: rng.Int64N(1 << 30), Blocks: rng.Int64N(3000) * rng.Int64N(2), Threads: 32 << rng.IntN(6),
			Shared: rng.Int32N(64 << 10)}
		if rng.IntN(3) == 0 {
			node.HasCost, node.CostUS = true, float64(rng.IntN(40))
		}
		b.Node(node, dag.Access{Range: slice(dag.BufferID(pick(devices[d]))), Mode: dag.Read},
			dag.Access{Range: slice(dag.BufferID(pick(devices[d]))), Mode: dag.Mode(1 + rng.IntN(3))})
	}
	if bind := seed % 4; bind > 0 {
		// Streams numbered by pool, so that no binding conflicts: of some nodes, of most, of all; the last under sync: explicit.
		for i := range int32(n) {
			if node := b.At(dag.NodeID(i)); bind == 3 || rng.Uint64N(4) < bind {
				node.Stream = dag.OnStream(2*(3*node.Device+int32(node.Priority)+1) + rng.Int32N(2))
			}
		}
		if bind == 3 && rng.IntN(2) == 0 {
			b.Sync(dag.SyncExplicit)
		}
	}
	g, err := b.Graph()
	require.NoError(tb, err)
	return g
}
