// Tests of kept passes: they come back as they were kept, and files that cannot be right are refused.

package cache

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPassesAreKept(t *testing.T) {
	f := Open(t.TempDir())
	key, at := Key("solve"), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	known, err := f.Passes(key)
	require.NoError(t, err)
	require.Nil(t, known)
	first := &Passes{Pipeline: "cg", Node: "solve", Runs: 1, Passes: 37, Most: 500, At: at}
	require.NoError(t, f.KeepPasses(t.Context(), key, first))
	known, err = f.Passes(key)
	require.NoError(t, err)
	require.Equal(t, first, known)
	last := &Passes{Pipeline: "cg", Node: "solve", Runs: 3, Passes: 10, Most: 500, At: at}
	require.NoError(t, f.KeepPasses(t.Context(), key, last))
	known, err = f.Passes(key)
	require.NoError(t, err)
	require.Equal(t, int64(4), known.Each(), "10 passes in 3 runs, rounded up")
	contents, err := f.Contents()
	require.NoError(t, err)
	require.Equal(t, []Passes{*last}, contents.Loops)
	require.NoError(t, f.Clear())
	known, err = f.Passes(key)
	require.NoError(t, err)
	require.Nil(t, known)
}

func TestDamagedPassesAreIgnored(t *testing.T) {
	f := Open(t.TempDir())
	key := Key("solve")
	name := f.entry(passesKind, key)
	require.NoError(t, f.KeepPasses(t.Context(), key, &Passes{Runs: 1, Passes: 1, Most: 2}))
	whole, err := os.ReadFile(name)
	require.NoError(t, err)
	good := `{"version":1,"key":"` + key + `","pipeline":"p","node":"n","runs":1,"passes":3,"most":5,"at":"2026-03-01T12:00:00Z"}`
	for _, c := range []struct {
		text []byte
		want string
	}{
		{whole[:len(whole)-9], "its checksum is wrong"},
		{[]byte("x"), "it is not a file of dagrun's"},
		{sealed(passesKind, []byte(good+"x")), "something follows its end"},
		{sealed(passesKind, []byte(`{"version":2}`)), "it is of another loop or version"},
		{sealed(passesKind, []byte(`{"extra":1}`)), `unknown field "extra"`},
	} {
		require.NoError(t, os.WriteFile(name, c.text, 0o600))
		known, err := f.Passes(key)
		require.ErrorIs(t, err, ErrDamaged)
		require.ErrorContains(t, err, c.want)
		require.Nil(t, known)
		contents, err := f.Contents()
		require.NoError(t, err)
		require.Len(t, contents.Ignored, 1)
		require.Empty(t, contents.Loops)
	}
	for _, p := range []Passes{{Runs: 0, Passes: 0, Most: 5}, {Runs: 1, Passes: 6, Most: 5}, {Runs: 2, Passes: 11, Most: 5}, {Runs: 1, Passes: -1, Most: 5}, {Runs: 1, Passes: 1, Most: 1 << 41}} {
		require.ErrorIs(t, f.KeepPasses(t.Context(), key, &p), ErrDamaged)
	}
	require.NoError(t, os.RemoveAll(filepath.Dir(name)))
	require.NoError(t, os.WriteFile(filepath.Dir(name), nil, 0o600))
	require.Error(t, f.KeepPasses(t.Context(), key, &Passes{Runs: 1, Passes: 1, Most: 2}), "the folder is a file")
}
