// Textures: arguments that kernels read through texture objects, in the words of platforms.

package engine

import (
	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
)

// textureElements are the types that texels can have.
var textureElements = map[dag.DType]cudart.Element{
	dag.U8: cudart.ElementU8, dag.U16: cudart.ElementU16, dag.U32: cudart.ElementU32, dag.I8: cudart.ElementS8, dag.I16: cudart.ElementS16,
	dag.I32: cudart.ElementS32, dag.F16: cudart.ElementF16, dag.F32: cudart.ElementF32,
}

var addressModes = map[dag.AddressMode]cudart.AddressMode{dag.Clamp: cudart.Clamp, dag.Wrap: cudart.Wrap, dag.Mirror: cudart.Mirror, dag.Border: cudart.Border}

// textureOf describes the texture object of an argument, nil if it has none.
func textureOf(a *dag.Arg) *cudart.Texture {
	t := a.Texture
	if t == nil {
		return nil
	}
	return &cudart.Texture{
		Element: textureElements[a.Element()], Channels: int(t.Channels), Width: t.Width, Height: t.Height, Pitch: a.TexturePitch(),
		Address: [3]cudart.AddressMode{addressModes[t.Address[0]], addressModes[t.Address[1]]},
		Linear:  t.Filter == dag.Linear, Normalized: t.Normalized, Fractions: t.NormalizedFloat,
	}
}
