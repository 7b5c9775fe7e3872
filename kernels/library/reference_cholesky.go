// References of the steps of a tiled Cholesky factorisation: plain loops over columns, every update rounded once.

package library

import (
	"github.com/dagrun/dagrun/kernels/internal/launch"
	"github.com/dagrun/dagrun/kernels/internal/numbers"
)

func potrf[C numbers.Element](*libraryKernel) launch.Reference {
	return launch.Reference{Spans: launch.OneSpan, Run: func(c *launch.Call, _, _ int64) {
		n := launch.Integer(c.Args[0])
		a := launch.Slice[C](c.Args[1], n*n)
		for p := range n {
			pivot := numbers.Sqrt(a[p*n+p])
			a[p*n+p] = pivot
			for i := p + 1; i < n; i++ {
				a[i*n+p] /= pivot
			}
			for i := p + 1; i < n; i++ {
				for j := p + 1; j <= i; j++ {
					a[i*n+j] = numbers.FMA(-a[i*n+p], a[j*n+p], a[i*n+j])
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
			l, x := launch.Slice[C](c.Args[2], n*n), launch.Slice[C](c.Args[3], m*n)
			for i := lo; i < hi; i++ {
				r := x[i*n : (i+1)*n]
				for j := range n {
					s := r[j]
					for p := range j {
						s = numbers.FMA(-r[p], l[j*n+p], s)
					}
					r[j] = s / l[j*n+j]
				}
			}
		},
	}
}
