// Tests of the library's kernels on tiles: the same results as on matrices whose rows follow each other, and nothing between the rows
// is touched.

package gpu

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/cudart/host/simt"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/kernels/library"
)

// shapeOf is the matrix that a kernel takes for a parameter.
func shapeOf(kernel, param string, s sizes) (rows, cols int64) {
	m, n, k := int64(s["m"]), int64(s["n"]), int64(s["k"])
	turned := func(flag string, rows, cols int64) (int64, int64) {
		if s[flag] != 0 {
			return cols, rows
		}
		return rows, cols
	}
	switch kernel + " " + param {
	case "gemm a", "matmul a":
		return turned("ta", m, k)
	case "gemm b", "matmul b":
		return turned("tb", k, n)
	case "gemm c", "matmul c", "trsm x":
		return m, n
	case "syrk a":
		return n, k
	case "syrk c", "potrf a", "trsm l":
		return n, n
	case "transpose x":
		return int64(s["rows"]), int64(s["cols"])
	case "transpose y":
		return int64(s["cols"]), int64(s["rows"])
	}
	panic("no shape of " + param + " of " + kernel)
}

// onTiles spreads the rows of a launch's matrices: gaps[i] elements come after each row of the i-th, as far as it has several rows. It
// returns nil if no matrix becomes a tile.
func (l *launched) onTiles(t testing.TB, name string, s sizes, gaps []int64, random *rand.Rand) *launched {
	k, ok := l.whole.(dag.TileKernel)
	require.True(t, ok)
	tiles := &launched{whole: k.OnTiles()}
	tiles.params = tiles.whole.Params()
	any, matrix := false, 0
	for i, p := range tiles.params {
		if p.LengthOf > 0 {
			a := tiles.args[p.LengthOf-1]
			tiles.args = append(tiles.args, dag.Arg{DType: p.DType, Bits: uint64(int64(a.Range.Pitch) / a.DType.Size())})
			tiles.buffers = append(tiles.buffers, nil)
			continue
		}
		a, m := l.args[i], l.buffers[i]
		if p.Tile {
			rows, cols := shapeOf(name, p.Name, s)
			gap := gaps[matrix%len(gaps)]
			matrix++
			if rows > 1 && cols > 0 && gap > 0 {
				any = true
				size := p.DType.Size()
				width, pitch := cols*size, (cols+gap)*size
				a.Range.Hi, a.Range.Pitch = (rows-1)*pitch+width, int32(pitch)
				from := m
				m = &memory{make([]byte, from.at+a.Range.Hi+guard), from.at, a.Range.Hi, p.DType, p.Name, rows, pitch}
				for j := range m.bytes {
					m.bytes[j] = byte(random.Uint32())
				}
				for row := range rows {
					copy(m.row(m.bytes, row), from.bytes[from.at+row*width:][:width])
				}
			}
		}
		tiles.args, tiles.buffers = append(tiles.args, a), append(tiles.buffers, m)
	}
	if !any {
		return nil
	}
	tiles.inForm()
	var err error
	tiles.info, err = tiles.kernel.Describe(tiles.args)
	require.NoError(t, err, "%s %v", tiles.kernel.Entry(), s)
	return tiles
}

// row is a row of a tile in some bytes.
func (m *memory) row(b []byte, row int64) []byte {
	width := m.size - (m.rows-1)*m.pitch
	return b[m.at+row*m.pitch:][:width]
}

// sameBetween requires that the bytes between the rows of a tile are those that it began with.
func (m *memory) sameBetween(t *testing.T, b []byte, what string) {
	for row := range m.rows - 1 {
		lo, hi := m.at+row*m.pitch+int64(len(m.row(b, row))), m.at+(row+1)*m.pitch
		require.True(t, bytes.Equal(m.bytes[lo:hi], b[lo:hi]), "%s: %s: bytes after row %d have changed", what, m.name, row)
	}
}

// checkTiles runs every kernel that takes tiles at all sizes within limit.
func checkTiles(t *testing.T, p cudart.Platform, limit int64) {
	b := newBench(t, p, 256<<20)
	ran := 0
	for _, d := range library.Docs() {
		for _, v := range d.Variants {
			k := must[dag.LaunchKernel](t)(kernels.Library().Kernel(d.Name, v.Elems))
			if tiles, ok := k.(dag.TileKernel); !ok || tiles.OnTiles() == nil {
				continue
			}
			t.Run(strings.TrimPrefix(v.Entry, "dagrun_"), func(t *testing.T) {
				loaded := forms{p: p, module: fromLibrary}
				for n, s := range trialsOf(d) {
					for g, gaps := range [][]int64{{4}, {3, 0, 1}, {0, 5, 128}, {0, 0, 8}} {
						random := rand.New(rand.NewPCG(uint64(n), uint64(g)))
						plain := prepare(t, d, v, s, int64(g), limit, random)
						if plain == nil {
							continue
						}
						l := plain.onTiles(t, d.Name, s, gaps, random)
						if l == nil {
							continue
						}
						ran++
						entry := l.kernel.Entry()
						what := fmt.Sprintf("%s %v, gaps %v", entry, s, gaps)
						if strings.Replace(entry, "_ld", "", 1) == plain.kernel.Entry() {
							require.Equal(t, plain.info.Grid, l.info.Grid, what)
						}
						want, got := plain.reference(t), l.reference(t)
						device := b.run(t, l, loaded.kernel(t, l), 1)[0]
						for i, m := range l.buffers {
							switch {
							case m == nil:
							case m.rows == 0:
								require.Empty(t, m.differ(got[i], want[i]), "%s: %s", what, m.name)
								require.Empty(t, m.differ(device[i], want[i]), "%s: %s on the device", what, m.name)
							default:
								from := plain.buffers[i]
								for row := range m.rows {
									line := m.row(got[i], row)
									require.True(t, bytes.Equal(want[i][from.at+row*int64(len(line)):][:len(line)], line), "%s: row %d of %s", what, row, m.name)
								}
								m.sameBetween(t, got[i], what)
								require.Empty(t, m.differ(device[i], got[i]), "%s: %s on the device", what, m.name)
								m.sameBetween(t, device[i], what+" on the device")
							}
						}
					}
				}
				loaded.close(t)
			})
		}
	}
	require.Positive(t, ran)
}

func TestKernelsOnTiles(t *testing.T) { checkTiles(t, open(t), 1<<34) }

func TestKernelsOnTilesOnCPU(t *testing.T) {
	p := must[*host.Platform](t)(host.Open(host.Options{CheckOrder: true}))
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	limit := int64(1 << 19)
	if testing.Short() {
		limit = 1 << 15
	}
	checkTiles(t, p, limit)
}

// The library's own PTX, run by the CPU device with all checks, which know that the bytes between rows are not a tile's.
func TestKernelsOnTilesFromPTXOnCPU(t *testing.T) {
	limit := int64(1 << 12)
	switch {
	case os.Getenv("DAGRUN_LONG") != "":
		limit = 1 << 22
	case testing.Short():
		limit = 1 << 10
	}
	checkTiles(t, interpreter(t, simt.CheckFull), limit)
}
