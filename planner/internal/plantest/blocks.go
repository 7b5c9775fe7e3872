// Graphs on blocks of memory that do not all fit on a device, and the fewest copies that any choice of what leaves it needs.

package plantest

import (
	"fmt"
	"math"
	"math/bits"
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
		ids = append(ids, b.Buffer(dag.Buffer{Name: fmt.Sprintf("b%d", k), Place: dag.Device, DType: dag.U8, Shape: []int64{BlockBytes}, Init: &dag.Init{Kind: dag.InitRamp}}))
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

// LeastCopies tries every choice of what leaves, and returns the least sum of copies, to the device and back to the host counted
// as up and down say. Blocks that are changed are state: they end in host memory, or stay on the device for good.
func LeastCopies(uses [][]int, written []bool, blocks, fit, up, down int) int {
	best := math.MaxInt
	for stays := range 1 << blocks { // those that never leave
		if bits.OnesCount(uint(stays)) <= fit {
			best = min(best, leastMoving(uses, written, blocks, fit-bits.OnesCount(uint(stays)), stays, up, down))
		}
	}
	return best
}

// blocksState is what is on the device, and which of it has changed.
type blocksState struct{ here, changed int }

func leastMoving(uses [][]int, written []bool, blocks, fit, stays, up, down int) int {
	reach := map[blocksState]int{{}: 0} // copies so far
	for i, use := range uses {
		need, change := 0, 0
		for k, b := range use {
			if stays>>b&1 == 0 {
				need |= 1 << b
				if k == 0 && written[i] {
					change |= 1 << b
				}
			}
		}
		next := map[blocksState]int{}
		for s, cost := range reach {
			all := s.here | need
			missing := bits.OnesCount(uint(need &^ s.here))
			for leave := all &^ need; ; leave = (leave - 1) & (all &^ need) {
				if left := all &^ leave; bits.OnesCount(uint(left)) <= fit {
					to := blocksState{left, (s.changed &^ leave) | change}
					sum := cost + up*missing + down*bits.OnesCount(uint(s.changed&leave))
					if old, known := next[to]; !known || sum < old {
						next[to] = sum
					}
				}
				if leave == 0 {
					break
				}
			}
		}
		reach = next
	}
	best := math.MaxInt
	for s, cost := range reach {
		best = min(best, cost+down*bits.OnesCount(uint(s.changed)))
	}
	return best
}
