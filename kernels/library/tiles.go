// Kernels on tiles: matrices whose rows lie further apart than they are long. Each such kernel has an entry of its own, so that
// matrices whose rows follow each other are computed without the row lengths.

package library

import (
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/internal/describe"
	"github.com/dagrun/dagrun/kernels/internal/reference"
	"github.com/dagrun/dagrun/kernels/launch"
)

// shaped is a matrix of rows x cols, by the names of the parameters that count them.
func shaped(param, rows, cols string) matrix {
	return matrix{param, func(v scalars) (int64, int64) { return v.of(rows), v.of(cols) }}
}

// stored is a matrix of rows x cols, or of cols x rows if a parameter says that it is stored transposed.
func stored(param, transposed, rows, cols string) matrix {
	return matrix{param, func(v scalars) (int64, int64) {
		if v.of(transposed) != 0 {
			return v.of(cols), v.of(rows)
		}
		return v.of(rows), v.of(cols)
	}}
}

// onTiles makes the kernel that takes tiles: its parameters are those of the kernel, then the row length of each matrix.
func (k *libraryKernel) onTiles(run func(*libraryKernel) launch.Reference) (*libraryKernel, error) {
	t := *k
	t.onTile = true
	t.entry = t.entryOf("")
	t.parameters, t.params = append([]parameter{}, k.parameters...), append([]dag.KernelParam{}, k.params...)
	for _, m := range k.row.matrices {
		at := k.index(m.param)
		t.params[at].Tile = true
		t.parameters = append(t.parameters, parameter{name: "ld" + m.param, typeName: "i64", max: 1<<63 - 1, bounded: true})
		t.params = append(t.params, dag.KernelParam{Name: "ld" + m.param, DType: dag.I64, Size: 8, LengthOf: int32(at + 1)})
	}
	t.reference = run(&t)
	return &t, t.addForms()
}

// OnTiles implements [dag.TileKernel].
func (k *libraryKernel) OnTiles() dag.LaunchKernel {
	if k.tiles == nil {
		return nil
	}
	return k.tiles
}

// checkTile compares a tile with the matrix that the kernel takes there.
func (k *libraryKernel) checkTile(i int, v scalars) error {
	rows, width := v.args[i].Range.Box()
	cols := width / k.params[i].DType.Size()
	for _, m := range k.row.matrices {
		if m.param != k.params[i].Name {
			continue
		}
		if high, wide := m.shape(v); high != rows || wide != cols {
			return describe.Wrong(m.param, "is a matrix of %d x %d, but its tile has %d x %d", high, wide, rows, cols)
		}
		return nil
	}
	return describe.Wrong(k.params[i].Name, "needs elements that follow each other")
}

// rowLength is the row length of a matrix: what the argument at an index says, or cols for a kernel without that argument and for a matrix
// whose rows follow each other.
func rowLength(c *launch.Call, index int, cols int64) int64 {
	if index >= len(c.Args) || reference.Integer(c.Args[index]) == 0 {
		return cols
	}
	return reference.Integer(c.Args[index])
}

// spread is how many elements there are from a matrix's first to its last.
func spread(rows, cols, ld int64) int64 {
	if rows == 0 || cols == 0 {
		return 0
	}
	return (rows-1)*ld + cols
}
