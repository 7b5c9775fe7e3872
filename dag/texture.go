// Textures: how kernels read buffers through texture objects.

package dag

import (
	"fmt"
	"strings"

	"github.com/dagrun/dagrun/internal/words"
)

// Filter says how a texture is read between its texels.
type Filter uint8

// The filters.
const (
	Nearest Filter = iota // the nearest texel
	Linear                // interpolated
)

// AddressMode says what a texture returns for coordinates outside it.
type AddressMode uint8

// The address modes. Wrap and Mirror need normalized coordinates.
const (
	Clamp  AddressMode = iota // the texel at the edge
	Wrap                      // the texture repeats
	Mirror                    // the texture repeats, every second time mirrored
	Border                    // 0
)

var (
	filterNames  = []string{"nearest", "linear"}
	addressNames = []string{"clamp", "wrap", "mirror", "border"}
)

// String returns the word that a pipeline file uses.
func (f Filter) String() string { return words.Name(f, "Filter", filterNames) }

// String returns the word that a pipeline file uses.
func (m AddressMode) String() string { return words.Name(m, "AddressMode", addressNames) }

// Texture says how a kernel reads a buffer through a texture object.
type Texture struct {
	Channels int32 // elements of a texel: 1, 2 or 4. 0: as the buffer's type has them
	// Width and Height are counted in texels. Height 0 is linear memory, which kernels read by index (tex1Dfetch). If both are 0, a
	// slice of a buffer of several dimensions has two, and any other is linear memory.
	Width, Height   int64
	Filter          Filter
	Address         [2]AddressMode // in x and y
	Normalized      bool           // coordinates go from 0 to 1
	NormalizedFloat bool           // integers of 8 and 16 bits are read as floats from 0 or -1 to 1
}

// What every GPU that CUDA supports demands of textures in memory that is not an array.
const (
	TextureAlign      = 512 // bytes to which the first texel is aligned
	TexturePitchAlign = 32  // bytes of which the distance between rows is a multiple

	MostTexels        = 1 << 27 // of linear memory
	mostTextureWidth  = 65000
	MostTextureHeight = 65000
	mostTexturePitch  = 2097120
)

// size is how many texels a texture has, in words.
func (t *Texture) size() string {
	if t.Height == 0 {
		return words.Count(t.Width, "texel", "texels")
	}
	return fmt.Sprintf("%d x %d texels", t.Width, t.Height)
}

// String describes the texture as a pipeline file has it, without the buffer: "width: 64, height: 32, filter: linear".
func (t *Texture) String() string {
	if t == nil {
		return ""
	}
	parts := []string{fmt.Sprintf("width: %d", t.Width)}
	if t.Height > 0 {
		parts = append(parts, fmt.Sprintf("height: %d", t.Height))
	}
	if t.Channels > 1 {
		parts = append(parts, fmt.Sprintf("channels: %d", t.Channels))
	}
	if t.Filter != Nearest {
		parts = append(parts, "filter: "+t.Filter.String())
	}
	switch {
	case t.Address[0] != t.Address[1]:
		parts = append(parts, fmt.Sprintf("address: [%s, %s]", t.Address[0], t.Address[1]))
	case t.Address[0] != Clamp:
		parts = append(parts, "address: "+t.Address[0].String())
	}
	if t.Normalized {
		parts = append(parts, "coordinates: normalized")
	}
	if t.NormalizedFloat {
		parts = append(parts, "read: normalized_float")
	}
	return strings.Join(parts, ", ")
}
