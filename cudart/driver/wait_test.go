// Tests of waits that a context can end.

//go:build linux && (amd64 || arm64)

package driver

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
)

// A wait pauses after a while. What ends it must get to run meanwhile, on the only processor too.
func TestWaitsEndWithTheWorkOrTheContext(t *testing.T) {
	const afterPauses = 2 * 512 * shortestPause
	before := runtime.GOMAXPROCS(1)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	d := newFakeDriver(t)
	p := d.open(t)
	s, err := p.NewStream(0, dag.Normal)
	require.NoError(t, err)
	working := func(busy bool) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if delete(d.failOn, cuStreamQuery); busy {
			d.failOn[cuStreamQuery] = codeNotReady
		}
		d.quiet = true
	}
	working(true)
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		time.Sleep(afterPauses)
		working(false)
	}()
	require.NoError(t, s.Synchronize(ctx))
	working(true)
	enough := errors.New("enough")
	go func() {
		time.Sleep(afterPauses)
		cancel(enough)
	}()
	require.ErrorIs(t, s.Synchronize(ctx), enough)
	working(false)
	require.NoError(t, s.Close())
	require.NoError(t, p.Close())
	d.clean(t)
}
