// Tests of saving on every system: whole files or none, with names of any length.

package files

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

func contents(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(b)
}

// alone checks that a folder holds these files and no leftovers of a save.
func alone(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var found []string
	for _, e := range entries {
		found = append(found, e.Name())
	}
	require.ElementsMatch(t, names, found)
}

func TestSaveReplaces(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "out.json")
	require.NoError(t, Save(t.Context(), name, text("first, and longer")))
	require.NoError(t, Save(t.Context(), name, text("second")))
	require.Equal(t, "second", contents(t, name))
	alone(t, dir, "out.json")
}

func TestFailedSaveLeavesWhatWasThere(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "out.json")
	require.NoError(t, Save(t.Context(), name, text("good")))
	err := Save(t.Context(), name, func(w io.Writer) error {
		_, _ = io.WriteString(w, strings.Repeat("half", 1<<20))
		return errors.New("the disk is on fire")
	})
	require.EqualError(t, err, "cannot write "+name+": the disk is on fire")
	require.Equal(t, "good", contents(t, name))
	alone(t, dir, "out.json")
}

func TestSaveLongNames(t *testing.T) {
	dir := t.TempDir()
	for _, length := range []int{1, 243, 244, 250, 255} {
		name := strings.Repeat("n", length)
		require.NoError(t, Save(t.Context(), filepath.Join(dir, name), text(name)), "%d bytes", length)
		require.Equal(t, name, contents(t, filepath.Join(dir, name)))
	}
	err := Save(t.Context(), filepath.Join(dir, strings.Repeat("n", 256)), text(""))
	require.Error(t, err)
}

func TestSaveElsewhere(t *testing.T) {
	dir := t.TempDir()
	require.EqualError(t, Save(t.Context(), dir, text("")), "cannot write "+dir+": it is a directory")
	name := filepath.Join(dir, "none", "out")
	require.ErrorIs(t, Save(t.Context(), name, text("")), os.ErrNotExist)
}

func TestSaveStopsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "out.bin")
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("not wanted any more")
	err := Save(ctx, name, func(w io.Writer) error {
		large := make([]byte, 3*piece)
		if _, err := w.Write(large); err != nil {
			return err
		}
		cancel(why)
		_, err := w.Write(large)
		return err
	})
	require.ErrorIs(t, err, why)
	alone(t, dir)
}

// A process that ends in the middle of a save leaves nothing behind.
func TestAbandon(t *testing.T) {
	defer func() { unfinished.ended = false }()
	dir := t.TempDir()
	name := filepath.Join(dir, "out.bin")
	require.NoError(t, Save(t.Context(), name, text("before")))
	err := Save(t.Context(), name, func(w io.Writer) error {
		_, err := w.Write(make([]byte, 2*piece))
		require.Empty(t, Abandon(0))
		alone(t, dir, "out.bin")
		return err
	})
	require.Error(t, err)
	require.ErrorIs(t, Save(t.Context(), filepath.Join(dir, "other"), text("")), context.Canceled)
	require.Equal(t, "before", contents(t, name))
	alone(t, dir, "out.bin")
}

func TestReadersAreInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	from, to := io.Pipe()
	defer to.Close()
	r := Reader(ctx, from)
	go func() {
		_, _ = io.WriteString(to, "first")
	}()
	b := make([]byte, 9)
	n, err := r.Read(b)
	require.NoError(t, err)
	require.Equal(t, "first", string(b[:n]))
	why := errors.New("enough")
	cancel(why)
	_, err = r.Read(b)
	require.ErrorIs(t, err, why)
}
