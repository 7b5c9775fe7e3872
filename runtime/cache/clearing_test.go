// Tests of a cache that others clear, fill and leave unfinished files in while it is used, by clocks that are wrong.

package cache

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Clearing removes folders that another process is about to use; that one makes them again.
func TestWritersAreNotDisturbedByClearing(t *testing.T) {
	dir := t.TempDir()
	var group sync.WaitGroup
	errs := make([]error, 4)
	for w := range errs {
		group.Go(func() {
			f := Open(dir)
			for k := 0; k < 30 && errs[w] == nil; k++ {
				if errs[w] = f.KeepDurations(ctx, "gpu", Durations{nodePrint(100*w + k): {1}}, false); errs[w] == nil {
					errs[w] = f.KeepChoice(ctx, fmt.Sprint(w), choice("{}"))
				}
			}
		})
	}
	var clearing sync.WaitGroup
	done := make(chan struct{})
	var clearErr error
	clearing.Go(func() {
		for clearErr == nil {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
				clearErr = Open(dir).Clear()
			}
		}
	})
	group.Wait()
	close(done)
	clearing.Wait()
	require.NoError(t, clearErr)
	for _, err := range errs {
		require.NoError(t, err)
	}
}

func TestFilesOfOneDeviceAreBoundedWhereTheyCannotBeMerged(t *testing.T) {
	f := Open(t.TempDir())
	require.NoError(t, f.KeepDurations(ctx, "gpu", Durations{nodePrint(1): {1}}, false))
	folder := f.device("gpu")
	old := time.Now().Add(-2 * staleAfter)
	for k := range 2 * mostFiles {
		name := filepath.Join(folder, nodePrint(k)[:fingerprintLength/2])
		require.NoError(t, os.WriteFile(name, []byte("damaged"), 0o600))
		require.NoError(t, os.Chtimes(name, old, old))
	}
	killed, busy, other := filepath.Join(folder, unfinishedPrefix+"1"), filepath.Join(folder, unfinishedPrefix+"2"), filepath.Join(folder, "thesis.doc")
	for _, name := range []string{killed, busy, other} {
		require.NoError(t, os.WriteFile(name, nil, 0o600))
	}
	require.NoError(t, os.Chtimes(killed, old, old))
	require.NoError(t, os.Chtimes(other, old, old))
	require.NoError(t, f.KeepDurations(ctx, "gpu", Durations{nodePrint(2): {2}}, false))
	found, err := list(folder)
	require.NoError(t, err)
	require.Len(t, found, mostFiles+2)
	require.NoFileExists(t, killed)
	require.FileExists(t, busy)
	for k := range mostDevices {
		require.NoError(t, f.KeepDurations(ctx, fmt.Sprint("gpu ", k), Durations{nodePrint(1): {1}}, false))
	}
	require.FileExists(t, other, "no file of dagrun's, though the device is forgotten")
	durations, _ := f.Durations("gpu")
	require.Empty(t, durations)
}

func TestReasonsAreShort(t *testing.T) {
	f := Open(t.TempDir())
	require.NoError(t, f.KeepPasses(ctx, "key", &Passes{Runs: 1, Passes: 1, Most: 2}))
	hostile := `{"at":"` + strings.Repeat("a", 1<<20) + `"}`
	require.NoError(t, os.WriteFile(f.entry(passesKind, "key"), sealed(passesKind, []byte(hostile)), 0o600))
	_, err := f.Passes("key")
	require.ErrorIs(t, err, ErrDamaged)
	require.Less(t, len(err.Error()), 1000)
}

// A clock that was ahead once does not make what was measured then the latest for ever.
func TestDurationsFromTheFutureAreTheOldest(t *testing.T) {
	f := Open(t.TempDir())
	ahead := &batch{at: time.Now().Add(1000 * time.Hour).UnixNano(), device: "gpu", fresh: true, order: []string{nodePrint(1), nodePrint(2)}, took: Durations{nodePrint(1): {100}, nodePrint(2): {200}}}
	require.NoError(t, f.writeBatch(ctx, ahead))
	require.NoError(t, f.KeepDurations(ctx, "gpu", Durations{nodePrint(1): {1}}, true))
	for range mostBatches {
		require.NoError(t, f.KeepDurations(ctx, "gpu", Durations{nodePrint(2): {2}}, false))
	}
	require.NoError(t, f.KeepDurations(ctx, "gpu", Durations{nodePrint(2): {3}}, true))
	found, err := f.Durations("gpu")
	require.NoError(t, err)
	require.Equal(t, Durations{nodePrint(1): {1}, nodePrint(2): {3}}, found)
}
