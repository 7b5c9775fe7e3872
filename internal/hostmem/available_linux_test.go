// Tests that available memory shrinks with the limits of the process.

package hostmem

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestAvailable(t *testing.T) {
	free, ok := Available()
	require.True(t, ok)
	require.Positive(t, free)

	var old unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_AS, &old))
	size := fields("/proc/self/status")["VmSize"]
	require.Positive(t, size)
	lower := unix.Rlimit{Cur: uint64(size) + margin + 128<<20, Max: old.Max}
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_AS, &lower))
	limited, ok := Available()
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_AS, &old))
	require.True(t, ok)
	require.LessOrEqual(t, limited, int64(128<<20))
	require.GreaterOrEqual(t, limited, int64(0))
}
