// Tests of the memory, where brute force sees too little: bytes that were made fresh, and how many intervals are kept.

package happens

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Making no bytes fresh or unwritten changes nothing: neither what is read before it is written, nor what is remembered.
func TestFreshOfNoBytes(t *testing.T) {
	var reads [][2]uint64
	var pairs []Pair
	c := New(func(p Pair) { pairs = append(pairs, p) }, func(_, _ int32, low, high uint64) { reads = append(reads, [2]uint64{low, high}) })
	one, other := c.Lane(), c.Lane()
	c.Fresh(4, 4)
	c.Unwritten(4, 4)
	c.Step(one, []Access{{0, 8, Write}})
	c.Fresh(4, 4)
	c.Unwritten(4, 4)
	c.Step(other, []Access{{0, 8, Read}})
	require.Empty(t, reads)
	require.Len(t, pairs, 1)
	require.Len(t, c.memory.pages, 1)
	require.Len(t, c.memory.pages[0].intervals, 1)
}

// Neighbouring bytes with the same history are one interval, at the beginning of what was touched as well as in it.
func TestAlikeIntervalsAreOne(t *testing.T) {
	c := New(func(Pair) {}, nil)
	lane := c.Lane()
	for low := range uint64(6) {
		c.Step(lane, []Access{{4 * low, 4*low + 4, Write}})
	}
	require.Len(t, c.memory.pages[0].intervals, 6)
	c.Step(lane, []Access{{0, 8, Write}})
	require.Len(t, c.memory.pages[0].intervals, 5)
	c.Step(lane, []Access{{4, 24, Write}})
	require.Len(t, c.memory.pages[0].intervals, 2)
}

// Neighbouring bytes of two steps that conflict are one pair, though they have different histories.
func TestNeighbouringBytesAreOnePair(t *testing.T) {
	var pairs []Pair
	c := New(func(p Pair) { pairs = append(pairs, p) }, nil)
	one, other := c.Lane(), c.Lane()
	c.Step(one, []Access{{0, 12, Write}})
	c.Step(one, []Access{{0, 4, Read}})
	c.Step(other, []Access{{0, 8, Read}, {9, 12, Read}})
	require.Equal(t, []Pair{
		{First: 0, Second: 2, Low: 0, High: 8, FirstMode: Write, SecondMode: Read, Conflict: Race},
		{First: 0, Second: 2, Low: 9, High: 12, FirstMode: Write, SecondMode: Read, Conflict: Race},
	}, pairs)
}
