// The random integers of rand(seed, i, k), computed from a counter, without state.

package expr

import "math/bits"

// Rand returns a number in 0..k-1 that depends on nothing but its arguments; k must be above 0.
//
// The algorithm is part of the format and never changes. With mix as the 64-bit finaliser of SplitMix64,
//
//	mix(z): z ^= z>>30; z *= 0xbf58476d1ce4e5b9; z ^= z>>27; z *= 0x94d049bb133111eb; z ^= z>>31
//
// it is the high half of the 128-bit product mix(mix(seed + 0x9e3779b97f4a7c15) + i*0x9e3779b97f4a7c15) * k, all in unsigned
// 64-bit arithmetic: element i of the SplitMix64 sequence that starts at the mixed seed, scaled without a division.
func Rand(seed, i, k int64) int64 {
	const golden = 0x9e3779b97f4a7c15
	hi, _ := bits.Mul64(mix(mix(uint64(seed)+golden)+uint64(i)*golden), uint64(k))
	return int64(hi)
}

func mix(z uint64) uint64 {
	z ^= z >> 30
	z *= 0xbf58476d1ce4e5b9
	z ^= z >> 27
	z *= 0x94d049bb133111eb
	return z ^ z>>31
}
