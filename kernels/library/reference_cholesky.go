// References of the steps of a tiled Cholesky factorisation: plain loops over columns, every update rounded once.

package library

import (
	"github.com/dagrun/dagrun/kernels/internal/launch"
	"github.com/dagrun/dagrun/kernels/internal/numbers"
)

func potrf[C numbers.Element](*libraryKernel) launch.Reference {
	return launch.Reference{Spans: launch.OneSpan, Run: func(c *launch.Call, _, _ int64) {
		n := launch.Integer(c.Args[0])
		ld := rowLength(c, 2, n)
		a := launch.Slice[C](c.Args[1], spread(n, n, ld))
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
		Spans: func(c *launch.Call) int64 { return launch.Integer(c.Args[0]) },
		Run: func(c *launch.Call, lo, hi int64) {
			m, n := launch.Integer(c.Args[0]), launch.Integer(c.Args[1])
			ldl, ldx := rowLength(c, 4, n), rowLength(c, 5, n)
			l, x := launch.Slice[C](c.Args[2], spread(n, n, ldl)), launch.Slice[C](c.Args[3], spread(m, n, ldx))
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
