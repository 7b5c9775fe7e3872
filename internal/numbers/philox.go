// Philox 4x32-10 in Go: the counter-based generator behind uniform and normal numbers, with the same bits on every device.

package numbers

import "math"

// Philox returns the four words of a counter under a key. It has no state: equal arguments give equal words, on any machine.
func Philox(counter [4]uint32, key [2]uint32) [4]uint32 {
	c, k0, k1 := counter, key[0], key[1]
	for range 10 {
		a := uint64(c[0]) * 0xd2511f53
		b := uint64(c[2]) * 0xcd9e8d57
		c = [4]uint32{uint32(b>>32) ^ c[1] ^ k0, uint32(b), uint32(a>>32) ^ c[3] ^ k1, uint32(a)}
		k0 += 0x9e3779b9
		k1 += 0xbb67ae85
	}
	return c
}

// philoxAt returns the words for number i of a seed.
func philoxAt(seed, i uint64) [4]uint32 {
	return Philox([4]uint32{uint32(i), uint32(i >> 32)}, [2]uint32{uint32(seed), uint32(seed >> 32)})
}

// Uniform returns number i of a seed, in [0, 1), with all 53 bits of a float64.
func Uniform(seed, i uint64) float64 {
	w := philoxAt(seed, i)
	return float64(uint64(w[0])<<21|uint64(w[1])>>11) * (1.0 / (1 << 53))
}

// Normal returns number i of a seed, with mean 0 and standard deviation 1 (Box and Muller's transform).
func Normal(seed, i uint64) float64 {
	w := philoxAt(seed, i)
	u := (float64(uint64(w[0])<<21|uint64(w[1])>>11) + 1) * (1.0 / (1 << 53)) // in (0, 1]: its logarithm is finite
	v := float64(uint64(w[2])<<21|uint64(w[3])>>11) * (1.0 / (1 << 53))
	_, cos := SincosTurns64(v)
	return float64(math.Sqrt(-2*Log64(u)) * cos)
}
