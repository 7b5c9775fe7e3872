// Tests of users who have no folder for a cache.

package catalog

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/runs"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/session"
	"github.com/dagrun/dagrun/runtime/cache"
)

// commandsTo are the commands with an output.
func commandsTo(out io.Writer) *Commands {
	console := cli.New(strings.NewReader(""), out, out)
	return &Commands{Runs: &runs.Runs{Ranks: &session.Ranks{Session: &session.Session{Console: console}}}}
}

func TestWhoHasNoCacheFolderIsToldSoOnce(t *testing.T) {
	for _, variable := range []string{cache.Variable, "XDG_CACHE_HOME", "HOME", "LocalAppData"} {
		t.Setenv(variable, "")
	}
	var said strings.Builder
	a := commandsTo(&said)
	a.Flags = &flags.Values{Output: "text"}
	require.Nil(t, a.OpenCache())
	require.Nil(t, a.OpenCache())
	require.Equal(t, 1, strings.Count(said.String(), "warning: "))
	require.Regexp(t, `^warning: nothing learned earlier is used, and nothing is kept: this user has no cache folder, since .*; --cache-dir or \$DAGRUN_CACHE names one\n$`, said.String())
	require.ErrorContains(t, a.showCache(false), "this user has no cache folder")
	require.ErrorContains(t, a.showCache(true), "this user has no cache folder")

	said.Reset()
	a = commandsTo(&said)
	a.Flags = &flags.Values{Output: "text", CacheDir: cache.Off}
	require.Nil(t, a.OpenCache())
	require.NoError(t, a.showCache(false))
	require.Equal(t, "the cache is off\n", said.String())
	require.EqualError(t, a.showCache(true), "there is no cache to clear: it is off")
}
