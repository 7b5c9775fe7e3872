// Tests of what counts as outside of a folder: the end of all links decides, not the name.

package files

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOutside(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	require.NoError(t, os.MkdirAll(at("in/deep"), 0o755))
	require.NoError(t, os.WriteFile(at("secret"), nil, 0o600))
	require.NoError(t, os.WriteFile(at("in/own"), nil, 0o600))
	names := map[string]bool{"in/own": false, "in/new": false, "in/deep/../own": false, "in/..own": false, "secret": true, "in/../secret": true, "in/deep/../../in2/own": true, "in": false, ".": true}
	if runtime.GOOS != "windows" {
		for link, to := range map[string]string{"in/out": "../secret", "in/back": "deep/../own", "in/absolute": at("in/own"), "in/up": "..", "in/round": "round", "in/dangling": "../new"} {
			require.NoError(t, os.Symlink(to, at(link)))
		}
		for name, outside := range map[string]bool{"in/out": true, "in/back": false, "in/absolute": false, "in/up/secret": true, "in/up/in/own": false, "in/round": true, "in/dangling": true} {
			names[name] = outside
		}
		require.NoError(t, os.Symlink("in", at("other")))
		require.False(t, Outside(at("other"), at("in/own")), "the folder's own links are followed too")
	}
	for name, outside := range names {
		require.Equal(t, outside, Outside(at("in"), at(name)), name)
	}
}

// Files of the same Git repository are not foreign, unless it is that of the home directory.
func TestForeign(t *testing.T) {
	home := t.TempDir()
	folder := filepath.Join(home, "work", "bench")
	require.NoError(t, os.MkdirAll(folder, 0o700))
	for _, name := range []string{"secret", "work/k.cu"} {
		require.NoError(t, os.WriteFile(filepath.Join(home, name), nil, 0o600))
	}
	inside, beyond := filepath.Join(folder, "..", "k.cu"), filepath.Join(folder, "..", "..", "secret")
	require.True(t, Foreign(folder, inside))
	require.NoError(t, os.Mkdir(filepath.Join(home, "work", ".git"), 0o700))
	require.False(t, Foreign(folder, inside))
	require.True(t, Foreign(folder, beyond))
	require.True(t, Outside(folder, inside))
	require.NoError(t, os.Symlink(filepath.Join(home, "secret"), filepath.Join(home, "work", "link")))
	require.True(t, Foreign(folder, filepath.Join(folder, "..", "link")))

	require.NoError(t, os.Remove(filepath.Join(home, "work", ".git")))
	require.NoError(t, os.Mkdir(filepath.Join(home, ".git"), 0o700))
	require.False(t, Foreign(folder, beyond))
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	require.True(t, Foreign(folder, beyond))
	require.True(t, Foreign(folder, inside))
}
