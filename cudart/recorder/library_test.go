// Tests that what is embedded was built from the sources beside it.

package recorder

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLibrariesBelongToTheirSources(t *testing.T) {
	sources, err := filepath.Glob("library/*.[ch]")
	require.NoError(t, err)
	require.NotEmpty(t, sources)
	tests, err := filepath.Glob("library/stand-in/*.c")
	require.NoError(t, err)
	slices.SortFunc(sources, func(a, b string) int { // as a shell lists them: *.c, then *.h
		if x, y := filepath.Ext(a), filepath.Ext(b); x != y {
			return strings.Compare(x, y)
		}
		return strings.Compare(a, b)
	})
	require.Equal(t, sum(t, "library/recorder.sum"), hashed(t, slices.Concat(sources, tests, []string{"../header/dagrun.h"})...), "run cudart/recorder/library/build")
	require.Equal(t, sum(t, "library/patch.sum"), hashed(t, "library/patch.cu", "library/table.h"), "run cudart/recorder/library/build patches where nvcc is")
}

func hashed(t *testing.T, names ...string) string {
	h := sha256.New()
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		h.Write(text)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func sum(t *testing.T, name string) string {
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return strings.TrimSpace(string(text))
}

func TestContentsAreWhole(t *testing.T) {
	for _, name := range []string{"recorder-amd64.so.gz", "recorder-arm64.so.gz", "patch.fatbin.gz"} {
		packed, err := library.ReadFile("library/" + name)
		require.NoError(t, err)
		bytes, err := unzip(packed)
		require.NoError(t, err)
		require.NotEmpty(t, bytes)
	}
}

// A program loads these files, so they are never in a folder that others may write to.
func TestNoCacheFolderIsAnError(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		return // there is no recorder for this system
	}
	t.Setenv("HOME", "")
	t.Setenv("XDG_CACHE_HOME", "")
	_, err := unpack()
	require.ErrorContains(t, err, "there is no folder for the recorder: ")
	require.ErrorContains(t, err, "set XDG_CACHE_HOME to one of yours")
}

// What was changed in the cache folder is replaced.
func TestChangedFilesAreReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "recorder", "recorder.so")
	require.NoError(t, place(path, []byte("ours")))
	require.NoError(t, os.WriteFile(path, []byte("theirs"), 0o755))
	require.NoError(t, place(path, []byte("ours")))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "ours", string(text))
}
