// Tests of what a texture may be.

package cudart_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
)

func TestTexturesThatAreNotPossible(t *testing.T) {
	good := cudart.Texture{Element: cudart.ElementU8, Channels: 4, Width: 10, Height: 6, Pitch: 64}
	require.NoError(t, good.Check(5*64+40))
	for _, c := range []struct {
		change func(*cudart.Texture)
		want   string
	}{
		{func(*cudart.Texture) {}, "it takes 360 bytes, but its memory has 359"},
		{func(x *cudart.Texture) { x.Element = 99 }, "there is no element 99"},
		{func(x *cudart.Texture) { x.Channels = 3 }, "a texel of 3 channels; 1, 2 and 4 are possible"},
		{func(x *cudart.Texture) { x.Width = 0 }, "a texture of 0 x 6 x 0 texels is not possible"},
		{func(x *cudart.Texture) { x.Height, x.Depth = 0, 4 }, "a texture of 10 x 0 x 4 texels is not possible"},
		{func(x *cudart.Texture) { x.Width = 1 << 60 }, "a texture of 1152921504606846976 x 6 x 0 texels is not possible"},
		{func(x *cudart.Texture) { x.Pitch = 32 }, "rows that are 32 bytes apart; a row has 40"},
		{func(x *cudart.Texture) { x.Element, x.Pitch, x.Fractions = cudart.ElementS32, 160, true }, "only integers of 8 and 16 bits can be read as fractions"},
		{func(x *cudart.Texture) { x.Linear = true }, "integers cannot be interpolated unless they are read as fractions"},
		{func(x *cudart.Texture) { x.Element, x.Pitch, x.Address[1] = cudart.ElementF16, 80, cudart.Mirror }, "it takes 480 bytes, but its memory has 359"},
		{func(x *cudart.Texture) { x.Width, x.Pitch, x.Address[1] = 2, 8, cudart.Mirror }, "wrap and mirror need normalized coordinates"},
	} {
		texture := good
		c.change(&texture)
		require.EqualError(t, texture.Check(359), c.want)
	}
}
