// Tests of textures: every way to read one, beside what CUDA defines it to give.

package simt_test

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host/simt"
)

// fetching is a kernel k(out, img, at): thread i fetches at the three coordinates from element 3i of `at` on, and stores four words.
func fetching(fetch string) string {
	return header + `.visible .entry k(.param .u64 out, .param .u64 img, .param .u64 at)
{
.reg .b32 %r<20>; .reg .f32 %f<20>; .reg .b64 %rd<20>;
ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [img]; ld.param.u64 %rd3, [at];
mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r1, %r1, 64, %r2;
mul.wide.u32 %rd4, %r1, 16; add.s64 %rd1, %rd1, %rd4;
mul.wide.u32 %rd4, %r1, 12; add.s64 %rd3, %rd3, %rd4;
ld.global.u32 %r11, [%rd3]; ld.global.u32 %r12, [%rd3+4]; ld.global.u32 %r13, [%rd3+8];
mov.b32 %f11, %r11; mov.b32 %f12, %r12; mov.b32 %f13, %r13;
` + fetch + `
st.global.v4.b32 [%rd1], {%r3, %r4, %r5, %r6};
ret;
}
`
}

const toWords = "mov.b32 %r3, %f3; mov.b32 %r4, %f4; mov.b32 %r5, %f5; mov.b32 %r6, %f6;"

// fetchAt launches such a kernel, one thread for each place.
func fetchAt(t *testing.T, fetch string, texture *cudart.Texture, image []byte, at [][3]uint32, l simt.Launch) ([][4]uint32, *simt.Fault) {
	t.Helper()
	p, err := simt.Load("test.ptx", fetching(fetch))
	require.NoError(t, err)
	threads := (len(at) + 63) / 64 * 64
	out, places := onHeap[[4]uint32](threads), onHeap[[3]uint32](threads)
	copy(places, at)
	memory := onHeap[uint64](len(image)/8 + 1)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&memory[0])), len(image)), image)
	l.Grid, l.Block = [3]uint32{uint32(threads / 64), 1, 1}, [3]uint32{64, 1, 1}
	l.Args = []simt.Arg{{Bits: uint64(uintptr(unsafe.Pointer(&out[0]))), Pointer: true, Bytes: int64(16 * threads)},
		{Bits: uint64(uintptr(unsafe.Pointer(&memory[0]))), Pointer: true, Bytes: int64(len(image)), Texture: texture},
		{Bits: uint64(uintptr(unsafe.Pointer(&places[0]))), Pointer: true, Bytes: int64(12 * threads)}}
	if l.Check == simt.CheckFull {
		l.Written = []*simt.Written{simt.NewWritten(l.Args[1].Bits, int64(len(image)))} // nothing of the image was written
	}
	fault := launch(t, p, "k", l)
	runtime.KeepAlive(memory)
	runtime.KeepAlive(places)
	return out[:len(at)], fault
}

// folded is where CUDA's programming guide has a coordinate in texels, before the filter. Sizes are powers of two, so all of it is exact.
func folded(t *cudart.Texture, axis int, v float64, n int64) float64 {
	if t.Normalized {
		part := v - math.Floor(v)
		switch {
		case t.Address[axis] == cudart.Wrap, t.Address[axis] == cudart.Mirror && int64(math.Floor(v))%2 == 0:
			v = part
		case t.Address[axis] == cudart.Mirror:
			v = 1 - part
		}
		v *= float64(n)
	}
	return v
}

// expected is what a texture of floats gives. image holds a channel of a texel.
func expected(t *cudart.Texture, coordinates []float64, image func(x, y, z int64, channel int) float64) (value [4]float64) {
	sizes := []int64{t.Width, t.Height, max(t.Depth, 1)}
	texel := func(at []int64, channel int) float64 {
		var inside [3]int64
		for axis, i := range at {
			switch n := sizes[axis]; {
			case i >= 0 && i < n:
			case t.Address[axis] == cudart.Border:
				return float64(t.Border[channel])
			case t.Address[axis] == cudart.Wrap:
				i = (i + 16*n) % n
			case i < 0:
				i = 0
			default:
				i = n - 1
			}
			inside[axis] = i
		}
		if channel >= t.Channels {
			return map[bool]float64{true: 1}[channel == 3]
		}
		return image(inside[0], inside[1], inside[2], channel)
	}
	for channel := range value {
		var sum func(at []int64, axis int) float64
		sum = func(at []int64, axis int) float64 {
			if axis == len(coordinates) {
				return texel(at, channel)
			}
			u := folded(t, axis, coordinates[axis], sizes[axis])
			if !t.Linear {
				i := int64(math.Floor(u))
				if t.Normalized && t.Address[axis] != cudart.Clamp && t.Address[axis] != cudart.Border {
					i = min(i, sizes[axis]-1)
				}
				return sum(append(at[:axis:axis], i), axis+1)
			}
			low := math.Floor(u - 0.5)
			share := u - 0.5 - low
			first, second := sum(append(at[:axis:axis], int64(low)), axis+1), sum(append(at[:axis:axis], int64(low)+1), axis+1)
			return (1-share)*first + share*second
		}
		value[channel] = sum(nil, 0)
	}
	return value
}

func TestTexturesInEveryMode(t *testing.T) {
	for _, dimensions := range []int{2, 3} {
		for _, element := range []struct {
			kind      cudart.Element
			fractions bool
			channels  int
		}{{cudart.ElementF32, false, 1}, {cudart.ElementF32, false, 4}, {cudart.ElementF16, false, 2}, {cudart.ElementU8, true, 4}, {cudart.ElementS8, true, 1}, {cudart.ElementU16, true, 2}, {cudart.ElementS16, true, 1}} {
			for mode := cudart.Clamp; mode <= cudart.Border; mode++ {
				for choice := range 4 {
					texture := &cudart.Texture{Element: element.kind, Fractions: element.fractions, Channels: element.channels, Width: 8, Height: 4, Pitch: 160,
						Address: [3]cudart.AddressMode{mode, mode, mode}, Border: [4]float32{0.5, 2, 3, 4}, Linear: choice&1 != 0, Normalized: choice&2 != 0}
					texture.Address[1] = []cudart.AddressMode{cudart.Clamp, cudart.Border}[mode%2]
					if dimensions == 3 {
						texture.Depth = 2
					}
					if !texture.Normalized && (mode == cudart.Wrap || mode == cudart.Mirror) {
						require.EqualError(t, texture.Check(1<<20), "wrap and mirror need normalized coordinates")
						continue
					}
					t.Run(fmt.Sprintf("%dd-%+v-mode%d-%d", dimensions, element, mode, choice), func(t *testing.T) { compareTexture(t, texture, dimensions) })
				}
			}
		}
	}
}

// compareTexture fetches all over a texture and beside it.
func compareTexture(t *testing.T, texture *cudart.Texture, dimensions int) {
	image := make([]byte, texture.Bytes())
	seed := uint32(1)
	for i := range image {
		seed = seed*1664525 + 1013904223
		image[i] = byte(seed >> 24)
		if texture.Element.Float() { // every float is a small whole number
			image[i] = 0
		}
	}
	channel := func(x, y, z int64, k int) float64 {
		at := (z*texture.Height+y)*texture.Pitch + x*texture.Texel() + int64(k)*texture.Element.Size()
		switch texture.Element {
		case cudart.ElementF32:
			return float64(math.Float32frombits(uint32(image[at]) | uint32(image[at+1])<<8 | uint32(image[at+2])<<16 | uint32(image[at+3])<<24))
		case cudart.ElementF16:
			return float64(int(image[at+1]&3) + 1) // set below
		case cudart.ElementU8:
			return float64(image[at]) / 255
		case cudart.ElementS8:
			return max(float64(int8(image[at]))/127, -1)
		case cudart.ElementU16:
			return float64(uint16(image[at])|uint16(image[at+1])<<8) / 65535
		}
		return max(float64(int16(uint16(image[at])|uint16(image[at+1])<<8))/32767, -1)
	}
	for at := int64(0); texture.Element.Float() && at+texture.Element.Size() <= int64(len(image)); at += texture.Element.Size() {
		if texture.Element == cudart.ElementF32 {
			bits := math.Float32bits(float32(at%61) - 30)
			image[at], image[at+1], image[at+2], image[at+3] = byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24)
			continue
		}
		n := at / 2 % 3
		image[at+1] = []byte{0x3c, 0x40, 0x42}[n] // 1, 2, 3
	}
	half := map[byte]float64{0x3c: 1, 0x40: 2, 0x42: 3}
	if texture.Element == cudart.ElementF16 {
		channel = func(x, y, z int64, k int) float64 {
			return half[image[(z*texture.Height+y)*texture.Pitch+x*texture.Texel()+int64(k)*2+1]]
		}
	}
	var places [][3]uint32
	var coordinates [][]float64
	sizes := []float64{8, 4, 2}
	for i := range 400 {
		var at [3]uint32
		var all []float64
		for axis := range dimensions {
			seed = seed*1664525 + 1013904223
			v := float64(int32(seed>>16)%512-256) / 16 // in texels, by sixteenths
			if i < 100 {
				v = math.Floor(v) // where texels begin
			}
			if texture.Normalized {
				v /= sizes[axis]
			}
			at[axis], all = math.Float32bits(float32(v)), append(all, v)
		}
		places, coordinates = append(places, at), append(coordinates, all)
	}
	fetch := map[int]string{2: "tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd2, {%f11, %f12}];",
		3: "tex.3d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd2, {%f11, %f12, %f13, %f13}];"}[dimensions]
	got, fault := fetchAt(t, fetch+toWords, texture, image, places, simt.Launch{})
	require.Nil(t, fault)
	for i, at := range coordinates {
		for k, want := range expected(texture, at, channel) {
			require.InDelta(t, want, float64(math.Float32frombits(got[i][k])), 2e-6*max(1, math.Abs(want)), "at %v, channel %d", at, k)
		}
	}
}

func TestTexturesByIndex(t *testing.T) {
	image := []byte{1, 0, 2, 0, 0xff, 0xff, 4, 0, 5, 0, 6, 0, 7, 0, 8, 0, 9, 0, 10, 0, 11, 0, 12, 0, 13, 0, 14, 0, 15, 0, 16, 0}
	at := func(list ...int32) (places [][3]uint32) {
		for i := 0; i < len(list); i += 2 {
			places = append(places, [3]uint32{uint32(list[i]), uint32(list[i+1])})
		}
		return places
	}
	minus := func(n int) uint32 { return uint32(-n) }
	line := &cudart.Texture{Element: cudart.ElementS16, Channels: 2, Width: 8}
	got, fault := fetchAt(t, "tex.1d.v4.s32.s32 {%r3, %r4, %r5, %r6}, [%rd2, {%r11}];", line, image, at(0, 0, 1, 0, 7, 0, 8, 0, -1, 0), simt.Launch{})
	require.Nil(t, fault)
	require.Equal(t, [][4]uint32{{1, 2, 0, 1}, {minus(1), 4, 0, 1}, {15, 16, 0, 1}, {}, {}}, got, "outside linear memory a fetch reads 0")

	plane := &cudart.Texture{Element: cudart.ElementU16, Channels: 1, Width: 3, Height: 4, Pitch: 8, Address: [3]cudart.AddressMode{cudart.Clamp, cudart.Border}, Border: [4]float32{7, 8, 9, 10}}
	got, fault = fetchAt(t, "tex.level.2d.v4.u32.s32 {%r3, %r4, %r5, %r6}, [%rd2, {%r11, %r12}], 0;", plane, image, at(2, 0, 3, 1, -5, 2, 1, 4), simt.Launch{})
	require.Nil(t, fault)
	require.Equal(t, [][4]uint32{{0xffff, 0, 0, 1}, {7, 0, 0, 1}, {9, 0, 0, 1}, {7, 8, 9, 10}}, got)
}

// A plane of one row has a border too.
func TestBordersOfOneRow(t *testing.T) {
	texture := &cudart.Texture{Element: cudart.ElementU16, Channels: 2, Width: 4, Height: 1, Pitch: 16, Address: [3]cudart.AddressMode{cudart.Border, cudart.Border}, Border: [4]float32{7, 8, 9, 10}}
	got, fault := fetchAt(t, "tex.2d.v4.u32.s32 {%r3, %r4, %r5, %r6}, [%rd2, {%r11, %r12}];", texture, []byte{1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8, 0}, [][3]uint32{{1, 0}, {4, 0}, {1, 1}, {math.MaxUint32, 0}}, simt.Launch{})
	require.Nil(t, fault)
	require.Equal(t, [][4]uint32{{3, 4, 0, 1}, {7, 8, 9, 10}, {7, 8, 9, 10}, {7, 8, 9, 10}}, got)
}

func TestMistakesWithTextures(t *testing.T) {
	image := make([]byte, 4*4*16)
	good := cudart.Texture{Element: cudart.ElementF32, Channels: 1, Width: 4, Height: 4, Pitch: 64}
	const fetch = "tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd2, {%f11, %f12}];" + toWords
	for _, c := range []struct {
		code   string
		change func(*cudart.Texture)
		want   string
	}{
		{"add.s64 %rd2, %rd2, 1; " + fetch, nil, "a fetch through 0x500000000000001, which is not the handle of a texture"},
		{"ld.param.u64 %rd2, [out]; and.b64 %rd2, %rd2, 15; " + fetch, nil, "a fetch through 0x0, which is not the handle of a texture"},
		{"tex.3d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd2, {%f11, %f12, %f11, %f11}];", nil, "a fetch in 3 dimensions from the texture of argument 1 (img), which has 2"},
		{fetch, func(x *cudart.Texture) { x.Element = cudart.ElementU8 }, "a fetch of floats from the texture of argument 1 (img), which gives integers"},
		{"tex.1d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd2, {%f11}];", func(x *cudart.Texture) { x.Height = 0 },
			"a fetch by coordinates from the texture of argument 1 (img), which is linear memory: it is read by index (tex1Dfetch)"},
	} {
		texture := good
		if c.change != nil {
			c.change(&texture)
		}
		_, fault := fetchAt(t, c.code, &texture, image, make([][3]uint32, 1), simt.Launch{})
		require.NotNil(t, fault, c.code)
		require.Equal(t, simt.BadTexture, fault.Kind)
		require.Equal(t, c.want, fault.Problem)
	}
	_, fault := fetchAt(t, fetch, &good, image, [][3]uint32{{math.Float32bits(2), math.Float32bits(1)}}, simt.Launch{Check: simt.CheckFull})
	require.NotNil(t, fault)
	require.Equal(t, simt.Uninitialised, fault.Kind)
	require.Equal(t, "reads 4 bytes at byte 72 of argument 1 (img), which nobody has written", fault.Problem)

	for code, reason := range map[string]string{
		"tex.a2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd2, {%r11, %f12, %f11, %f11}];":                 "textures in memory of rows have one to three dimensions and no layers",
		"tex.grad.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd2, {%f11, %f12}], {%f1, %f2}, {%f1, %f2};": "this form of tex is not supported",
		"tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd2, %rd3, {%f11, %f12}];":                        "a fetch with a sampler of its own is not supported",
		"tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd2, {%f11, %f12}], {%r11, %r12};":                "a fetch with offsets or a comparison is not supported",
		"tld4.r.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd2, {%f11, %f12}];":                           "",
		"suld.b.2d.b32.trap {%r3}, [%rd2, {%r11, %r12}];":                                            "",
		"sust.b.2d.b32.trap [%rd2, {%r11, %r12}], {%r3};":                                            "",
		"tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [reference, {%f11, %f12}];":                         "texture references are not supported; pass a texture object",
	} {
		p, err := simt.Load("test.ptx", fetching(code))
		if err != nil {
			p, err = simt.Load("test.ptx", header+".global .texref reference;\n"+fetching(code)[len(header):])
		}
		require.NoError(t, err, code)
		_, err = p.Kernel("k")
		var unsupported *simt.UnsupportedError
		require.ErrorAs(t, err, &unsupported, code)
		require.Equal(t, reason, unsupported.Reason, code)
	}
}

// NaN and infinities read the texel at 0, wrapped and mirrored or not.
func TestCoordinatesThatAreNoNumbers(t *testing.T) {
	image := make([]byte, 64)
	for i := range 4 {
		image[4*i+2], image[4*i+3] = 0x80, 0x3f // 1
	}
	image[3] = 0x40 // the first is 4
	for _, mode := range []cudart.AddressMode{cudart.Clamp, cudart.Wrap, cudart.Mirror, cudart.Border} {
		texture := cudart.Texture{Element: cudart.ElementF32, Channels: 1, Width: 4, Height: 1, Pitch: 16, Normalized: true, Address: [3]cudart.AddressMode{mode, mode, mode}}
		nan, inf, minus := math.Float32bits(float32(math.NaN())), math.Float32bits(float32(math.Inf(1))), math.Float32bits(float32(math.Inf(-1)))
		got, fault := fetchAt(t, "tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd2, {%f11, %f12}];"+toWords, &texture, image, [][3]uint32{{0}, {nan}, {inf}, {minus}}, simt.Launch{})
		require.Nil(t, fault)
		require.Equal(t, uint32(0x40800000), got[0][0])
		for _, v := range got {
			require.Equal(t, got[0], v)
		}
	}
}
