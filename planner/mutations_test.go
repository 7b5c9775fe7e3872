// Tests of plans, memory layouts, graph edges and replays with one thing changed: the proof must always agree with plain
// reachability over the ops. With DAGRUN_LONG set, ten times as many mutations are tried.

package planner

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/planner/proof"
)

// The number of mutations without and with DAGRUN_LONG; with it, more than 100,000 plans and 100,000 layouts are mutated.
const usualMutations, longMutations = 100_000, 1_000_000

// subject is what mutations change: a correct plan with its edges and its replay.
type subject struct {
	g      *dag.Graph
	plan   *Plan
	edges  []plan.GraphEdge
	replay *plan.Replay
	rng    *rand.Rand
}

// mutation changes one thing in a copy of a subject; false if the subject has nothing of this kind.
type mutation struct {
	name   string
	of     string // what it changes: plans, layouts, edges or replays
	change func(s *subject) bool
	verify func(s *subject) error
	right  func(s *subject) bool
}

func verifyPlan(s *subject) error   { return Verify(s.g, s.plan) }
func verifyEdges(s *subject) error  { return proof.VerifyEdges(s.g, s.plan, s.edges) }
func verifyReplay(s *subject) error { return proof.Replay(s.g, s.plan, s.replay) }

func mutations() []mutation {
	ofPlan := func(name string, change func(s *subject) bool) mutation {
		return mutation{name, "plans", change, verifyPlan, plainlyRight}
	}
	ofLayout := func(name string, change func(s *subject) bool) mutation {
		return mutation{name, "layouts", change, verifyPlan, plainlyRight}
	}
	ofEdges := func(name string, change func(s *subject) bool) mutation {
		return mutation{name, "edges", change, verifyEdges, plainlyRightEdges}
	}
	ofReplay := func(name string, change func(s *subject) bool) mutation {
		return mutation{name, "replays", change, verifyReplay, plainlyRightReplay}
	}
	return []mutation{
		ofPlan("nothing", func(s *subject) bool { return true }),
		ofPlan("wait left out", func(s *subject) bool { return s.dropOp(plan.Wait) }),
		ofPlan("record left out", func(s *subject) bool { return s.dropOp(plan.Record) }),
		ofPlan("launch left out", func(s *subject) bool { return s.dropOp(plan.Launch) }),
		ofPlan("ops of a stream swapped", (*subject).swapOps),
		ofPlan("submission order swapped", (*subject).swapOrder),
		ofPlan("node on another stream", (*subject).moveNode),
		ofPlan("event used again", (*subject).mergeEvents),
		ofPlan("wait for another node", (*subject).retarget),
		ofPlan("wait put later", (*subject).delayWait),
		ofLayout("buffer moved", (*subject).moveBuffer),
		ofLayout("buffers swapped", (*subject).swapBuffers),
		ofLayout("buffer on another one", (*subject).stackBuffers),
		ofLayout("placement left out", (*subject).dropPlacement),
		ofLayout("kept buffer forgotten", (*subject).dropKept),
		ofLayout("one more buffer kept", (*subject).addKept),
		ofEdges("no edge changed", func(s *subject) bool { return true }),
		ofEdges("edge left out", (*subject).dropEdge),
		ofEdges("edge turned", (*subject).turnEdge),
		ofEdges("edge from another node", (*subject).redirectEdge),
		ofReplay("no op changed", func(s *subject) bool { return true }),
		ofReplay("fork or join op left out", (*subject).dropTie),
		ofReplay("fork or join op moved", (*subject).moveTie),
		ofReplay("fork or join op on another stream", (*subject).shiftTie),
		ofReplay("more replays in flight", func(s *subject) bool { s.replay.Instances = 2 + s.rng.IntN(3); return true }),
	}
}

func TestMutationsAreJudgedAsReachabilityDoes(t *testing.T) {
	count, least := usualMutations, map[string]int{"plans": 30_000, "layouts": 20_000, "edges": 10_000, "replays": 10_000}
	if os.Getenv("DAGRUN_LONG") != "" {
		count, least = longMutations, map[string]int{"plans": 100_000, "layouts": 100_000, "edges": 100_000, "replays": 100_000}
	}
	kinds := mutations()
	right, wrong, differ := make([]int, len(kinds)), make([]int, len(kinds)), make([]int, len(kinds))
	first := ""
	for seed := uint64(0); count > 0; seed++ {
		rng := rand.New(rand.NewPCG(seed, 71))
		s, ok := drawSubject(t, rng)
		if !ok {
			continue
		}
		for k := range kinds {
			m := &kinds[k]
			c := s.clone()
			if !m.change(c) {
				continue
			}
			count--
			want, err := m.right(c), m.verify(c)
			if want != (err == nil) {
				differ[k]++
				if first == "" {
					first = fmt.Sprintf("seed %d, %s: reachability says right: %v, the proof says: %v\n%+v\n%+v\n%v", seed, m.name, want, err, c.plan, c.replay, c.edges)
				}
			}
			if want {
				right[k]++
			} else {
				wrong[k]++
			}
		}
	}
	tried := map[string]int{}
	t.Logf("%-36s %8s %8s %8s", "changed", "right", "wrong", "differ")
	for k := range kinds {
		t.Logf("%-36s %8d %8d %8d", kinds[k].name, right[k], wrong[k], differ[k])
		tried[kinds[k].of] += right[k] + wrong[k]
	}
	for _, of := range []string{"plans", "layouts", "edges", "replays"} {
		t.Logf("%d %s", tried[of], of)
		require.GreaterOrEqual(t, tried[of], least[of], "%s", of)
	}
	require.Empty(t, first)
	for k := range kinds {
		require.Positive(t, right[k]+wrong[k], kinds[k].name)
		if untouched := kinds[k].name == "nothing" || kinds[k].name == "no edge changed" || kinds[k].name == "no op changed"; untouched {
			require.Zero(t, wrong[k], kinds[k].name)
		} else if kinds[k].name != "one more buffer kept" {
			require.Positive(t, wrong[k], kinds[k].name)
		}
	}
}

// drawSubject makes a small graph whose nodes touch parts of few buffers, and plans it.
func drawSubject(t *testing.T, rng *rand.Rand) (*subject, bool) {
	b := dag.New("drawn")
	devices := 1 + rng.IntN(5)/4
	var buffers []dag.BufferID
	for k := range 2 + rng.IntN(5) {
		place := dag.Device
		if rng.IntN(6) == 0 {
			place = dag.Host
		}
		buffer := dag.Buffer{Name: fmt.Sprintf("b%d", k), Place: place, DType: dag.U8, Shape: []int64{int64(1 + rng.IntN(600))}}
		if place == dag.Device {
			buffer.Device = int32(rng.IntN(devices))
		}
		if rng.IntN(3) == 0 {
			buffer.Shape = []int64{int64(2 + rng.IntN(20)), int64(2 + rng.IntN(20))}
		}
		if rng.IntN(12) == 0 {
			buffer.Init = &dag.Init{}
		}
		buffers = append(buffers, b.Buffer(buffer))
	}
	nodes := 1 + rng.IntN(9)
	for i := range nodes {
		var accesses []dag.Access
		for range 1 + rng.IntN(3) {
			k := buffers[rng.IntN(len(buffers))]
			accesses = append(accesses, dag.Access{Range: b.Whole(dag.BufferID(k)), Mode: dag.Mode(1 + rng.IntN(3))})
		}
		n := dag.Node{Name: fmt.Sprintf("n%d", i), Kind: dag.Task, Peer: true, Device: int32(rng.IntN(devices))}
		if rng.IntN(8) == 0 {
			n.Priority = dag.High
		}
		if i > 0 && rng.IntN(4) == 0 {
			n.After = []dag.NodeID{dag.NodeID(rng.IntN(i))}
		}
		if i%3 == 0 && rng.IntN(10) == 0 && devices == 1 && n.Priority == dag.Normal {
			n.Stream = dag.OnStream(int32(rng.IntN(2)))
		}
		b.Node(n, sliced(rng, b, accesses)...)
	}
	g, err := b.Graph()
	if err != nil {
		return nil, false
	}
	o := Options{Strategy: []string{"list", "roundrobin", "auto"}[rng.IntN(3)], Streams: 1 + rng.IntN(4), SingleUseEvents: rng.IntN(3) == 0}
	if rng.IntN(4) == 0 {
		o.Keep = []dag.BufferID{buffers[rng.IntN(len(buffers))]}
	}
	plan, err := New(context.Background(), g, o)
	if err != nil {
		require.ErrorIs(t, err, ErrTooManyStreams)
		return nil, false
	}
	if rng.IntN(12) == 0 {
		plan = plantest.Spread(plan) // more streams than one pass over the clocks handles
	}
	s := &subject{g: g, plan: plan, replay: plan.Replay(1), rng: rng}
	s.edges, err = GraphEdges(g, plan)
	require.NoError(t, err)
	return s, true
}

// sliced narrows accesses to a part or a tile of their buffer, and sometimes leaves the whole buffer.
func sliced(rng *rand.Rand, b *dag.Builder, accesses []dag.Access) []dag.Access {
	for k := range accesses {
		a := &accesses[k]
		if shape := b.BufferAt(a.Buffer).Shape; len(shape) == 2 && rng.IntN(3) > 0 {
			top, left := rng.Int64N(shape[0]), rng.Int64N(shape[1])
			a.Range = b.Tile(a.Buffer, top, top+1+rng.Int64N(shape[0]-top), left, left+1+rng.Int64N(shape[1]-left))
		} else if rng.IntN(2) == 0 {
			a.Lo = rng.Int64N(a.Hi)
			a.Hi = a.Lo + 1 + rng.Int64N(a.Hi-a.Lo)
		}
	}
	return accesses
}

func (s *subject) clone() *subject {
	c := *s
	c.plan = plantest.ClonePlan(s.plan)
	c.edges = slices.Clone(s.edges)
	c.replay = &plan.Replay{Instances: s.replay.Instances, Events: s.replay.Events, Ops: slices.Clone(s.replay.Ops)}
	return &c
}

// pick chooses a random op of a kind.
func (s *subject) pick(kind plan.OpKind) (stream, index int, ok bool) {
	var at [][2]int
	for k := range s.plan.Streams {
		for i, op := range s.plan.Streams[k].Ops {
			if op.Kind == kind {
				at = append(at, [2]int{k, i})
			}
		}
	}
	if len(at) == 0 {
		return 0, 0, false
	}
	chosen := at[s.rng.IntN(len(at))]
	return chosen[0], chosen[1], true
}

// orderAt returns the position of a stream's op in the submission order.
func (s *subject) orderAt(stream, index int) int {
	for k, o := range s.plan.Order {
		if int(o) == stream {
			if index == 0 {
				return k
			}
			index--
		}
	}
	return -1
}

func (s *subject) takeOut(stream, index int) plan.Op {
	at := s.orderAt(stream, index)
	op := s.plan.Streams[stream].Ops[index]
	s.plan.Streams[stream].Ops = slices.Delete(s.plan.Streams[stream].Ops, index, index+1)
	s.plan.Order = slices.Delete(s.plan.Order, at, at+1)
	return op
}

func (s *subject) dropOp(kind plan.OpKind) bool {
	stream, index, ok := s.pick(kind)
	if ok {
		s.takeOut(stream, index)
	}
	return ok
}

func (s *subject) swapOps() bool {
	stream := s.rng.IntN(len(s.plan.Streams))
	ops := s.plan.Streams[stream].Ops
	if len(ops) < 2 {
		return false
	}
	a, b := s.rng.IntN(len(ops)), s.rng.IntN(len(ops))
	ops[a], ops[b] = ops[b], ops[a]
	return true
}

func (s *subject) swapOrder() bool {
	a, b := s.rng.IntN(len(s.plan.Order)), s.rng.IntN(len(s.plan.Order))
	s.plan.Order[a], s.plan.Order[b] = s.plan.Order[b], s.plan.Order[a]
	return true
}

// moveNode moves a launch and the records after it to another stream, at the same position in the submission order.
func (s *subject) moveNode() bool {
	stream, index, _ := s.pick(plan.Launch)
	other := s.rng.IntN(len(s.plan.Streams))
	if other == stream {
		return false
	}
	at := s.orderAt(stream, index)
	to := 0
	for _, k := range s.plan.Order[:at] {
		if int(k) == other {
			to++
		}
	}
	for more := true; more; {
		op := s.plan.Streams[stream].Ops[index]
		from := s.orderAt(stream, index)
		s.plan.Streams[stream].Ops = slices.Delete(s.plan.Streams[stream].Ops, index, index+1)
		s.plan.Order = slices.Delete(s.plan.Order, from, from+1)
		s.plan.Streams[other].Ops = slices.Insert(s.plan.Streams[other].Ops, to, op)
		s.plan.Order = slices.Insert(s.plan.Order, at, int32(other))
		to, at = to+1, at+1
		rest := s.plan.Streams[stream].Ops
		more = index < len(rest) && rest[index].Kind == plan.Record
	}
	return true
}

func (s *subject) mergeEvents() bool {
	if s.plan.Events < 2 {
		return false
	}
	from, to := int32(s.rng.IntN(int(s.plan.Events))), int32(s.rng.IntN(int(s.plan.Events)))
	for k := range s.plan.Streams {
		for i := range s.plan.Streams[k].Ops {
			if op := &s.plan.Streams[k].Ops[i]; op.Event == from {
				op.Event = to
			}
		}
	}
	return true
}

func (s *subject) retarget() bool {
	stream, index, ok := s.pick(plan.Wait)
	if !ok {
		return false
	}
	from, at, ok := s.pick(plan.Record)
	if !ok {
		return false
	}
	s.plan.Streams[stream].Ops[index].Node = s.plan.Streams[from].Ops[at].Node
	s.plan.Streams[stream].Ops[index].Event = s.plan.Streams[from].Ops[at].Event
	return true
}

// delayWait moves a wait behind the next op of its stream.
func (s *subject) delayWait() bool {
	stream, index, ok := s.pick(plan.Wait)
	ops := s.plan.Streams[stream].Ops
	if !ok || index+1 >= len(ops) {
		return false
	}
	ops[index], ops[index+1] = ops[index+1], ops[index]
	return true
}

func (s *subject) moveBuffer() bool {
	if len(s.plan.Memory) == 0 {
		return false
	}
	m := &s.plan.Memory[s.rng.IntN(len(s.plan.Memory))]
	m.Offset += []int64{-256, 256, 512, 1, -512}[s.rng.IntN(5)]
	if s.rng.IntN(2) == 0 {
		s.plan.Stats.PeakDeviceBytes = 0
	}
	return true
}

func (s *subject) swapBuffers() bool {
	if len(s.plan.Memory) < 2 {
		return false
	}
	a, b := s.rng.IntN(len(s.plan.Memory)), s.rng.IntN(len(s.plan.Memory))
	s.plan.Memory[a].Offset, s.plan.Memory[b].Offset = s.plan.Memory[b].Offset, s.plan.Memory[a].Offset
	s.plan.Stats.PeakDeviceBytes = 0
	return a != b
}

func (s *subject) stackBuffers() bool {
	if len(s.plan.Memory) < 2 {
		return false
	}
	a, b := s.rng.IntN(len(s.plan.Memory)), s.rng.IntN(len(s.plan.Memory))
	s.plan.Memory[a].Offset = s.plan.Memory[b].Offset
	s.plan.Stats.PeakDeviceBytes = 0
	return a != b
}

func (s *subject) dropPlacement() bool {
	if len(s.plan.Memory) == 0 {
		return false
	}
	k := s.rng.IntN(len(s.plan.Memory))
	s.plan.Memory = slices.Delete(s.plan.Memory, k, k+1)
	return true
}

func (s *subject) dropKept() bool {
	if len(s.plan.Kept) == 0 {
		return false
	}
	k := s.rng.IntN(len(s.plan.Kept))
	s.plan.Kept = slices.Delete(s.plan.Kept, k, k+1)
	return true
}

func (s *subject) addKept() bool {
	b := int32(s.rng.IntN(len(s.g.Buffers)))
	k, known := slices.BinarySearch(s.plan.Kept, dag.BufferID(b))
	if known {
		return false
	}
	s.plan.Kept = slices.Insert(s.plan.Kept, k, dag.BufferID(b))
	return true
}

func (s *subject) dropEdge() bool {
	if len(s.edges) == 0 {
		return false
	}
	k := s.rng.IntN(len(s.edges))
	s.edges = slices.Delete(s.edges, k, k+1)
	return true
}

func (s *subject) turnEdge() bool {
	if len(s.edges) == 0 {
		return false
	}
	e := &s.edges[s.rng.IntN(len(s.edges))]
	e.From, e.To = e.To, e.From
	return true
}

func (s *subject) redirectEdge() bool {
	if len(s.edges) == 0 {
		return false
	}
	s.edges[s.rng.IntN(len(s.edges))].From = dag.NodeID(s.rng.IntN(s.g.Len()))
	return true
}

// pickTie chooses an op of fork or join.
func (s *subject) pickTie() (int, bool) {
	var at []int
	for k, op := range s.replay.Ops {
		if op.Node < 0 {
			at = append(at, k)
		}
	}
	if len(at) == 0 {
		return 0, false
	}
	return at[s.rng.IntN(len(at))], true
}

func (s *subject) dropTie() bool {
	k, ok := s.pickTie()
	if ok {
		s.replay.Ops = slices.Delete(s.replay.Ops, k, k+1)
	}
	return ok
}

func (s *subject) moveTie() bool {
	k, ok := s.pickTie()
	if !ok {
		return false
	}
	op := s.replay.Ops[k]
	s.replay.Ops = slices.Delete(s.replay.Ops, k, k+1)
	s.replay.Ops = slices.Insert(s.replay.Ops, s.rng.IntN(len(s.replay.Ops)+1), op)
	return true
}

func (s *subject) shiftTie() bool {
	k, ok := s.pickTie()
	if ok {
		s.replay.Ops[k].Stream = int32(s.rng.IntN(len(s.plan.Streams)))
	}
	return ok
}
