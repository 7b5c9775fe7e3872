// Random nests of loops and branches, for tests of the runtime and of GPUs.

// Package nests makes random nests of loops and branches: as a pipeline, as the pipeline without loops that does the same, and what comes
// out, followed in plain Go.
package nests

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
)

// Nest is a list of statements, each of which may be a loop or branch over further ones.
type Nest struct {
	statements []statement
	flat       []statement // what runs, in order
	out        []byte

	temporaries int
}

// New makes a random nest.
func New(random *rand.Rand) *Nest {
	r := &nest{Rand: random, left: 12, temporaries: nestTemporary}
	n := &Nest{statements: r.list(0)}
	n.temporaries = r.temporaries
	s := newState(n.temporaries)
	s.follow(n.statements)
	n.flat = s.flat
	for b := range nestBuffers {
		for _, v := range s.memory[b] {
			n.out = binary.LittleEndian.AppendUint32(n.out, uint32(v))
		}
	}
	return n
}

// Out is what the buffer out holds after a replay.
func (n *Nest) Out() []byte { return n.out }

// Graph is the nest as a pipeline.
func (n *Nest) Graph() (*dag.Graph, error) { return declare(n.statements, n.temporaries) }

// Unrolled is a pipeline without loops and branches that does the same.
func (n *Nest) Unrolled() (*dag.Graph, error) { return declare(n.flat, n.temporaries) }

const (
	nestBuffers   = 4 // with contents
	nestTemporary = 3 // without, each written before it is read; further ones belong to one statement each
	nestElements  = 24
	nestParts     = 3
	nestPart      = nestElements / nestParts

	// Buffers with contents are matrices. A tile of them has as many elements as a part.
	nestRows    = 6
	nestColumns = nestElements / nestRows
	tileRows    = 4
	tileColumns = nestPart / tileRows
)

// nestTiles are the first rows and columns of the tiles, some of which share elements.
var nestTiles = [4][2]int{{0, 0}, {2, 2}, {1, 1}, {2, 0}}

// place is a part of a buffer, or after those a tile. Temporaries have one part.
type place struct{ buffer, part int }

// element is where element i of a place is in the buffer.
func (p place) element(i int) int {
	if p.part < nestParts {
		return p.part*nestPart + i
	}
	tile := nestTiles[p.part-nestParts]
	return (tile[0]+i/tileColumns)*nestColumns + tile[1] + i%tileColumns
}

func (p place) meets(other place) bool {
	for i := range nestPart {
		for k := range nestPart {
			if p.buffer == other.buffer && p.element(i) == other.element(k) {
				return true
			}
		}
	}
	return false
}

// statement is a kernel or copy, a loop, or a branch.
type statement struct {
	op   string // scale, axpy, copy, transpose, memset, memcpy, repeat, until, while or if
	x, y place
	k    int32

	times, every int64
	tested       int // an element of a buffer with contents
	buffer       int
	least        bool // the condition is element >= k, otherwise element < k
	then, or     []statement
	hasOr        bool
}

// nest makes random statements.
type nest struct {
	*rand.Rand
	left        int
	temporaries int
}

func (r *nest) list(depth int) []statement {
	var list []statement
	for range 1 + r.IntN(4) {
		if r.left--; r.left < 0 && len(list) > 0 {
			break
		}
		list = append(list, r.one(depth)...)
	}
	return list
}

func (r *nest) place() place { return place{r.IntN(nestBuffers), r.IntN(nestParts)} }

// anywhere is a part or a tile.
func (r *nest) anywhere() place {
	return place{r.IntN(nestBuffers), r.IntN(nestParts + len(nestTiles))}
}

func (r *nest) one(depth int) []statement {
	s := statement{x: r.place(), y: r.place(), k: int32(r.IntN(9)), times: int64(r.IntN(4)), every: int64(1 + r.IntN(3)),
		tested: r.IntN(nestElements), buffer: r.IntN(nestBuffers), least: r.IntN(2) == 0}
	for s.x == s.y {
		s.y = r.place()
	}
	from, to := r.anywhere(), r.anywhere()
	for from.meets(to) {
		to = r.anywhere()
	}
	kind := r.IntN(11)
	if depth == 3 {
		kind = r.IntN(7) - 1
	}
	switch kind {
	case -1, 10: // a tile becomes a part whose rows are its columns
		s.op, s.x = "transpose", place{r.IntN(nestBuffers), nestParts + r.IntN(len(nestTiles))}
		for s.x.meets(s.y) {
			s.y = r.place()
		}
	case 0:
		s.op = "scale"
	case 1:
		s.op = "axpy"
	case 2:
		s.op = "copy"
	case 3:
		s.op, s.x = "memset", to
	case 4:
		s.op, s.x, s.y = "memcpy", from, to
	case 5: // through a temporary, with something in between
		t := place{nestBuffers + r.IntN(2*nestTemporary), 0}
		if t.buffer >= nestBuffers+nestTemporary {
			t.buffer = nestBuffers + r.temporaries
			r.temporaries++
		}
		list := []statement{{op: "memcpy", x: from, y: t}}
		if depth < 3 && r.IntN(2) == 0 {
			list = append(list, r.one(depth+1)...)
		}
		return append(list, statement{op: "axpy", x: t, y: s.y, k: s.k})
	case 6:
		s.op, s.then = "repeat", r.list(depth+1)
	case 7:
		s.op, s.then, s.times = "until", r.list(depth+1), s.times+1
	case 8:
		s.op, s.then, s.times = "while", r.list(depth+1), s.times+1
	case 9:
		s.op, s.then, s.hasOr = "if", r.list(depth+1), r.IntN(2) == 0
		if s.hasOr {
			s.or = r.list(depth + 1)
		}
	}
	if kind > 5 && kind < 10 {
		s.k = int32(r.IntN(400) - 100)
	}
	return []statement{s}
}

func (s *statement) condition() string {
	operator := "<"
	if s.least {
		operator = ">="
	}
	row, column := s.tested/nestColumns, s.tested%nestColumns
	return fmt.Sprintf("d%d(%d..%d)(%d..%d) %s %d", s.buffer, row, row+1, column, column+1, operator, s.k)
}

// state is the contents of all buffers while the statements are followed in plain Go.
type state struct {
	memory [][]int32
	flat   []statement // what ran, in order
}

func newState(temporaries int) *state {
	s := &state{memory: make([][]int32, nestBuffers+temporaries)}
	for b := range s.memory {
		s.memory[b] = make([]int32, nestElements)
		for i := range s.memory[b] {
			s.memory[b][i] = int32(i + 7*b + 1)
		}
	}
	return s
}

// at is an element of a place.
func (s *state) at(p place, i int) *int32 { return &s.memory[p.buffer][p.element(i)] }

func (s *state) holds(c *statement) bool {
	return s.memory[c.buffer][c.tested] < c.k != c.least
}

func (s *state) follow(list []statement) {
	for k := range list {
		c := &list[k]
		switch c.op {
		case "repeat":
			for range c.times {
				s.follow(c.then)
			}
		case "until":
			for pass := int64(1); ; pass++ {
				s.follow(c.then)
				if (pass%c.every == 0 || pass == c.times) && s.holds(c) || pass == c.times {
					break
				}
			}
		case "while":
			for pass := int64(0); pass < c.times; pass++ {
				if pass%c.every == 0 && !s.holds(c) {
					break
				}
				s.follow(c.then)
			}
		case "if":
			if s.holds(c) {
				s.follow(c.then)
			} else {
				s.follow(c.or)
			}
		default:
			s.leaf(c)
		}
	}
}

func (s *state) leaf(c *statement) {
	s.flat = append(s.flat, *c)
	for i := range nestPart {
		x, y := s.at(c.x, i), s.at(c.y, i)
		switch c.op {
		case "scale":
			*x *= 3
		case "axpy":
			*y = 2**x + *y
		case "transpose":
			*s.at(c.y, i%tileColumns*tileRows+i/tileColumns) = *x
		case "copy", "memcpy":
			*y = *x
		case "memset":
			*x = c.k
		}
	}
}

// declare makes a pipeline of statements: uploads of all buffers with contents, the statements, and downloads.
func declare(list []statement, temporaries int) (*dag.Graph, error) {
	b := dag.New("nest")
	b.Use(kernels.Library())
	out := b.Host("out", dag.I32, nestBuffers*nestElements)
	b.Save(out, "out.npy")
	var device []dag.BufferID
	for k := range nestBuffers + temporaries {
		if k >= nestBuffers {
			device = append(device, b.Device(fmt.Sprintf("t%d", k), dag.I32, nestPart))
			continue
		}
		in := b.Host(fmt.Sprintf("in%d", k), dag.I32, nestElements)
		b.Init(in, dag.Init{Kind: dag.InitRamp, A: float64(7*k + 1), B: 1})
		device = append(device, b.Device(fmt.Sprintf("d%d", k), dag.I32, nestRows, nestColumns))
		b.Copy(fmt.Sprintf("up%d", k), b.Whole(device[k]), b.Whole(in))
	}
	at := func(p place) dag.Range {
		if p.buffer >= nestBuffers {
			return b.Whole(device[p.buffer])
		}
		if p.part >= nestParts {
			top, left := int64(nestTiles[p.part-nestParts][0]), int64(nestTiles[p.part-nestParts][1])
			return b.Tile(device[p.buffer], top, top+tileRows, left, left+tileColumns)
		}
		return b.Part(device[p.buffer], int64(p.part), nestParts)
	}
	count := 0
	var add func([]statement)
	add = func(list []statement) {
		for k := range list {
			c := &list[k]
			count++
			name := fmt.Sprintf("%s%d", c.op, count)
			body := func(list []statement) func() { return func() { add(list) } }
			switch c.op {
			case "scale":
				b.Kernel(name, "scale", dag.Args{nestPart, 3, at(c.x)})
			case "axpy":
				b.Kernel(name, "axpy", dag.Args{nestPart, 2, at(c.x), at(c.y)})
			case "copy":
				b.Kernel(name, "copy", dag.Args{nestPart, at(c.x), at(c.y)})
			case "transpose":
				b.Kernel(name, "transpose", dag.Args{tileRows, tileColumns, at(c.x), at(c.y)})
			case "memset":
				b.Memset(name, at(c.x), int(c.k))
			case "memcpy":
				b.Copy(name, at(c.y), at(c.x))
			case "repeat":
				b.Repeat(name, dag.Loop{Times: c.times}, body(c.then))
			case "until":
				b.Repeat(name, dag.Loop{Until: c.condition(), Most: c.times, Every: c.every, OrStop: true}, body(c.then))
			case "while":
				b.Repeat(name, dag.Loop{While: c.condition(), Most: c.times, Every: c.every, OrStop: true}, body(c.then))
			case "if":
				if c.hasOr {
					b.If(name, c.condition(), body(c.then), body(c.or))
				} else {
					b.If(name, c.condition(), body(c.then), nil)
				}
			}
		}
	}
	add(list)
	for k := range nestBuffers {
		b.Copy(fmt.Sprintf("down%d", k), b.Part(out, int64(k), nestBuffers), b.Whole(device[k]))
	}
	return b.Graph()
}
