// Tests of checking a part of what a process did.

package order

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/recording"
)

const parts = `stream s nonblocking
stream t nonblocking
alloc A 100
alloc B 100
launch one on s writes A @a:1
launch two on t writes A @a:2
record e on s @a:3
wait e on t
launch three on s writes B @a:4
launch four on t writes B @a:5
`

// Only what began at a moment or later is reported and counted, and what came before still orders.
func TestOnlyWhatBeganLaterIsReported(t *testing.T) {
	p := read(parts)
	places := func(since uint64) []string {
		report, err := Check(p, Options{Since: since})
		require.NoError(t, err)
		var found []string
		for _, r := range report.Races {
			found = append(found, r.First.Where+" "+r.Second.Where)
		}
		return found
	}
	var begins []uint64 // of the launches
	for _, call := range p.Calls {
		if call.Kind == recording.Launch {
			begins = append(begins, call.Begin)
		}
	}
	require.Equal(t, []string{"a:1 a:2", "a:4 a:5"}, places(0))
	require.Equal(t, []string{"a:1 a:2", "a:4 a:5"}, places(begins[0]))
	require.Equal(t, []string{"a:4 a:5"}, places(begins[0]+1), "one of the two began before")
	require.Equal(t, []string{"a:4 a:5"}, places(begins[2]))
	require.Empty(t, places(begins[3]))
	for k, since := range begins {
		report, err := Check(p, Options{Since: since})
		require.NoError(t, err)
		require.Equal(t, len(begins)-k, report.Measured)
	}
}
