// Tests of tiles in nodes of loops and branches: what the node around them accesses, and what it need not wait for.

package dag_test

import (
	"testing"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/file"
	"github.com/stretchr/testify/require"
)

const tilesInLoops = `version: 1
params: {k: 4}
buffers:
  a: {place: device, dtype: f32, shape: [8, 8]}
  b: {place: device, dtype: f32, shape: [8, 8]}
  s: {place: host, dtype: f32, shape: [8, 8], save: s.npy}
nodes:
  - name: left
    repeat: {times: 3}
    nodes:
      - {foreach: {i: k}, name: l.$i, memset: {to: a(i of k)(0 of 2), value: i}}
  - name: right
    repeat: {times: 3}
    nodes:
      - {foreach: {i: k}, name: r.$i, memset: {to: a(i of k)(1 of 2), value: i}}
  - name: corner
    if: a(2..3)(5..6) > 1
    nodes:
      - {name: cut, memcpy: {from: a(0..4)(0..4), to: b(4..8)(4..8)}}
    else:
      - {foreach: {i: 2}, name: other.$i, memset: {to: b(i of 2)(4..8), value: 1}}
  - name: both
    repeat: {times: 1}
    nodes:
      - {foreach: {i: 2, j: k}, name: all.$i.$j, memset: {to: b(i of 2)(j of k), value: 1}}
  - {name: down, memcpy: {from: b, to: s}}
`

func TestTilesInLoops(t *testing.T) {
	g, err := file.Parse([]byte(tilesInLoops), file.Options{Name: "p.yaml"})
	require.NoError(t, err)
	texts := func(id dag.NodeID) (list []string) {
		for _, a := range g.Accesses(id) {
			list = append(list, a.Mode.String()+" "+g.RangeText(a.Range))
		}
		return list
	}
	require.Equal(t, []string{"out a(0..8)(0..4)"}, texts(0))
	require.Equal(t, []string{"out a(0..8)(4..8)"}, texts(1))
	require.Equal(t, []string{"in a(2..3)(5..6)", "in a(0..4)(0..4)", "inout b(0..4)(4..8)", "out b(4..8)(4..8)"}, texts(2))
	require.Equal(t, []string{"out b"}, texts(3))
	var edges []string
	for _, e := range g.Edges() {
		edges = append(edges, g.NameOf(e.From)+" -> "+g.NameOf(e.To)+" "+g.EdgeText(e))
	}
	require.Equal(t, []string{"left -> corner RAW a(0..4)(0..4)", "right -> corner RAW a(2..3)(5..6)", "corner -> both WAW b(0..8)(4..8)", "both -> down RAW b"}, edges)
	require.Equal(t, []string{"b"}, namesOf(g, g.Carried()))
}

func namesOf(g *dag.Graph, ids []dag.BufferID) (names []string) {
	for _, id := range ids {
		names = append(names, g.Buffers[id].Name)
	}
	return names
}

func TestConditionsThatReadTiles(t *testing.T) {
	for text, want := range map[string]string{
		"a(0..2)(1..2) > 1":           "a condition reads single elements, and a(0..2)(1..2) has 2; write a slice such as x(0..1)",
		"a(1 of 4)(1 of 4) > 1":       "a condition reads single elements, and a(1 of 4)(1 of 4) has 4; write a slice such as x(0..1)",
		"min(a(7..8)(7..8), 2) > len": `unknown name "len"`,
		"a(0..1)(7..9) > 1":           "",
	} {
		b := dag.New("test")
		a := b.Device("a", dag.F32, 8, 8)
		b.If("if", text, func() { b.Memset("m", b.Whole(a), 1) }, nil)
		_, err := b.Graph()
		require.ErrorContains(t, err, want)
	}
}
