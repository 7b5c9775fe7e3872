// Tests of the order within a unit.

package happens

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestShape(t *testing.T) {
	//   0 -> 2 -> 4
	//   1 -> 3 -> 4, 0 -> 3
	s, err := NewShape(5, [][2]int32{{0, 2}, {2, 4}, {1, 3}, {3, 4}, {0, 3}})
	require.NoError(t, err)
	require.Equal(t, 5, s.Nodes())
	require.Equal(t, []int32{0, 1, 2, 3, 4}, s.Order())
	var before []string
	for a := range int32(5) {
		for b := range int32(5) {
			if s.Before(a, b) {
				before = append(before, string(rune('0'+a))+string(rune('0'+b)))
			}
		}
	}
	require.Equal(t, []string{"02", "03", "04", "13", "14", "24", "34"}, before)
	require.Equal(t, int32(2), s.chains)
}

func TestShapeTellsNodesByNumber(t *testing.T) {
	s, err := NewShape(6, [][2]int32{{5, 0}, {4, 1}})
	require.NoError(t, err)
	require.Equal(t, []int32{2, 3, 4, 1, 5, 0}, s.Order())
}

func TestShapeOfARow(t *testing.T) {
	s, err := NewShape(3, [][2]int32{{0, 1}, {1, 2}, {0, 2}})
	require.NoError(t, err)
	require.Equal(t, int32(1), s.chains)
	require.Equal(t, []int32{1, 2, 3}, s.place)
	require.Equal(t, s.Chain(0), s.Chain(2))
}

func TestShapeRefuses(t *testing.T) {
	_, err := NewShape(3, [][2]int32{{0, 1}, {1, 2}, {2, 1}})
	require.EqualError(t, err, "the edges of 2 nodes form a circle")
	for _, edge := range [][2]int32{{-1, 0}, {2, 0}, {0, -1}, {0, 2}} {
		_, err := NewShape(2, [][2]int32{edge})
		require.ErrorContains(t, err, "and there are 2 nodes")
	}
}

// A file of a megabyte can hold a graph whose order would take gigabytes.
func TestShapesThatAreTooLarge(t *testing.T) {
	_, err := NewShape(50_000, nil)
	require.EqualError(t, err, "the order of 50000 nodes in 50000 rows takes 298.31 MiB, more than the 256 MiB that are allowed")
	var rows [][2]int32 // 2,000 rows, each of 30 nodes
	for i := range int32(58_000) {
		rows = append(rows, [2]int32{i, i + 2000})
	}
	_, err = NewShape(60_000, rows)
	require.EqualError(t, err, "the order of 60000 nodes in 2000 rows takes 429.38 MiB, more than the 256 MiB that are allowed")
	row := rows[:0]
	for i := range int32(100_000) {
		row = append(row, [2]int32{i, i + 1})
	}
	s, err := NewShape(100_001, row)
	require.NoError(t, err)
	require.True(t, s.Before(0, 100_000))
}

// Many nodes beside each other are kept in another way than few.
func TestWideShapes(t *testing.T) {
	const across, nodes = 74, 3*74 + 1
	var edges [][2]int32
	for i := range int32(across) {
		edges = append(edges, [2]int32{i, across + i}, [2]int32{across + i, 2*across + (i+1)%across}, [2]int32{2*across + i, 3 * across})
	}
	s, err := NewShape(nodes, edges)
	require.NoError(t, err)
	require.NotNil(t, s.bits)
	for a := range int32(nodes) {
		for b := range int32(nodes) {
			want := a/across == 0 && b == a+across || a/across == 1 && b/across == 2 && b%across == (a%across+1)%across ||
				a/across == 0 && b/across == 2 && b%across == (a%across+1)%across || b == 3*across && a < b
			require.Equal(t, want, s.Before(a, b), "%d and %d", a, b)
		}
	}
	narrower, err := NewShape(65, nil)
	require.NoError(t, err)
	require.NotNil(t, narrower.bits)
	few, err := NewShape(64, nil)
	require.NoError(t, err)
	require.Nil(t, few.bits)
}
