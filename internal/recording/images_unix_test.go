//go:build unix

// A recording may name a FIFO, on whose opening a reader would wait for ever.

package recording_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestFIFOsAreNotOpened(t *testing.T) {
	file := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, unix.Mkfifo(file, 0o600))
	require.Empty(t, function(t, file, buildID, false))
}
