// Tests of perturbed timing: it makes a missing wait visible.

package host

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
)

// TestPerturbationShowsAMissingWait runs a program with a race: its result depends on the seed, and without a seed it rarely varies.
func TestPerturbationShowsAMissingWait(t *testing.T) {
	results := map[float32]int{}
	for seed := range uint64(200) {
		func() {
			p, err := Open(Options{Perturb: seed + 1, Workers: 1})
			require.NoError(t, err)
			b := &bench{t, p, nil}
			b.module, err = p.Load(context.Background(), 0, testModule())
			require.NoError(t, err)
			d, err := p.Alloc(0, 64)
			require.NoError(t, err)
			h, err := p.AllocHost(64, false)
			require.NoError(t, err)
			s, err := p.NewStream(0, 0)
			require.NoError(t, err)
			u, err := p.NewStream(0, 0)
			require.NoError(t, err)
			*(*float32)(p.memory.lookup(d).data) = 0
			var commands []cudart.Command
			for range 4 {
				commands = append(commands, b.kernel(s, "inc", pointer(d, 64)))
			}
			commands = append(commands, toHost(u, h, d, 64)) // lacks a wait for s
			l, err := p.Encode(commands, cudart.ListOptions{})
			require.NoError(t, err)
			require.NoError(t, l.Submit())
			require.NoError(t, p.Synchronize(context.Background(), 0))
			results[*(*float32)(p.memory.lookup(h).data)]++
			require.ErrorIs(t, p.Close(), cudart.ErrLeak)
		}()
	}
	require.Greater(t, len(results), 1, "%v", results)
	t.Log(results)
}
