package replan

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// drawn is a graph, and values that some of its nodes touch.
type drawn struct {
	nodes  int
	edges  [][2]int
	order  []int
	users  [][]int
	values []*lying
}

func drawGraph(t *rapid.T) *drawn {
	d := &drawn{nodes: rapid.IntRange(1, 70).Draw(t, "nodes")}
	for b := 1; b < d.nodes; b++ {
		for _, a := range rapid.SliceOfN(rapid.IntRange(0, b-1), 0, 3).Draw(t, "before") {
			d.edges = append(d.edges, [2]int{a, b})
		}
	}
	var err error
	d.order, err = sorted(d.nodes, d.edges)
	require.NoError(t, err)
	r := newReach(d.nodes, d.edges, d.order)
	for v := range rapid.IntRange(1, 25).Draw(t, "values") {
		users := rapid.SliceOfNDistinct(rapid.IntRange(0, d.nodes-1), 1, min(4, d.nodes), rapid.ID[int]).Draw(t, "users")
		l := &lying{value: v, size: 256 * int64(rapid.IntRange(1, 9).Draw(t, "size")), begins: d.nodes}
		for _, k := range users {
			l.begins, l.ends = min(l.begins, k), max(l.ends, k)
		}
		l.first, l.last = r.ends(users)
		d.users, d.values = append(d.users, users), append(d.values, l)
	}
	return d
}

// Whatever the graph is, values that share bytes are in use one after the other, and none lies where something else does.
func TestLayoutsAreDisjoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawGraph(t)
		own := 256 * int64(rapid.IntRange(0, 40).Draw(t, "own"))
		a := &arena{own: own, taken: apart([][2]int64{{own, own}, {0, 256}})}
		var values, stays []*lying
		for _, v := range d.values {
			if v.value%5 == 4 && len(stays) == 0 {
				v.at = 512
				stays = append(stays, v)
			} else {
				values = append(values, v)
			}
		}
		end := a.place(values, stays, newReach(d.nodes, d.edges, d.order))
		require.NoError(t, disjoint(d.nodes, d.edges, d.users, d.values))
		for _, v := range values {
			require.GreaterOrEqual(t, v.at, int64(256), "nothing lies where something else does")
			require.LessOrEqual(t, v.at+v.size, end)
			require.False(t, v.at < own && v.at+v.size > own, "nothing lies across the end of a segment")
		}
	})
}

// The check of layouts compares every pair of users.
func TestDisjointFindsWhatNothingOrders(t *testing.T) {
	edges := [][2]int{{0, 1}, {1, 2}}
	place := func(at int64, value int) *lying { return &lying{value: value, size: 256, at: at} }
	users := [][]int{{0, 1}, {2}, {3}}
	require.NoError(t, disjoint(4, edges, users, []*lying{place(0, 0), place(0, 1), place(256, 2)}))
	require.EqualError(t, disjoint(4, edges, users, []*lying{place(0, 0), place(512, 1), place(255, 2)}), "values 0 and 2 share bytes, and nothing orders their users")
	require.EqualError(t, disjoint(4, edges, [][]int{{0, 2}, {1}}, []*lying{place(0, 0), place(0, 1)}), "values 0 and 1 share bytes, and nothing orders their users")
	alone := &lying{value: 1, size: 256, alone: true}
	require.EqualError(t, disjoint(4, edges, users, []*lying{place(0, 0), alone}), "values 0 and 1 share bytes, and one of them is to lie alone")
	require.EqualError(t, disjoint(2, [][2]int{{0, 1}, {1, 0}}, users, nil), "the edges of a new graph go in a circle")
}

func TestReach(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawGraph(t)
		r := newReach(d.nodes, d.edges, d.order)
		past, err := pastOf(d.nodes, d.edges)
		require.NoError(t, err)
		for a := range d.nodes {
			for b := range d.nodes {
				require.Equal(t, past[b][a/64]>>(a%64)&1 != 0, r.before(a, b), "%d before %d", a, b)
			}
		}
	})
}
