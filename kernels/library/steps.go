// How many steps of a launch's longest thread wait for each other. A small launch takes as long as they do. The numbers are fitted to what
// an H200 took for small launches, at a tenth of a microsecond a step; tests/bench/bars compares them with measurements.

package library

import (
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/internal/describe"
)

const fewSteps = 4 // of a kernel that reads, computes and writes

// fixed is a number of steps that does not depend on the arguments.
func fixed(n float64) steps { return func(*libraryKernel, scalars) float64 { return n } }

// in64 doubles steps that compute in f64, which have half the rate.
func (k *libraryKernel) in64(n float64) float64 {
	if k.types.T == dag.F64 {
		return 2 * n
	}
	return n
}

// productSteps runs along the inner dimension of a matrix product, tile by tile.
func productSteps(inner string) steps {
	return func(k *libraryKernel, v scalars) float64 { return k.in64(18 + 0.6*float64(v.of(inner))) }
}

// solveSteps runs along the columns of a triangular matrix.
func solveSteps(k *libraryKernel, v scalars) float64 { return k.in64(1.5 * float64(v.of("n"))) }

// factorSteps are those of a factorisation in one block.
func factorSteps(k *libraryKernel, v scalars) float64 {
	n := float64(v.of("n"))
	return k.in64(2*n + n*n/80 + n*n*n/16_000)
}

// gemvSteps are the reads of a warp along a row.
func gemvSteps(_ *libraryKernel, v scalars) float64 { return 6 + 4.5*float64(v.of("n"))/32 }

// convolutionSteps run over the window and the channels.
func convolutionSteps(_ *libraryKernel, v scalars) float64 {
	size := float64(v.of("size"))
	return 16 + 0.6*size*size*float64(v.of("in"))
}

// poolSteps run over the window.
func poolSteps(_ *libraryKernel, v scalars) float64 {
	size := float64(v.of("size"))
	return 9 + 0.72*size*size
}

// reductionSteps has a second part, which waits for all blocks, if there are several.
func reductionSteps(_ *libraryKernel, v scalars) float64 {
	if tileCount(v.of("n")) > 1 {
		return 28
	}
	return 11
}

// rowSteps run along a row, by one thread if it is short and otherwise by a warp or a block, with so many operations on each element.
func rowSteps(operations float64) steps {
	return func(_ *libraryKernel, v scalars) float64 {
		cols := float64(v.of("cols"))
		switch {
		case v.of("cols") > warpRow:
			cols /= describe.BlockSize
		case v.of("cols") > shortRow:
			cols /= 32
		}
		return 15 + cols*(1+operations/30)
	}
}

// operationSteps are those of a kernel that computes much for each element.
func operationSteps(operations float64) steps { return fixed(fewSteps + operations/4) }

// sparseSteps are those of a row of average length.
func sparseSteps(_ *libraryKernel, v scalars) float64 {
	each := float64(v.of("nnz")) / max(1, float64(v.of("rows")))
	if each > 8 {
		each /= 32 // a warp
	}
	return 6 + 2*each
}
