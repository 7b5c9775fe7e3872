// Tests of sharing the parts of one command among workers: each part runs once, and a panic ends that command only.

package host

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// counted counts how often each part runs, and takes some time for each. The part of number fail panics.
type counted struct {
	runs []atomic.Int32
	fail int64
	each time.Duration
}

func (c *counted) part(lo, hi int64) {
	for k := lo; k < hi; k++ {
		c.runs[k].Add(1)
		if k == c.fail {
			panic("part")
		}
		for start := time.Now(); time.Since(start) < c.each; { // long enough to wake other workers
		}
	}
}

func TestEachPartRunsOnce(t *testing.T) {
	for _, workers := range []int{1, 2, 5} {
		p, err := Open(Options{Workers: workers})
		require.NoError(t, err)
		w := p.pool.all[0]
		for _, each := range []time.Duration{0, 20 * time.Microsecond} {
			for _, n := range []int64{0, 1, 2, 7, 8 * int64(workers), 100, 333} {
				c := &counted{runs: make([]atomic.Int32, n), fail: -1, each: each}
				require.Nil(t, w.split(c, n))
				for k := range c.runs {
					require.EqualValues(t, 1, c.runs[k].Load(), "part %d of %d, %d workers", k, n, workers)
				}
			}
		}
		require.Empty(t, p.pool.shared)
		require.NoError(t, p.Close())
	}
}

func TestAPanicInOnePartEndsItsCommandOnly(t *testing.T) {
	p, err := Open(Options{Workers: 3})
	require.NoError(t, err)
	defer p.Close()
	w := p.pool.all[0]
	const n = 200
	for _, fail := range []int64{0, 1, 100, n - 1} {
		c := &counted{runs: make([]atomic.Int32, n), fail: fail, each: 20 * time.Microsecond}
		crashed := w.split(c, n)
		require.NotNil(t, crashed, "part %d", fail)
		require.Equal(t, "part", crashed.value)
		for k := range c.runs {
			require.LessOrEqual(t, c.runs[k].Load(), int32(1))
		}
		next := &counted{runs: make([]atomic.Int32, n), fail: -1, each: 20 * time.Microsecond}
		require.Nil(t, w.split(next, n), "after a panic in part %d", fail)
		require.Empty(t, p.pool.shared)
	}
}
