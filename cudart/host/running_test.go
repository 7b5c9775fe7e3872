// Tests that the CPU device tells what is running, such as what hangs.

package host

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
)

func TestRunningTellsWhatHangs(t *testing.T) {
	begun, hangs := make(chan struct{}, 1), newGate(t)
	b := newBench(t, Options{Workers: 2}, func() { begun <- struct{}{}; hangs.hold() }, func() {})
	require.Empty(t, b.Running())
	s := b.stream()
	launch := func(label string, which uint64) cudart.Command {
		c := b.kernel(s, "call", cudart.Value{Bits: which})
		c.Label = label
		return c
	}
	l := b.list(launch("quick", 1), launch("stuck", 0), launch("never", 1))
	require.NoError(t, l.Submit())
	<-begun
	require.Equal(t, []string{"stuck"}, b.Running())
	hangs.open()
	require.NoError(t, s.Synchronize(t.Context()))
	require.Empty(t, b.Running())
}
