// cuSOLVER: factorisations.

package calls

import (
	"fmt"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/numbers"
	"github.com/dagrun/dagrun/kernels/internal/describe"
	"github.com/dagrun/dagrun/kernels/internal/reference"
	"github.com/dagrun/dagrun/kernels/launch"
)

func factorCalls() []call {
	return []call{{
		name: "cusolver.potrf", doc: "Cholesky factor of a symmetric matrix, in place of the triangle that uplo says",
		notes:  "a = l*lT for the lower triangle, a = uT*u for the upper one. The other triangle is left as it is. A matrix that is not positive definite is an error after the run.",
		params: []param{oneOf("uplo", "lower", "upper"), inout("a")},
		status: true, types: reals, describe: describePotrf, run: runOf(potrf[float32], potrf[float64]),
	}}
}

func describePotrf(v *values, info *dag.LaunchInfo) error {
	a := v.shape("a")
	if a.rows != a.columns {
		return describe.Wrong("a", "is a matrix of %s; it must be square", a)
	}
	n := a.rows
	// cuSOLVER 12 asks for the same few blocks whatever the size for our lower triangle, and for a part of the matrix for the upper one.
	info.Scratch = 4096 + (n*n/1024+16*n)*v.types.T.Size()
	info.Work.Flops = n * n * n / 3
	info.Work.US = 0.9 * float64(n) // a column after the other: 1.07 ms for 1,024 on an H200
	info.Work.Blocks, info.Work.Threads = max(1, n/64), 256
	if n == 0 {
		nothing(info)
	}
	return nil
}

// potrf factors row by row, so that all sums are over elements that follow each other. The status is the order of the first leading minor that
// is not positive, as LAPACK counts.
func potrf[T numbers.Element](v *version) launch.Reference {
	return v.inGo(func(*arguments) int64 { return 1 }, func(a *arguments, _, _ int64) {
		m, status := gridOf[T](a, "a"), reference.Slice[int32](a.of("status"), 1)
		at := m.at
		set := m.set
		if a.integer("uplo") != 0 {
			at = func(i, j int64) T { return m.at(j, i) }
			set = func(i, j int64, x T) { m.set(j, i, x) }
		}
		status[0] = 0
		for i := range m.rows {
			for j := range i {
				s := at(i, j)
				for p := range j {
					s -= T(at(i, p) * at(j, p))
				}
				set(i, j, s/at(j, j))
			}
			s := at(i, i)
			for p := range i {
				s -= T(at(i, p) * at(i, p))
			}
			if !(s > 0) {
				status[0] = int32(i + 1)
				return
			}
			set(i, i, numbers.Sqrt(s))
		}
	})
}

// Failure says what a status other than 0 means.
func (v *version) Failure(status int32) string {
	if status < 0 {
		return "the library refused one of its arguments"
	}
	return fmt.Sprintf("the matrix is not positive definite: its leading minor of order %d is not", status)
}
