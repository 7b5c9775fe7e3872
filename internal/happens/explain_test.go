// What is needed: random programs are told again without all that no conflict needed, and no pair loses its order but behind one that had none.

package happens

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// telling is one thing that a checker is told.
type telling struct {
	kind     string
	lane     int
	accesses [][]Access
	shape    int
	clock    int // of those until then
	other    int
}

// tell tells a program, but for the waits and the edges that are left out, and returns what was needed and all pairs without an order.
func tell(program []telling, lanes int, shapes []randomShape, leave func(tag int) bool) (needed map[int]bool, told []*Shape, open map[[2]int]bool, before map[[2]int]bool) {
	needed, open, before = map[int]bool{}, map[[2]int]bool{}, map[[2]int]bool{}
	c := New(func(Pair) {}, nil)
	c.Explain(func(tag int32) { needed[int(tag)] = true })
	b := &brute{}
	for range lanes {
		c.Lane()
		b.lanes = append(b.lanes, set{})
	}
	for _, s := range shapes {
		shape, err := NewShape(s.nodes, s.edges)
		if err != nil {
			panic(err)
		}
		told = append(told, shape)
	}
	var clocks []Clock
	var pasts []set
	for tag, op := range program {
		switch op.kind {
		case "unit":
			c.Unit(Lane(op.lane), told[op.shape], op.accesses)
			b.unit(op.lane, shapes[op.shape].nodes, shapes[op.shape].edges, told[op.shape].order, op.accesses)
		case "step":
			c.Step(Lane(op.lane), op.accesses[0])
			b.unit(op.lane, 1, nil, []int32{0}, op.accesses)
		case "now":
			clocks, pasts = append(clocks, c.Now(Lane(op.lane))), append(pasts, copied(b.lanes[op.lane]))
		case "common":
			both := set{}
			for v := range pasts[op.clock] {
				if pasts[op.other][v] {
					both[v] = true
				}
			}
			clocks, pasts = append(clocks, Common(clocks[op.clock], clocks[op.other])), append(pasts, both)
		case "after":
			if leave(tag) {
				continue
			}
			c.Tag(int32(tag))
			c.After(Lane(op.lane), clocks[op.clock])
			for v := range pasts[op.clock] {
				b.lanes[op.lane][v] = true
			}
		}
	}
	// The order in which the nodes of a unit are told may change with its edges, so vertices are named by step and node.
	name := func(i int) int { return int(b.vertices[i].step*100 + b.vertices[i].node) }
	for d := range b.vertices {
		for a := range d {
			if b.vertices[d].before[a] {
				before[[2]int{name(a), name(d)}] = true
				continue
			}
			for byte := range bytesOfMemory {
				if conflictOf(b.vertices[a].modes[byte], b.vertices[d].modes[byte]) >= Possible {
					open[[2]int{name(a), name(d)}], open[[2]int{name(d), name(a)}] = true, true
				}
			}
		}
	}
	return needed, told, open, before
}

func TestWhatNoConflictNeedsCanBeLeftOut(t *testing.T) {
	left, kept, cut, clean := 0, 0, 0, 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 3))
		lanes := 2 + r.IntN(4)
		shapes := []randomShape{newRandomShape(r), newRandomShape(r)}
		var program []telling
		clocks := 0
		for range 10 + r.IntN(30) {
			op := telling{lane: r.IntN(lanes), shape: r.IntN(2)}
			switch r.IntN(8) {
			case 0, 1:
				op.kind, op.accesses = "step", [][]Access{randomAccesses(r)}
			case 2:
				op.kind = "unit"
				for range shapes[op.shape].nodes {
					op.accesses = append(op.accesses, randomAccesses(r))
				}
			case 3, 4:
				op.kind = "now"
				clocks++
			default:
				if clocks == 0 {
					continue
				}
				op.clock, op.other = clocks-1-r.IntN(min(3, clocks)), r.IntN(clocks)
				op.kind = "after"
				if r.IntN(6) == 0 {
					op.kind = "common"
					clocks++
				}
			}
			program = append(program, op)
		}
		needed, told, open, _ := tell(program, lanes, shapes, func(int) bool { return false })
		fewer := make([]randomShape, len(shapes))
		for i, s := range shapes {
			needless := told[i].Needless()
			fewer[i].nodes = s.nodes
			for e, edge := range s.edges {
				if len(needless) > 0 && needless[0] == e {
					needless = needless[1:]
					cut++
					continue
				}
				fewer[i].edges = append(fewer[i].edges, edge)
			}
		}
		_, _, without, before := tell(program, lanes, fewer, func(tag int) bool {
			if needed[tag] {
				kept++
			} else {
				left++
			}
			return !needed[tag]
		})
		for pair := range without {
			hidden := open[pair]
			for other := range open {
				hidden = hidden || (other[0] == pair[0] || before[[2]int{pair[0], other[0]}]) && (other[1] == pair[1] || before[[2]int{other[1], pair[1]}])
				hidden = hidden || (other[0] == pair[1] || before[[2]int{pair[1], other[0]}]) && (other[1] == pair[0] || before[[2]int{other[1], pair[0]}])
			}
			require.True(t, hidden, "seed %d: %v", seed, pair)
		}
		if len(open) == 0 {
			clean++
		}
	}
	require.Greater(t, clean, 20)
	require.Greater(t, kept, 1000)
	require.Greater(t, left, 1000)
	require.Greater(t, cut, 1000)
}

// Whoever waits for what two clocks have in common needs all that both needed.
func TestBothClocksAreNeeded(t *testing.T) {
	needed := map[int32]bool{}
	c := New(func(p Pair) { t.Error(p) }, nil)
	c.Explain(func(tag int32) { needed[tag] = true })
	writer, one, other, reader := c.Lane(), c.Lane(), c.Lane(), c.Lane()
	c.Step(writer, []Access{{Low: 0, High: 8, Mode: Write}})
	for tag, lane := range []Lane{one, other} {
		c.Tag(int32(tag))
		require.True(t, c.After(lane, c.Now(writer)))
		require.False(t, c.After(lane, c.Now(writer)))
	}
	c.Tag(2)
	c.After(reader, Common(c.Now(one), Common(c.Now(other), c.Now(one))))
	c.Tag(-1)
	c.Step(reader, []Access{{Low: 0, High: 8, Mode: Read}})
	require.Equal(t, map[int32]bool{0: true, 1: true, 2: true}, needed)
	c.Tag(3)
	c.After(one, c.Now(reader))
	require.NotContains(t, needed, int32(3))
	c.NeedAll(one)
	require.Contains(t, needed, int32(3))
}

// What has no tag is not told, from the beginning on.
func TestWhatHasNoTagIsNotTold(t *testing.T) {
	c := New(func(p Pair) { t.Error(p) }, nil)
	c.Explain(func(tag int32) { t.Error(tag) })
	writer, reader := c.Lane(), c.Lane()
	c.Step(writer, []Access{{Low: 0, High: 8, Mode: Write}})
	c.After(reader, c.Now(writer))
	c.Step(reader, []Access{{Low: 0, High: 8, Mode: Read}})
}

// Of an edge and a way around it, the edge is enough.
func TestADirectEdgeIsEnough(t *testing.T) {
	shape, err := NewShape(3, [][2]int32{{0, 2}, {1, 2}, {0, 1}})
	require.NoError(t, err)
	c := New(func(p Pair) { t.Error(p) }, nil)
	c.Explain(func(tag int32) { t.Error(tag) })
	c.Unit(c.Lane(), shape, [][]Access{{{0, 8, Write}}, nil, {{0, 8, Read}}})
	require.Equal(t, []int{1, 2}, shape.Needless())
}

// Of two ways, the one that something else needs already is enough.
func TestWaysThatAreNeededAlreadyAreEnough(t *testing.T) {
	c := New(func(p Pair) { t.Error(p) }, nil)
	c.Explain(func(tag int32) { t.Error(tag) })
	shape, err := NewShape(4, [][2]int32{{0, 1}, {0, 2}, {1, 3}, {2, 3}})
	require.NoError(t, err)
	c.Unit(c.Lane(), shape, [][]Access{nil, nil, {{40, 48, Write}}, {{40, 48, Read}}})
	c.Unit(c.Lane(), shape, [][]Access{{{48, 56, Write}}, nil, nil, {{48, 56, Read}}})
	require.Equal(t, []int{0, 2}, shape.Needless())
}
