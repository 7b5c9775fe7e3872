// Tests of folders with files that belong to another user. Linux lets a thread act as one.

package files

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Another name may be outside of the folder, so such a file is replaced, even where its owner is lost.
func TestFoldersKeepOtherNamesAsTheyAre(t *testing.T) {
	dir, one, other := linked(t)
	for _, name := range []string{one, dir, filepath.Dir(dir)} {
		require.NoError(t, os.Chmod(name, 0o777))
	}
	folder, err := OpenFolder(dir)
	require.NoError(t, err)
	defer folder.Close()
	saved := make(chan error)
	go func() {
		if os.Getuid() == 0 {
			runtime.LockOSThread() // and ends the thread, which is of no more use
			_ = syscall.Setfsuid(1000)
		}
		saved <- folder.Save(t.Context(), one, text("new"))
	}()
	require.NoError(t, <-saved)
	require.Equal(t, "new", contents(t, one))
	require.Equal(t, "before", contents(t, other))
}
