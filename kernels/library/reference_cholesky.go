// References of the steps of a tiled Cholesky factorisation: plain loops over columns, every update rounded once.

package library

import (
	"github.com/dagrun/dagrun/internal/numbers"
	"github.com/dagrun/dagrun/kernels/internal/reference"
	"github.com/dagrun/dagrun/kernels/launch"
)

func potrf[C numbers.Element](*libraryKernel) launch.Reference {
	return launch.Reference{Spans: reference.OneSpan, Run: func(c *launch.Call, _, _ int64) {
		n := reference.Integer(c.Args[0])
		ld := rowLength(c, 2, n)
		a := reference.Slice[C](c.Args[1], spread(n, n, ld))
		for p := range n {
			pivot := numbers.Sqrt(a[p*ld+p])
			a[p*ld+p] = pivot
			for i := p + 1; i < n; i++ {
				a[i*ld+p] /= pivot
			}
			for i := p + 1; i < n; i++ {
				for j := p + 1; j <= i; j++ {
					a[i*ld+j] = numbers.FMA(-a[i*ld+p], a[j*ld+p], a[i*ld+j])
				}
			}
		}
	}}
}

func trsm[C numbers.Element](*libraryKernel) launch.Reference {
	return launch.Reference{
		Spans: func(c *launch.Call) int64 { return reference.Integer(c.Args[0]) },
		Run: func(c *launch.Call, lo, hi int64) {
			m, n := reference.Integer(c.Args[0]), reference.Integer(c.Args[1])
			ldl, ldx := rowLength(c, 4, n), rowLength(c, 5, n)
			l, x := reference.Slice[C](c.Args[2], spread(n, n, ldl)), reference.Slice[C](c.Args[3], spread(m, n, ldx))
			for i := lo; i < hi; i++ {
				r := x[i*ldx : i*ldx+n]
				for j := range n {
					s := r[j]
					for p := range j {
						s = numbers.FMA(-r[p], l[j*ldl+p], s)
					}
					r[j] = s / l[j*ldl+j]
				}
			}
		},
	}
}
