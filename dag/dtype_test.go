// Tests of element types: names, sizes and alignments.

package dag

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestElementTypes(t *testing.T) {
	names := DTypes()
	require.Len(t, names, 47)
	seen := map[DType]bool{}
	for _, name := range names {
		d, ok := ParseDType(name)
		require.True(t, ok, name)
		require.False(t, seen[d], name)
		seen[d] = true
		require.Equal(t, name, d.String())
		require.Equal(t, int64(d.Components())*d.Component().Size(), d.Size(), name)
		require.Zero(t, d.Size()%d.Align(), name)
		require.Equal(t, 1, d.Component().Components(), name)
	}
	for d := range DType(255) {
		require.Equal(t, seen[d], d.Size() > 0, d.String())
	}
	for name, want := range map[string][2]int64{"f32x4": {16, 16}, "f32x3": {12, 4}, "f64x4": {32, 16}, "f64x2": {16, 16}, "u8x4": {4, 4}, "u8x3": {3, 1}, "i16x2": {4, 4},
		"c64": {8, 8}, "c128": {16, 16}, "f16x2": {4, 4}, "f64": {8, 8}} {
		d, _ := ParseDType(name)
		require.Equal(t, want, [2]int64{d.Size(), d.Align()}, name)
	}
	for _, name := range []string{"", "x2", "f32x", "f32x1", "f32x5", "f32x22", "f32x2x2", "f16x3", "boolx2", "c64x2", "invalid", "invalidx2"} {
		_, ok := ParseDType(name)
		require.False(t, ok, name)
	}
	require.Equal(t, InvalidDType, Vector(F32, 0))
	require.Equal(t, InvalidDType, Vector(F32, 17))
	require.Equal(t, InvalidDType, Vector(Vector(F32, 2), 2))
	require.Equal(t, InvalidDType, Vector(InvalidDType, 2))
}
