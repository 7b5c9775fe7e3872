// Tests of what a communication says of itself.

package dag

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPartners(t *testing.T) {
	for _, c := range []struct {
		among Among
		ranks int32
		want  []int32
	}{
		{Among{}, 4, []int32{0, 1, 2, 3}},
		{Among{First: 1, Count: 2, Step: 2}, 4, []int32{1, 3}},
		{Among{First: 1, Count: 3, Step: 2}, 4, []int32{1, 3}},
		{Among{First: 0, Count: math.MaxInt32, Step: math.MaxInt32}, 2, []int32{0}},
		{Among{First: -1, Count: 3, Step: 1}, 4, nil},
		{Among{First: 1, Count: 3, Step: -1}, 4, nil},
		{Among{First: 1, Count: -3, Step: 1}, 4, nil},
	} {
		require.Equal(t, c.want, (&Communication{Verb: AllReduce, Among: c.among}).Partners(c.ranks), "%+v of %d", c.among, c.ranks)
	}
	// A billion ranks, or members, would not fit into memory.
	require.Len(t, (&Communication{Verb: AllReduce, Among: Among{Count: math.MaxInt32, Step: 1}}).Partners(math.MaxInt32), MaxRanks)
	require.Equal(t, []int32{0, 2}, (&Communication{Verb: Exchange, Transfers: []Transfer{{Rank: 2}, {Rank: 7}, {Rank: 0}, {Rank: 2}, {Rank: -1}}}).Partners(4))
}

// A pipeline that is declared in Go has one order of communication too, also where no data orders it.
func TestCommunicationDeclaredInGoHasOneOrder(t *testing.T) {
	b := New("p")
	b.Ranks(0, 2)
	for _, name := range []string{"x", "y"} {
		whole := b.Whole(b.Buffer(Buffer{Name: name, Place: Device, DType: F32, Shape: []int64{4}}))
		b.Communicate("sum_"+name, Communication{Verb: AllReduce, Reduction: Sum, From: whole, To: whole})
	}
	g, err := b.Graph()
	require.NoError(t, err)
	require.Equal(t, []NodeID{0}, g.Nodes[1].After)
}
