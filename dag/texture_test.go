// Tests of textures by Go calls: their size where it is left open, what no GPU can read, and what a kernel's code says otherwise.
// cmd/dagrun has those of files.

package dag_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
)

// moduleOf is a library with one kernel of the given parameters, whatever its name.
func moduleOf(params ...dag.KernelParam) dag.Library {
	return nonsenseLibrary{&nonsense{params: params}}
}

func TestTextures(t *testing.T) {
	whole := func(b *dag.Builder, d dag.BufferID) dag.Range { return b.Whole(d) }
	slice := func(lo, hi int64) func(*dag.Builder, dag.BufferID) dag.Range {
		return func(b *dag.Builder, d dag.BufferID) dag.Range { return b.Slice(d, lo, hi) }
	}
	tile := func(lo, hi, left, right int64) func(*dag.Builder, dag.BufferID) dag.Range {
		return func(b *dag.Builder, d dag.BufferID) dag.Range { return b.Tile(d, lo, hi, left, right) }
	}
	f32x3, f32x4, u16x2 := dag.Vector(dag.F32, 3), dag.Vector(dag.F32, 4), dag.Vector(dag.U16, 2)
	edge := func(m dag.AddressMode) [2]dag.AddressMode { return [2]dag.AddressMode{dag.Clamp, m} }
	for _, c := range []struct {
		dtype dag.DType
		shape []int64
		of    func(*dag.Builder, dag.BufferID) dag.Range
		t     dag.Texture
		want  string // the texture, or what is wrong
	}{
		{dag.F32, []int64{32}, whole, dag.Texture{}, "width: 32"},
		{dag.F32, []int64{32}, whole, dag.Texture{Channels: 4}, "width: 8, channels: 4"},
		{f32x4, []int64{8}, whole, dag.Texture{}, "width: 8, channels: 4"},
		{dag.F32, []int64{4, 8}, whole, dag.Texture{}, "width: 8, height: 4"},
		{dag.F32, []int64{4, 128}, slice(1, 4), dag.Texture{}, "width: 128, height: 3"},
		{dag.F32, []int64{4, 8}, whole, dag.Texture{Width: 32}, "width: 32"},
		{dag.F32, []int64{4, 8}, whole, dag.Texture{Height: 2}, "width: 16, height: 2"},
		{dag.F32, []int64{32}, whole, dag.Texture{Height: 4}, "width: 8, height: 4"},
		{dag.F32, []int64{32}, whole, dag.Texture{Width: 8, Height: 4}, "width: 8, height: 4"},
		{dag.F32, []int64{64, 64}, tile(0, 4, 0, 8), dag.Texture{}, "width: 8, height: 4"},
		{dag.F32, []int64{64, 64}, tile(2, 4, 0, 8), dag.Texture{Height: 1}, "width: 8, height: 1"},
		{dag.F32, []int64{256}, slice(128, 256), dag.Texture{}, "width: 128"},
		{dag.U8, []int64{1 << 28}, whole, dag.Texture{Width: dag.MostTexels}, "width: 134217728"},
		{dag.F32, []int64{1 << 20}, whole, dag.Texture{Width: 65000, Height: 1}, "width: 65000, height: 1"},
		{dag.U8, []int64{1 << 28}, whole, dag.Texture{Width: 32, Height: 65000}, "width: 32, height: 65000"},
		{dag.F32, []int64{4, 8}, whole, dag.Texture{Filter: dag.Linear, Address: edge(dag.Border)}, "width: 8, height: 4, filter: linear, address: [clamp, border]"},
		{dag.F32, []int64{4, 8}, whole, dag.Texture{Normalized: true, Address: [2]dag.AddressMode{dag.Wrap, dag.Wrap}}, "width: 8, height: 4, address: wrap, coordinates: normalized"},
		{dag.U16, []int64{4, 16}, whole, dag.Texture{NormalizedFloat: true, Filter: dag.Linear}, "width: 16, height: 4, filter: linear, read: normalized_float"},
		{u16x2, []int64{4, 8}, whole, dag.Texture{}, "width: 8, height: 4, channels: 2"},

		{dag.F64, []int64{32}, whole, dag.Texture{}, "is a texture, whose elements cannot be f64; possible are u8, u16, u32, i8, i16, i32, f16, f32"},
		{f32x3, []int64{32}, whole, dag.Texture{}, "has texels of 3 channels; 1, 2 and 4 are possible"},
		{dag.F32, []int64{32}, whole, dag.Texture{Channels: -1}, "has texels of -1 channels; 1, 2 and 4 are possible"},
		{u16x2, []int64{32}, whole, dag.Texture{Channels: 1}, `has texels of 1 channels, but "d" has elements of type u16x2; leave channels: out`},
		{dag.F32, []int64{32}, whole, dag.Texture{Width: -1}, "is a texture of -1 x 0 texels"},
		{dag.F32, []int64{32}, whole, dag.Texture{Width: 8, Height: -1}, "is a texture of 8 x -1 texels"},
		{dag.U8, []int64{1 << 28}, whole, dag.Texture{Width: dag.MostTexels + 1}, "is a texture of 134217729 texels; not every GPU has more than 134217728"},
		{dag.F32, []int64{1 << 20}, whole, dag.Texture{Width: 65001, Height: 1}, "is a texture of 65001 x 1 texels; not every GPU has more than 65000 x 65000"},
		{dag.U8, []int64{1 << 28}, whole, dag.Texture{Width: 32, Height: 65001}, "is a texture of 32 x 65001 texels; not every GPU has more than 65000 x 65000"},
		{dag.F32, []int64{32}, whole, dag.Texture{Width: 33}, "is a texture of 33 texels with 132 bytes, but d has 128 bytes"},
		{dag.F32, []int64{256}, slice(128, 160), dag.Texture{Width: 33}, "is a texture of 33 texels with 132 bytes, but d(128..160) has 128 bytes"},
		{dag.F32, []int64{256}, slice(128, 160), dag.Texture{Width: 8, Height: 5}, "is a texture of 8 x 5 texels with 160 bytes, but d(128..160) has 128 bytes"},
		{dag.F32, []int64{64, 64}, tile(0, 4, 0, 8), dag.Texture{Height: 5}, "is a texture of 8 x 5 texels, but d(0..4)(0..8) has 4 rows of 32 bytes"},
		{dag.F32, []int64{64, 64}, tile(0, 4, 0, 8), dag.Texture{Width: 9}, "is a texture of 9 x 4 texels, but d(0..4)(0..8) has 4 rows of 32 bytes"},
		{dag.F32, []int64{256}, slice(1, 33), dag.Texture{}, `is a texture that starts at byte 4 of "d"; textures start at multiples of 512 bytes; copy the slice to a buffer of its own`},
		{dag.F32, []int64{4, 7}, whole, dag.Texture{}, "is a texture whose rows are 28 bytes apart; the distance must be a multiple of 32; give the rows of the buffer 32 bytes and pass a tile of them, such as b(..)(0..7)"},
		{dag.F32, []int64{4, 600000}, tile(0, 2, 0, 8), dag.Texture{}, "is a texture whose rows are 2400000 bytes apart; at most 2097120 are possible"},
		{dag.F32, []int64{4, 8}, whole, dag.Texture{NormalizedFloat: true}, "is read as normalized_float, but its elements are f32; that is for integers of 8 and 16 bits"},
		{dag.U32, []int64{4, 8}, whole, dag.Texture{NormalizedFloat: true}, "is read as normalized_float, but its elements are u32; that is for integers of 8 and 16 bits"},
		{dag.F32, []int64{32}, whole, dag.Texture{Filter: dag.Linear}, "is read with filter: linear, which needs two dimensions; write height:"},
		{dag.F32, []int64{32}, whole, dag.Texture{Normalized: true}, "is read by index, so that address: and coordinates: mean nothing; leave them out, or write height:"},
		{dag.F32, []int64{32}, whole, dag.Texture{Address: edge(dag.Border)}, "is read by index, so that address: and coordinates: mean nothing; leave them out, or write height:"},
		{dag.U8, []int64{4, 32}, whole, dag.Texture{Filter: dag.Linear}, "is read with filter: linear, but its elements are u8, which cannot be interpolated; write read: normalized_float, or filter: nearest"},
		{dag.F32, []int64{4, 8}, whole, dag.Texture{Address: edge(dag.Wrap)}, "is read with address: wrap or mirror, which need coordinates: normalized"},
		{dag.F32, []int64{4, 8}, whole, dag.Texture{Address: edge(dag.Mirror)}, "is read with address: wrap or mirror, which need coordinates: normalized"},
		{dag.F32, []int64{4, 8}, whole, dag.Texture{Filter: 9}, "is read with filter Filter(9) and address modes clamp and clamp"},
		{dag.F32, []int64{4, 8}, whole, dag.Texture{Address: edge(9)}, "is read with filter nearest and address modes clamp and AddressMode(9)"},
	} {
		b := dag.New("p")
		b.Module("m", "m.cu", moduleOf(dag.KernelParam{Texture: true, Size: 8}))
		d := b.Device("d", c.dtype, c.shape...)
		b.Kernel("k", "m.k", dag.Args{c.of(b, d).Through(c.t)}, dag.Grid(1), dag.Block(1))
		if g, err := b.Graph(); err == nil {
			require.Equal(t, c.want, g.Nodes[0].Launch.Args[0].Texture.String(), "%s %v", c.dtype, c.shape)
			require.Equal(t, []bool{true}, g.Textured())
		} else {
			require.EqualError(t, err, `node "k": argument 1 of kernel "m.k" `+c.want)
		}
	}
}

// A kernel's code tells how it reads a texture, or that it reads none.
func TestTexturesAndCode(t *testing.T) {
	handle := func(f dag.Fetch) dag.KernelParam {
		f.Seen = true
		return dag.KernelParam{Size: 8, Code: dag.CodeUse{Decided: true, Mode: dag.Read, Fetch: f}}
	}
	at := "k.cu:7"
	plain := dag.KernelParam{Size: 8, Code: dag.CodeUse{Decided: true, Mode: dag.Read}}
	for _, c := range []struct {
		param dag.KernelParam
		flat  bool
		dtype dag.DType
		t     dag.Texture
		want  string
	}{
		{handle(dag.Fetch{Dimensions: 2, Floats: true}), false, dag.F32, dag.Texture{}, ""},
		{handle(dag.Fetch{Floats: true}), false, dag.F32, dag.Texture{}, ""},
		{handle(dag.Fetch{Dimensions: 1, Floats: true}), true, dag.F32, dag.Texture{}, ""},
		{handle(dag.Fetch{Dimensions: 2, Integers: true}), false, dag.U16, dag.Texture{}, ""},
		{handle(dag.Fetch{Dimensions: 2, Floats: true}), false, dag.U16, dag.Texture{NormalizedFloat: true}, ""},
		{dag.KernelParam{Size: 8}, false, dag.F32, dag.Texture{}, ""},
		{plain, false, dag.F32, dag.Texture{}, "is a pointer in the code, not a texture"},
		{dag.KernelParam{Size: 8, Buffer: true, Mode: dag.Read, DType: dag.F32}, false, dag.F32, dag.Texture{}, "is a pointer, not a texture"},
		{dag.KernelParam{Size: 4, DType: dag.I32}, false, dag.F32, dag.Texture{}, "must be a number (i32), got a texture"},
		{dag.KernelParam{Size: 4}, false, dag.F32, dag.Texture{}, "has 4 bytes, but the handle of a texture has 8"},
		{handle(dag.Fetch{Dimensions: 2, Surface: true, At: at}), false, dag.F32, dag.Texture{}, "is a surface (k.cu:7), which needs a CUDA array; pass the buffer as a pointer instead"},
		{handle(dag.Fetch{Dimensions: 1, At: at}), false, dag.F32, dag.Texture{}, "is read in 1 dimension (k.cu:7), but the texture has 2"},
		{handle(dag.Fetch{Dimensions: 2, At: at}), true, dag.F32, dag.Texture{}, "is read in 2 dimensions (k.cu:7), but the texture has 1"},
		{handle(dag.Fetch{Dimensions: 1, Coordinates: true, At: at}), true, dag.F32, dag.Texture{}, "is read by coordinates (k.cu:7), but a texture of one dimension is read by index (tex1Dfetch)"},
		{handle(dag.Fetch{Dimensions: 2, Floats: true, At: at}), false, dag.U16, dag.Texture{}, "is read as floats (k.cu:7), but the texture gives integers"},
		{handle(dag.Fetch{Dimensions: 2, Integers: true, At: at}), false, dag.F32, dag.Texture{}, "is read as integers (k.cu:7), but the texture gives floats"},
		{handle(dag.Fetch{Dimensions: 2, Integers: true, At: at}), false, dag.U16, dag.Texture{NormalizedFloat: true}, "is read as integers (k.cu:7), but the texture gives floats"},
	} {
		b := dag.New("p")
		b.Module("m", "m.cu", moduleOf(c.param))
		shape := []int64{4, 16}
		if c.flat {
			shape = []int64{64}
		}
		b.Kernel("k", "m.k", dag.Args{b.Whole(b.Device("d", c.dtype, shape...)).Through(c.t)}, dag.Grid(1), dag.Block(1))
		if _, err := b.Graph(); c.want == "" {
			require.NoError(t, err, "%+v", c.param)
		} else {
			require.ErrorContains(t, err, `argument 1 of kernel "m.k" `+c.want)
		}
	}
	for _, param := range []dag.KernelParam{{Texture: true, Size: 8}, handle(dag.Fetch{At: at})} {
		b := dag.New("p")
		b.Module("m", "m.cu", moduleOf(param))
		b.Kernel("k", "m.k", dag.Args{b.Whole(b.Device("d", dag.F32, 8)).In()}, dag.Grid(1), dag.Block(1))
		_, err := b.Graph()
		require.EqualError(t, err, `node "k": argument 1 of kernel "m.k" must be a texture, got the buffer "d"; write {texture: d}`)
	}
}

// A texture does not see what its own launch writes; what is beside it may be written.
func TestTexturesBesideWhatIsWritten(t *testing.T) {
	for _, c := range []struct {
		lo, hi int64
		mode   dag.Mode
		fine   bool
	}{{0, 128, dag.Write, false}, {127, 129, dag.Write, false}, {128, 256, dag.Write, true}, {0, 128, dag.Read, true}, {0, 1, dag.ReadWrite, false}} {
		b := dag.New("p")
		b.Module("m", "m.cu", moduleOf(dag.KernelParam{Size: 8, Buffer: true, Mode: c.mode, DType: dag.F32}, dag.KernelParam{Texture: true, Size: 8}))
		d := b.Device("d", dag.F32, 256)
		r := b.Slice(d, c.lo, c.hi)
		b.Kernel("k", "m.k", dag.Args{dag.Access{Range: r, Mode: c.mode}, b.Slice(d, 0, 128).Through(dag.Texture{})}, dag.Grid(1), dag.Block(1))
		if _, err := b.Graph(); c.fine {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, `node "k": argument 2 of kernel "m.k" is a texture over d(0..128), which the same launch writes as argument 1; a texture does not see what its own launch writes`)
		}
	}
}

// A slice by hand that ends within a row is linear memory, and the rows of a texture lie as far apart as in the slice.
func TestTexturesOfSlicesByHand(t *testing.T) {
	for _, c := range []struct {
		shape  []int64
		lo, hi int64
		want   string
		pitch  int64
	}{
		{[]int64{4, 256}, 0, 2048, "width: 256, height: 2", 1024},
		{[]int64{4, 256}, 0, 1536, "width: 384", 1536},
		{[]int64{4, 256}, 512, 2048, "width: 384", 1536},
		{[]int64{4, 256}, 1024, 2048, "width: 256, height: 1", 1024},
		{[]int64{1, 7}, 0, 28, "width: 7, height: 1", 32},
		{[]int64{1, 1}, 0, 4, "width: 1, height: 1", 32},
		{[]int64{1, 9}, 0, 36, "width: 9, height: 1", 64},
	} {
		b := dag.New("p")
		b.Module("m", "m.cu", moduleOf(dag.KernelParam{Texture: true, Size: 8}))
		d := b.Device("d", dag.F32, c.shape...)
		b.Kernel("k", "m.k", dag.Args{dag.Range{Buffer: d, Lo: c.lo, Hi: c.hi}.Through(dag.Texture{})}, dag.Grid(1), dag.Block(1))
		g, err := b.Graph()
		require.NoError(t, err)
		arg := g.Nodes[0].Launch.Args[0]
		require.Equal(t, c.want, arg.Texture.String())
		require.Equal(t, c.pitch, arg.TexturePitch())
	}
	require.Zero(t, (&dag.Arg{}).TexturePitch())
	require.Empty(t, (*dag.Texture)(nil).String())
	require.EqualValues(t, 256, (&dag.Arg{DType: dag.F32, Range: dag.Range{Pitch: 256}, Texture: &dag.Texture{Width: 8, Height: 2, Channels: 1}}).TexturePitch())
}
