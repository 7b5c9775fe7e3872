// Tests of spreading: the proof agrees with brute force on random spreads and on spreads with mistakes, and no policy changes a result.

package spread

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/internal/placement"
	"github.com/dagrun/dagrun/planner/internal/planted"
	"github.com/dagrun/dagrun/planner/plan"
	proof "github.com/dagrun/dagrun/planner/proof/spread"
)

// drawSpreadable makes a random graph of tasks and copies on small buffers: with contents from outside, results, state, and nodes and
// buffers that must stay where they are.
func drawSpreadable(t *testing.T, random *rand.Rand, devices int) *dag.Graph {
	t.Helper()
	return drawNested(t, random, devices, 0)
}

// drawNested is drawSpreadable with loops and branches, nested that deep.
func drawNested(t *testing.T, random *rand.Rand, devices, depth int) *dag.Graph {
	t.Helper()
	b := dag.New("random")
	var list []dag.BufferID
	for k := range 2 + random.IntN(3) {
		buffer := dag.Buffer{Name: fmt.Sprintf("b%d", k), Place: dag.Device, DType: dag.U8, Shape: []int64{int64(1 + random.IntN(6))}}
		if random.IntN(3) == 0 {
			buffer.Shape[0] = int64(300 + random.IntN(900)) // several pieces
		}
		if random.IntN(3) == 0 { // rows, for tiles
			buffer.Shape = []int64{int64(1 + random.IntN(5)), int64(1 + random.IntN(4))}
			if random.IntN(3) == 0 {
				buffer.Shape[1] = int64(256 * (1 + random.IntN(3))) // longer than what pieces are aligned to
			}
		}
		switch random.IntN(6) {
		case 0:
			buffer.Init = &dag.Init{Kind: dag.InitRamp}
		case 1:
			buffer.Save = fmt.Sprintf("b%d.npy", k)
		case 2:
			buffer.Place = dag.Host
		case 3:
			buffer.Device, buffer.Fixed = int32(random.IntN(devices)), true
		}
		list = append(list, b.Buffer(buffer))
	}
	some := func(id dag.BufferID) dag.Range {
		n := b.BufferAt(id).Bytes
		if shape := b.BufferAt(id).Shape; len(shape) == 2 && random.IntN(3) > 0 {
			top, left := random.Int64N(shape[0]), random.Int64N(shape[1])
			return b.Tile(id, top, top+1+random.Int64N(shape[0]-top), left, left+1+random.Int64N(shape[1]-left))
		}
		lo := random.Int64N(n)
		hi := lo + 1 + random.Int64N(n-lo)
		if random.IntN(2) == 0 {
			lo, hi = 0, n
		}
		return dag.Range{Buffer: id, Lo: lo, Hi: hi}
	}
	count := 0
	var add func(most, depth int)
	one := func() {
		name := fmt.Sprintf("n%d", count)
		count++
		if random.IntN(3) == 0 {
			src, dst := some(list[random.IntN(len(list))]), some(list[random.IntN(len(list))])
			if src.Pitch == 0 && dst.Pitch == 0 {
				n := min(src.Hi-src.Lo, dst.Hi-dst.Lo)
				src.Hi, dst.Hi = src.Lo+n, dst.Lo+n
			}
			rows, width := src.Box()
			if toRows, toWidth := dst.Box(); src.Buffer != dst.Buffer && (rows == toRows || rows == 1 || toRows == 1) && rows*width == toRows*toWidth {
				b.Copy(name, dst, src)
				return
			}
		}
		var accesses []dag.Access
		home := int32(-1)
		for range 1 + random.IntN(3) {
			id := list[random.IntN(len(list))]
			at := b.BufferAt(id)
			if at.Place == dag.Host || at.Fixed && home >= 0 && home != at.Device {
				continue
			}
			if at.Fixed {
				home = at.Device
			}
			accesses = append(accesses, dag.Access{Range: some(id), Mode: dag.Mode(1 + random.IntN(3))})
		}
		node := dag.Node{Name: name, Kind: dag.Task, HasCost: true, CostUS: float64(1 + random.IntN(20))}
		if home >= 0 {
			node.Device = home
		} else if random.IntN(8) == 0 {
			node.Device, node.Fixed = int32(random.IntN(devices)), true
		}
		b.Node(node, accesses...)
	}
	add = func(most, depth int) {
		for range 1 + random.IntN(most) {
			if depth == 0 || random.IntN(3) > 0 {
				one()
				continue
			}
			count++
			drawControl(b, random, list, fmt.Sprintf("c%d", count), func() { add(3, depth-1) })
		}
	}
	if depth == 0 {
		for range 3 + random.IntN(8) {
			one()
		}
	} else {
		add(6, depth)
	}
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

// drawControl declares a random loop or branch.
func drawControl(b *dag.Builder, random *rand.Rand, list []dag.BufferID, name string, body func()) {
	var tested []string
	for _, id := range list {
		if at := b.BufferAt(id); at.Place == dag.Device && len(at.Shape) == 1 {
			k := random.Int64N(at.Bytes)
			tested = append(tested, fmt.Sprintf("%s(%d..%d) < 100", at.Name, k, k+1))
		}
	}
	kind := random.IntN(4)
	if len(tested) == 0 {
		kind = 0
	}
	test := ""
	if kind > 0 {
		test = tested[random.IntN(len(tested))]
	}
	switch kind {
	case 0:
		b.Repeat(name, dag.Loop{Times: random.Int64N(4)}, body)
	case 1:
		b.Repeat(name, dag.Loop{Until: test, Most: 4}, body)
	case 2:
		b.Repeat(name, dag.Loop{While: test, Most: 4}, body)
	case 3:
		var otherwise func()
		if random.IntN(2) == 0 {
			otherwise = body
		}
		b.If(name, test, body, otherwise)
	}
}

// drawPlacement puts every node somewhere it can be.
func drawPlacement(random *rand.Rand, p *placement.Problem) []int32 {
	at := slices.Clone(p.Fixed)
	for i := range at { // those of bodies too
		if at[i] == placement.Free {
			at[i] = int32(random.IntN(p.Devices))
		}
	}
	return at
}

// bytesOf is a plain interpreter: memory holds a number for every byte, and what a node writes depends on all that it reads.
type bytesOf struct {
	memory [][]uint64
}

func mix(values ...uint64) uint64 {
	h := fnv.New64a()
	var text [8]byte
	for _, v := range values {
		for k := range text {
			text[k] = byte(v >> (8 * k))
		}
		h.Write(text[:])
	}
	return h.Sum64()
}

// bytesIn lists the bytes of a range, row by row if it is a tile.
func bytesIn(r dag.Range) []int64 {
	var list []int64
	rows, width := r.Box()
	for row := range rows {
		for k := range width {
			list = append(list, r.Lo+row*int64(r.Pitch)+k)
		}
	}
	return list
}

// startOf are the first contents of bytes of the original.
func startOf(b dag.BufferID, byte int64) uint64 { return mix(1, uint64(b), uint64(byte)) }

// run does a node's work. The offsets are those of its buffers in the buffers that they stand for.
func (m *bytesOf) run(node dag.NodeID, accesses []dag.Access, offset func(dag.BufferID) int64, copied bool) uint64 {
	digest := mix(2, uint64(node))
	var read []uint64
	for _, a := range accesses {
		if a.Mode&dag.Read != 0 {
			for _, k := range bytesIn(a.Range) {
				read = append(read, m.memory[a.Buffer][k])
				digest = mix(digest, m.memory[a.Buffer][k])
			}
		}
	}
	for j, a := range accesses {
		if a.Mode&dag.Write == 0 {
			continue
		}
		for n, k := range bytesIn(a.Range) {
			if copied {
				m.memory[a.Buffer][k] = read[n]
			} else {
				m.memory[a.Buffer][k] = mix(digest, uint64(j), uint64(k+offset(a.Buffer)))
			}
		}
	}
	return digest
}

// plainlyEqual reports whether a spread does what the original does, by running both for some replays. A copy of the original stands for work
// like any other, so that bytes of different buffers are never equal. Loops make as many passes as a die says, and branches take the body that
// it says, the same in both.
func plainlyEqual(original *dag.Graph, s *plan.Spread) bool {
	dice := 1
	if original.HasControl() {
		dice = 12
	}
	for die := range uint64(dice) {
		if !equalWith(original, s, die) {
			return false
		}
	}
	return true
}

// followed is a run of a graph.
type followed struct {
	bytesOf
	offset func(dag.BufferID) int64
	trace  []uint64 // what every node of the original computed, and every condition read
	seed   uint64
	die    *rand.Rand
	bodies [][]dag.NodeID // of the level and of those in it: what their nodes stand for; nil in the original
	traces [][]uint64     // by node of the original
}

// replay follows one replay, whose nodes may come in any order. declared is the original, whose order the bodies have.
func (f *followed) replay(declared, g *dag.Graph, nodes []dag.NodeID, number uint64) {
	first := make([]int, declared.Len()+1)
	for i := range declared.Nodes {
		first[i+1] = first[i]
		if c := declared.Nodes[i].Control; c != nil {
			first[i+1] += bodiesIn(c)
		}
	}
	f.traces = make([][]uint64, declared.Len())
	for i := range g.Nodes {
		from := dag.NodeID(i)
		if nodes != nil {
			from = nodes[i]
		}
		f.trace = nil
		f.die = rand.New(rand.NewPCG(f.seed, 100*number+uint64(from+1)))
		if from == plan.Inserted {
			f.node(g, i, from, 0, 0)
			continue
		}
		f.node(g, i, from, 0, first[from])
		f.traces[from] = f.trace
	}
}

// graph follows the nodes of a body. number is that of the body.
func (f *followed) graph(g *dag.Graph, nodes []dag.NodeID, number uint64, bodies int) {
	for i := range g.Nodes {
		from := dag.NodeID(i)
		if nodes != nil {
			from = nodes[i]
		}
		f.node(g, i, from, number, bodies)
		if g.Nodes[i].Control != nil {
			bodies += bodiesIn(g.Nodes[i].Control)
		}
	}
}

func (f *followed) node(g *dag.Graph, i int, from dag.NodeID, number uint64, bodies int) {
	if g.Nodes[i].Control != nil {
		f.control(g, i, number*100+uint64(from)+1, bodies)
		return
	}
	digest := f.run(from+dag.NodeID(number*1000), g.Accesses(dag.NodeID(i)), f.offset, from == plan.Inserted)
	if from != plan.Inserted {
		f.trace = append(f.trace, digest)
	}
}

// bodiesIn counts the bodies of a loop or branch, those of nested ones included.
func bodiesIn(c *dag.Control) int {
	n := len(c.Bodies)
	for _, body := range c.Bodies {
		for i := range body.Nodes {
			if inner := body.Nodes[i].Control; inner != nil {
				n += bodiesIn(inner)
			}
		}
	}
	return n
}

// control follows a loop or branch. bodies is the place of its first body among all.
func (f *followed) control(g *dag.Graph, i int, number uint64, bodies int) {
	n := &g.Nodes[i]
	test := func() {
		if c := n.Control.Condition; c != nil {
			for _, r := range c.Operands {
				f.trace = append(f.trace, f.memory[r.Buffer][r.Lo])
			}
		}
	}
	body := func(k int) {
		at := bodies
		for j := range k {
			at++
			for x := range n.Control.Bodies[j].Nodes {
				if inner := n.Control.Bodies[j].Nodes[x].Control; inner != nil {
					at += bodiesIn(inner)
				}
			}
		}
		var nodes []dag.NodeID
		if f.bodies != nil {
			nodes = f.bodies[at]
		}
		f.graph(n.Control.Bodies[k], nodes, number*10+uint64(k), at+1)
	}
	if n.Kind == dag.Branch {
		test()
		if k := f.die.IntN(2); k < len(n.Control.Bodies) {
			body(k)
		}
		return
	}
	passes := f.die.IntN(4)
	if n.Control.While {
		test()
	} else if n.Control.Times > 0 {
		passes++
	}
	for range passes {
		body(0)
		test()
	}
}

func equalWith(original *dag.Graph, s *plan.Spread, die uint64) bool {
	var one, many followed
	for k := range original.Buffers {
		memory := make([]uint64, original.Buffers[k].Bytes)
		for j := range memory {
			memory[j] = startOf(dag.BufferID(k), int64(j))
		}
		one.memory = append(one.memory, memory)
	}
	for k, at := range s.Buffers {
		memory := make([]uint64, s.Graph.Buffers[k].Bytes)
		for j := range memory {
			if memory[j] = startOf(at.Buffer, at.Lo+int64(j)); (s.Graph.Buffers[k].Init == nil) != (original.Buffers[at.Buffer].Init == nil) {
				memory[j] = mix(3, uint64(k), uint64(j))
			}
		}
		many.memory = append(many.memory, memory)
	}
	one.offset = func(dag.BufferID) int64 { return 0 }
	many.offset = func(b dag.BufferID) int64 { return s.Buffers[b].Lo }
	one.seed, many.seed, many.bodies = die, die, s.Bodies
	if many.bodies == nil {
		many.bodies = [][]dag.NodeID{}
	}
	for number := range uint64(6) {
		one.replay(original, original, nil, number)
		many.replay(original, s.Graph, s.Nodes, number)
		if !slices.EqualFunc(one.traces, many.traces, slices.Equal[[]uint64]) {
			return false
		}
		for k, at := range s.Buffers {
			if b := &s.Graph.Buffers[k]; b.Save != "" && !slices.Equal(many.memory[k], one.memory[at.Buffer]) {
				return false
			}
		}
	}
	return true
}

// judgeMutants makes mistakes in a spread graph. The proof must refuse those, and only those, with which it computes something else. It returns
// how many were refused, and how many are right all the same.
func judgeMutants(t *testing.T, random *rand.Rand, g *dag.Graph, s *plan.Spread, seed uint64) (refused, right int) {
	t.Helper()
	for range 4 {
		changed := mutate(t, random, s)
		if changed == nil {
			continue
		}
		err := proof.Verify(g, changed)
		require.Equal(t, plainlyEqual(g, changed), err == nil, "seed %d: %v", seed, err)
		if err != nil {
			require.ErrorIs(t, err, proof.ErrWrong)
			refused++
		} else {
			right++
		}
	}
	return refused, right
}

// mutate makes one random mistake in the copies that were inserted. It returns nil where there is nothing to change.
func mutate(t *testing.T, random *rand.Rand, s *plan.Spread) *plan.Spread {
	t.Helper()
	type item struct {
		node     dag.Node
		accesses []dag.Access
		from     dag.NodeID
	}
	var items []item
	var inserted []int
	for i := range s.Graph.Nodes {
		node := s.Graph.Nodes[i]
		node.After = nil
		items = append(items, item{node, s.Graph.Accesses(dag.NodeID(i)), s.Nodes[i]})
		if s.Nodes[i] == plan.Inserted {
			inserted = append(inserted, i)
		}
	}
	if len(inserted) == 0 {
		return nil
	}
	k := inserted[random.IntN(len(inserted))]
	change := func(src, dst dag.Range) {
		items[k].node.Copy = &dag.Copy{Src: src, Dst: dst}
		items[k].accesses = []dag.Access{src.In(), dst.Out()}
	}
	move := *items[k].node.Copy
	switch random.IntN(5) {
	case 0: // a missing copy
		items = slices.Delete(items, k, k+1)
	case 1: // a late one
		it := items[k]
		items = slices.Delete(items, k, k+1)
		items = slices.Insert(items, k+random.IntN(len(items)-k+1), it)
	case 2: // an early one
		it := items[k]
		items = slices.Delete(items, k, k+1)
		items = slices.Insert(items, random.IntN(k+1), it)
	case 3: // another source
		at := s.Buffers[move.Src.Buffer]
		var others []dag.Range
		for j, other := range s.Buffers {
			lo := move.Src.Lo + at.Lo - other.Lo
			r := dag.Range{Buffer: dag.BufferID(j), Pitch: move.Src.Pitch, Lo: lo, Hi: lo + move.Src.Hi - move.Src.Lo}
			if other.Buffer == at.Buffer && r.Buffer != move.Src.Buffer && r.Buffer != move.Dst.Buffer && r.Lo >= 0 && r.Hi <= s.Graph.Buffers[j].Bytes {
				others = append(others, r)
			}
		}
		if len(others) == 0 {
			return nil
		}
		change(others[random.IntN(len(others))], move.Dst)
	default: // too short
		if rows, width := move.Src.Box(); rows == 1 && width > 1 {
			move.Src.Hi--
			move.Dst.Hi--
		} else if rows > 2 {
			move.Src.Hi -= int64(move.Src.Pitch)
			move.Dst.Hi -= int64(move.Dst.Pitch)
		} else {
			return nil
		}
		change(move.Src, move.Dst)
	}
	b := s.Graph.Empty()
	for k := range s.Graph.Buffers {
		b.Buffer(s.Graph.Buffers[k])
	}
	changed := *s
	changed.Nodes = nil
	for _, it := range items {
		if it.from == plan.Inserted {
			side := &s.Graph.Buffers[it.node.Copy.Src.Buffer]
			if side.Place == dag.Host {
				side = &s.Graph.Buffers[it.node.Copy.Dst.Buffer]
			}
			it.node.Device = side.Device
		}
		b.Node(it.node, it.accesses...)
		changed.Nodes = append(changed.Nodes, it.from)
	}
	var err error
	changed.Graph, err = b.Graph()
	require.NoError(t, err)
	return &changed
}

// spreadCases is how many random spreads are tried.
func spreadCases() uint64 {
	if os.Getenv("DAGRUN_LONG") == "" {
		return 1_000
	}
	return 10_000
}

func TestSpreadsAgreeWithBruteForce(t *testing.T) {
	refused, right := 0, 0
	for seed := range spreadCases() {
		random := rand.New(rand.NewPCG(seed, 17))
		devices := 1 + random.IntN(4)
		g := drawSpreadable(t, random, devices)
		p, err := placement.NewProblem(g, devices, nil)
		require.NoError(t, err)
		s, err := placement.Transform(p, drawPlacement(random, p))
		require.NoError(t, err, "seed %d", seed)
		require.NoError(t, proof.Verify(g, s), "seed %d", seed)
		require.True(t, plainlyEqual(g, s), "seed %d: the spread is wrong, but was proved", seed)
		wrong, harmless := judgeMutants(t, random, g, s, seed)
		refused, right = refused+wrong, right+harmless
	}
	require.Greater(t, refused, int(spreadCases()))
	require.Greater(t, right, int(spreadCases())/20)
	t.Logf("%d spreads with a mistake were refused, %d are right all the same", refused, right)
}

func TestPlantedFaultsOfSpreadsAreRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault planted.Fault
	}{{"a missing copy", planted.Missing}, {"a stale replica", planted.Stale}, {"a late copy", planted.Late}, {"a wrong source", planted.Source},
		{"a carried value from the wrong replica", planted.Carried}} {
		t.Run(c.name, func(t *testing.T) {
			refused := 0
			for seed := range uint64(400) {
				random := rand.New(rand.NewPCG(seed, 23))
				g := drawSpreadable(t, random, 3)
				p, err := placement.NewProblem(g, 3, nil)
				require.NoError(t, err)
				at := drawPlacement(random, p)
				remove := planted.Plant(c.fault)
				s, err := placement.Transform(p, at)
				remove()
				require.NoError(t, err)
				err = proof.Verify(g, s)
				require.Equal(t, plainlyEqual(g, s), err == nil, "seed %d: %v", seed, err)
				if err != nil {
					refused++
				}
			}
			require.Greater(t, refused, 20)
		})
	}
}

func TestEveryPolicyIsProvedAndAutoIsTheFastest(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 29))
		devices := 2 + random.IntN(3)
		g := drawSpreadable(t, random, devices)
		least := 0.0
		for _, policy := range Policies()[1:] {
			s, err := New(context.Background(), g, Options{Devices: devices, Policy: policy, Options: planner.Options{Machine: planner.Unit()}})
			require.NoError(t, err)
			p, err := planner.New(context.Background(), s.Graph, planner.Options{Machine: planner.Unit()})
			require.NoError(t, err)
			if least == 0 || p.Stats.MakespanUS < least {
				least = p.Stats.MakespanUS
			}
		}
		s, err := New(context.Background(), g, Options{Devices: devices, Options: planner.Options{Machine: planner.Unit()}})
		require.NoError(t, err)
		again, err := New(context.Background(), g, Options{Devices: devices, Options: planner.Options{Machine: planner.Unit()}})
		require.NoError(t, err)
		require.Equal(t, s.At, again.At)
		p, err := planner.New(context.Background(), s.Graph, planner.Options{Machine: planner.Unit()})
		require.NoError(t, err)
		require.LessOrEqual(t, p.Stats.MakespanUS, least+1e-9, "seed %d", seed)
	}
}
