// Textures: fetches from a launch's texture objects, with the filters and address modes of a GPU.

package simt

import (
	"math"
	"unsafe"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/internal/ptx"
)

// inTexture is the top byte of the handles of textures. The low bits are the texture's number.
const inTexture = uint64(5) << windowShift

// addTexture makes a texture object of an argument and returns its handle.
func (r *Run) addTexture(a *Arg, argument int) (uint64, error) {
	if err := a.Texture.Check(a.Bytes); err != nil {
		return 0, err
	}
	r.textures = append(r.textures, texture{*a.Texture, a.Bits, argument})
	return inTexture | uint64(len(r.textures)-1), nil
}

// fetch compiles tex.
func (c *compiler) fetch() op {
	o, f := c.in.Operands, c.in.Form
	dimensions := map[ptx.Mod]int{ptx.Mod1D: 1, ptx.Mod2D: 2,
		ptx.Mod3D: 3}[f.First(ptx.Mod1D, ptx.Mod2D, ptx.Mod3D, ptx.ModA1D, ptx.ModA2D, ptx.ModCube, ptx.ModAcube, ptx.Mod2DMS, ptx.ModA2DMS)]
	levels := 0 // a texture in linear memory has one level, whichever is asked for
	if !f.Known && hasOnly(f, "level") {
		levels = 1
	}
	switch {
	case dimensions == 0:
		c.refuse("textures in memory of rows have one to three dimensions and no layers")
	case f.Has(ptx.ModGrad), !f.Known && levels == 0, len(f.Types) != 2, f.Vector != 4:
		c.refuse("this form of tex is not supported")
	case f.Types[0] != ptx.F32 && f.Types[0] != ptx.S32 && f.Types[0] != ptx.U32, f.Types[1] != ptx.F32 && f.Types[1] != ptx.S32:
		c.refuse("only textures of 32-bit values are supported")
	case len(o) != 2+levels || o[0].Kind != ptx.Vector || o[1].Kind != ptx.TextureAddress:
		c.refuse("a fetch with offsets or a comparison is not supported")
	}
	if c.problem != nil {
		return nil
	}
	targets := c.slots(o[0], c.target)
	parts := c.f.Elements(o[1])
	if len(parts) != 2 || len(targets) != 4 {
		c.refuse("a fetch with a sampler of its own is not supported")
		return nil
	}
	if parts[0].Kind != ptx.RegisterKind && parts[0].Kind != ptx.Address || parts[0].Index < 0 {
		c.refuse("texture references are not supported; pass a texture object")
		return nil
	}
	handle, offset := 0, uint64(0)
	if parts[0].Kind == ptx.Address {
		handle, offset, _ = c.address(parts[0], ptx.Generic)
	} else {
		handle = c.source(parts[0], ptx.B64)
	}
	coordinates := c.slots(parts[1], func(e ptx.Operand) int { return c.source(e, f.Types[1]) })
	if len(coordinates) < dimensions {
		c.refuse("too few coordinates")
		return nil
	}
	coordinates = coordinates[:dimensions]
	floats, byIndex := f.Types[0] == ptx.F32, f.Types[1] == ptx.S32
	return func(x *exec, m uint32) {
		for ; m != 0; m &= m - 1 {
			i := firstLane(m)
			t := x.textureOf(x.s[handle][i]+offset, i)
			t.mustFit(x, i, dimensions, floats, byIndex)
			var at [3]uint32
			for k, s := range coordinates {
				at[k] = uint32(x.s[s][i])
			}
			var value [4]uint32
			switch {
			case byIndex:
				value = t.texel(x, i, [3]int64{int64(int32(at[0])), int64(int32(at[1])), int64(int32(at[2]))})
			case t.Linear:
				value = t.between(x, i, dimensions, at)
			default:
				value = t.nearest(x, i, dimensions, at)
			}
			for k, d := range targets {
				x.s[d][i] = uint64(value[k])
			}
			if x.check != nil && x.check.texel != nil {
				for _, d := range targets {
					x.frame.mark(d, i, *x.check.texel)
				}
				x.check.texel = nil
			}
		}
	}
}

// textureOf is the texture of a handle.
func (x *exec) textureOf(handle uint64, lane int) *texture {
	if n := handle & inWindow; handle&^inWindow == inTexture && n < uint64(len(x.block.run.textures)) {
		return &x.block.run.textures[n]
	}
	x.fail(BadTexture, lane, "a fetch through %#x, which is not the handle of a texture", handle)
	return nil
}

// mustFit reports an instruction that reads another kind of texture.
func (t *texture) mustFit(x *exec, lane, dimensions int, floats, byIndex bool) {
	own := 1
	switch {
	case t.Depth > 0:
		own = 3
	case t.Height > 0:
		own = 2
	}
	words := map[bool]string{true: "floats", false: "integers"}
	switch name := parameterName(x.block.run.kernel, t.argument); {
	case own != dimensions:
		x.fail(BadTexture, lane, "a fetch in %d dimensions from the texture of argument %s, which has %d", dimensions, name, own)
	case floats != t.Floats():
		x.fail(BadTexture, lane, "a fetch of %s from the texture of argument %s, which gives %s", words[floats], name, words[!floats])
	case own == 1 && !byIndex:
		x.fail(BadTexture, lane, "a fetch by coordinates from the texture of argument %s, which is linear memory: it is read by index (tex1Dfetch)", name)
	}
}

// sizes are the texels of each dimension.
func (t *texture) sizes() [3]int64 { return [3]int64{t.Width, max(t.Height, 1), max(t.Depth, 1)} }

// fold brings an index into the texture. It returns false for the border.
func (t *texture) fold(axis int, i, n int64) (int64, bool) {
	if t.Height == 0 {
		return i, i >= 0 && i < n
	}
	if i >= 0 && i < n {
		return i, true
	}
	switch t.Address[axis] {
	case cudart.Border:
		return 0, false
	case cudart.Wrap:
		return ((i % n) + n) % n, true
	case cudart.Mirror:
		i = ((i % (2 * n)) + 2*n) % (2 * n)
		if i >= n {
			i = 2*n - 1 - i
		}
		return i, true
	}
	return min(max(i, 0), n-1), true
}

// texel reads one texel: four channels, of which those that memory does not hold are 0, and the last of them 1.
func (t *texture) texel(x *exec, lane int, at [3]int64) [4]uint32 {
	var value [4]uint32
	sizes := t.sizes()
	for axis := range at {
		var inside bool
		if at[axis], inside = t.fold(axis, at[axis], sizes[axis]); !inside {
			return t.border()
		}
	}
	address := t.base + uint64((at[2]*sizes[1]+at[1])*t.Pitch+at[0]*t.Texel())
	if x.check != nil {
		if x.check.texel == nil && x.unwritten(0, address, int(t.Texel()), lane) {
			x.check.texel = &origin{x.frame.fn, x.at, 0, address, int(t.Texel())}
		}
		x.note(0, address, int(t.Texel()), lane, 0)
	}
	value[3] = t.one()
	for k := range t.Channels {
		value[k] = t.channel(unsafe.Add(pointer(address), int64(k)*t.Element.Size()))
	}
	return value
}

// border is the color outside the texture. Linear memory has none.
func (t *texture) border() (value [4]uint32) {
	if t.Height == 0 {
		return value
	}
	for k, v := range t.Border {
		if t.Floats() {
			value[k] = math.Float32bits(v)
		} else {
			value[k] = uint32(int64(v))
		}
	}
	return value
}

// one is the last channel of a texel that does not hold it.
func (t *texture) one() uint32 {
	if t.Floats() {
		return math.Float32bits(1)
	}
	return 1
}

// channel reads a channel of a texel.
func (t *texture) channel(p unsafe.Pointer) uint32 {
	v := read(p, int(t.Element.Size()))
	n := 8 * int(t.Element.Size())
	signed := t.Element >= cudart.ElementS8 && t.Element <= cudart.ElementS32
	switch {
	case t.Element == cudart.ElementF16:
		return uint32(bits32(float32(half.widen(v))))
	case t.Fractions && signed:
		return math.Float32bits(float32(max(float64(signExtend(v, n))/float64(uint64(1)<<(n-1)-1), -1)))
	case t.Fractions:
		return math.Float32bits(float32(float64(v) / float64(uint64(1)<<n-1)))
	case signed:
		return uint32(signExtend(v, n))
	}
	return uint32(v)
}

// coordinate is a coordinate in texels. Normalized ones that wrap or mirror come back into the texture first.
func (t *texture) coordinate(axis int, bits uint32, n int64) float64 {
	v := float64(math.Float32frombits(bits))
	if v != v || math.IsInf(v, 0) {
		v = 0
	}
	if t.Normalized {
		switch whole := math.Floor(v); {
		case t.Address[axis] == cudart.Wrap:
			v -= whole
		case t.Address[axis] == cudart.Mirror:
			if v -= whole; math.Mod(whole, 2) != 0 {
				v = 1 - v
			}
		}
		v *= float64(n)
	}
	return min(max(v, -mostIndex), mostIndex)
}

const mostIndex = 1 << 40 // no texture reaches it, and it is still an integer

// nearest reads the texel that the coordinates lie in.
func (t *texture) nearest(x *exec, lane, dimensions int, coordinates [3]uint32) [4]uint32 {
	var at [3]int64
	for axis, n := range t.sizes() {
		if axis < dimensions {
			v := t.coordinate(axis, coordinates[axis], n)
			at[axis] = int64(math.Floor(v))
			if mode := t.Address[axis]; t.Normalized && (mode == cudart.Wrap || mode == cudart.Mirror) {
				at[axis] = min(at[axis], n-1) // 1 belongs to the last texel
			}
		}
	}
	return t.texel(x, lane, at)
}

// between interpolates between the texels around the coordinates. A GPU has eight bits for where between them they lie.
func (t *texture) between(x *exec, lane, dimensions int, coordinates [3]uint32) (value [4]uint32) {
	const steps = 256
	var low [3]int64
	var share [3]float64
	for axis, n := range t.sizes() {
		if axis < dimensions {
			v := t.coordinate(axis, coordinates[axis], n) - 0.5
			floor := math.Floor(v)
			low[axis], share[axis] = int64(floor), math.Round((v-floor)*steps)/steps
		}
	}
	var sum [4]float64
	for corner := range 1 << dimensions {
		weight, at := 1.0, low
		for axis := range dimensions {
			if corner>>axis&1 == 0 {
				weight *= 1 - share[axis]
			} else {
				weight *= share[axis]
				at[axis]++
			}
		}
		if weight == 0 {
			continue
		}
		texel := t.texel(x, lane, at)
		for k := range sum {
			sum[k] += weight * float64(math.Float32frombits(texel[k]))
		}
	}
	for k, v := range sum {
		value[k] = math.Float32bits(float32(v))
	}
	return value
}
