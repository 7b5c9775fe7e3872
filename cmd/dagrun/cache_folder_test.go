// Tests of users who have no folder for a cache.

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/runtime/cache"
)

func TestWhoHasNoCacheFolderIsToldSoOnce(t *testing.T) {
	for _, variable := range []string{cache.Variable, "XDG_CACHE_HOME", "HOME", "LocalAppData"} {
		t.Setenv(variable, "")
	}
	var said strings.Builder
	a := newApp(strings.NewReader(""), &said, &said)
	a.Flags = &flags.Values{Output: "text"}
	require.Nil(t, a.OpenCache())
	require.Nil(t, a.OpenCache())
	require.Equal(t, 1, strings.Count(said.String(), "warning: "))
	require.Regexp(t, `^warning: nothing learned earlier is used, and nothing is kept: this user has no cache folder, since .*; --cache-dir or \$DAGRUN_CACHE names one\n$`, said.String())
	require.ErrorContains(t, a.catalog.ShowCache(false), "this user has no cache folder")
	require.ErrorContains(t, a.catalog.ShowCache(true), "this user has no cache folder")

	said.Reset()
	a = newApp(strings.NewReader(""), &said, &said)
	a.Flags = &flags.Values{Output: "text", CacheDir: cache.Off}
	require.Nil(t, a.OpenCache())
	require.NoError(t, a.catalog.ShowCache(false))
	require.Equal(t, "the cache is off\n", said.String())
	require.EqualError(t, a.catalog.ShowCache(true), "there is no cache to clear: it is off")
}
