// Which groups of ranks a rank connects to.

package session

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/file"
)

func TestGroupsOfBodiesAreConnected(t *testing.T) {
	g, err := file.Parse([]byte(`version: 1
buffers:
  x: {place: device, dtype: f32, shape: [4], init: 1}
nodes:
  - {name: all, allreduce: {inout: x, op: sum}}
  - name: solve
    repeat: {times: 2}
    nodes:
      - {name: row, allreduce: {inout: x, op: sum, among: [2, 2, 1]}}
      - name: often
        repeat: {times: 2}
        nodes:
          - {name: column, allreduce: {inout: x, op: sum, among: [0, 2, 2]}}
          - {name: again, allreduce: {inout: x, op: max, among: [2, 2, 1]}}
`), file.Options{Rank: 2, Ranks: 4})
	require.NoError(t, err)
	require.Equal(t, []dag.Among{{First: 2, Count: 2, Step: 1}, {First: 0, Count: 2, Step: 2}}, groupsOf(g))
}
