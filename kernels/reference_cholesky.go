// References of the steps of a tiled Cholesky factorisation: plain loops over columns, every update rounded once.

package kernels

func potrf[C element](*libraryKernel) Reference {
	return Reference{oneSpan, func(c *Call, _, _ int64) {
		n := integer(c.Args[0])
		a := slice[C](c.Args[1], n*n)
		for p := range n {
			pivot := sqrtOf(a[p*n+p])
			a[p*n+p] = pivot
			for i := p + 1; i < n; i++ {
				a[i*n+p] /= pivot
			}
			for i := p + 1; i < n; i++ {
				for j := p + 1; j <= i; j++ {
					a[i*n+j] = fusedOf(-a[i*n+p], a[j*n+p], a[i*n+j])
				}
			}
		}
	}}
}

func trsm[C element](*libraryKernel) Reference {
	return Reference{
		func(c *Call) int64 { return integer(c.Args[0]) },
		func(c *Call, lo, hi int64) {
			m, n := integer(c.Args[0]), integer(c.Args[1])
			l, x := slice[C](c.Args[2], n*n), slice[C](c.Args[3], m*n)
			for i := lo; i < hi; i++ {
				r := x[i*n : (i+1)*n]
				for j := range n {
					s := r[j]
					for p := range j {
						s = fusedOf(-r[p], l[j*n+p], s)
					}
					r[j] = s / l[j*n+j]
				}
			}
		},
	}
}
