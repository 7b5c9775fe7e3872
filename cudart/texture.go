// Textures: memory that a kernel reads through a texture object.

package cudart

import (
	"errors"
	"fmt"
)

// Element is how memory holds one channel of a texel.
type Element uint8

// The elements.
const (
	ElementU8 Element = iota
	ElementU16
	ElementU32
	ElementS8
	ElementS16
	ElementS32
	ElementF16
	ElementF32
)

// Size returns the bytes of an element.
func (e Element) Size() int64 {
	switch e {
	case ElementU8, ElementS8:
		return 1
	case ElementU16, ElementS16, ElementF16:
		return 2
	}
	return 4
}

// Float reports whether memory holds floats.
func (e Element) Float() bool { return e == ElementF16 || e == ElementF32 }

// AddressMode says what a texture returns for coordinates outside it.
type AddressMode uint8

// The address modes. Wrap and Mirror are only possible with normalized coordinates.
const (
	Clamp  AddressMode = iota // the texel at the edge
	Wrap                      // the texture repeats
	Mirror                    // the texture repeats, every second time mirrored
	Border                    // the border's color
)

// Texture describes memory that a kernel reads through a texture object. The kernel's argument is the handle of the object.
type Texture struct {
	Element  Element
	Channels int // of a texel: 1, 2 or 4
	// Width, Height and Depth are counted in texels. Height 0 is linear memory, which kernels read by index (tex1Dfetch): outside, they
	// read 0, and no other field counts. Depth 0 has two dimensions.
	Width, Height, Depth int64
	Pitch                int64 // bytes from one row to the next; a slice is Height rows
	Address              [3]AddressMode
	Border               [4]float32
	Linear               bool // interpolates between texels; otherwise the nearest one counts
	Normalized           bool // coordinates go from 0 to 1
	Fractions            bool // integers of 8 and 16 bits are read as floats from 0 or -1 to 1
}

// Texel returns the bytes of a texel.
func (t *Texture) Texel() int64 { return t.Element.Size() * int64(t.Channels) }

// Floats reports whether kernels read floats.
func (t *Texture) Floats() bool { return t.Element.Float() || t.Fractions }

// Bytes returns how much memory the texture takes.
func (t *Texture) Bytes() int64 {
	if t.Height == 0 {
		return t.Width * t.Texel()
	}
	return (t.Height*max(t.Depth, 1)-1)*t.Pitch + t.Width*t.Texel()
}

// mostTexels is the most texels of a dimension: more than any GPU allows, and few enough that no product overflows.
const mostTexels = 1 << 28

// Check returns what is wrong with a texture in so many bytes of memory.
func (t *Texture) Check(bytes int64) error {
	switch {
	case t.Element > ElementF32:
		return fmt.Errorf("there is no element %d", t.Element)
	case t.Channels != 1 && t.Channels != 2 && t.Channels != 4:
		return fmt.Errorf("a texel of %d channels; 1, 2 and 4 are possible", t.Channels)
	case t.Width < 1 || t.Height < 0 || t.Depth < 0 || t.Width > mostTexels || t.Height > 1<<16 || t.Depth > 1<<14 || t.Depth > 0 && t.Height == 0:
		return fmt.Errorf("a texture of %d x %d x %d texels is not possible", t.Width, t.Height, t.Depth)
	case t.Height > 0 && (t.Pitch < t.Width*t.Texel() || t.Pitch > 1<<32):
		return fmt.Errorf("rows that are %d bytes apart; a row has %d", t.Pitch, t.Width*t.Texel())
	case t.Fractions && (t.Element.Float() || t.Element.Size() == 4):
		return errors.New("only integers of 8 and 16 bits can be read as fractions")
	case t.Linear && t.Height > 0 && !t.Floats():
		return errors.New("integers cannot be interpolated unless they are read as fractions")
	case t.Bytes() > bytes:
		return fmt.Errorf("it takes %d bytes, but its memory has %d", t.Bytes(), bytes)
	}
	if t.Height > 0 && !t.Normalized {
		for _, mode := range t.Address {
			if mode == Wrap || mode == Mirror {
				return errors.New("wrap and mirror need normalized coordinates")
			}
		}
	}
	return nil
}
