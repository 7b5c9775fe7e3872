// Tests of Pipeline values that a program filled in or changed itself: the exact message of each mistake. None may panic.

package dag_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/dag/internal/fakes"
	"github.com/dagrun/dagrun/dag/outline"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag/expr"
)

// handmade is a valid pipeline for tests to break: x in host memory is copied to d, which is set, scaled and squared.
func handmade(t testing.TB) *dag.Pipeline {
	b := dag.New("p")
	b.Use(fakes.Kernels)
	x, d := b.Host("x", dag.F32, 8), b.Device("d", dag.F32, 8)
	b.Copy("up", b.Whole(d), b.Whole(x))
	b.Memset("set", b.Slice(d, 0, 4), 1)
	b.Kernel("saxpy", "saxpy", dag.Args{4, 2, b.Part(d, 0, 2), b.Part(d, 1, 2)})
	b.Map("square", "d = d * d", nil)
	g, err := b.Graph()
	require.NoError(t, err)
	return copied(g.Pipeline)
}

// copied returns a deep copy of a pipeline, so that a test can change it without changing the original.
func copied(p *dag.Pipeline) *dag.Pipeline {
	c := *p
	c.Buffers = append([]dag.Buffer(nil), p.Buffers...)
	c.Nodes = append([]dag.Node(nil), p.Nodes...)
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if n.Copy != nil {
			n.Copy = &dag.Copy{Dst: n.Copy.Dst, Src: n.Copy.Src}
		}
		if n.Set != nil {
			n.Set = &dag.Set{Dst: n.Set.Dst, Bits: n.Set.Bits}
		}
		if n.Launch != nil {
			launch := *n.Launch
			launch.Args = append([]dag.Arg(nil), n.Launch.Args...)
			n.Launch = &launch
		}
	}
	list, _ := dag.AccessesOf(&c)
	*list = append([]dag.Access(nil), *list...)
	return &c
}

func TestHandmadePipelines(t *testing.T) {
	for _, test := range []struct {
		want  string
		spoil func(p *dag.Pipeline)
	}{
		{"", func(p *dag.Pipeline) {}},
		{`pipeline "p": there are 5 nodes, but the accesses of 4; declare nodes with New and Builder.Node, which takes their accesses`, func(p *dag.Pipeline) { p.Nodes = append(p.Nodes, dag.Node{Name: "new"}) }},
		{`pipeline "p": there are 0 nodes, but the accesses of 4; declare nodes with New and Builder.Node, which takes their accesses`, func(p *dag.Pipeline) { p.Nodes = nil }},
		{`pipeline "": there are 1 nodes, but the accesses of 0; declare nodes with New and Builder.Node, which takes their accesses`, func(p *dag.Pipeline) { *p = dag.Pipeline{Nodes: []dag.Node{{Name: "a"}}} }},
		{`pipeline "p": unknown sync 9; it must be SyncAuto or SyncExplicit`, func(p *dag.Pipeline) { p.Sync = 9 }},
		{"pipeline \"p\\n\": the name has a control character (U+000A)", func(p *dag.Pipeline) { p.Name = "p\n" }},
		{`module "m": there is no library`, func(p *dag.Pipeline) { p.Modules = []dag.Module{{Name: "m"}} }},
		{`buffer "x": the name is taken (ids 0 and 1)`, func(p *dag.Pipeline) { p.Buffers[1].Name = "x" }},
		{`buffer "x": unknown place 7; it must be Host or Device`, func(p *dag.Pipeline) { p.Buffers[0].Place = 7 }},
		{`buffer "x": the element type is missing`, func(p *dag.Pipeline) { p.Buffers[0].DType = 99 }},
		{`buffer "x": it has 32 bytes, but its type and shape make 36`, func(p *dag.Pipeline) { p.Buffers[0].Shape = []int64{9} }},
		{`buffer "x": it has -1 bytes, but its type and shape make 32`, func(p *dag.Pipeline) { p.Buffers[0].Bytes = -1 }},
		{`buffer "x": the size in bytes (4611686018427387904 elements of f32) does not fit in 64 bits`, func(p *dag.Pipeline) { p.Buffers[0].Shape = []int64{1 << 62} }},
		{`buffer "x": dimension 0 of the shape is -8; it must not be negative`, func(p *dag.Pipeline) { p.Buffers[0].Shape = []int64{-8} }},
		{`buffer "x": init: unknown kind 99`, func(p *dag.Pipeline) { p.Buffers[0].Init = &dag.Init{Kind: 99} }},
		{`buffer "x": init: there is no expression`, func(p *dag.Pipeline) { p.Buffers[0].Init = &dag.Init{Kind: dag.InitExpr} }},
		{`buffer "x": init: a term of the expression is nil`, func(p *dag.Pipeline) { p.Buffers[0].Init = &dag.Init{Kind: dag.InitExpr, Expr: &expr.Expr{}} }},
		{`buffer "x": init: the file has no name`, func(p *dag.Pipeline) { p.Buffers[0].Init = &dag.Init{Kind: dag.InitFile} }},
		{`buffer "x": expect has 3 numbers, but the buffer has 8 elements`, func(p *dag.Pipeline) {
			p.Buffers[0].Expect = &dag.Expect{Kind: dag.ExpectValue, Values: make([]expr.Value, 3)}
		}},
		{`buffer "x": expect: the file has no name`, func(p *dag.Pipeline) { p.Buffers[0].Expect = &dag.Expect{} }},
		{`buffer "x": expect: unknown norm 4`, func(p *dag.Pipeline) { p.Buffers[0].Expect = &dag.Expect{Kind: dag.ExpectValue, Norm: 4} }},
		{"", func(p *dag.Pipeline) {
			p.Buffers[0].Expect = &dag.Expect{Kind: dag.ExpectValue, Norm: dag.NormMax, RTol: 1, ATol: 1}
		}},
		{`buffer "x": expect: -1 elements may differ; the number must not be negative`, func(p *dag.Pipeline) { p.Buffers[0].Expect = &dag.Expect{Kind: dag.ExpectValue, Differing: -1} }},
		{`buffer "x": expect: only one of sum, norm and differing is possible`, func(p *dag.Pipeline) {
			p.Buffers[0].Expect = &dag.Expect{Kind: dag.ExpectValue, Differing: 1, Norm: dag.NormL1}
		}},
		{`buffer "x": expect: only one of sum, norm and differing is possible`, func(p *dag.Pipeline) { p.Buffers[0].Expect = &dag.Expect{Kind: dag.ExpectSum, Differing: 1} }},
		{`buffer "x": expect: only one of sum, norm and differing is possible`, func(p *dag.Pipeline) { p.Buffers[0].Expect = &dag.Expect{Kind: dag.ExpectSum, Norm: dag.NormL2} }},
		{"", func(p *dag.Pipeline) { p.Buffers[0].Expect = &dag.Expect{Kind: dag.ExpectSum} }},
		{"", func(p *dag.Pipeline) { p.Buffers[0].Expect = &dag.Expect{Kind: dag.ExpectValue, Differing: 1} }},
		{`buffer "x": expect: tolerances of 0 and -1; they must not be negative`, func(p *dag.Pipeline) { p.Buffers[0].Expect = &dag.Expect{Kind: dag.ExpectValue, ATol: -1} }},
		{`buffer "x": a variable of a module is in device memory`, func(p *dag.Pipeline) { p.Buffers[0].Symbol = "m.x" }},
		{`buffer "x": a host buffer has no device`, func(p *dag.Pipeline) { p.Buffers[0].Device = 1 }},
		{`buffer "d": device -1; devices count from 0 to 1023`, func(p *dag.Pipeline) { p.Buffers[1].Device = -1 }},
		{`buffer "d": device 1024; devices count from 0 to 1023`, func(p *dag.Pipeline) { p.Buffers[1].Device = dag.MaxDevices }},
		{"", func(p *dag.Pipeline) { p.Buffers[1].Device, p.Nodes[1].Device = dag.MaxDevices-1, dag.MaxDevices-1 }},
		{`node "set": device 1024; devices count from 0 to 1023`, func(p *dag.Pipeline) { p.Nodes[1].Device = dag.MaxDevices }},
		{`node "up": after: there is no node with id 4`, func(p *dag.Pipeline) { p.Nodes[0].After = []dag.NodeID{4} }},
		{`node "up": after: there is no node with id -1`, func(p *dag.Pipeline) { p.Nodes[0].After = []dag.NodeID{-1} }},
		{`node "up": it is a memcpy, but has a Control`, func(p *dag.Pipeline) { p.Nodes[0].Control = &dag.Control{} }},
		{`node "up": it is a repeat, but has no Control; declare it with Builder.Repeat or Builder.If`, func(p *dag.Pipeline) { p.Nodes[0] = dag.Node{Name: "up", Kind: dag.Repeat} }},
		{`node "up": the repeat has no body; declare it with Builder.Repeat or Builder.If`, func(p *dag.Pipeline) {
			p.Nodes[0] = dag.Node{Name: "up", Kind: dag.Repeat, Control: &dag.Control{Times: 1}}
		}},
		{`node "up": a node has a Function if, and only if, it is a HostFunction`, func(p *dag.Pipeline) { p.Nodes[0].Function = "f" }},
		{`node "up": it is a memcpy, but has a Communication`, func(p *dag.Pipeline) { p.Nodes[0].Communication = &dag.Communication{} }},
		{`node "saxpy": its launch is of module -2, but there are 0`, func(p *dag.Pipeline) { p.Nodes[2].Launch.Module = -2 }},
		{`node "saxpy": its launch is of module 0, but there are 0`, func(p *dag.Pipeline) { p.Nodes[2].Launch.Module = 0 }},
		{`node "saxpy": it is a kernel, but its launch says otherwise`, func(p *dag.Pipeline) { p.Nodes[2].Launch.Map = &dag.MapSpec{} }},
		{`node "saxpy": argument 3 must be in, out, inout, or unused by a kernel of a module`, func(p *dag.Pipeline) { p.Nodes[2].Launch.Args[2].Mode = dag.Untouched }},
		{`node "saxpy": argument 3 points to byte 4 of its slice, where it cannot`, func(p *dag.Pipeline) { p.Nodes[2].Launch.Args[2].Start = 4 }},
		{`node "saxpy": argument 3 points to byte -1 of its slice, where it cannot`, func(p *dag.Pipeline) { p.Nodes[2].Launch.Args[2].Start = -1 }},
		{`node "saxpy": argument 3 points to byte 17 of its slice, where it cannot`, func(p *dag.Pipeline) {
			p.Modules = []dag.Module{{Name: "m", Library: fakes.UserKernels}}
			p.Nodes[2].Launch.Module, p.Nodes[2].Launch.Args[2].Start = 0, 17
		}},
		{"", func(p *dag.Pipeline) {
			p.Modules = []dag.Module{{Name: "m", Library: fakes.UserKernels}}
			p.Nodes[2].Launch.Module, p.Nodes[2].Launch.Args[2].Start = 0, 16
		}},
		{`node "saxpy": argument 3 is a texture that cannot be read so: is a texture of 0 x 0 texels`, func(p *dag.Pipeline) {
			p.Nodes[2].Launch.Args[2].Texture = &dag.Texture{Channels: 1}
		}},
		{`node "saxpy": argument 4 is a texture that cannot be read so: is a texture that starts at byte 16 of "d"; textures start at multiples of 512 bytes`, func(p *dag.Pipeline) {
			p.Nodes[2].Launch.Args[3].Texture = &dag.Texture{Channels: 1, Width: 4}
		}},
		{`node "saxpy": argument 3 is a texture that cannot be read so: `, func(p *dag.Pipeline) {
			p.Nodes[2].Launch.Args[2].Texture, p.Nodes[2].Launch.Args[2].Mode = &dag.Texture{Channels: 1, Width: 4}, dag.ReadWrite
		}},
		{"", func(p *dag.Pipeline) { p.Nodes[2].Launch.Args[2].Texture = &dag.Texture{Channels: 1, Width: 4} }},
		{`node "square": map: a term of the expression is nil`, func(p *dag.Pipeline) {
			p.Nodes[3].Launch.Map = &dag.MapSpec{Inputs: []string{"d"}, Expr: &expr.Expr{}}
		}},
		{`buffer "x": init has 3 numbers, but the buffer has 8 elements`, func(p *dag.Pipeline) {
			p.Buffers[0].Init = &dag.Init{Kind: dag.InitValue, Values: make([]expr.Value, 3)}
		}},
		{"", func(p *dag.Pipeline) {
			p.Buffers[0].Init = &dag.Init{Kind: dag.InitValue, Values: make([]expr.Value, 8)}
		}},
		{`buffer "d": it is saved to the same file as "x"; give each buffer a file of its own`, func(p *dag.Pipeline) { p.Buffers[0].Save, p.Buffers[1].Save = "a.npy", "./a.npy" }},
		{"", func(p *dag.Pipeline) { p.Buffers[0].Save, p.Buffers[1].Save = "a.npy", "b.npy" }},
		{`buffer "x": expect: unknown kind 99`, func(p *dag.Pipeline) { p.Buffers[0].Expect = &dag.Expect{Kind: 99} }},
		{`buffer "x": expect: there is no expression`, func(p *dag.Pipeline) { p.Buffers[0].Expect = &dag.Expect{Kind: dag.ExpectExpr} }},
		{`buffer "x": expect: tolerances of NaN and 0; they must not be negative`, func(p *dag.Pipeline) { p.Buffers[0].Expect = &dag.Expect{Kind: dag.ExpectValue, RTol: math.NaN()} }},
		{`node "up": unknown kind 99`, func(p *dag.Pipeline) { p.Nodes[0].Kind = 99 }},
		{`node "up": it is a memset, but has a Copy`, func(p *dag.Pipeline) { p.Nodes[0].Kind = dag.Memset }},
		{`node "set": it is a task, but has a Set`, func(p *dag.Pipeline) { p.Nodes[1].Kind = dag.Task }},
		{`node "saxpy": it is a memcpy, but has a Launch`, func(p *dag.Pipeline) { p.Nodes[2].Kind = dag.Memcpy }},
		{`node "saxpy": it is a map, but its launch says otherwise`, func(p *dag.Pipeline) { p.Nodes[2].Kind = dag.Map }},
		{`node "up": there is no buffer with id 9`, func(p *dag.Pipeline) { p.Nodes[0].Copy.Dst.Buffer = 9 }},
		{`node "up": bytes 0 to 33 of "x" go past its end (32 bytes)`, func(p *dag.Pipeline) { p.Nodes[0].Copy.Src.Hi = 33 }},
		{`node "up": memcpy: the sizes differ: x(0..4) has 4 elements, d has 8 elements`, func(p *dag.Pipeline) { p.Nodes[0].Copy.Src.Hi = 16 }},
		{`node "set": bytes 5 to 3 of "d" are not a range`, func(p *dag.Pipeline) { p.Nodes[1].Set.Dst = dag.Range{Buffer: 1, Lo: 5, Hi: 3} }},
		{`node "saxpy": its launch has no kernel`, func(p *dag.Pipeline) { p.Nodes[2].Launch = &dag.Launch{} }},
		{`node "saxpy": its launch is of module 3, but there are 0`, func(p *dag.Pipeline) { p.Nodes[2].Launch.Module = 3 }},
		{`node "saxpy": argument 3: there is no buffer with id -1`, func(p *dag.Pipeline) { p.Nodes[2].Launch.Args[2].Range.Buffer = -1 }},
		{`node "saxpy": argument 3 must be in, out, inout, or unused by a kernel of a module`, func(p *dag.Pipeline) { p.Nodes[2].Launch.Args[2].Mode = 9 }},
		{`node "saxpy": argument 1 has the unknown type DType(99)`, func(p *dag.Pipeline) { p.Nodes[2].Launch.Args[0].DType = 99 }},
		{`node "square": its launch must have the 3 arguments of its map: a count, the output, the inputs and the numbers`, func(p *dag.Pipeline) { p.Nodes[3].Launch.Args = p.Nodes[3].Launch.Args[:2] }},
		{`node "square": map: there is no expression`, func(p *dag.Pipeline) { p.Nodes[3].Launch.Map = &dag.MapSpec{Inputs: []string{"d"}} }},
		{`node "up": its work (-1 bytes, 0 operations, 0 blocks of 0 threads and 0 bytes, 0 steps, NaN us) must not be negative`, func(p *dag.Pipeline) { p.Nodes[0].Work = dag.Work{Bytes: -1, US: math.NaN()} }},
		{"", func(p *dag.Pipeline) { p.Nodes[0].Work = dag.Work{US: math.MaxFloat64, Steps: math.MaxFloat64} }},
		{`node "up": its work (0 bytes, 0 operations, 0 blocks of 0 threads and 0 bytes, 0 steps, +Inf us) must not be negative`, func(p *dag.Pipeline) { p.Nodes[0].Work = dag.Work{US: math.Inf(1)} }},
		{`node "up": its work (0 bytes, 0 operations, 0 blocks of 0 threads and 0 bytes, +Inf steps, 0 us) must not be negative`, func(p *dag.Pipeline) { p.Nodes[0].Work = dag.Work{Steps: math.Inf(1)} }},
		{`node "up": a cost of NaN us`, func(p *dag.Pipeline) { p.Nodes[0].HasCost, p.Nodes[0].CostUS = true, math.NaN() }},
		{`node "up": after: there is no node with id 7`, func(p *dag.Pipeline) { p.Nodes[0].After = []dag.NodeID{7} }},
		{`node "up": priority 99; it is one of Low, Normal and High`, func(p *dag.Pipeline) { p.Nodes[0].Priority = 99 }},
		{`node "set": the number of its stream must be from 0 to 2147483646; leave Stream out to let the planner choose`, func(p *dag.Pipeline) { p.Nodes[1].Stream = dag.OnStream(math.MaxInt32) }},
		{`dependency cycle: up -> set -> up`, func(p *dag.Pipeline) { p.Nodes[0].After = []dag.NodeID{1} }},
	} {
		p := handmade(t)
		test.spoil(p)
		g, err := p.Graph()
		if test.want == "" {
			require.NoError(t, err)
			require.NoError(t, g.Check())
			continue
		}
		require.Error(t, err, test.want)
		first, _, _ := strings.Cut(err.Error(), "\n") // the other errors follow from the first
		require.Equal(t, test.want, first)
		require.Nil(t, g)
		if err := file.Write(&bytes.Buffer{}, p); len(test.want) > 5 && test.want[:5] != "depen" {
			require.ErrorContains(t, err, "cannot be written as a file: "+test.want)
		}
	}
	_, err := (*dag.Pipeline)(nil).Graph()
	require.EqualError(t, err, `pipeline "": there is none: it is nil`)
	require.EqualError(t, (*dag.Pipeline)(nil).Problem(), "there is no pipeline")
	require.EqualError(t, (*dag.Buffer)(nil).Check(), "there is no buffer")
	require.EqualError(t, (&dag.Buffer{Name: "x"}).Check(), `buffer "x": the element type is missing`)
	most := dag.Buffer{Name: "x", DType: dag.F32, Shape: []int64{math.MaxInt64 / 4}}
	require.NoError(t, most.SetBytes())
	require.EqualValues(t, math.MaxInt64-3, most.Bytes)
	require.NoError(t, most.Check())
}

// A range made by hand is a tile if some rows have the same columns of it.
func TestHandmadeTiles(t *testing.T) {
	for _, c := range []struct {
		r          dag.Range
		want, text string
		rows, cols [2]int64
	}{
		{dag.Range{Lo: 4, Hi: 44, Pitch: 32}, "", "d(0..2)(1..3)", [2]int64{0, 2}, [2]int64{1, 3}},
		{dag.Range{Lo: 36, Hi: 128, Pitch: 32}, "", "d(1..4)(1..8)", [2]int64{1, 4}, [2]int64{1, 8}},
		{dag.Range{Lo: 0, Hi: 126, Pitch: 32}, "", "d[0:126]", [2]int64{}, [2]int64{}},
		{dag.Range{Lo: 4, Hi: 12, Pitch: 32}, `bytes 4 to 12 of "d" are not a tile`, "", [2]int64{}, [2]int64{}},
		{dag.Range{Lo: 0, Hi: 64, Pitch: 32}, `bytes 0 to 64 of "d" are not a tile`, "", [2]int64{}, [2]int64{}},
		{dag.Range{Lo: 12, Hi: 44, Pitch: 32}, `bytes 12 to 44 of "d" are not a tile`, "", [2]int64{}, [2]int64{}},
		{dag.Range{Lo: 16, Hi: 44, Pitch: 32}, `bytes 16 to 44 of "d" are not a tile`, "", [2]int64{}, [2]int64{}},
		{dag.Range{Lo: 4, Hi: 4, Pitch: 32}, `bytes 4 to 4 of "d" are not a tile`, "", [2]int64{}, [2]int64{}},
		{dag.Range{Lo: 0, Hi: 0, Pitch: 32}, `bytes 0 to 0 of "d" are not a tile`, "", [2]int64{}, [2]int64{}},
		{dag.Range{Lo: 4, Hi: 20, Pitch: 16}, `a tile of "d" has rows 16 bytes apart, but a row has 32`, "", [2]int64{}, [2]int64{}},
	} {
		b := dag.New("p")
		d := b.Device("d", dag.F32, 4, 8)
		c.r.Buffer = d
		b.Task("t", c.r.In())
		g, err := b.Graph()
		if c.want != "" {
			require.EqualError(t, err, `node "t": `+c.want)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.text, g.RangeText(c.r))
		rows, columns, ok := g.TileBox(c.r)
		require.Equal(t, []any{c.rows, c.cols, c.rows != [2]int64{}}, []any{rows, columns, ok}, "%+v", c.r)
	}
	p := &dag.Pipeline{Buffers: []dag.Buffer{{Name: "d", DType: dag.F32, Shape: []int64{4, 8}, Bytes: 128}}}
	for r, want := range map[dag.Range]string{{Hi: 128}: "", {Lo: 32, Hi: 64}: "(1..2)", {Lo: 36, Hi: 44}: "(1..2)(1..3)", {Lo: 8, Hi: 72, Pitch: 0}: "?", {Buffer: 1}: "?", {Buffer: -1}: "?"} {
		text, ok := p.Bounds(r)
		require.Equal(t, want != "?", ok, "%+v", r)
		require.Equal(t, strings.Trim(want, "?"), text)
	}
	require.Equal(t, "nothing", p.RangeText(dag.Range{Buffer: 1}))
	_, _, ok := p.TileBox(dag.Range{Lo: 32, Hi: 64})
	require.False(t, ok)
	_, _, ok = (*dag.Pipeline)(nil).TileBox(dag.Range{Pitch: 32, Lo: 4, Hi: 44})
	require.False(t, ok)
}

// What the code of a kernel says against a launch that was made by hand is found wherever there is both.
func TestContradictionsOfHandmadeLaunches(t *testing.T) {
	written := dag.KernelParam{Size: 8, Code: dag.CodeUse{Decided: true, Mode: dag.Write, Written: "k.cu:3"}}
	read := dag.KernelParam{Size: 8, Code: dag.CodeUse{Decided: true, Mode: dag.Read}}
	fetched := dag.KernelParam{Size: 8, Code: dag.CodeUse{Decided: true, Mode: dag.Read, Fetch: dag.Fetch{Seen: true, Dimensions: 2, At: "k.cu:4"}}}
	p := &dag.Pipeline{Buffers: []dag.Buffer{{Name: "d", DType: dag.F32, Shape: []int64{8}, Bytes: 32}}}
	kernel := &nonsense{params: []dag.KernelParam{written, read, fetched}}
	whole := dag.Range{Buffer: 0, Hi: 32}
	in, out := dag.Arg{IsBuffer: true, Mode: dag.Read, DType: dag.F32, Range: whole}, dag.Arg{IsBuffer: true, Mode: dag.Write, DType: dag.F32, Range: whole}
	texture, nowhere := in, in
	texture.Texture, nowhere.Range.Buffer = &dag.Texture{Channels: 1, Width: 8}, 1
	for _, c := range []struct {
		arg      dag.Arg
		k        int
		declared bool
		want     string
	}{
		{in, 0, true, "is written (k.cu:3), but the file declares {in: d}"},
		{in, 0, false, "is written (k.cu:3), although its type is a pointer to const"},
		{out, 0, true, ""},
		{in, 1, true, ""},
		{out, 1, true, "is never written, but the file declares {out: d}"},
		{in, 2, true, "is a texture (k.cu:4)"},
		{texture, 2, true, "is read in 2 dimensions (k.cu:4), but the texture has 1"},
		{texture, 1, true, "is a pointer in the code, not a texture"},
		{texture, 0, true, "is a pointer in the code, not a texture"},
		{nowhere, 0, true, ""},
		{in, 3, true, ""},
	} {
		args := []dag.Arg{out, in, texture, out}
		args[c.k] = c.arg
		require.Equal(t, c.want, p.Contradiction(&dag.Launch{Kernel: kernel, Args: args}, c.k, c.declared), "%+v", c)
	}
	for _, k := range []int{-1, 1} {
		require.Empty(t, p.Contradiction(&dag.Launch{Kernel: kernel, Args: []dag.Arg{in}}, k, true))
	}
	require.Empty(t, p.Contradiction(nil, 0, true))
	require.Empty(t, p.Contradiction(&dag.Launch{Args: []dag.Arg{in}}, 0, true))
}

// Whatever replaces one value in a pipeline, Graph returns an error or a graph on which all methods work.
func TestSpoiltPipelinesDoNotPanic(t *testing.T) {
	refused, graphs := 0, 0
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 7))
		p := handmade(t)
		for range 1 + r.IntN(3) {
			spoil(r, reflect.ValueOf(p).Elem())
		}
		g, err := p.Graph()
		if err != nil {
			refused++
			require.NotEmpty(t, err.Error(), "seed %d", seed)
		} else {
			graphs++
			require.NoError(t, g.Check(), "seed %d", seed)
			require.Empty(t, outline.Difference(g, g), "seed %d", seed)
			require.Empty(t, outline.DifferenceFrom(g, outline.Of(g)), "seed %d", seed)
			require.Len(t, g.Topological(), g.Len(), "seed %d", seed)
			_, _, _ = g.WorkHash(), g.Unused(), g.Unwritten()
			require.Empty(t, outline.WorkDifference(g, outline.WorkOf(g)), "seed %d", seed)
		}
		_ = file.Write(&bytes.Buffer{}, p)
	}
	t.Logf("%d spoilt pipelines: %d refused, %d graphs", refused+graphs, refused, graphs)
	require.Greater(t, refused, 1000)
	require.Greater(t, graphs, 300)
}

// spoil replaces one value somewhere inside another.
func spoil(r *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for range 20 {
			if f := v.Field(r.IntN(max(v.NumField(), 1))); f.CanSet() {
				spoil(r, f)
				return
			}
		}
	case reflect.Slice:
		if v.Len() > 0 && r.IntN(4) > 0 {
			spoil(r, v.Index(r.IntN(v.Len())))
		} else if v.Len() > 0 && r.IntN(2) == 0 {
			v.Set(v.Slice(0, v.Len()-1))
		} else {
			v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
		}
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		} else if r.IntN(4) > 0 {
			spoil(r, v.Elem())
		} else {
			v.SetZero()
		}
	case reflect.Int8, reflect.Int32, reflect.Int64:
		v.SetInt([]int64{-1, 0, 1, 2, 99, math.MaxInt64, math.MinInt64, math.MaxInt32}[r.IntN(8)])
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint([]uint64{0, 1, 2, 99, math.MaxUint64}[r.IntN(5)])
	case reflect.Float64:
		v.SetFloat([]float64{0, -1, math.NaN(), math.Inf(1), math.MaxFloat64}[r.IntN(5)])
	case reflect.String:
		v.SetString([]string{"", "x", "\x00", "\xff", "日本語", "a\u202eb", "y = x"}[r.IntN(7)])
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Interface:
		v.SetZero()
	}
}

func TestABuilderIsUsedOnce(t *testing.T) {
	b := dag.New("p")
	d := b.Device("d", dag.F32, 8)
	node := b.Task("a", b.In(d))
	g, err := b.Graph()
	require.NoError(t, err)
	b.At(node).Name = "changed"
	b.Task("b", b.In(d))
	require.Equal(t, 1, g.Len())
	require.Equal(t, "a", g.Nodes[0].Name)
	_, err = b.Graph()
	require.ErrorContains(t, err, `pipeline "p": Graph was called before; declare each pipeline with a builder of its own`)
}

func TestGrowRefusesNegativeNumbers(t *testing.T) {
	b := dag.New("p")
	b.Grow(1, -1, math.MinInt)
	b.Grow(-1, 0, 0)
	b.Grow(0, -1, 0)
	b.Grow(0, 0, -1)
	_, err := b.Graph()
	require.EqualError(t, err, "pipeline \"p\": Grow by 1 nodes, -1 buffers and -9223372036854775808 accesses: a number is negative\n"+
		"pipeline \"p\": Grow by -1 nodes, 0 buffers and 0 accesses: a number is negative\n"+
		"pipeline \"p\": Grow by 0 nodes, -1 buffers and 0 accesses: a number is negative\n"+
		"pipeline \"p\": Grow by 0 nodes, 0 buffers and -1 accesses: a number is negative")
	b = dag.New("p")
	b.Grow(1, 0, math.MaxInt)
	b.Grow(0, 0, 0)
	_, err = b.Graph()
	require.NoError(t, err)
}

func TestGraphsThatNobodyMade(t *testing.T) {
	for _, g := range []*dag.Graph{nil, {}} {
		require.EqualError(t, g.Check(), "there is no graph")
		require.Zero(t, g.Len())
		require.Empty(t, g.Hash()+g.WorkHash()+outline.Difference(g, g)+outline.DifferenceFrom(g, nil)+outline.WorkDifference(g, nil))
		require.Empty(t, outline.WorkOf(g).Nodes)
		require.Empty(t, outline.Parts(g, 0))
		require.Empty(t, g.NotInGraph())
		require.False(t, g.HasControl())
		g.EachGraph(func(*dag.Graph, []string) { t.Error("there is no graph to see") })
		_, err := g.Empty().Graph()
		require.ErrorContains(t, err, "there is no graph to make another version of")
		require.EqualValues(t, dag.Range{Buffer: -1}, g.EdgeRange(dag.Edge{}))
		require.EqualValues(t, dag.Range{Buffer: -1}, g.UnwrittenRange(dag.UnwrittenRead{}))
	}
	require.Zero(t, (*dag.Pipeline)(nil).UsedDevices())
	require.Equal(t, 1, (&dag.Pipeline{}).UsedDevices())
	require.Equal(t, 3, (&dag.Pipeline{Nodes: []dag.Node{{Device: 2}}}).UsedDevices())
	require.Equal(t, 6, (&dag.Pipeline{Nodes: []dag.Node{{Device: 2}}, Buffers: []dag.Buffer{{Device: 5}}}).UsedDevices())
	launch := &dag.Launch{Kernel: &nonsense{}, Args: []dag.Arg{{IsBuffer: true}}}
	require.Equal(t, dag.Declared, launch.Evidence(0), "a kernel that says nothing about its parameters")
	require.Equal(t, dag.Declared, launch.Evidence(1))
	require.Equal(t, dag.Declared, launch.Evidence(-1))
	require.Equal(t, dag.Declared, (*dag.Launch)(nil).Evidence(0))
	require.Nil(t, (*dag.Pipeline)(nil).Textured())
	require.Nil(t, (&dag.Pipeline{Buffers: make([]dag.Buffer, 1), Nodes: []dag.Node{{}, {Launch: &dag.Launch{Args: []dag.Arg{{IsBuffer: true}, {Texture: &dag.Texture{}},
		{IsBuffer: true, Texture: &dag.Texture{}, Range: dag.Range{Buffer: -1}}, {IsBuffer: true, Texture: &dag.Texture{}, Range: dag.Range{Buffer: 1}}}}}}}).Textured())
	g := &dag.Graph{Pipeline: handmade(t)}
	require.EqualError(t, g.Check(), "the graph has no dependencies derived for its nodes; make it with file.Parse, Builder.Graph or Pipeline.Graph")
	require.Empty(t, g.Succs(0))
	g, err := handmade(t).Graph()
	require.NoError(t, err)
	require.Empty(t, g.Succs(-1))
	require.Empty(t, g.Preds(99))
	require.Empty(t, g.Accesses(99))
	g.Nodes = append(g.Nodes, dag.Node{})
	require.Error(t, g.Check())
}

func TestNamesOfUnknownValues(t *testing.T) {
	require.Equal(t, "Kind(99) Mode(99) Why(99) Evidence(99) Severity(99) Sync(99) Place(99) DType(99) ",
		dag.Kind(99).String()+" "+dag.Mode(99).String()+" "+dag.Why(99).String()+" "+dag.Evidence(99).String()+" "+dag.Severity(99).String()+" "+dag.Sync(99).String()+" "+dag.Place(99).String()+" "+dag.DType(99).String()+" ")
	for norm := dag.NormL1; norm <= dag.NormMax; norm++ {
		read, err := dag.ParseNorm(norm.String())
		require.NoError(t, err)
		require.Equal(t, norm, read)
	}
	_, err := dag.ParseNorm("none")
	require.EqualError(t, err, `unknown norm "none"`)
	require.Equal(t, []string{"", " (line 1)", " (line 12)"}, []string{dag.Pos{}.OnLine(), dag.Pos{Line: 1, Column: 3}.OnLine(), dag.Pos{Line: 12}.OnLine()})
	require.Equal(t, []string{"low", "normal", "high", "high"}, []string{dag.Low.String(), dag.Normal.String(), dag.High.String(), dag.Priority(9).String()})
	require.Zero(t, dag.DType(99).Size())
	require.Zero(t, dag.F32.Load(make([]byte, 8), 2))
	dag.F32.Store(make([]byte, 8), -1, 7)
}

// A library may return anything; impossible descriptions of a kernel are errors of the node that uses it.
func TestLibrariesThatReturnNonsense(t *testing.T) {
	for _, test := range []struct {
		kernel dag.LaunchKernel
		want   string
	}{
		{nil, `node "k": the library has no kernel "k", and no error either`},
		{&nonsense{params: []dag.KernelParam{{DType: 99}}}, `node "k": the library describes parameter 1 of kernel "k" wrongly: type DType(99), use none, 0 bytes`},
		{&nonsense{params: []dag.KernelParam{{Scratch: true}}, info: dag.LaunchInfo{Scratch: -1}}, `node "k": the library describes the launch of kernel "k" wrongly: -1 bytes of scratch`},
		{&nonsense{params: []dag.KernelParam{{Scratch: true}, {Scratch: true}}}, `node "k": the library describes the launch of kernel "k" wrongly: there is no extent for parameter 1, one of 2 that are scratch`},
		{&nonsense{info: dag.LaunchInfo{Work: dag.Work{Flops: -1}}}, `node "k": the library describes the launch of kernel "k" wrongly: its work (0 bytes, -1 operations, 0 blocks of 0 threads and 0 bytes, 0 steps, 0 us) must not be negative`},
	} {
		b := dag.New("p")
		b.Use(nonsenseLibrary{test.kernel})
		b.Kernel("k", "k", nil, dag.Grid(1))
		_, err := b.Graph()
		require.EqualError(t, err, test.want)
	}
	b := dag.New("p")
	b.Use(nonsenseLibrary{&nonsense{}})
	b.Kernel("k", "k", nil, dag.Grid(math.MaxInt32, math.MaxInt32, math.MaxInt32), dag.Block(math.MaxInt32, 2))
	g, err := b.Graph()
	require.NoError(t, err)
	require.Equal(t, dag.Work{Blocks: math.MaxInt64, Threads: math.MaxInt32}, g.Nodes[0].Work)
	_, err = file.Parse([]byte("version: 1\nmodules: {m: {source: m.ptx}}\nnodes: []\n"), file.Options{Name: "p.yaml", OpenModule: func(dag.Module) (dag.Library, error) { return nil, nil }})
	require.EqualError(t, err, `p.yaml:2:23: module "m": opening it gave no kernels`)
}

type nonsense struct {
	params []dag.KernelParam
	info   dag.LaunchInfo
}

func (n *nonsense) Entry() string                              { return "" }
func (n *nonsense) Params() []dag.KernelParam                  { return n.params }
func (n *nonsense) Describe([]dag.Arg) (dag.LaunchInfo, error) { return n.info, nil }

type nonsenseLibrary struct{ kernel dag.LaunchKernel }

func (l nonsenseLibrary) Names() []string                                      { return nil }
func (l nonsenseLibrary) Kernel(string, []dag.DType) (dag.LaunchKernel, error) { return l.kernel, nil }
func (l nonsenseLibrary) Map(*dag.MapSpec) (dag.LaunchKernel, error)           { return l.kernel, nil }
