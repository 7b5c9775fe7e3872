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
