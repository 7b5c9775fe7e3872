// The checker against brute force: sets of steps instead of clocks, all pairs of accesses instead of a memory. With DAGRUN_LONG set, 100,000
// random programs are compared.

package happens

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

const bytesOfMemory = 24

// vertex is a node of a step, as brute force sees it.
type vertex struct {
	step, node int32
	lane       int
	modes      [bytesOfMemory]Mode
	before     map[int]bool
}

type set = map[int]bool

// brute is told the same as a Checker.
type brute struct {
	lanes    []set
	vertices []vertex
	steps    int32
	fresh    [bytesOfMemory]int // vertices told when the byte was last made fresh
	unwrit   [bytesOfMemory]bool
	reads    []string
}

func copied(of set) set {
	out := set{}
	for v := range of {
		out[v] = true
	}
	return out
}

func (b *brute) unit(on int, nodes int, edges [][2]int32, order []int32, accesses [][]Access) {
	reach := make([]set, nodes) // what comes before each node
	for i := range reach {
		reach[i] = set{}
	}
	for range nodes {
		for _, edge := range edges {
			reach[edge[1]][int(edge[0])] = true
			for before := range reach[edge[0]] {
				reach[edge[1]][before] = true
			}
		}
	}
	index := map[int]int{}
	past := copied(b.lanes[on])
	for _, node := range order {
		v := vertex{step: b.steps, node: node, lane: on, before: copied(past)}
		for before := range reach[node] {
			v.before[index[before]] = true
		}
		for _, access := range accesses[node] {
			for at := access.Low; at < access.High; at++ {
				v.modes[at] |= access.Mode
			}
		}
		for at, mode := range v.modes {
			if b.unwrit[at] && mode != 0 {
				if mode.writes() {
					b.unwrit[at] = false
				} else if mode&Read != 0 {
					b.reads = append(b.reads, fmt.Sprint(v.step, v.node, at))
				}
			}
		}
		index[int(node)] = len(b.vertices)
		b.lanes[on][len(b.vertices)] = true
		b.vertices = append(b.vertices, v)
	}
	b.steps++
}

func (b *brute) makeFresh(low, high uint64) {
	for at := low; at < high; at++ {
		b.fresh[at], b.unwrit[at] = len(b.vertices), true
	}
}

// at is a conflict on one byte.
func at(a, d int32, an, dn int32, byte uint64, am, dm Mode, conflict Conflict) string {
	return fmt.Sprintf("%d.%d %d.%d byte %d: %06b %06b %d", a, an, d, dn, byte, am, dm, conflict)
}

// pairs lists the conflicts of the vertices told since fresh, for each byte; freshAt says for each vertex and byte what fresh was then.
func (b *brute) pairs(freshAt [][bytesOfMemory]int) []string {
	var out []string
	for d := range b.vertices {
		for byte := range bytesOfMemory {
			dm := b.vertices[d].modes[byte]
			for a := freshAt[d][byte]; a < d; a++ {
				am := b.vertices[a].modes[byte]
				if am == 0 || dm == 0 || b.vertices[d].before[a] {
					continue
				}
				conflict := conflictOf(am, dm)
				hidden := false
				for c := a + 1; c < d; c++ {
					cm := b.vertices[c].modes[byte]
					third := &b.vertices[c]
					nearer := third.before[a] && (cm.covers(am) || third.lane == b.vertices[a].lane && !b.vertices[d].before[c] && conflictOf(cm, dm) >= conflict && b.remembered(c, d, byte))
					cause := b.vertices[d].before[c] && conflictOf(am, cm) >= conflict && b.remembered(c, d, byte)
					hidden = hidden || cm != 0 && (nearer || cause)
				}
				if conflict != NoConflict && !hidden {
					out = append(out, at(b.vertices[a].step, b.vertices[d].step, b.vertices[a].node, b.vertices[d].node, uint64(byte), am, dm, conflict))
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// remembered says whether no vertex between two comes after the first and makes all its conflicts on a byte.
func (b *brute) remembered(c, d, byte int) bool {
	for later := c + 1; later < d; later++ {
		mode := b.vertices[later].modes[byte]
		if mode != 0 && b.vertices[later].before[c] && mode.covers(b.vertices[c].modes[byte]) {
			return false
		}
	}
	return true
}

func randomAccesses(r *rand.Rand) []Access {
	modes := []Mode{Read, Read, Read, Write, Write, Read | Write, Atomic, Read | Atomic, PossibleRead, PossibleWrite | PossibleRead, Read | PossibleWrite, PossibleAtomic}
	var out []Access
	for range r.IntN(4) {
		low := r.Uint64N(bytesOfMemory)
		out = append(out, Access{Low: low, High: low + r.Uint64N(bytesOfMemory-low+1), Mode: modes[r.IntN(len(modes))]})
	}
	return out
}

type randomShape struct {
	shape *Shape
	nodes int
	edges [][2]int32
}

func newRandomShape(r *rand.Rand) randomShape {
	nodes := 1 + r.IntN(6)
	names := r.Perm(nodes)
	var edges [][2]int32
	for to := range nodes {
		for from := range to {
			if r.IntN(3) == 0 {
				edges = append(edges, [2]int32{int32(names[from]), int32(names[to])})
			}
		}
	}
	shape, err := NewShape(nodes, edges)
	if err != nil {
		panic(err)
	}
	return randomShape{shape, nodes, edges}
}

// compareProgram makes a random program and returns its conflicts, by the checker and by brute force.
func compareProgram(seed uint64) (got, want, gotReads, wantReads []string) {
	r := rand.New(rand.NewPCG(seed, 1))
	b := &brute{}
	last := Pair{Second: -1}
	ordered := true
	lastRead := [3]uint64{1 << 63}
	c := New(func(p Pair) {
		if last.Second == p.Second && last.SecondNode == p.SecondNode {
			ordered = ordered && (p.First < last.First || p.First == last.First && p.FirstNode <= last.FirstNode)
		}
		last = p
		for byte := p.Low; byte < p.High; byte++ {
			got = append(got, at(p.First, p.Second, p.FirstNode, p.SecondNode, byte, p.FirstMode, p.SecondMode, p.Conflict))
		}
	}, func(step, node int32, low, high uint64) {
		if lastRead == [3]uint64{uint64(step), uint64(node), low} {
			panic("one read is told as two")
		}
		lastRead = [3]uint64{uint64(step), uint64(node), high}
		for byte := low; byte < high; byte++ {
			gotReads = append(gotReads, fmt.Sprint(step, node, byte))
		}
	})
	c.memory.full = 2 + int(seed%3)*40 // small pages, so that they fill up
	var freshAt [][bytesOfMemory]int
	var clocks []Clock
	var pasts []set
	lanes := 1 + r.IntN(5)
	for range lanes {
		if c.Lane() != Lane(len(b.lanes)) {
			panic("lanes are not numbered from 0")
		}
		b.lanes = append(b.lanes, set{})
	}
	shapes := []randomShape{newRandomShape(r), newRandomShape(r)}
	for range 5 + r.IntN(30) {
		lane := r.IntN(lanes)
		switch r.IntN(12) {
		case 0, 1, 2, 3:
			accesses := randomAccesses(r)
			if c.Step(Lane(lane), accesses) != b.steps {
				panic("steps are not numbered from 0")
			}
			b.unit(lane, 1, nil, []int32{0}, [][]Access{accesses})
		case 4:
			shape := shapes[r.IntN(len(shapes))]
			accesses := make([][]Access, shape.nodes)
			for i := range accesses {
				accesses[i] = randomAccesses(r)
			}
			if c.Unit(Lane(lane), shape.shape, accesses) != b.steps {
				panic("units are not numbered as steps")
			}
			b.unit(lane, shape.nodes, shape.edges, shape.shape.order, accesses)
		case 5, 6:
			clocks, pasts = append(clocks, c.Now(Lane(lane))), append(pasts, copied(b.lanes[lane]))
		case 7, 8, 9:
			if len(clocks) > 0 {
				i := len(clocks) - 1 - r.IntN(min(3, len(clocks)))
				for v := range pasts[i] {
					b.lanes[lane][v] = true
				}
				c.After(Lane(lane), clocks[i])
				if !c.Includes(Lane(lane), clocks[i]) {
					panic("a lane does not include what it was joined with")
				}
			}
		case 10:
			if len(clocks) > 1 {
				i, j := r.IntN(len(clocks)), r.IntN(len(clocks))
				both := set{}
				for v := range pasts[i] {
					if pasts[j][v] {
						both[v] = true
					}
				}
				common := Common(clocks[i], clocks[j])
				clocks, pasts = append(clocks, common), append(pasts, both)
				if !clocks[i].Includes(common) || !clocks[j].Includes(common) || !clocks[i].Includes(clocks[i]) {
					panic("a clock does not include what it has in common with another")
				}
				if len(both) < len(pasts[j]) && clocks[i].Includes(clocks[j]) {
					panic("a clock includes what it does not hold")
				}
			}
		case 11:
			low := r.Uint64N(bytesOfMemory)
			high := low + r.Uint64N(bytesOfMemory-low+1)
			if r.IntN(2) == 0 {
				c.Unwritten(low, high)
				for at := low; at < high; at++ {
					b.unwrit[at] = true
				}
				break
			}
			c.Fresh(low, high)
			b.makeFresh(low, high)
		}
		for len(freshAt) < len(b.vertices) {
			freshAt = append(freshAt, b.fresh)
		}
	}
	if !ordered {
		panic("the pairs of a step do not begin with the latest first step")
	}
	slices.Sort(got)
	slices.Sort(gotReads)
	slices.Sort(b.reads)
	return got, b.pairs(freshAt), gotReads, b.reads
}

func TestRandomProgramsAgreeWithBruteForce(t *testing.T) {
	programs := 3000
	switch {
	case os.Getenv("DAGRUN_LONG") != "":
		programs = 100_000
	case testing.Short():
		programs = 300
	}
	found := map[string]int{}
	for seed := range programs {
		got, want, gotReads, wantReads := compareProgram(uint64(seed))
		require.Equal(t, want, got, "seed %d", seed)
		require.Equal(t, wantReads, gotReads, "seed %d", seed)
		if len(got) == 0 {
			found["none"]++
		}
		for _, line := range got {
			found["conflict "+line[len(line)-1:]]++
		}
	}
	for _, kind := range []string{"none", "conflict 1", "conflict 2", "conflict 3"} {
		require.Greater(t, found[kind], programs/100, "programs with %s", kind)
	}
}
