// Graphs on blocks of memory that do not all fit on a device.

package plantest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
)

// BlockBytes is the size of the blocks of DrawBlocks.
const BlockBytes = 4 << 20

// DrawBlocks makes kernels that take some time on blocks with contents from outside. uses are the blocks of each node; the first is
// written too where written says so.
func DrawBlocks(t testing.TB, random *rand.Rand, blocks, nodes int, us float64, writes bool) (g *dag.Graph, uses [][]int, written []bool) {
	t.Helper()
	b := dag.New("blocks")
	var ids []dag.BufferID
	for k := range blocks {
		ids = append(ids, b.Buffer(dag.Buffer{Name: fmt.Sprintf("b%d", k), Place: dag.Device, DType: dag.U8, Shape: []int64{BlockBytes},
			Init: &dag.Init{Kind: dag.InitRamp}}))
	}
	for i := range nodes {
		use := random.Perm(blocks)[:1+random.IntN(2)]
		write := writes && random.IntN(2) == 0
		var accesses []dag.Access
		for k, id := range use {
			if k == 0 && write {
				accesses = append(accesses, b.InOut(ids[id]))
			} else {
				accesses = append(accesses, b.In(ids[id]))
			}
		}
		b.Node(dag.Node{Name: fmt.Sprintf("n%d", i), Kind: dag.Task, HasCost: true, CostUS: us, Work: dag.Work{Blocks: 100_000, Threads: 256}}, accesses...)
		uses, written = append(uses, use), append(written, write)
	}
	g, err := b.Graph()
	require.NoError(t, err)
	return g, uses, written
}
