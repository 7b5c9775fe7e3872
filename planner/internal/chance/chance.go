// Package chance has numbers for searches that change things at random: the same ones every time and everywhere.
package chance

// Random is the state of a generator.
type Random uint64

// New returns a generator that always gives the same numbers.
func New() Random { return 0x9e3779b97f4a7c15 }

// Below returns a number below n.
func (r *Random) Below(n int) int {
	x := uint64(*r)
	x ^= x << 13
	x ^= x >> 7
	x ^= x << 17
	*r = Random(x)
	return int((x >> 33) * uint64(n) >> 31)
}
