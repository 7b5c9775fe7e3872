// Tests of what is read from Rust.

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTestsOfRust(t *testing.T) {
	list, err := testsOf(`
// test_ptx!(gone, [1u8], [1u8]);
test_ptx!(plain, [u64::max_value(), 0x01_00__02i64], [f32::NAN, 1f32, -2.5, std::f32::consts::PI / 2f32]); // after
test_ptx_with_32!(
    narrow,
    [half::f16::from_f32(-0.0), half::f16::from_bits(0x38d3)],
    [0u16, half::f16::NAN.to_bits()]
);
test_ptx!(without);
test_ptx_warp!(warp, [0b101u8, i8::MIN as u8,]);
`)
	require.ErrorContains(t, err, `warp: the value "i8::MIN as u8" is not understood`)
	require.Nil(t, list)
	list, err = testsOf("test_ptx!(plain, [u64::max_value(), 0x01_00__02i64], [f32::INFINITY, 1f32, -2.5, std::f32::consts::PI / 2f32]); // after\n" +
		"test_ptx_with_32!(narrow, [half::f16::from_f32(-0.0), half::f16::from_bits(0x38d3)], [0u16, half::f16::INFINITY.to_bits()]);\ntest_ptx!(without);\ntest_ptx_warp!(warp, [0b101u8, 7,]);\n")
	require.NoError(t, err)
	var text []string
	for i := range list {
		e := &list[i]
		for _, v := range []*values{&e.in, &e.out} {
			if len(v.bytes) > 0 {
				text = append(text, e.name+" "+v.dtype.String()+v.text(v.bytes))
			}
		}
	}
	require.Equal(t, []string{"plain u64[18446744073709551615, 65538]", "plain f32[+Inf, 1, -2.5, 1.5707964]", "narrow f16[-0, 0.60302734]", "narrow u16[0, 31744]", "warp u8[5, 7]"}, text)
	require.True(t, list[1].narrow)
	require.True(t, list[2].warps)
	require.True(t, list[1].in.equal([]byte{0, 0, 0xd3, 0x38}), "0 is -0")
	require.False(t, list[1].out.equal([]byte{0, 0, 0, 0}))
}
