// Tests of the builder: the exact message of every mistake, and the graphs of valid declarations.

package dag_test

import (
	"math"
	"strings"
	"testing"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/dag/internal/fakes"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/words"
)

func TestBuilderMistakes(t *testing.T) {
	long := strings.Repeat("x", dag.MaxName+1)
	for _, test := range []struct {
		name    string
		declare func(b *dag.Builder, d, e, h dag.BufferID) // d, e: f32[8] on devices 0 and 1; h: f32[8] on the host
		want    string                                     // one line for each mistake
	}{
		{"nothing wrong", func(b *dag.Builder, d, e, h dag.BufferID) { b.Task("t", b.In(d)) }, ""},
		{"unknown kernel", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Kernel("k", "saxpi", dag.Args{8, 2, b.Whole(d), b.Whole(d)})
		},
			`node "k": unknown kernel "saxpi"; did you mean "saxpy"?`},
		{"unknown kernel, nothing near", func(b *dag.Builder, d, e, h dag.BufferID) { b.Kernel("k", "fourier", nil) }, `node "k": unknown kernel "fourier"`},
		{"unknown kernel of a module", func(b *dag.Builder, d, e, h dag.BufferID) { b.Kernel("k", "mine.blue", nil) },
			`node "k": unknown kernel "mine.blue"; did you mean "mine.blur"?`},
		{"unknown module", func(b *dag.Builder, d, e, h dag.BufferID) { b.Kernel("k", "mime.blur", nil) }, `node "k": unknown module "mime"; did you mean "mine"?`},
		{"too few arguments", func(b *dag.Builder, d, e, h dag.BufferID) { b.Kernel("k", "saxpy", dag.Args{8, 2}) },
			`node "k": kernel "saxpy" takes 4 arguments (n, alpha, x, y), got 2`},
		{"scratch is not counted", func(b *dag.Builder, d, e, h dag.BufferID) { b.Kernel("k", "sum", dag.Args{8}) }, `node "k": kernel "sum" takes 3 arguments (n, x, result), got 1`},
		{"number for a buffer", func(b *dag.Builder, d, e, h dag.BufferID) { b.Kernel("k", "saxpy", dag.Args{8, 2, d, b.Whole(d)}) },
			`node "k": argument 3 of kernel "saxpy": the id of a buffer is not an argument; write Whole, In, Out or InOut of it`},
		{"buffer for a number", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Kernel("k", "saxpy", dag.Args{b.Whole(d), 2, b.Part(d, 0, 2), b.Part(d, 1, 2)})
		},
			`node "k": argument n of kernel "saxpy" must be a number (i64), got the buffer "d"`},
		{"fraction for an integer", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Kernel("k", "saxpy", dag.Args{2.5, 2, b.Part(d, 0, 2), b.Part(d, 1, 2)})
		},
			`node "k": argument n of kernel "saxpy" must be an integer (i64), got 2.5`},
		{"too large", func(b *dag.Builder, d, e, h dag.BufferID) { b.Kernel("k", "tiny", dag.Args{256, 1e6}) },
			"node \"k\": argument k of kernel \"tiny\" is 256, which does not fit in u8\n" +
				"node \"k\": argument h of kernel \"tiny\" is 1000000, which does not fit in f16"},
		{"the library's word on an argument", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Kernel("k", "saxpy", dag.Args{-1, 2, b.Part(d, 0, 2), b.Part(d, 1, 2)})
		},
			`node "k": argument n of kernel "saxpy" must not be negative`},
		{"the library's word on a type", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Kernel("k", "picky", dag.Args{b.Whole(b.Device("f", dag.F64, 1))})
		},
			`node "k": argument x of kernel "picky" cannot be f64`},
		{"wrong element type", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Kernel("k", "saxpy", dag.Args{8, 2, b.Whole(b.Device("f", dag.F64, 8)), b.Whole(d)})
		}, `node "k": argument x of kernel "saxpy" has elements of type f32, but "f" has f64`},
		{"extent beyond the slice", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Kernel("k", "saxpy", dag.Args{5, 2, b.Slice(d, 0, 4), b.Slice(d, 4, 8)})
		},
			"node \"k\": argument x of kernel \"saxpy\" touches 5 elements, d(0..4) has 4\n" +
				"node \"k\": argument y of kernel \"saxpy\" touches 5 elements, d(4..8) has 4"},
		{"writing through in", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Kernel("k", "saxpy", dag.Args{4, 2, b.Part(d, 0, 2), b.Part(d, 1, 2).In()})
		},
			`node "k": argument y of kernel "saxpy" is written (inout); "d" cannot be given as in`},
		{"out where old values are read", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Kernel("k", "saxpy", dag.Args{4, 2, b.Part(d, 0, 2), b.Part(d, 1, 2).Out()})
		},
			`node "k": argument y of kernel "saxpy" is inout; "d" cannot be given as out`},
		{"pointers beyond their slices", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Kernel("k", "mine.blur", dag.Args{4, b.Part(d, 0, 2).In().At(-1), b.Part(d, 1, 2).Out().At(5)}, dag.Grid(1))
			b.Kernel("end", "mine.blur", dag.Args{4, b.Part(d, 0, 2).In(), b.Part(d, 1, 2).Out().At(4)}, dag.Grid(1))
		},
			"node \"k\": argument from of kernel \"mine.blur\" points to element -1 of its slice, which has 4\n" +
				"node \"k\": argument to of kernel \"mine.blur\" points to element 5 of its slice, which has 4"},
		{"a pointer into a slice for the library", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Kernel("k", "saxpy", dag.Args{4, 2, b.Part(d, 0, 2).In().At(1), b.Part(d, 1, 2)})
		}, `node "k": argument x of kernel "saxpy" must begin where its slice does; only kernels of modules take at`},
		{"out of a constant pointer", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Kernel("k", "mine.blur", dag.Args{4, b.Part(d, 0, 2).Out(), b.Part(d, 1, 2)}, dag.Grid(1))
		}, `node "k": argument from of kernel "mine.blur" is read only; "d" cannot be given as out`},
		{"user's kernel without a grid", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Kernel("k", "mine.blur", dag.Args{4, b.Part(d, 0, 2), b.Part(d, 1, 2)})
		},
			`node "k": kernel "mine.blur" needs a grid; write grid: and the number of blocks`},
		{"opaque arguments say nothing", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Kernel("k", "mine.opaque", dag.Args{b.Whole(d), 3}, dag.Grid(1))
		},
			"node \"k\": argument 1 of kernel \"mine.opaque\" must say how \"d\" is used; write {in: d}, {out: d} or {inout: d}\n" +
				"node \"k\": argument 2 of kernel \"mine.opaque\" does not say the type of the number 3; write {f32: 3}, {i32: 3} or another type"},
		{"what the code shows to be wrong", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Kernel("k", "mine.seen", dag.Args{b.Part(d, 0, 4).Out(), b.Part(d, 1, 4).In(), b.Part(d, 2, 4).In()}, dag.Grid(1))
		},
			"node \"k\": argument 1 of kernel \"mine.seen\" is never written, but the file declares {out: d}\n" +
				"node \"k\": argument 2 of kernel \"mine.seen\" is written (seen.cu:3), but the file declares {in: d}\n" +
				"node \"k\": argument 3 of kernel \"mine.seen\" is written (seen.cu:4), but the file declares {in: d}"},
		{"what the code does not show", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Kernel("k", "mine.seen", dag.Args{b.Part(d, 0, 4), b.Part(d, 1, 4), b.Part(d, 2, 4)}, dag.Grid(1))
		}, `node "k": argument 3 of kernel "mine.seen" must say how "d" is used, which the code does not show: an address is loaded from memory (seen.cu:2); write {in: d}, {out: d} or {inout: d}`},
		{"opaque sizes", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Kernel("k", "mine.opaque", dag.Args{dag.Scalar{DType: dag.F32, Value: 1.5}, b.In(d)}, dag.Grid(1))
		},
			"node \"k\": argument 1 of kernel \"mine.opaque\" has 8 bytes, f32 has 4\n" +
				"node \"k\": argument 2 of kernel \"mine.opaque\" has 4 bytes, but a buffer's address has 8"},
		{"typed number against the signature", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Kernel("k", "saxpy", dag.Args{dag.Scalar{DType: dag.I32, Value: 4}, 2, b.Part(d, 0, 2), b.Part(d, 1, 2)})
		}, `node "k": argument n of kernel "saxpy" is of type i64, but the number is given as i32`},
		{"not an argument", func(b *dag.Builder, d, e, h dag.BufferID) { b.Kernel("k", "tiny", dag.Args{"seven", []int{7}}) },
			"node \"k\": argument 1 of kernel \"tiny\": a string is neither a Range or Access nor a number\n" +
				"node \"k\": argument 2 of kernel \"tiny\": a []int is neither a Range or Access nor a number"},
		{"host memory", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Kernel("k", "saxpy", dag.Args{8, 2, b.Whole(h), b.Whole(d)})
		},
			`node "k": kernel "saxpy" cannot use "h", which is in host memory; copy it to a device buffer first`},
		{"two devices", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Kernel("k", "saxpy", dag.Args{8, 2, b.Whole(e), b.Whole(d)})
		},
			`node "k": kernel "saxpy" uses buffers of devices 1 and 0 ("d"); peer: true lets a kernel touch the memory of another device`},
		{"another device than its buffers", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Kernel("k", "saxpy", dag.Args{4, 2, b.Part(d, 0, 2), b.Part(d, 1, 2)}, dag.RunOn(2))
		}, `node "k": kernel "saxpy" is to run on device 2, but "d" is on device 0; peer: true lets a kernel touch the memory of another device`},
		{"options", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Kernel("k", "tiny", dag.Args{1, 1}, dag.Grid(), dag.Block(0), dag.Shared(-1), dag.RunOn(-1), dag.Grid(1, 2, 3, 4))
		}, "node \"k\": a grid has one to three dimensions, not 0\n" +
			"node \"k\": block: 0 is not a size\n" +
			"node \"k\": shared: -1 is not a size\n" +
			"node \"k\": device -1; it must not be negative\n" +
			"node \"k\": a grid has one to three dimensions, not 4"},
		{"map of different sizes", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Map("m", "y = 2*x", map[string]any{"y": b.Part(d, 0, 2), "x": b.Slice(d, 5, 8)})
		}, `node "m": map: x has 3 elements, y has 4; every buffer that a map reads needs as many elements as its result, or one`},
		{"map over itself, shifted", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Map("m", "y = 2*x", map[string]any{"y": b.Slice(d, 0, 4), "x": b.Slice(d, 1, 5)})
		}, `node "m": map: x (d(1..5)) and y (d(0..4)) overlap, so that elements would be overwritten before they are read`},
		{"map of an unknown name", func(b *dag.Builder, d, e, h dag.BufferID) { b.Map("m", "d = 2*xs", map[string]any{"x": 3}) },
			`node "m": map: unknown name "xs"; did you mean "x"?`},
		{"map that does not use a name", func(b *dag.Builder, d, e, h dag.BufferID) { b.Map("m", "d = 2*d", map[string]any{"x": 3, "a": 1}) },
			"node \"m\": map: \"a\" does not appear in \"d = 2*d\"\nnode \"m\": map: \"x\" does not appear in \"d = 2*d\""},
		{"map to a number", func(b *dag.Builder, d, e, h dag.BufferID) { b.Map("m", "a = 2*d", map[string]any{"a": 3}) },
			`node "m": map: a is a number; the result of a map goes to a buffer`},
		{"map that is none", func(b *dag.Builder, d, e, h dag.BufferID) { b.Map("m", "2*d", nil) },
			`node "m": map: missing the name of the result; an elementwise computation is written "y = a*x + b"`},
		{"map the library refuses", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Map("m", "f = 1", map[string]any{"f": b.Whole(b.Device("flags", dag.Bool, 8))})
		},
			`node "m": map: no map gives bool`},
		{"copy of different sizes", func(b *dag.Builder, d, e, h dag.BufferID) { b.Copy("c", b.Whole(d), b.Slice(h, 0, 7)) },
			`node "c": memcpy: the sizes differ: h(0..7) has 7 elements, d has 8 elements`},
		{"copy onto itself", func(b *dag.Builder, d, e, h dag.BufferID) { b.Copy("c", b.Slice(d, 0, 4), b.Slice(d, 3, 7)) },
			`node "c": memcpy: source and destination overlap in d(3..4)`},
		{"memset beyond the type", func(b *dag.Builder, d, e, h dag.BufferID) { b.Memset("m", b.Whole(b.Device("bytes", dag.U8, 4)), -1) },
			`node "m": memset: the value is -1, which does not fit in u8`},
		{"memset of host memory", func(b *dag.Builder, d, e, h dag.BufferID) { b.Memset("m", b.Whole(h), 0) },
			`node "m": memset cannot fill "h", which is in host memory; fill it with Init, or copy to it`},
		{"streams of two kinds", func(b *dag.Builder, d, e, h dag.BufferID) {
			for i, name := range []string{"one", "two", "three"} {
				n := b.Task(name)
				b.Stream(n, 4)
				b.At(n).Device = []int32{0, 1, 0}[i]
				b.Priority(n, []dag.Priority{dag.Normal, dag.Normal, dag.High}[i])
			}
		}, "node \"two\": stream 4 has \"one\" on device 0 and \"two\" on device 1; a stream belongs to one device\n" +
			"node \"three\": stream 4 has \"one\" of normal priority and \"three\" of high priority; a stream has one priority"},
		{"memset of no number", func(b *dag.Builder, d, e, h dag.BufferID) { b.Memset("m", b.Whole(d), "0") }, `node "m": memset: a string is not a number`},
		{"slices", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Slice(d, 4, 9)
			b.Slice(d, 4, 3)
			b.Slice(d, -1, 3)
			b.Part(d, 4, 4)
			b.Part(d, 0, 0)
			b.Slice(b.Device("s", dag.F32), 0, 1)
		}, "buffer \"d\": slice 4..9 of d goes past its end (8)\n" +
			"buffer \"d\": slice 4..3 of d is reversed\n" +
			"buffer \"d\": slice -1..3 of d: bounds must not be negative\n" +
			"buffer \"d\": part 4 of 4 of d: parts count from 0 to 3\n" +
			"buffer \"d\": part 0 of 0 of d: there must be at least one part\n" +
			"buffer \"s\": s is a scalar and cannot be sliced"},
		{"ranges by hand", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Task("t", dag.Range{Buffer: d, Lo: 0, Hi: 33}.In(), dag.Range{Buffer: 9, Lo: 0, Hi: 1}.In(), dag.Range{Buffer: d, Lo: 4, Hi: 0}.Out(), dag.Access{Range: dag.Range{Buffer: d, Lo: 0, Hi: 4}, Mode: 0})
		}, "node \"t\": bytes 0 to 33 of \"d\" go past its end (32 bytes)\n" +
			"node \"t\": there is no buffer with id 9\n" +
			"node \"t\": bytes 4 to 0 of \"d\" are not a range\n" +
			"node \"t\": an access must be in, out or inout"},
		{"shapes", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Device("a", dag.F32, 1<<62, 2)
			b.Device("b", dag.F32, 1<<62)
			b.Device("c", dag.F32, 3, -1)
			b.Device("none", dag.InvalidDType, 3)
			b.Device("empty", dag.F32, 1<<62, 1<<62, 0)
		}, "buffer \"a\": the number of elements does not fit in 64 bits\n" +
			"buffer \"b\": the size in bytes (4611686018427387904 elements of f32) does not fit in 64 bits\n" +
			"buffer \"c\": dimension 1 of the shape is -1; it must not be negative\n" +
			"buffer \"none\": the element type is missing"},
		{"names", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Task("")
			b.Task(long)
			b.Task("a\nb")
			b.Task("\xff")
			b.Task("größe 'x'")
			b.Task("t")
			b.Task("t")
			b.Device("d", dag.F32)
		}, "buffer \"d\": the name is taken (ids 0 and 3)\n" +
			"node \"\": the name is empty\n" +
			"node \"" + long + "\": the name has 256 bytes; at most 255 are allowed\n" +
			"node \"a\\nb\": the name has a control character (U+000A)\n" +
			"node \"\\xff\": the name is not UTF-8\n" +
			"node \"t\": the name is taken (ids 5 and 6)"},
		{"changed through At", func(b *dag.Builder, d, e, h dag.BufferID) {
			n := b.Task("t")
			b.After(n, 7)
			b.Stream(n, -2)
			b.Priority(n, 3)
			b.Cost(n, math.NaN())
			b.At(n).Device = -1
			b.At(5).Stream = dag.OnStream(1)
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
		{"three devices", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Module("three", "t.cu", moduleOf(dag.KernelParam{Size: 8, Buffer: true}, dag.KernelParam{Size: 8, Buffer: true}, dag.KernelParam{Size: 8, Buffer: true}))
			b.Kernel("back and forth", "three.k", dag.Args{b.In(d), b.In(e), b.Out(d)})
			b.Kernel("there", "three.k", dag.Args{b.In(d), b.In(e), b.Out(e)})
		}, "node \"back and forth\": kernel \"three.k\" uses buffers of devices 0 and 1 (\"e\"); peer: true lets a kernel touch the memory of another device\n" +
			"node \"back and forth\": kernel \"three.k\" uses buffers of devices 1 and 0 (\"d\"); peer: true lets a kernel touch the memory of another device\n" +
			"node \"there\": kernel \"three.k\" uses buffers of devices 0 and 1 (\"e\"); peer: true lets a kernel touch the memory of another device"},
		{"copies beyond an end", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Copy("to", dag.Range{Buffer: d, Hi: 33}, b.Whole(h))
			b.Copy("from", b.Whole(d), dag.Range{Buffer: h, Hi: 33})
			b.Memset("set", dag.Range{Buffer: d, Hi: 33}, 0)
		}, "node \"to\": bytes 0 to 33 of \"d\" go past its end (32 bytes)\n" +
			"node \"from\": bytes 0 to 33 of \"h\" go past its end (32 bytes)\n" +
			"node \"set\": bytes 0 to 33 of \"d\" go past its end (32 bytes)"},
		{"nodes of bodies", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Repeat("loop", dag.Loop{Times: 2}, func() {
				b.Cost(b.Task("a"), -1)
				b.Repeat("inner", dag.Loop{Times: 2}, func() { b.After(b.Task("b"), 1) })
			})
		}, "node \"a\": a cost of -1 us\n" +
			"node \"b\": after: there is no node with id 1"},
		{"loops like others", func(b *dag.Builder, d, e, h dag.BufferID) {
			loop, branch := dag.Node{Name: "loop", Kind: dag.Repeat, Control: &dag.Control{Times: 2, Every: 1}}, dag.Node{Name: "branch", Kind: dag.Branch, Control: &dag.Control{Every: 1}}
			body := func() { b.Task("in the loop") }
			b.ControlLike(dag.Node{Name: "none", Kind: dag.Repeat}, nil, body)
			b.ControlLike(dag.Node{Name: "task", Control: loop.Control}, nil, body)
			b.ControlLike(loop, []dag.Range{b.Slice(d, 0, 1)}, body)
			b.ControlLike(loop, nil)
			loop.Name = "fine"
			b.ControlLike(loop, nil, body)
			b.ControlLike(branch, nil, func() { b.Task("in the branch") })
		}, "node \"none\": it is neither a loop nor a branch\n" +
			"node \"task\": it is neither a loop nor a branch\n" +
			"node \"loop\": a repeat like it cannot have 1 bodies and a condition of 1 elements\n" +
			"node \"loop\": a repeat like it cannot have 0 bodies and a condition of 0 elements\n" +
			"node \"loop\": the name is taken (ids 2 and 3)"},
		{"memory of other elements", func(b *dag.Builder, d, e, h dag.BufferID) {
			vector := dag.KernelParam{Size: 8, Buffer: true, DType: dag.Vector(dag.F32, 4), Mode: dag.Read}
			b.Module("v", "v.cu", moduleOf(vector))
			b.Kernel("whole", "v.k", dag.Args{b.Whole(d)}, dag.Grid(1))
			b.Kernel("middle", "v.k", dag.Args{b.Slice(d, 4, 8)}, dag.Grid(1))
			b.Kernel("shifted", "v.k", dag.Args{b.Slice(d, 2, 6)}, dag.Grid(1))
			b.Kernel("odd", "v.k", dag.Args{b.Slice(d, 0, 6)}, dag.Grid(1))
			b.Kernel("integers", "v.k", dag.Args{b.In(b.Device("i", dag.I32, 8))}, dag.Grid(1))
			b.Kernel("vectors", "v.k", dag.Args{b.In(b.Device("v", vector.DType, 8))}, dag.Grid(1))
		}, "node \"shifted\": argument 1 of kernel \"v.k\" has elements of type f32x4, which begin at multiples of 16 bytes; d(2..6) begins at byte 8 of \"d\"\n" +
			"node \"odd\": argument 1 of kernel \"v.k\" has elements of type f32x4 (16 bytes); d(0..6) has 24 bytes\n" +
			"node \"integers\": argument 1 of kernel \"v.k\" has elements of type f32x4, but \"i\" has i32"},
		{"one argument and none", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Module("bare", "b.cu", moduleOf())
			b.Module("single", "s.cu", moduleOf(dag.KernelParam{Name: "x", Size: 8, DType: dag.I64}))
			b.Kernel("one", "single.k", nil)
			b.Kernel("none", "bare.k", dag.Args{1})
		}, "node \"one\": kernel \"single.k\" takes 1 argument (x), got 0\n" +
			"node \"none\": kernel \"bare.k\" takes no arguments, got 1"},
		{"columns", func(b *dag.Builder, d, e, h dag.BufferID) {
			m := b.Device("m", dag.F32, 4, 6)
			b.Tile(d, 0, 1, 0, 1)
			b.Tile(b.Device("s", dag.F32), 0, 1, 0, 1)
			b.Tile(m, 0, 1, 2, 7)
			b.Tile(m, 0, 1, 3, 2)
			b.Tile(m, 0, 5, 0, 6)
			b.PartTile(m, 0, 2, 2, 2)
			b.HaloPart(m, 0, 2, -1)
			b.Tile(m, 4, 4, 6, 6)
			b.Tile(b.Device("wide", dag.F64, 2, 1<<28), 0, 1, 0, 1)
		}, "buffer \"d\": d has one dimension, so it has no columns\n" +
			"buffer \"s\": s is a scalar and cannot be sliced\n" +
			"buffer \"s\": s is a scalar and cannot be sliced\n" +
			"buffer \"m\": columns 2..7 of m: there are only 6\n" +
			"buffer \"m\": columns 3..2 of m: the first bound is after the second\n" +
			"buffer \"m\": slice 0..5 of m goes past its end (4)\n" +
			"buffer \"m\": part 2 of 2 of m: parts count from 0 to 1\n" +
			"buffer \"m\": part 0 of 2 of m with a halo of -1: it must not be negative\n" +
			"buffer \"wide\": a row of wide has 2147483648 bytes; its columns can only be sliced up to 2147483647"},
		{"memset of a tile", func(b *dag.Builder, d, e, h dag.BufferID) {
			m := b.Device("m", dag.F64, 4, 4)
			b.Memset("zero", b.Tile(m, 0, 2, 0, 2), 0)
			b.Memset("one", b.Tile(m, 0, 2, 0, 2), 1)
			b.Memset("rows", b.Tile(m, 0, 2, 0, 4), 1)
		}, `node "one": memset: m(0..2)(0..2) is a tile of f64, which can only be filled with a value whose upper and lower four bytes are the same, such as 0; copy a tile of a buffer that has the value`},
		{"copies of tiles", func(b *dag.Builder, d, e, h dag.BufferID) {
			m, n := b.Device("m", dag.F32, 6, 8), b.Device("n", dag.F32, 6, 8)
			b.Copy("flat", b.Slice(d, 0, 6), b.Tile(m, 0, 3, 0, 2))
			b.Copy("other", b.Tile(n, 0, 2, 0, 3), b.Tile(m, 0, 3, 0, 2))
			b.Copy("onto itself", b.Tile(m, 0, 3, 0, 4), b.Tile(m, 2, 5, 3, 7))
			b.Copy("a row of it", b.Slice(m, 2, 3), b.Tile(m, 1, 5, 6, 8))
			b.Copy("beside itself", b.Tile(m, 0, 3, 0, 4), b.Tile(m, 0, 3, 4, 8))
		}, "node \"other\": memcpy: the tiles differ: m(0..3)(0..2) has 3 rows, n(0..2)(0..3) has 2\n" +
			"node \"onto itself\": memcpy: source and destination overlap in m(2..3)(3..4)\n" +
			"node \"a row of it\": memcpy: source and destination overlap in m(2..3)(6..8)"},
		{"maps that keep to their form", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Map("in", "y = 2*d", map[string]any{"y": b.Whole(b.Device("y", dag.F32, 8)).In()})
			b.Map("at", "d = 2*x", map[string]any{"x": b.In(e).At(1), "d": b.Whole(e)})
			b.Map("null", "d = 2*x", map[string]any{"x": nil})
			b.Map("vectors", "d = v", map[string]any{"v": b.Whole(b.Device("v", dag.Vector(dag.F32, 2), 8))})
		}, "node \"in\": argument y of map is written (out); \"y\" cannot be given as in\n" +
			"node \"at\": argument x of map must begin where its slice does; only kernels of modules take at\n" +
			"node \"null\": argument x of map must not be null; only kernels of modules take null pointers\n" +
			"node \"vectors\": map: \"v\" is of type f32x2; a map computes with single numbers; use a kernel, or a buffer of f32"},
		{"an option that is none", func(b *dag.Builder, d, e, h dag.BufferID) { b.Kernel("k", "tiny", dag.Args{1, 1}, nil) }, `node "k": a launch option is nil`},
		{"bodies that are none", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Repeat("loop", dag.Loop{Times: 2}, nil)
			b.If("branch", "d(0..1) > 0", nil, nil)
			b.Repeat("empty", dag.Loop{Times: 2}, func() {})
		}, "node \"loop\": there is no function that declares its body\n" +
			"node \"branch\": there is no function that declares its body\n" +
			"node \"empty\": the body has no nodes"},
		{"names in bodies", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Task("a")
			b.Repeat("loop", dag.Loop{Times: 2}, func() {
				b.Task("a")
				b.Task("b")
				b.Task("c\n")
			})
			b.If("branch", "d(0..1) > 0", func() { b.Task("b") }, func() { b.Task("loop") })
		}, "node \"a\": the name is taken; names of nodes are unique in the whole pipeline, bodies included\n" +
			"node \"c\\n\": the name has a control character (U+000A)\n" +
			"node \"b\": the name is taken; names of nodes are unique in the whole pipeline, bodies included\n" +
			"node \"loop\": the name is taken; names of nodes are unique in the whole pipeline, bodies included"},
		{"streams in bodies", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Repeat("loop", dag.Loop{Times: 2}, func() {
				b.Stream(b.Memset("first", b.Whole(d), 0), 1)
				b.Stream(b.Memset("second", b.Whole(e), 0), 1)
			})
		}, `node "second": stream 1 has "first" on device 0 and "second" on device 1; a stream belongs to one device`},
		{"loops that only the host sees", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Sync(dag.SyncExplicit)
			b.Repeat("loop", dag.Loop{Times: 2}, func() { b.Task("a") })
		}, `node "loop": loops and branches need sync: auto; use SyncAuto`},
		{"conditions", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Device("u", dag.U64, 1)
			b.Device("v", dag.Vector(dag.F32, 2), 1)
			for _, text := range []string{"d > 0", "d(0..1)", "h(0..1) > 0", "x > 0", "1 > 0", "d(0..1) % 2 > 0", "sin(d(0..1)) > 0", "not d(0..1)", "d(8..9) > 0", "u > 0", "v > 0"} {
				b.If(text, text, func() { b.Task("in " + text) }, nil)
			}
		}, "node \"d > 0\": condition \"d > 0\": a condition reads single elements, and d has 8; write a slice such as x(0..1)\n" +
			"node \"d(0..1)\": condition \"d(0..1)\": the condition must be true or false, not a number; compare it, as in d(0..1) > 0\n" +
			"node \"h(0..1) > 0\": condition \"h(0..1) > 0\": \"h\" is in host memory; a condition reads device buffers\n" +
			"node \"x > 0\": condition \"x > 0\": unknown name \"x\"\n" +
			"node \"1 > 0\": condition \"1 > 0\": the condition reads no device buffer, so it would be the same in every pass; use times, or when for a decision at planning time\n" +
			"node \"d(0..1) % 2 > 0\": condition \"d(0..1) % 2 > 0\": conditions cannot compute with %\n" +
			"node \"sin(d(0..1)) > 0\": condition \"sin(d(0..1)) > 0\": sin is only available in map: expressions\n" +
			"node \"not d(0..1)\": condition \"not d(0..1)\": this must be true or false, not a number; compare it, as in x > 0\n" +
			"node \"d(8..9) > 0\": condition \"d(8..9) > 0\": slice 8..9 is outside d, which has 8\n" +
			"node \"u > 0\": condition \"u > 0\": u is of type u64, which conditions cannot compute with; use i64\n" +
			"node \"v > 0\": condition \"v > 0\": v is of type f32x2; conditions compute with single numbers"},
		{"priorities in bodies", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Repeat("loop", dag.Loop{Times: 2}, func() { b.Priority(b.Task("a"), dag.High) })
		}, `node "loop": "a" of its body has high priority; nodes of a body have the priority of the node around them, which is normal`},
		{"host functions", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.HostFunction("nameless", "", b.In(h))
			b.HostFunction("far", "f", b.In(d))
		}, "node \"nameless\": the host function has no name; name it as in runtime.Options.Functions\n" +
			"node \"far\": a host function cannot access \"d\", which is in device memory; copy it to a host buffer before, and back after"},
		{"spread over", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Devices(dag.MostDevices + 1)
			b.Devices(dag.AllDevices - 1)
			b.Devices(dag.MostDevices)
		}, "pipeline \"test\": it can be spread over 1 to 64 devices, not 65\n" +
			"pipeline \"test\": it can be spread over 1 to 64 devices, not -2"},
		{"parts of a pipeline", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Ranks(2, 2)
			b.Ranks(-1, 2)
			b.Ranks(0, dag.MaxRanks+1)
			b.Ranks(0, -1)
			b.Ranks(dag.MaxRanks-1, dag.MaxRanks)
		}, "pipeline \"test\": rank 2 (0 on its machine) is not one of 2\n" +
			"pipeline \"test\": rank -1 (0 on its machine) is not one of 2\n" +
			"pipeline \"test\": 65537 ranks: there can be 1 to 65536\n" +
			"pipeline \"test\": -1 ranks: there can be 1 to 65536"},
		{"values of structures", func(b *dag.Builder, d, e, h dag.BufferID) {
			deep := dag.Values{1}
			for range dag.MostNested {
				deep = dag.Values{deep}
			}
			b.Kernel("deep", "tiny", dag.Args{deep, 1})
			b.Kernel("deeper", "tiny", dag.Args{dag.Values{deep}, 1})
			b.Kernel("word", "tiny", dag.Args{dag.Values{"x"}, 1})
			b.Kernel("typed", "tiny", dag.Args{dag.Values{dag.Scalar{DType: dag.F32, Value: "x"}}, 1})
			b.Kernel("vector", "tiny", dag.Args{dag.Values{dag.Scalar{DType: dag.Vector(dag.F32, 2), Value: 1}}, dag.Scalar{DType: dag.C64, Value: 1}})
			b.Kernel("range", "tiny", dag.Args{dag.Values{dag.Range{Buffer: 99}}, dag.Range{Buffer: 99}})
		}, "node \"deep\": argument k of kernel \"tiny\" must be a number (u8), got a structure\n" +
			"node \"deeper\": argument 1 of kernel \"tiny\": structures are nested more than 20 deep\n" +
			"node \"word\": argument 1 of kernel \"tiny\": a string is neither a Range or Access nor a number nor Values\n" +
			"node \"typed\": argument 1 of kernel \"tiny\": a string is not a number of a known type\n" +
			"node \"vector\": argument 1 of kernel \"tiny\": a int is not a number of a known type\n" +
			"node \"vector\": argument 2 of kernel \"tiny\": a int is not a number of a known type\n" +
			"node \"range\": argument 1 of kernel \"tiny\": there is no buffer with id 99\n" +
			"node \"range\": argument 2 of kernel \"tiny\": there is no buffer with id 99"},
		{"modules", func(b *dag.Builder, d, e, h dag.BufferID) {
			b.Module("mine", "again.cu", fakes.UserKernels)
			b.Module("a.b", "c.cu", fakes.UserKernels)
			b.Module("none", "d.cu", nil)
		}, "module \"mine\": the name is taken\n" +
			"module \"a.b\": the name must not be empty or have a dot\n" +
			"module \"none\": there is no library"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := dag.New("test")
			b.Use(fakes.Kernels)
			b.Module("mine", "filters.cu", fakes.UserKernels)
			d, e, h := b.Device("d", dag.F32, 8), b.Device("e", dag.F32, 8), b.Host("h", dag.F32, 8)
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

// What is false, a bool or unsigned is a number too, as far as 64 bits with a sign hold it.
func TestNumbersByGoCalls(t *testing.T) {
	for _, c := range []struct {
		value any
		bits  uint64
		fine  bool
	}{{false, 0, true}, {true, 1, true}, {uint8(255), 255, true}, {int8(-1), 1<<64 - 1, true}, {uint64(math.MaxInt64), math.MaxInt64, true},
		{uint64(math.MaxInt64) + 1, 0, false}, {2.0, 2, true}, {"2", 0, false}} {
		b := dag.New("test")
		b.Module("m", "m.cu", moduleOf(dag.KernelParam{Size: 8, DType: dag.I64}))
		b.Kernel("k", "m.k", dag.Args{c.value}, dag.Grid(1), dag.Block(1))
		g, err := b.Graph()
		if require.Equal(t, c.fine, err == nil, "%v: %v", c.value, err); c.fine {
			require.Equal(t, dag.Arg{DType: dag.I64, Bits: c.bits}, g.Nodes[0].Launch.Args[0], "%v", c.value)
		}
	}
}

func TestKernelWithoutLibrary(t *testing.T) {
	b := dag.New("test")
	b.Kernel("k", "saxpy", nil)
	_, err := b.Graph()
	require.EqualError(t, err, `node "k": kernel "saxpy": there is no library to find it in`)
	var declaration *dag.DeclarationError
	require.ErrorAs(t, err, &declaration)
	require.Equal(t, "k", declaration.Name)
}

func TestKernelAccesses(t *testing.T) {
	b := dag.New("test")
	b.Use(fakes.Kernels)
	b.Module("mine", "filters.cu", fakes.UserKernels)
	x, y := b.Device("x", dag.F32, 1000), b.Device("y", dag.F32, 1000)
	r := b.Device("r", dag.F32, 4)
	k := b.Kernel("saxpy", "saxpy", dag.Args{300, 2.5, b.Whole(x), b.Slice(y, 500, 1000)})
	s := b.Kernel("sum", "sum", dag.Args{1000, b.Whole(y), b.Slice(r, 2, 4)})
	u := b.Kernel("blur", "mine.blur", dag.Args{10, b.Whole(x), b.Out(y)}, dag.Grid(4, 2), dag.Block(64), dag.Shared(128))
	o := b.Kernel("opaque", "mine.opaque", dag.Args{b.InOut(r), dag.Scalar{DType: dag.I32, Value: -1}}, dag.Grid(0))
	g, err := b.Graph()
	require.NoError(t, err)

	// Of each slice, only the elements that the kernel touches become accesses.
	require.Equal(t, []dag.Access{{Range: dag.Range{Buffer: x, Lo: 0, Hi: 1200}, Mode: dag.Read}, {Range: dag.Range{Buffer: y, Lo: 2000, Hi: 3200}, Mode: dag.ReadWrite}}, g.Accesses(k))
	require.Equal(t, &dag.Launch{Name: "saxpy", Module: -1, Kernel: fakes.Kernels["saxpy"], Grid: [3]uint32{2, 1, 1}, Block: [3]uint32{256, 1, 1}, Args: []dag.Arg{
		{DType: dag.I64, Bits: 300},
		{DType: dag.F32, Bits: uint64(math.Float32bits(2.5))},
		{IsBuffer: true, Mode: dag.Read, DType: dag.F32, Range: dag.Range{Buffer: x, Lo: 0, Hi: 4000}},
		{IsBuffer: true, Mode: dag.ReadWrite, DType: dag.F32, Range: dag.Range{Buffer: y, Lo: 2000, Hi: 4000}},
	}}, g.Nodes[k].Launch)
	require.Equal(t, dag.Work{Flops: 300, Blocks: 2, Threads: 256}, g.Nodes[k].Work)

	// Scratch is a hidden buffer that the node writes.
	scratch := int32(len(g.Buffers) - 1)
	require.Equal(t, dag.Buffer{Name: "sum$scratch", Place: dag.Device, DType: dag.U8, Scratch: true, Shape: []int64{1024}, Bytes: 1024}, g.Buffers[scratch])
	require.Equal(t, []dag.Access{{Range: dag.Range{Buffer: y, Lo: 0, Hi: 4000}, Mode: dag.Read}, {Range: dag.Range{Buffer: r, Lo: 8, Hi: 12}, Mode: dag.Write}, {Range: dag.Range{Buffer: dag.BufferID(scratch), Lo: 0, Hi: 1024}, Mode: dag.Write}}, g.Accesses(s))
	require.Equal(t, dag.Range{Buffer: dag.BufferID(scratch), Lo: 0, Hi: 1024}, g.Nodes[s].Launch.Args[3].Range)

	// A user's kernel says nothing about its accesses; {out: y} narrows a plain pointer to writing.
	require.Equal(t, []dag.Access{{Range: dag.Range{Buffer: x, Lo: 0, Hi: 40}, Mode: dag.Read}, {Range: dag.Range{Buffer: y, Lo: 0, Hi: 40}, Mode: dag.Write}}, g.Accesses(u))
	require.Equal(t, [3]uint32{4, 2, 1}, g.Nodes[u].Launch.Grid)
	require.Equal(t, [3]uint32{64, 1, 1}, g.Nodes[u].Launch.Block)
	require.Equal(t, dag.Work{Blocks: 8, Threads: 64, Shared: 128}, g.Nodes[u].Work)
	require.EqualValues(t, 0, g.Nodes[u].Launch.Module)

	require.Equal(t, uint64(0xffffffff), g.Nodes[o].Launch.Args[1].Bits)
	require.Zero(t, g.Nodes[o].Launch.Grid[0])
	require.Equal(t, []dag.Access{{Range: dag.Range{Buffer: r, Lo: 0, Hi: 16}, Mode: dag.ReadWrite}}, g.Accesses(o))
}

// What the code of a kernel shows is used where the file says nothing, and confirms what the file says.
func TestEvidence(t *testing.T) {
	b := dag.New("evidence")
	b.Use(fakes.Kernels)
	b.Module("mine", "filters.ptx", fakes.UserKernels)
	d := b.Device("d", dag.F32, 8)
	b.Kernel("silent", "mine.seen", dag.Args{b.Part(d, 0, 4), b.Part(d, 1, 4), b.Part(d, 2, 4).InOut()}, dag.Grid(1))
	b.Kernel("told", "mine.seen", dag.Args{b.Part(d, 0, 4).In(), b.Part(d, 1, 4).InOut(), b.Part(d, 2, 4).Out()}, dag.Grid(1))
	b.Kernel("library", "saxpy", dag.Args{2, 2, b.Part(d, 0, 4), b.Part(d, 1, 4)})
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
	b := dag.New("test")
	b.Use(fakes.Kernels)
	x, y := b.Device("x", dag.F32, 1000), b.Device("y", dag.F64, 4, 100)
	m := b.Map("m", "out = a*x + out/len(y)", map[string]any{"out": b.Slice(y, 1, 3), "x": b.Part(x, 4, 5), "a": 2})
	whole := b.Map("whole", "x = x + len(x)", nil) // x is the first buffer
	g, err := b.Graph()
	require.NoError(t, err)
	launch := g.Nodes[m].Launch
	require.Equal(t, []string{"x", "out"}, launch.Map.Inputs)
	require.Equal(t, []string{"a"}, launch.Map.Scalars)
	require.Equal(t, dag.F64, launch.Map.OutType)
	require.Equal(t, []dag.DType{dag.F32, dag.F64}, launch.Map.InTypes)
	require.Equal(t, []string{"a", "x", "out"}, launch.Map.Expr.Variables())
	require.Equal(t, []dag.Arg{
		{DType: dag.I64, Bits: 200},
		{IsBuffer: true, Mode: dag.Write, DType: dag.F64, Range: dag.Range{Buffer: y, Lo: 800, Hi: 2400}},
		{IsBuffer: true, Mode: dag.Read, DType: dag.F32, Range: dag.Range{Buffer: x, Lo: 3200, Hi: 4000}},
		{IsBuffer: true, Mode: dag.Read, DType: dag.F64, Range: dag.Range{Buffer: y, Lo: 800, Hi: 2400}},
		{DType: dag.F64, Bits: math.Float64bits(2)},
	}, launch.Args)
	require.Equal(t, []dag.Access{{Range: dag.Range{Buffer: x, Lo: 0, Hi: 4000}, Mode: dag.Write}, {Range: dag.Range{Buffer: x, Lo: 0, Hi: 4000}, Mode: dag.Read}}, g.Accesses(whole))
	require.Equal(t, []dag.Edge{{From: m, To: whole, Buffer: x, Why: dag.WAR, Lo: 3200, Hi: 4000}}, g.Edges())
}

func TestEmptySlicesKeepTheirOrder(t *testing.T) {
	b := dag.New("test")
	b.Use(fakes.Kernels)
	d, e, h := b.Device("d", dag.F32, 8), b.Device("e", dag.F32, 0), b.Host("h", dag.F32, 8)
	up := b.Copy("up", b.Whole(d), b.Whole(h))
	none := b.Copy("none", b.Slice(d, 3, 3), b.Whole(e))
	nothing := b.Kernel("nothing", "saxpy", dag.Args{0, 2, b.Whole(e), b.Whole(d)})
	b.After(nothing, none)
	down := b.Copy("down", b.Whole(h), b.Whole(d))
	b.After(down, nothing)
	g, err := b.Graph()
	require.NoError(t, err)
	require.Equal(t, []dag.Edge{
		{From: up, To: down, Buffer: d, Why: dag.RAW, Lo: 0, Hi: 32},
		{From: none, To: nothing, Buffer: -1, Why: dag.After, Declared: true},
		{From: nothing, To: down, Buffer: -1, Why: dag.After, Declared: true},
	}, g.Edges())
	require.Zero(t, g.Nodes[nothing].Launch.Grid[0])
}

func TestDevicesFollowBuffers(t *testing.T) {
	b := dag.New("test")
	b.Use(fakes.Kernels)
	d, e, h := b.Device("d", dag.F32, 8), b.Device("e", dag.F32, 8), b.Host("h", dag.F32, 8)
	b.OnDevice(e, 1)
	nodes := []dag.NodeID{
		b.Copy("up", b.Whole(e), b.Whole(h)),
		b.Copy("down", b.Whole(h), b.Whole(e)),
		b.Copy("across", b.Whole(e), b.Whole(d)),
		b.Memset("set", b.Whole(e), 1),
		b.Kernel("here", "saxpy", dag.Args{4, 2, b.Part(e, 0, 2), b.Part(e, 1, 2)}),
		b.Kernel("peer", "saxpy", dag.Args{8, 2, b.Whole(d), b.Whole(e)}, dag.WithPeers()),
		b.Kernel("chosen", "saxpy", dag.Args{8, 2, b.Whole(d), b.Whole(e)}, dag.WithPeers(), dag.RunOn(1)),
	}
	g, err := b.Graph()
	require.NoError(t, err)
	var devices []int32
	for _, i := range nodes {
		devices = append(devices, g.Nodes[i].Device)
	}
	require.Equal(t, []int32{1, 1, 0, 1, 1, 0, 1}, devices)
	require.True(t, g.Nodes[nodes[5]].Peer)
	require.Equal(t, &dag.Set{Dst: dag.Range{Buffer: e, Lo: 0, Hi: 32}, Bits: uint64(math.Float32bits(1))}, g.Nodes[nodes[3]].Set)
}

func TestPartsAreEven(t *testing.T) {
	b := dag.New("test")
	d := b.Device("d", dag.F64, 10, 2)
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
	b := dag.New("test")
	d, s := b.Device("d", dag.F32, 4, 4), b.Device("s", dag.F32)
	p := &dag.DraftOf(b).Pipeline
	require.Equal(t, "d", p.RangeText(b.Whole(d)))
	require.Equal(t, "d(1..3)", p.RangeText(dag.Range{Buffer: d, Lo: 16, Hi: 48}))
	require.Equal(t, "d(0..1)(1..4)", p.RangeText(dag.Range{Buffer: d, Lo: 4, Hi: 16}))
	require.Equal(t, "d[4:20]", p.RangeText(dag.Range{Buffer: d, Lo: 4, Hi: 20}))
	require.Equal(t, "d[5:16]", p.RangeText(dag.Range{Buffer: d, Lo: 5, Hi: 16}))
	require.Equal(t, "d(1..3)(0..2)", p.RangeText(b.Tile(d, 1, 3, 0, 2)))
	require.Equal(t, "s", p.RangeText(b.Whole(s)))
	require.Equal(t, "s[0:2]", p.RangeText(dag.Range{Buffer: s, Lo: 0, Hi: 2}))

	// The text of a buffer filled in by hand may say anything, but there must be one.
	for _, columns := range []int64{0, 65} {
		odd := &dag.Pipeline{Buffers: []dag.Buffer{{Name: "odd", Shape: []int64{2, columns}, Bytes: 128}}}
		require.Equal(t, "odd[0:4]", odd.RangeText(dag.Range{Pitch: 64, Lo: 0, Hi: 4}))
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
	b := dag.New("test")
	b.Use(fakes.Kernels)
	x, y := b.Device("x", dag.F32, 4), b.Device("y", dag.F32, 4)
	b.Kernel("k", "saxpy", dag.Args{dag.NodeID(3), 2, x, b.Whole(y)})
	b.Map("m", "y = a*x", map[string]any{"a": x})
	b.Memset("s", b.Whole(x), x)
	_, err := b.Graph()
	require.EqualError(t, err, "node \"k\": argument 1 of kernel \"saxpy\": the id of a node is not an argument\n"+
		"node \"k\": argument 3 of kernel \"saxpy\": the id of a buffer is not an argument; write Whole, In, Out or InOut of it\n"+
		"node \"m\": map: a: the id of a buffer is not an argument; write Whole, In, Out or InOut of it\n"+
		"node \"s\": memset: a dag.BufferID is not a number")
}

// wordCalls are calls of a library whose arguments are words and numbers.
type wordCalls struct{ nonsenseLibrary }

func (c wordCalls) Calls() dag.Calls { return c }

func (c wordCalls) ParameterNames(string) ([]string, error) {
	return []string{"a", "b", "c", "d", "e", "x"}, nil
}

func (c wordCalls) Argument(_, name string) ([]string, expr.Value, bool) {
	if name == "x" {
		return nil, expr.Value{}, false
	}
	return []string{"no", "yes"}, expr.Int(7), name == "e"
}

// The arguments of a call are given by name: words stand for their places in a list, and some may be left out.
func TestCallsByGoCalls(t *testing.T) {
	var params []dag.KernelParam
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		params = append(params, dag.KernelParam{Name: name, Size: 8, DType: dag.I64, Words: []string{"no", "yes"}})
	}
	params = append(params, dag.KernelParam{Name: "x", Size: 8, Buffer: true, DType: dag.F32, Mode: dag.Read}, dag.KernelParam{Name: "info", Size: 8, Buffer: true, Status: true})
	declare := func(args func(x dag.Range) dag.CallArgs, options ...dag.LaunchOption) (*dag.Graph, error) {
		b := dag.New("test")
		b.Use(wordCalls{nonsenseLibrary{&nonsense{params: params, info: dag.LaunchInfo{HasHint: true}}}})
		b.Call("n", "library.call", args(b.Whole(b.Device("x", dag.F32, 4))), options...)
		return b.Graph()
	}
	good := func(x dag.Range) dag.CallArgs {
		return dag.CallArgs{"a": "yes", "b": "no", "c": 5, "d": true, "x": x}
	}
	g, err := declare(good)
	require.NoError(t, err)
	var numbers []uint64
	for _, a := range g.Nodes[0].Launch.Args[:5] {
		numbers = append(numbers, a.Bits)
	}
	require.Equal(t, []uint64{1, 0, 5, 1, 7}, numbers)
	require.Equal(t, "library.call", g.Nodes[0].Launch.Name)
	require.EqualValues(t, -1, g.Nodes[0].Launch.Module)
	require.Equal(t, dag.Buffer{Name: "n$status", Place: dag.Device, DType: dag.I32, Scratch: true, Shape: []int64{1}, Bytes: 4, Init: &dag.Init{Kind: dag.InitZeros},
		Expect: &dag.Expect{Kind: dag.ExpectValue, Value: expr.Int(0)}}, g.Buffers[1])
	require.Equal(t, []dag.Access{{Range: dag.Range{Buffer: 0, Hi: 16}, Mode: dag.Read}, {Range: dag.Range{Buffer: 1, Hi: 4}, Mode: dag.Write}}, g.Accesses(0))
	g, err = declare(good, dag.RunOn(0))
	require.NoError(t, err)
	require.True(t, g.Nodes[0].Fixed)
	for _, option := range []dag.LaunchOption{dag.Grid(1), dag.Grid(0), dag.Block(1), dag.Shared(0), dag.Cooperative(), dag.Cluster(1), dag.WithPeers()} {
		_, err := declare(good, option)
		require.EqualError(t, err, `node "n": call "library.call" takes no option but RunOn`)
	}
	_, err = declare(func(dag.Range) dag.CallArgs {
		return dag.CallArgs{"d": "maybe", "c": "perhaps", "b": []int{1}, "a": "", "x": "yes", "e": "NO"}
	})
	require.EqualError(t, err, "node \"n\": argument a of call \"library.call\" must be no or yes, not \n"+
		"node \"n\": argument b of call \"library.call\": a []int is neither a Range or Access nor a number\n"+
		"node \"n\": argument c of call \"library.call\" must be no or yes, not perhaps\n"+
		"node \"n\": argument d of call \"library.call\" must be no or yes, not maybe\n"+
		"node \"n\": argument e of call \"library.call\" must be no or yes, not NO\n"+
		"node \"n\": argument x of call \"library.call\" is a number or a buffer, not a word")
	require.Nil(t, dag.WordsOf(moduleOf(), "library.call", "a"))
	_, err = declare(func(x dag.Range) dag.CallArgs { return dag.CallArgs{"a": 1, "b": 2, "c": 3, "x": x} })
	require.EqualError(t, err, `node "n": call "library.call" is given no d`)
	b := dag.New("test")
	b.Use(moduleOf())
	b.Call("n", "library.call", nil)
	_, err = b.Graph()
	require.EqualError(t, err, `node "n": call "library.call": there is no library to find it in`)
}
