package replan

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Four launches in turn use one workspace of another owner, each after a memset. What the first three leave there nobody can see, so it may lie elsewhere; what
// the last one leaves must be where the owner looks for it.
func TestOnlyTheLastContentsOfAWorkspaceStay(t *testing.T) {
	workspace := Extent{0x1000, 768}
	l := &learner{g: &Graph{Shared: []Extent{workspace}}, known: &Known{Nodes: make([]Seen, 8)}, uses: map[int][]used{}}
	l.addValue(workspace, false, notOwn)
	whole := []stretch{{0x1000, 0x1000 + 768}}
	for k := range l.known.Nodes {
		l.position = append(l.position, k)
		if k%2 == 0 {
			l.use(k, 0, &byMode{nil, whole})
		} else {
			l.use(k, 0, &byMode{whole, whole, whole})
		}
	}
	l.split()
	require.Len(t, l.known.Values, 4)
	for k, n := range l.known.Nodes {
		require.Equal(t, k/2, n.Uses[0].Value)
	}
	require.Equal(t, []string{"", "", "", notOwn}, slices.Collect(func(yield func(string) bool) {
		for _, v := range l.known.Values {
			yield(v.Pinned)
		}
	}))
}
