// Tests of loops and branches: random nests of them give the bits of the unrolled pipeline, on any number of streams and with any timing
// of the device's queues. With DAGRUN_LONG set, 10,000 nests are tried.

package runtime_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

const (
	nestBuffers   = 4 // with contents
	nestTemporary = 3 // without, each written before it is read
	nestElements  = 24
	nestParts     = 3
	nestPart      = nestElements / nestParts
)

// place is a part of a buffer. Temporaries have one part.
type place struct{ buffer, part int }

// statement is a kernel or copy, a loop, or a branch.
type statement struct {
	op   string // scale, axpy, copy, memset, memcpy, repeat, until, while or if
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
	left int
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

func (r *nest) one(depth int) []statement {
	s := statement{x: r.place(), y: r.place(), k: int32(r.IntN(9)), times: int64(r.IntN(4)), every: int64(1 + r.IntN(3)),
		tested: r.IntN(nestElements), buffer: r.IntN(nestBuffers), least: r.IntN(2) == 0}
	for s.x == s.y {
		s.y = r.place()
	}
	kind := r.IntN(10)
	if depth == 3 {
		kind = r.IntN(6)
	}
	switch kind {
	case 0:
		s.op = "scale"
	case 1:
		s.op = "axpy"
	case 2:
		s.op = "copy"
	case 3:
		s.op = "memset"
	case 4:
		s.op = "memcpy"
	case 5: // through a temporary, with something in between
		t := place{nestBuffers + r.IntN(nestTemporary), 0}
		list := []statement{{op: "memcpy", x: s.x, y: t}}
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
	if kind > 5 {
		s.k = int32(r.IntN(400) - 100)
	}
	return []statement{s}
}

func (s *statement) condition() string {
	operator := "<"
	if s.least {
		operator = ">="
	}
	return fmt.Sprintf("d%d(%d..%d) %s %d", s.buffer, s.tested, s.tested+1, operator, s.k)
}

// state is the contents of all buffers while the statements are followed in plain Go.
type state struct {
	memory [nestBuffers + nestTemporary][]int32
	flat   []statement // what ran, in order
}

func newState() *state {
	s := &state{}
	for b := range s.memory {
		s.memory[b] = make([]int32, nestElements)
		for i := range s.memory[b] {
			s.memory[b][i] = int32(i + 7*b + 1)
		}
	}
	return s
}

func (s *state) at(p place) []int32 {
	if p.buffer >= nestBuffers {
		return s.memory[p.buffer][:nestPart]
	}
	return s.memory[p.buffer][p.part*nestPart : (p.part+1)*nestPart]
}

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
	x, y := s.at(c.x), s.at(c.y)
	for i := range x {
		switch c.op {
		case "scale":
			x[i] *= 3
		case "axpy":
			y[i] = 2*x[i] + y[i]
		case "copy", "memcpy":
			y[i] = x[i]
		case "memset":
			x[i] = c.k
		}
	}
}

// declare makes a pipeline of statements: uploads of all buffers with contents, the statements, and downloads.
func declare(t require.TestingT, list []statement) *dag.Graph {
	b := dag.New("nest")
	b.Use(kernels.Library())
	out := b.Host("out", dag.I32, nestBuffers*nestElements)
	b.Save(out, "out.npy")
	var device []dag.BufferID
	for k := range nestBuffers + nestTemporary {
		if k >= nestBuffers {
			device = append(device, b.Device(fmt.Sprintf("t%d", k), dag.I32, nestPart))
			continue
		}
		in := b.Host(fmt.Sprintf("in%d", k), dag.I32, nestElements)
		b.Init(in, dag.Init{Kind: dag.InitRamp, A: float64(7*k + 1), B: 1})
		device = append(device, b.Device(fmt.Sprintf("d%d", k), dag.I32, nestElements))
		b.Copy(fmt.Sprintf("up%d", k), b.Whole(device[k]), b.Whole(in))
	}
	at := func(p place) dag.Range {
		if p.buffer >= nestBuffers {
			return b.Whole(device[p.buffer])
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
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

func TestNestsOfLoopsAndBranchesEqualTheUnrolledPipeline(t *testing.T) {
	nests, unrolled := 300, 20 // one in so many is unrolled; all are followed in Go
	switch {
	case os.Getenv("DAGRUN_LONG") != "":
		nests, unrolled = 10_000, 1
	case testing.Short():
		nests = 60
	}
	strategies := []string{"list", "roundrobin", "serial", "heft", "auto"}
	for seed := range uint64(nests) {
		r := &nest{rand.New(rand.NewPCG(seed, 8)), 12}
		list := r.list(0)
		s := newState()
		s.follow(list)
		want := make([]byte, 0, 4*nestBuffers*nestElements)
		for b := range nestBuffers {
			for _, v := range s.memory[b] {
				want = binary.LittleEndian.AppendUint32(want, uint32(v))
			}
		}
		plan := planner.Options{Strategy: strategies[r.IntN(len(strategies))], Streams: 1 + r.IntN(6)}
		device := host.Options{CheckOrder: true, Perturb: 1 + r.Uint64N(1<<40)}
		options := runtime.Options{Mode: runtime.Mode(r.IntN(4)), Memory: runtime.MemoryMode(r.IntN(2)), Inflight: 1 + r.IntN(2)}
		g := declare(t, list)
		if len(g.Carried()) > 0 { // a temporary of several branches: what the last one that ran left there
			options.Inflight = 1
		}
		got := outcome(t, g, plan, device, options, 1+r.IntN(3))
		require.Equal(t, want, got, "seed %d", seed)
		if seed%uint64(unrolled) == 0 {
			flat := outcome(t, declare(t, s.flat), planner.Options{}, host.Options{}, runtime.Options{}, 1)
			require.Equal(t, flat, got, "seed %d, unrolled", seed)
		}
	}
}

// countdown halves a number until it is small: until says the test, and the loop takes 10 passes from 1000 to below 1.
func countdown(t *testing.T, loop dag.Loop) *dag.Graph {
	t.Helper()
	b := dag.New("countdown")
	b.Use(kernels.Library())
	x := b.Device("x", dag.F64, 1)
	b.Init(x, dag.Init{Kind: dag.InitValue, Value: expr.Int(1000)})
	b.Repeat("halve", loop, func() { b.Kernel("half", "scale", dag.Args{1, 0.5, b.Whole(x)}) })
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

// The nodes of a body are encoded once, so memory that they use cannot be replaced.
func TestStorageOfLoopsIsNotMoved(t *testing.T) {
	g := countdown(t, dag.Loop{Times: 3})
	plan, err := planner.New(t.Context(), g, planner.Options{KeepAll: true})
	require.NoError(t, err)
	program, err := runtime.New(t.Context(), g, plan, cpu(t), runtime.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, program.Close()) }()
	err = program.SetStorage("x", 4096, 8)
	require.ErrorIs(t, err, runtime.ErrUpdate)
	require.EqualError(t, err, `update refused: buffer "x" is used in "halve", whose nodes keep the memory they were made for`)
}

func loopsOf(t *testing.T, g *dag.Graph) ([]runtime.Loop, *runtime.Results) {
	t.Helper()
	ctx := context.Background()
	plan, err := planner.New(ctx, g, planner.Options{})
	require.NoError(t, err)
	program, err := runtime.New(ctx, g, plan, cpu(t), runtime.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, program.Close()) }()
	require.NoError(t, program.Run(ctx, 1))
	results, err := program.Finish(ctx)
	require.NoError(t, err)
	loops, err := program.Loops(ctx)
	require.NoError(t, err)
	return loops, results
}

func TestPassesAreCounted(t *testing.T) {
	ten, nine := int64(10), int64(9)
	for _, c := range []struct {
		loop dag.Loop
		text string
		ok   bool
	}{
		{dag.Loop{Times: 3}, "3 passes", true},
		{dag.Loop{Times: 0}, "0 passes", true},
		{dag.Loop{Until: "x < 1", Most: 50}, "10 passes of at most 50", true},
		{dag.Loop{Until: "x < 1", Most: 10}, "10 passes of at most 10", true},
		{dag.Loop{Until: "x < 1", Most: 9}, "stopped after 9 passes, before its condition (until x < 1) was met", false},
		{dag.Loop{Until: "x < 1", Most: 9, OrStop: true}, "stopped after 9 passes", true},
		{dag.Loop{Until: "x < 1", Most: 50, Every: 4}, "12 passes of at most 50", true},
		{dag.Loop{Until: "x < 1", Most: 11, Every: 4}, "11 passes of at most 11", true},
		{dag.Loop{While: "x >= 1", Most: 50}, "10 passes of at most 50", true},
		{dag.Loop{While: "x >= 1", Most: 10}, "10 passes of at most 10", true},
		{dag.Loop{While: "x >= 1", Most: 9}, "stopped after 9 passes, before its condition (while x >= 1) was met", false},
		{dag.Loop{While: "x < 1", Most: 9}, "0 passes of at most 9", true},
		{dag.Loop{Until: "x < 1", Most: 50, Expect: &ten}, "10 passes of at most 50", true},
		{dag.Loop{Until: "x < 1", Most: 50, Expect: &nine}, "10 passes of at most 50; expected 9", false},
	} {
		loops, results := loopsOf(t, countdown(t, c.loop))
		require.Len(t, loops, 1)
		require.Equal(t, c.text, loops[0].Text())
		require.Equal(t, c.ok, loops[0].OK, c.text)
		require.Equal(t, c.ok, len(results.FailedLoops()) == 0, c.text)
	}
}

func TestALoopEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	g := countdown(t, dag.Loop{Times: dag.MaxPasses})
	plan, err := planner.New(ctx, g, planner.Options{})
	require.NoError(t, err)
	program, err := runtime.New(ctx, g, plan, cpu(t), runtime.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, program.Close()) }()
	over := errors.New("over")
	go cancel(over)
	require.ErrorIs(t, program.Run(ctx, 1), over)
}
