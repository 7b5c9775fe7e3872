// Tests of the builder: the exact message of every mistake, and the graphs of valid declarations.

package dag

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/words"
)

func TestBuilderMistakes(t *testing.T) {
	long := strings.Repeat("x", MaxName+1)
	for _, test := range []struct {
		name    string
		declare func(b *Builder, d, e, h BufferID) // d, e: f32[8] on devices 0 and 1; h: f32[8] on the host
		want    string                             // one line for each mistake
	}{
		{"nothing wrong", func(b *Builder, d, e, h BufferID) { b.Task("t", b.In(d)) }, ""},
		{"unknown kernel", func(b *Builder, d, e, h BufferID) {
			b.Kernel("k", "saxpi", Args{8, 2, b.Whole(d), b.Whole(d)})
		},
			`node "k": unknown kernel "saxpi"; did you mean "saxpy"?`},
		{"unknown kernel, nothing near", func(b *Builder, d, e, h BufferID) { b.Kernel("k", "fourier", nil) }, `node "k": unknown kernel "fourier"`},
		{"unknown kernel of a module", func(b *Builder, d, e, h BufferID) { b.Kernel("k", "mine.blue", nil) },
			`node "k": unknown kernel "mine.blue"; did you mean "mine.blur"?`},
		{"unknown module", func(b *Builder, d, e, h BufferID) { b.Kernel("k", "mime.blur", nil) }, `node "k": unknown module "mime"; did you mean "mine"?`},
		{"too few arguments", func(b *Builder, d, e, h BufferID) { b.Kernel("k", "saxpy", Args{8, 2}) },
			`node "k": kernel "saxpy" takes 4 arguments (n, alpha, x, y), got 2`},
		{"scratch is not counted", func(b *Builder, d, e, h BufferID) { b.Kernel("k", "sum", Args{8}) }, `node "k": kernel "sum" takes 3 arguments (n, x, result), got 1`},
		{"number for a buffer", func(b *Builder, d, e, h BufferID) { b.Kernel("k", "saxpy", Args{8, 2, d, b.Whole(d)}) },
			`node "k": argument 3 of kernel "saxpy": the id of a buffer is not an argument; write Whole, In, Out or InOut of it`},
		{"buffer for a number", func(b *Builder, d, e, h BufferID) {
			b.Kernel("k", "saxpy", Args{b.Whole(d), 2, b.Part(d, 0, 2), b.Part(d, 1, 2)})
		},
			`node "k": argument n of kernel "saxpy" must be a number (i64), got the buffer "d"`},
		{"fraction for an integer", func(b *Builder, d, e, h BufferID) {
			b.Kernel("k", "saxpy", Args{2.5, 2, b.Part(d, 0, 2), b.Part(d, 1, 2)})
		},
			`node "k": argument n of kernel "saxpy" must be an integer (i64), got 2.5`},
		{"too large", func(b *Builder, d, e, h BufferID) { b.Kernel("k", "tiny", Args{256, 1e6}) },
			"node \"k\": argument k of kernel \"tiny\" is 256, which does not fit in u8\n" +
				"node \"k\": argument h of kernel \"tiny\" is 1000000, which does not fit in f16"},
		{"the library's word on an argument", func(b *Builder, d, e, h BufferID) {
			b.Kernel("k", "saxpy", Args{-1, 2, b.Part(d, 0, 2), b.Part(d, 1, 2)})
		},
			`node "k": argument n of kernel "saxpy" must not be negative`},
		{"the library's word on a type", func(b *Builder, d, e, h BufferID) { b.Kernel("k", "picky", Args{b.Whole(b.Device("f", F64, 1))}) },
			`node "k": argument x of kernel "picky" cannot be f64`},
		{"wrong element type", func(b *Builder, d, e, h BufferID) {
			b.Kernel("k", "saxpy", Args{8, 2, b.Whole(b.Device("f", F64, 8)), b.Whole(d)})
		}, `node "k": argument x of kernel "saxpy" has elements of type f32, but "f" has f64`},
		{"extent beyond the slice", func(b *Builder, d, e, h BufferID) {
			b.Kernel("k", "saxpy", Args{5, 2, b.Slice(d, 0, 4), b.Slice(d, 4, 8)})
		},
			"node \"k\": argument x of kernel \"saxpy\" touches 5 elements, d(0..4) has 4\n" +
				"node \"k\": argument y of kernel \"saxpy\" touches 5 elements, d(4..8) has 4"},
		{"writing through in", func(b *Builder, d, e, h BufferID) {
			b.Kernel("k", "saxpy", Args{4, 2, b.Part(d, 0, 2), b.Part(d, 1, 2).In()})
		},
			`node "k": argument y of kernel "saxpy" is written (inout); "d" cannot be given as in`},
		{"out where old values are read", func(b *Builder, d, e, h BufferID) {
			b.Kernel("k", "saxpy", Args{4, 2, b.Part(d, 0, 2), b.Part(d, 1, 2).Out()})
		},
			`node "k": argument y of kernel "saxpy" is inout; "d" cannot be given as out`},
		{"out of a constant pointer", func(b *Builder, d, e, h BufferID) {
			b.Kernel("k", "mine.blur", Args{4, b.Part(d, 0, 2).Out(), b.Part(d, 1, 2)}, Grid(1))
		}, `node "k": argument from of kernel "mine.blur" is read only; "d" cannot be given as out`},
		{"user's kernel without a grid", func(b *Builder, d, e, h BufferID) {
			b.Kernel("k", "mine.blur", Args{4, b.Part(d, 0, 2), b.Part(d, 1, 2)})
		},
			`node "k": kernel "mine.blur" needs a grid; write grid: and the number of blocks`},
		{"opaque arguments say nothing", func(b *Builder, d, e, h BufferID) { b.Kernel("k", "mine.opaque", Args{b.Whole(d), 3}, Grid(1)) },
			"node \"k\": argument 1 of kernel \"mine.opaque\" must say how \"d\" is used; write {in: d}, {out: d} or {inout: d}\n" +
				"node \"k\": argument 2 of kernel \"mine.opaque\" does not say the type of the number 3; write {f32: 3}, {i32: 3} or another type"},
		{"what the code shows to be wrong", func(b *Builder, d, e, h BufferID) {
			b.Kernel("k", "mine.seen", Args{b.Part(d, 0, 4).Out(), b.Part(d, 1, 4).In(), b.Part(d, 2, 4).In()}, Grid(1))
		},
			"node \"k\": argument 1 of kernel \"mine.seen\" is never written, but the file declares {out: d}\n" +
				"node \"k\": argument 2 of kernel \"mine.seen\" is written (seen.cu:3), but the file declares {in: d}\n" +
				"node \"k\": argument 3 of kernel \"mine.seen\" is written (seen.cu:4), but the file declares {in: d}"},
		{"what the code does not show", func(b *Builder, d, e, h BufferID) {
			b.Kernel("k", "mine.seen", Args{b.Part(d, 0, 4), b.Part(d, 1, 4), b.Part(d, 2, 4)}, Grid(1))
		}, `node "k": argument 3 of kernel "mine.seen" must say how "d" is used, which the code does not show: an address is loaded from memory (seen.cu:2); write {in: d}, {out: d} or {inout: d}`},
		{"opaque sizes", func(b *Builder, d, e, h BufferID) {
			b.Kernel("k", "mine.opaque", Args{Scalar{F32, 1.5}, b.In(d)}, Grid(1))
		},
			"node \"k\": argument 1 of kernel \"mine.opaque\" has 8 bytes, f32 has 4\n" +
				"node \"k\": argument 2 of kernel \"mine.opaque\" has 4 bytes, but a buffer's address has 8"},
		{"typed number against the signature", func(b *Builder, d, e, h BufferID) {
			b.Kernel("k", "saxpy", Args{Scalar{I32, 4}, 2, b.Part(d, 0, 2), b.Part(d, 1, 2)})
		}, `node "k": argument n of kernel "saxpy" is of type i64, but the number is given as i32`},
		{"not an argument", func(b *Builder, d, e, h BufferID) { b.Kernel("k", "tiny", Args{"seven", []int{7}}) },
			"node \"k\": argument 1 of kernel \"tiny\": a string is neither a Range or Access nor a number\n" +
				"node \"k\": argument 2 of kernel \"tiny\": a []int is neither a Range or Access nor a number"},
		{"host memory", func(b *Builder, d, e, h BufferID) {
			b.Kernel("k", "saxpy", Args{8, 2, b.Whole(h), b.Whole(d)})
		},
			`node "k": kernel "saxpy" cannot use "h", which is in host memory; copy it to a device buffer first`},
		{"two devices", func(b *Builder, d, e, h BufferID) {
			b.Kernel("k", "saxpy", Args{8, 2, b.Whole(e), b.Whole(d)})
		},
			`node "k": kernel "saxpy" uses buffers of devices 1 and 0 ("d"); peer: true lets a kernel touch the memory of another device`},
		{"another device than its buffers", func(b *Builder, d, e, h BufferID) {
			b.Kernel("k", "saxpy", Args{4, 2, b.Part(d, 0, 2), b.Part(d, 1, 2)}, RunOn(2))
		}, `node "k": kernel "saxpy" is to run on device 2, but "d" is on device 0; peer: true lets a kernel touch the memory of another device`},
		{"options", func(b *Builder, d, e, h BufferID) {
			b.Kernel("k", "tiny", Args{1, 1}, Grid(), Block(0), Shared(-1), RunOn(-1), Grid(1, 2, 3, 4))
		}, "node \"k\": a grid has one to three dimensions, not 0\n" +
			"node \"k\": block: 0 is not a size\n" +
			"node \"k\": shared: -1 is not a size\n" +
			"node \"k\": device -1; it must not be negative\n" +
			"node \"k\": a grid has one to three dimensions, not 4"},
		{"map of different sizes", func(b *Builder, d, e, h BufferID) {
			b.Map("m", "y = 2*x", map[string]any{"y": b.Part(d, 0, 2), "x": b.Slice(d, 5, 8)})
		}, `node "m": map: x has 3 elements, y has 4; every buffer that a map reads needs as many elements as its result, or one`},
		{"map over itself, shifted", func(b *Builder, d, e, h BufferID) {
			b.Map("m", "y = 2*x", map[string]any{"y": b.Slice(d, 0, 4), "x": b.Slice(d, 1, 5)})
		}, `node "m": map: x (d(1..5)) and y (d(0..4)) overlap, so that elements would be overwritten before they are read`},
		{"map of an unknown name", func(b *Builder, d, e, h BufferID) { b.Map("m", "d = 2*xs", map[string]any{"x": 3}) },
			`node "m": map: unknown name "xs"; did you mean "x"?`},
		{"map that does not use a name", func(b *Builder, d, e, h BufferID) { b.Map("m", "d = 2*d", map[string]any{"x": 3, "a": 1}) },
			"node \"m\": map: \"a\" does not appear in \"d = 2*d\"\nnode \"m\": map: \"x\" does not appear in \"d = 2*d\""},
		{"map to a number", func(b *Builder, d, e, h BufferID) { b.Map("m", "a = 2*d", map[string]any{"a": 3}) },
			`node "m": map: a is a number; the result of a map goes to a buffer`},
		{"map that is none", func(b *Builder, d, e, h BufferID) { b.Map("m", "2*d", nil) },
			`node "m": map: missing the name of the result; an elementwise computation is written "y = a*x + b"`},
		{"map the library refuses", func(b *Builder, d, e, h BufferID) {
			b.Map("m", "f = 1", map[string]any{"f": b.Whole(b.Device("flags", Bool, 8))})
		},
			`node "m": map: no map gives bool`},
		{"copy of different sizes", func(b *Builder, d, e, h BufferID) { b.Copy("c", b.Whole(d), b.Slice(h, 0, 7)) },
			`node "c": memcpy: the sizes differ: h(0..7) has 28 bytes, d has 32 bytes`},
		{"copy onto itself", func(b *Builder, d, e, h BufferID) { b.Copy("c", b.Slice(d, 0, 4), b.Slice(d, 3, 7)) },
			`node "c": memcpy: source and destination overlap in d(3..4)`},
		{"memset beyond the type", func(b *Builder, d, e, h BufferID) { b.Memset("m", b.Whole(b.Device("bytes", U8, 4)), -1) },
			`node "m": memset: the value is -1, which does not fit in u8`},
		{"memset of host memory", func(b *Builder, d, e, h BufferID) { b.Memset("m", b.Whole(h), 0) },
			`node "m": memset cannot fill "h", which is in host memory; fill it with Init, or copy to it`},
		{"streams of two kinds", func(b *Builder, d, e, h BufferID) {
			for i, name := range []string{"one", "two", "three"} {
				n := b.Task(name)
				b.Stream(n, 4)
				b.At(n).Device = []int32{0, 1, 0}[i]
				b.Priority(n, []Priority{Normal, Normal, High}[i])
			}
		}, "node \"two\": stream 4 has \"one\" on device 0 and \"two\" on device 1; a stream belongs to one device\n" +
			"node \"three\": stream 4 has \"one\" of normal priority and \"three\" of high priority; a stream has one priority"},
		{"memset of no number", func(b *Builder, d, e, h BufferID) { b.Memset("m", b.Whole(d), "0") }, `node "m": memset: a string is not a number`},
		{"slices", func(b *Builder, d, e, h BufferID) {
			b.Slice(d, 4, 9)
			b.Slice(d, 4, 3)
			b.Slice(d, -1, 3)
			b.Part(d, 4, 4)
			b.Part(d, 0, 0)
			b.Slice(b.Device("s", F32), 0, 1)
		}, "buffer \"d\": slice 4..9 of d goes past its end (8)\n" +
			"buffer \"d\": slice 4..3 of d is reversed\n" +
			"buffer \"d\": slice -1..3 of d: bounds must not be negative\n" +
			"buffer \"d\": part 4 of 4 of d: parts count from 0 to 3\n" +
			"buffer \"d\": part 0 of 0 of d: there must be at least one part\n" +
			"buffer \"s\": s is a scalar and cannot be sliced"},
		{"ranges by hand", func(b *Builder, d, e, h BufferID) {
			b.Task("t", Range{Buffer: d, Lo: 0, Hi: 33}.In(), Range{Buffer: 9, Lo: 0, Hi: 1}.In(), Range{Buffer: d, Lo: 4, Hi: 0}.Out(), Access{Range{Buffer: d, Lo: 0, Hi: 4}, 0})
		}, "node \"t\": bytes 0 to 33 of \"d\" go past its end (32 bytes)\n" +
			"node \"t\": there is no buffer with id 9\n" +
			"node \"t\": bytes 4 to 0 of \"d\" are not a range\n" +
			"node \"t\": an access must be in, out or inout"},
		{"shapes", func(b *Builder, d, e, h BufferID) {
			b.Device("a", F32, 1<<62, 2)
			b.Device("b", F32, 1<<62)
			b.Device("c", F32, 3, -1)
			b.Device("none", InvalidDType, 3)
			b.Device("empty", F32, 1<<62, 1<<62, 0)
		}, "buffer \"a\": the number of elements does not fit in 64 bits\n" +
			"buffer \"b\": the size in bytes (4611686018427387904 elements of f32) does not fit in 64 bits\n" +
			"buffer \"c\": dimension 1 of the shape is -1; it must not be negative\n" +
			"buffer \"none\": the element type is missing"},
		{"names", func(b *Builder, d, e, h BufferID) {
			b.Task("")
			b.Task(long)
			b.Task("a\nb")
			b.Task("\xff")
			b.Task("größe 'x'")
			b.Task("t")
			b.Task("t")
			b.Device("d", F32)
		}, "buffer \"d\": the name is taken (ids 0 and 3)\n" +
			"node \"\": the name is empty\n" +
			"node \"" + long + "\": the name has 256 bytes; at most 255 are allowed\n" +
			"node \"a\\nb\": the name has a control character (U+000A)\n" +
			"node \"\\xff\": the name is not UTF-8\n" +
			"node \"t\": the name is taken (ids 5 and 6)"},
		{"changed through At", func(b *Builder, d, e, h BufferID) {
			n := b.Task("t")
			b.After(n, 7)
			b.Stream(n, -2)
			b.Priority(n, 3)
			b.Cost(n, math.NaN())
			b.At(n).Device = -1
			b.At(5).Stream = OnStream(1)
			b.BufferAt(-1).Save = "x"
			b.OnDevice(h, 1)
			b.Pageable(d)
		}, "pipeline \"test\": there is no node with id 5\n" +
			"pipeline \"test\": there is no buffer with id -1\n" +
			"buffer \"d\": a device buffer cannot be pageable\n" +
			"buffer \"h\": a host buffer has no device\n" +
			"node \"t\": the number of its stream must be from 0 to 2147483646; leave Stream out to let the planner choose\n" +
			"node \"t\": device -1; devices count from 0 to 1023\n" +
			"node \"t\": priority 3; it is one of Low, Normal and High\n" +
			"node \"t\": a cost of NaN us\n" +
			"node \"t\": after: there is no node with id 7"},
		{"modules", func(b *Builder, d, e, h BufferID) {
			b.Module("mine", "again.cu", userKernels)
			b.Module("a.b", "c.cu", userKernels)
			b.Module("none", "d.cu", nil)
		}, "module \"mine\": the name is taken\n" +
			"module \"a.b\": the name must not be empty or have a dot\n" +
			"module \"none\": there is no library"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := New("test")
			b.Use(kernelsForTests)
			b.Module("mine", "filters.cu", userKernels)
			d, e, h := b.Device("d", F32, 8), b.Device("e", F32, 8), b.Host("h", F32, 8)
			b.OnDevice(e, 1)
			test.declare(b, d, e, h)
			g, err := b.Graph()
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, test.want)
			require.Nil(t, g)
		})
	}
}

func TestKernelWithoutLibrary(t *testing.T) {
	b := New("test")
	b.Kernel("k", "saxpy", nil)
	_, err := b.Graph()
	require.EqualError(t, err, `node "k": kernel "saxpy": there is no library to find it in`)
	var declaration *DeclarationError
	require.ErrorAs(t, err, &declaration)
	require.Equal(t, "k", declaration.Name)
}

func TestKernelAccesses(t *testing.T) {
	b := New("test")
	b.Use(kernelsForTests)
	b.Module("mine", "filters.cu", userKernels)
	x, y := b.Device("x", F32, 1000), b.Device("y", F32, 1000)
	r := b.Device("r", F32, 4)
	k := b.Kernel("saxpy", "saxpy", Args{300, 2.5, b.Whole(x), b.Slice(y, 500, 1000)})
	s := b.Kernel("sum", "sum", Args{1000, b.Whole(y), b.Slice(r, 2, 4)})
	u := b.Kernel("blur", "mine.blur", Args{10, b.Whole(x), b.Out(y)}, Grid(4, 2), Block(64), Shared(128))
	o := b.Kernel("opaque", "mine.opaque", Args{b.InOut(r), Scalar{I32, -1}}, Grid(0))
	g, err := b.Graph()
	require.NoError(t, err)

	// Of each slice, only the elements that the kernel touches become accesses.
	require.Equal(t, []Access{{Range{Buffer: x, Lo: 0, Hi: 1200}, Read}, {Range{Buffer: y, Lo: 2000, Hi: 3200}, ReadWrite}}, g.Accesses(k))
	require.Equal(t, &Launch{Name: "saxpy", Module: -1, Kernel: kernelsForTests["saxpy"], Grid: [3]uint32{2, 1, 1}, Block: [3]uint32{256, 1, 1}, Args: []Arg{
		{DType: I64, Bits: 300},
		{DType: F32, Bits: uint64(math.Float32bits(2.5))},
		{IsBuffer: true, Mode: Read, DType: F32, Range: Range{Buffer: x, Lo: 0, Hi: 4000}},
		{IsBuffer: true, Mode: ReadWrite, DType: F32, Range: Range{Buffer: y, Lo: 2000, Hi: 4000}},
	}}, g.Nodes[k].Launch)
	require.Equal(t, Work{Flops: 300, Blocks: 2, Threads: 256}, g.Nodes[k].Work)

	// Scratch is a hidden buffer that the node writes.
	scratch := int32(len(g.Buffers) - 1)
	require.Equal(t, Buffer{Name: "sum$scratch", Place: Device, DType: U8, Scratch: true, Shape: []int64{1024}, Bytes: 1024}, g.Buffers[scratch])
	require.Equal(t, []Access{{Range{Buffer: y, Lo: 0, Hi: 4000}, Read}, {Range{Buffer: r, Lo: 8, Hi: 12}, Write}, {Range{Buffer: BufferID(scratch), Lo: 0, Hi: 1024}, Write}}, g.Accesses(s))
	require.Equal(t, Range{Buffer: BufferID(scratch), Lo: 0, Hi: 1024}, g.Nodes[s].Launch.Args[3].Range)

	// A user's kernel says nothing about its accesses; {out: y} narrows a plain pointer to writing.
	require.Equal(t, []Access{{Range{Buffer: x, Lo: 0, Hi: 40}, Read}, {Range{Buffer: y, Lo: 0, Hi: 40}, Write}}, g.Accesses(u))
	require.Equal(t, [3]uint32{4, 2, 1}, g.Nodes[u].Launch.Grid)
	require.Equal(t, [3]uint32{64, 1, 1}, g.Nodes[u].Launch.Block)
	require.Equal(t, Work{Blocks: 8, Threads: 64, Shared: 128}, g.Nodes[u].Work)
	require.EqualValues(t, 0, g.Nodes[u].Launch.Module)

	require.Equal(t, uint64(0xffffffff), g.Nodes[o].Launch.Args[1].Bits)
	require.Zero(t, g.Nodes[o].Launch.Grid[0])
	require.Equal(t, []Access{{Range{Buffer: r, Lo: 0, Hi: 16}, ReadWrite}}, g.Accesses(o))
}

// What the code of a kernel shows is used where the file says nothing, and confirms what the file says.
func TestEvidence(t *testing.T) {
	b := New("evidence")
	b.Use(kernelsForTests)
	b.Module("mine", "filters.ptx", userKernels)
	d := b.Device("d", F32, 8)
	b.Kernel("silent", "mine.seen", Args{b.Part(d, 0, 4), b.Part(d, 1, 4), b.Part(d, 2, 4).InOut()}, Grid(1))
	b.Kernel("told", "mine.seen", Args{b.Part(d, 0, 4).In(), b.Part(d, 1, 4).InOut(), b.Part(d, 2, 4).Out()}, Grid(1))
	b.Kernel("library", "saxpy", Args{2, 2, b.Part(d, 0, 4), b.Part(d, 1, 4)})
	g, err := b.Graph()
	require.NoError(t, err)
	var got []string
	for i := range g.Nodes {
		l := g.Nodes[i].Launch
		for k := range l.Args {
			if l.Args[k].IsBuffer {
				got = append(got, l.Args[k].Mode.String()+" "+l.Evidence(k).String())
			}
		}
	}
	require.Equal(t, []string{"in inferred", "inout inferred", "inout declared", "in proved", "inout proved", "out declared", "in proved", "inout proved"}, got)
}

func TestMapLaunch(t *testing.T) {
	b := New("test")
	b.Use(kernelsForTests)
	x, y := b.Device("x", F32, 1000), b.Device("y", F64, 4, 100)
	m := b.Map("m", "out = a*x + out/len(y)", map[string]any{"out": b.Slice(y, 1, 3), "x": b.Part(x, 4, 5), "a": 2})
	whole := b.Map("whole", "x = x + 1", nil)
	g, err := b.Graph()
	require.NoError(t, err)
	launch := g.Nodes[m].Launch
	require.Equal(t, []string{"x", "out"}, launch.Map.Inputs)
	require.Equal(t, []string{"a"}, launch.Map.Scalars)
	require.Equal(t, F64, launch.Map.OutType)
	require.Equal(t, []DType{F32, F64}, launch.Map.InTypes)
	require.Equal(t, []string{"a", "x", "out"}, launch.Map.Expr.Variables())
	require.Equal(t, []Arg{
		{DType: I64, Bits: 200},
		{IsBuffer: true, Mode: Write, DType: F64, Range: Range{Buffer: y, Lo: 800, Hi: 2400}},
		{IsBuffer: true, Mode: Read, DType: F32, Range: Range{Buffer: x, Lo: 3200, Hi: 4000}},
		{IsBuffer: true, Mode: Read, DType: F64, Range: Range{Buffer: y, Lo: 800, Hi: 2400}},
		{DType: F64, Bits: math.Float64bits(2)},
	}, launch.Args)
	require.Equal(t, []Access{{Range{Buffer: x, Lo: 0, Hi: 4000}, Write}, {Range{Buffer: x, Lo: 0, Hi: 4000}, Read}}, g.Accesses(whole))
	require.Equal(t, []Edge{{From: m, To: whole, Buffer: x, Why: WAR, Lo: 3200, Hi: 4000}}, g.Edges())
}

func TestEmptySlicesKeepTheirOrder(t *testing.T) {
	b := New("test")
	b.Use(kernelsForTests)
	d, e, h := b.Device("d", F32, 8), b.Device("e", F32, 0), b.Host("h", F32, 8)
	up := b.Copy("up", b.Whole(d), b.Whole(h))
	none := b.Copy("none", b.Slice(d, 3, 3), b.Whole(e))
	nothing := b.Kernel("nothing", "saxpy", Args{0, 2, b.Whole(e), b.Whole(d)})
	b.After(nothing, none)
	down := b.Copy("down", b.Whole(h), b.Whole(d))
	b.After(down, nothing)
	g, err := b.Graph()
	require.NoError(t, err)
	require.Equal(t, []Edge{
		{From: up, To: down, Buffer: d, Why: RAW, Lo: 0, Hi: 32},
		{From: none, To: nothing, Buffer: -1, Why: After, Declared: true},
		{From: nothing, To: down, Buffer: -1, Why: After, Declared: true},
	}, g.Edges())
	require.Zero(t, g.Nodes[nothing].Launch.Grid[0])
}

func TestDevicesFollowBuffers(t *testing.T) {
	b := New("test")
	b.Use(kernelsForTests)
	d, e, h := b.Device("d", F32, 8), b.Device("e", F32, 8), b.Host("h", F32, 8)
	b.OnDevice(e, 1)
	nodes := []NodeID{
		b.Copy("up", b.Whole(e), b.Whole(h)),
		b.Copy("down", b.Whole(h), b.Whole(e)),
		b.Copy("across", b.Whole(e), b.Whole(d)),
		b.Memset("set", b.Whole(e), 1),
		b.Kernel("here", "saxpy", Args{4, 2, b.Part(e, 0, 2), b.Part(e, 1, 2)}),
		b.Kernel("peer", "saxpy", Args{8, 2, b.Whole(d), b.Whole(e)}, WithPeers()),
		b.Kernel("chosen", "saxpy", Args{8, 2, b.Whole(d), b.Whole(e)}, WithPeers(), RunOn(1)),
	}
	g, err := b.Graph()
	require.NoError(t, err)
	var devices []int32
	for _, i := range nodes {
		devices = append(devices, g.Nodes[i].Device)
	}
	require.Equal(t, []int32{1, 1, 0, 1, 1, 0, 1}, devices)
	require.True(t, g.Nodes[nodes[5]].Peer)
	require.Equal(t, &Set{Range{Buffer: e, Lo: 0, Hi: 32}, uint64(math.Float32bits(1))}, g.Nodes[nodes[3]].Set)
}

func TestPartsAreEven(t *testing.T) {
	b := New("test")
	d := b.Device("d", F64, 10, 2)
	var sizes []int64
	end := int64(0)
	for i := range int64(4) {
		r := b.Part(d, i, 4)
		require.Equal(t, end, r.Lo)
		end = r.Hi
		sizes = append(sizes, r.Bytes()/16)
	}
	require.Equal(t, []int64{3, 3, 2, 2}, sizes)
	require.EqualValues(t, 160, end)
	require.Zero(t, b.Part(d, 11, 12).Bytes())
}

func TestRangeText(t *testing.T) {
	b := New("test")
	d, s := b.Device("d", F32, 4, 4), b.Device("s", F32)
	p := &b.pipeline.Pipeline
	require.Equal(t, "d", p.RangeText(b.Whole(d)))
	require.Equal(t, "d(1..3)", p.RangeText(Range{Buffer: d, Lo: 16, Hi: 48}))
	require.Equal(t, "d(0..1)(1..4)", p.RangeText(Range{Buffer: d, Lo: 4, Hi: 16}))
	require.Equal(t, "d[4:20]", p.RangeText(Range{Buffer: d, Lo: 4, Hi: 20}))
	require.Equal(t, "d[5:16]", p.RangeText(Range{Buffer: d, Lo: 5, Hi: 16}))
	require.Equal(t, "d(1..3)(0..2)", p.RangeText(b.Tile(d, 1, 3, 0, 2)))
	require.Equal(t, "s", p.RangeText(b.Whole(s)))
	require.Equal(t, "s[0:2]", p.RangeText(Range{Buffer: s, Lo: 0, Hi: 2}))

	// The text of a buffer filled in by hand may say anything, but there must be one.
	for _, columns := range []int64{0, 65} {
		odd := &Pipeline{Buffers: []Buffer{{Name: "odd", Shape: []int64{2, columns}, Bytes: 128}}}
		require.Equal(t, "odd[0:4]", odd.RangeText(Range{Pitch: 64, Lo: 0, Hi: 4}))
	}
}

func TestSuggest(t *testing.T) {
	names := []string{"saxpy", "scale", "sum", "dot"}
	for name, want := range map[string]string{"saxpi": "saxpy", "sacle": "scale", "sun": "sum", "dto": "dot", "x": "", "fourier": "", "sum": ""} {
		require.Equal(t, want, words.Suggest(name, names), name)
	}
}

// An id passed as an argument of a kernel would be taken for a number.
func TestIdsAreRefusedAsArguments(t *testing.T) {
	b := New("test")
	b.Use(kernelsForTests)
	x, y := b.Device("x", F32, 4), b.Device("y", F32, 4)
	b.Kernel("k", "saxpy", Args{NodeID(3), 2, x, b.Whole(y)})
	b.Map("m", "y = a*x", map[string]any{"a": x})
	b.Memset("s", b.Whole(x), x)
	_, err := b.Graph()
	require.EqualError(t, err, "node \"k\": argument 1 of kernel \"saxpy\": the id of a node is not an argument\n"+
		"node \"k\": argument 3 of kernel \"saxpy\": the id of a buffer is not an argument; write Whole, In, Out or InOut of it\n"+
		"node \"m\": map: a: the id of a buffer is not an argument; write Whole, In, Out or InOut of it\n"+
		"node \"s\": memset: a dag.BufferID is not a number")
}
