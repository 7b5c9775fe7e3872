// What GPUs demand of textures, and of the kernels that read them.

package dag

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/internal/words"
)

// textureElements are the types of elements that textures may have.
var textureElements = []DType{U8, U16, U32, I8, I16, I32, F16, F32}

// Element is the type of one channel of an argument that is a texture.
func (a *Arg) Element() DType { return a.DType.Component() }

// TexturePitch is how many bytes lie from one row of an argument that is a texture to the next.
func (a *Arg) TexturePitch() int64 {
	if a.Texture == nil {
		return 0
	}
	if a.Range.Tile() {
		return int64(a.Range.Pitch)
	}
	pitch := a.Texture.Width * int64(a.Texture.Channels) * a.Element().Size()
	if a.Texture.Height == 1 { // there is no next row
		pitch = (pitch + TexturePitchAlign - 1) / TexturePitchAlign * TexturePitchAlign
	}
	return pitch
}

// Textured tells for each buffer whether a launch reads it as a texture; nil: no launch does.
func (p *Pipeline) Textured() []bool {
	if p == nil {
		return nil
	}
	var list []bool
	for i := range p.Nodes {
		l := p.Nodes[i].Launch
		if l == nil {
			continue
		}
		for k := range l.Args {
			a := &l.Args[k]
			if a.Texture == nil || !a.IsBuffer || a.Range.Buffer < 0 || int(a.Range.Buffer) >= len(p.Buffers) {
				continue
			}
			if list == nil {
				list = make([]bool, len(p.Buffers))
			}
			list[a.Range.Buffer] = true
		}
	}
	return list
}

// shaped fills in what a texture leaves open, from the slice. The result is not checked.
func (t Texture) shaped(b *Buffer, r Range) Texture {
	if t.Channels == 0 {
		t.Channels = int32(b.DType.Components())
	}
	texel := int64(t.Channels) * b.DType.Component().Size()
	rows, width := r.Box()
	if !r.Tile() && len(b.Shape) > 1 && t.Width == 0 && t.Height == 0 {
		if row := b.Bytes / max(b.Shape[0], 1); row > 0 && r.Lo%row == 0 && r.Hi%row == 0 {
			rows, width = (r.Hi-r.Lo)/row, row
			t.Height = rows
		}
	}
	if r.Tile() && t.Height == 0 {
		t.Height = rows
	}
	if t.Width == 0 {
		if !r.Tile() && t.Height > 0 {
			width = (r.Hi - r.Lo) / t.Height
		}
		t.Width = width / max(texel, 1)
	}
	return t
}

// problem says what is impossible about a texture over a slice, and a way out or "".
func (t *Texture) problem(p *Pipeline, r Range) (problem, hint string) {
	b := &p.Buffers[r.Buffer]
	element := b.DType.Component()
	texel := int64(t.Channels) * element.Size()
	rows, width := r.Box()
	if !r.Tile() {
		rows, width = t.Height, t.Width*texel
	}
	pitch := (&Arg{DType: b.DType, Range: r, Texture: t}).TexturePitch()
	switch {
	case t.Filter > Linear || t.Address[0] > Border || t.Address[1] > Border:
		return fmt.Sprintf("is read with filter %s and address modes %s and %s", t.Filter, t.Address[0], t.Address[1]), ""
	case b.Symbol != "":
		return fmt.Sprintf("is a texture, but %q is a variable of a module, whose address may not suit one", b.Name), "copy it to a buffer of its own"
	case !slices.Contains(textureElements, element):
		return fmt.Sprintf("is a texture, whose elements cannot be %s; possible are %s", element, textureTypes()), ""
	case t.Channels != 1 && t.Channels != 2 && t.Channels != 4:
		return fmt.Sprintf("has texels of %d channels; 1, 2 and 4 are possible", t.Channels), ""
	case b.DType.Components() > 1 && int64(t.Channels) != int64(b.DType.Components()):
		return fmt.Sprintf("has texels of %d channels, but %q has elements of type %s", t.Channels, b.Name, b.DType), "leave channels: out"
	case t.Width < 1 || t.Height < 0:
		return fmt.Sprintf("is a texture of %d x %d texels", t.Width, t.Height), ""
	case t.Height == 0 && t.Width > MostTexels:
		return fmt.Sprintf("is a texture of %d texels; not every GPU has more than %d", t.Width, MostTexels), ""
	case t.Width > MostTexels || t.Height > 0 && (t.Width > mostTextureWidth || t.Height > MostTextureHeight):
		return fmt.Sprintf("is a texture of %d x %d texels; not every GPU has more than %d x %d", t.Width, t.Height, mostTextureWidth, MostTextureHeight), ""
	case t.Height == 0 && t.Width*texel > r.Hi-r.Lo, t.Height > 0 && !r.Tile() && t.Width*texel*t.Height > r.Hi-r.Lo:
		return fmt.Sprintf("is a texture of %s with %s, but %s has %s", t.size(), words.Count(t.Width*max(t.Height, 1)*texel, "byte", "bytes"),
			p.rangeText(r), words.Count(r.Hi-r.Lo, "byte", "bytes")), ""
	case t.Height > rows || t.Width*texel > width:
		return fmt.Sprintf("is a texture of %s, but %s has %s of %s", t.size(), p.rangeText(r), words.Count(rows, "row", "rows"),
			words.Count(width, "byte", "bytes")), ""
	case r.Lo%TextureAlign != 0:
		return fmt.Sprintf("is a texture that starts at byte %d of %q; textures start at multiples of %d bytes", r.Lo, b.Name,
			TextureAlign), "copy the slice to a buffer of its own"
	case t.Height > 1 && pitch%TexturePitchAlign != 0:
		padded := (pitch + TexturePitchAlign - 1) / TexturePitchAlign * TexturePitchAlign
		return fmt.Sprintf("is a texture whose rows are %d bytes apart; the distance must be a multiple of %d", pitch, TexturePitchAlign),
			fmt.Sprintf("give the rows of the buffer %d bytes and pass a tile of them, such as b(..)(0..%d)", padded, t.Width*texel/b.DType.Size())
	case t.Height > 1 && pitch > mostTexturePitch:
		return fmt.Sprintf("is a texture whose rows are %d bytes apart; at most %d are possible", pitch, mostTexturePitch), ""
	case t.NormalizedFloat && (element.Float() || element.Size() > 2):
		return fmt.Sprintf("is read as normalized_float, but its elements are %s; that is for integers of 8 and 16 bits", element), ""
	case t.Height == 0 && t.Filter == Linear:
		return "is read with filter: linear, which needs two dimensions", "write height:"
	case t.Height == 0 && (t.Address != [2]AddressMode{} || t.Normalized):
		return "is read by index, so that address: and coordinates: mean nothing", "leave them out, or write height:"
	case t.Filter == Linear && !element.Float() && !t.NormalizedFloat:
		return fmt.Sprintf("is read with filter: linear, but its elements are %s, which cannot be interpolated",
			element), "write read: normalized_float, or filter: nearest"
	case !t.Normalized && slices.ContainsFunc(t.Address[:], func(m AddressMode) bool { return m == Wrap || m == Mirror }):
		return "is read with address: wrap or mirror, which need coordinates: normalized", ""
	}
	return "", ""
}

// textureTypes lists the types of elements.
func textureTypes() string {
	var names []string
	for _, t := range textureElements {
		names = append(names, t.String())
	}
	return strings.Join(names, ", ")
}

// fetchProblem says how a kernel's code contradicts a texture, or an argument that is none.
func (a *Arg) fetchProblem(param *KernelParam) string {
	code := &param.Code.Fetch
	switch {
	case a.Texture == nil && !code.Seen:
		return ""
	case a.Texture == nil:
		return fmt.Sprintf("is a texture (%s)", code.At)
	case !code.Seen && param.Code.Mode != 0:
		return "is a pointer in the code, not a texture"
	case !code.Seen:
		return ""
	case code.Surface:
		return fmt.Sprintf("is a surface (%s), which needs a CUDA array; pass the buffer as a pointer instead", code.At)
	}
	own := int8(2)
	if a.Texture.Height == 0 {
		own = 1
	}
	floats := a.Element().Float() || a.Texture.NormalizedFloat
	kinds := map[bool]string{true: "floats", false: "integers"}
	switch {
	case code.Dimensions != 0 && code.Dimensions != own:
		return fmt.Sprintf("is read in %s (%s), but the texture has %d", words.Count(int64(code.Dimensions), "dimension", "dimensions"), code.At, own)
	case own == 1 && code.Coordinates:
		return fmt.Sprintf("is read by coordinates (%s), but a texture of one dimension is read by index (tex1Dfetch)", code.At)
	case code.Floats && !floats, code.Integers && floats:
		return fmt.Sprintf("is read as %s (%s), but the texture gives %s", kinds[code.Floats && !floats], code.At, kinds[floats])
	}
	return ""
}
