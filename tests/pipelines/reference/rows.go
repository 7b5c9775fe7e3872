// Computes rows of a picture on all cores, because references of real sizes have a few hundred million points. Rows are independent.

package main

import (
	"runtime"
	"sync"
	"sync/atomic"
)

func inRows(rows int, do func(y int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for y := next.Add(1) - 1; y < int64(rows); y = next.Add(1) - 1 {
				do(int(y))
			}
		})
	}
	all.Wait()
}
