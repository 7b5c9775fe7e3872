// Tests of Philox against the published known answers of the generator, and of the moments of its uniform and normal numbers.

package numbers

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPhiloxGivesThePublishedWords(t *testing.T) {
	const all = math.MaxUint32
	for _, c := range []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{[4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{all, all, all, all}, [2]uint32{all, all}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0}, [4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		require.Equal(t, c.want, Philox(c.counter, c.key))
	}
}

func TestUniformAndNormalHaveTheirMoments(t *testing.T) {
	const n = 1 << 16
	var uniform, normal, square float64
	for i := range uint64(n) {
		u := Uniform(7, i)
		require.True(t, u >= 0 && u < 1)
		uniform += u / n
		v := Normal(7, i)
		normal += v / n
		square += v * v / n
	}
	require.InDelta(t, 0.5, uniform, 0.005)
	require.InDelta(t, 0, normal, 0.02)
	require.InDelta(t, 1, square, 0.02)
}
