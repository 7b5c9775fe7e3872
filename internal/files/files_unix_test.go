// Tests of saving on Unix: modes, links, FIFOs and devices are kept.

//go:build unix

package files

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSaveKeepsTheMode(t *testing.T) {
	dir := t.TempDir()
	for _, mode := range []os.FileMode{0o600, 0o640, 0o755, 0o666} {
		name := filepath.Join(dir, mode.String())
		require.NoError(t, os.WriteFile(name, nil, 0o600))
		require.NoError(t, os.Chmod(name, mode))
		require.NoError(t, Save(t.Context(), name, text("new")))
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm())
		require.Equal(t, "new", contents(t, name))
	}
}

// The umask belongs to the process, so the tests of this package do not run side by side.
func TestSaveFollowsTheUmask(t *testing.T) {
	dir := t.TempDir()
	for mask, want := range map[int]os.FileMode{0o022: 0o644, 0o077: 0o600, 0o002: 0o664} {
		old := syscall.Umask(mask)
		name := filepath.Join(dir, want.String())
		err := Save(t.Context(), name, text("new"))
		syscall.Umask(old)
		require.NoError(t, err)
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, want, info.Mode().Perm())
	}
}

func TestSaveWritesThroughLinks(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(at("file"), []byte("old"), 0o640))
	require.NoError(t, os.Mkdir(at("folder"), 0o755))
	require.NoError(t, os.Symlink("file", at("link")))
	require.NoError(t, os.Symlink(filepath.Join("..", "link"), filepath.Join(at("folder"), "chain")))
	require.NoError(t, os.Symlink("made", at("dangling")))
	require.NoError(t, os.Symlink("round", at("round")))

	require.NoError(t, Save(t.Context(), filepath.Join(at("folder"), "chain"), text("new")))
	require.Equal(t, "new", contents(t, at("file")))
	for _, link := range []string{at("link"), filepath.Join(at("folder"), "chain")} {
		info, err := os.Lstat(link)
		require.NoError(t, err)
		require.NotZero(t, info.Mode()&os.ModeSymlink, "%s is a link still", link)
	}
	require.NoError(t, Save(t.Context(), at("dangling"), text("made")))
	require.Equal(t, "made", contents(t, at("made")))
	require.EqualError(t, Save(t.Context(), at("round"), text("")), "cannot write "+at("round")+": too many symbolic links")
}

func TestSaveKeepsHardLinks(t *testing.T) {
	dir := t.TempDir()
	one, other := filepath.Join(dir, "one"), filepath.Join(dir, "other")
	require.NoError(t, os.WriteFile(one, []byte("a much longer text than the new one"), 0o600))
	require.NoError(t, os.Link(one, other))
	require.NoError(t, Save(t.Context(), one, text("new")))
	require.Equal(t, "new", contents(t, other))
	alone(t, dir, "one", "other")
}

// holdCopy makes the copy of the next overwrite wait, after its first bytes, until the returned function lets it go on.
func holdCopy(t *testing.T, fail error) (begun chan struct{}, goOn func()) {
	begun, hold := make(chan struct{}), make(chan struct{})
	copyContents = func(to io.Writer, from io.Reader) (int64, error) {
		n, err := io.CopyN(to, from, 2)
		close(begun)
		<-hold
		if err != nil || fail != nil {
			return n, errors.Join(err, fail)
		}
		rest, err := io.Copy(to, from)
		return n + rest, err
	}
	t.Cleanup(func() { copyContents, unfinished.ended = io.Copy, false })
	return begun, sync.OnceFunc(func() { close(hold) })
}

func linked(t *testing.T) (dir, one, other string) {
	t.Helper()
	dir = t.TempDir()
	one, other = filepath.Join(dir, "one"), filepath.Join(dir, "other")
	require.NoError(t, os.WriteFile(one, []byte("before"), 0o600))
	require.NoError(t, os.Link(one, other))
	return dir, one, other
}

// A process that ends at once completes a hard-linked file that is being overwritten.
func TestAbandonCompletesWhatIsOverwritten(t *testing.T) {
	dir, one, other := linked(t)
	begun, goOn := holdCopy(t, nil)
	saved := make(chan error)
	go func() { saved <- Save(context.Background(), one, text("new contents")) }()
	<-begun
	require.Equal(t, "ne", contents(t, other), "the old contents are gone")
	ended := make(chan []string)
	go func() { ended <- Abandon(time.Hour) }()
	select {
	case <-ended:
		t.Fatal("ended while the file is incomplete")
	case <-time.After(20 * time.Millisecond):
	}
	goOn()
	require.Empty(t, <-ended)
	require.Equal(t, "new contents", contents(t, other))
	require.NoError(t, <-saved)
	alone(t, dir, "one", "other")
}

// If that takes too long, the complete contents stay beside the file, and are named.
func TestAbandonNamesWhatIsIncomplete(t *testing.T) {
	_, one, other := linked(t)
	begun, goOn := holdCopy(t, nil)
	saved := make(chan error)
	go func() { saved <- Save(context.Background(), one, text("new contents")) }()
	<-begun
	incomplete := Abandon(time.Millisecond)
	require.Len(t, incomplete, 1)
	kept, found := strings.CutPrefix(incomplete[0], one+" is incomplete; its complete contents are in ")
	require.True(t, found, incomplete[0])
	require.Equal(t, "ne", contents(t, other))
	require.Equal(t, "new contents", contents(t, kept), "as the process ends now")
	goOn()
	require.NoError(t, <-saved)
}

// A copy that fails half-way (a full disk) keeps the complete contents too.
func TestOverwriteThatFailsKeepsTheContents(t *testing.T) {
	dir, one, _ := linked(t)
	_, goOn := holdCopy(t, syscall.ENOSPC)
	goOn()
	err := Save(t.Context(), one, text("new contents"))
	require.ErrorIs(t, err, syscall.ENOSPC)
	kept, found := strings.CutPrefix(err.Error(), "cannot write "+one+": no space left on device; "+one+" is incomplete; its complete contents are in ")
	require.True(t, found, err)
	require.Equal(t, "new contents", contents(t, kept))
	alone(t, dir, "one", "other", filepath.Base(kept))
}

func TestSaveIntoAFIFO(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	got := make(chan string)
	go func() {
		b, _ := os.ReadFile(fifo)
		got <- string(b)
	}()
	long := strings.Repeat("through the pipe\n", 1<<16)
	require.NoError(t, Save(t.Context(), fifo, text(long)))
	require.Equal(t, long, <-got)
	info, err := os.Lstat(fifo)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeNamedPipe)
	alone(t, dir, "fifo")
}

// Opening a FIFO that nobody reads or writes ends with the context.
func TestFIFOsAreInterrupted(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, Save(ctx, fifo, text("for nobody")), context.DeadlineExceeded)
	r, err := Open(ctx, fifo)
	require.NoError(t, err)
	_, err = io.ReadAll(r)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// /dev/stdout leads to the file that stdout was redirected to: output is appended to that file.
func TestSaveToAnOpenFile(t *testing.T) {
	if _, err := os.Stat("/dev/fd"); err != nil {
		t.Skip("this system has no /dev/fd")
	}
	dir := t.TempDir()
	file, err := os.OpenFile(filepath.Join(dir, "redirected"), os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(t, err)
	defer file.Close()
	_, err = file.WriteString("before ")
	require.NoError(t, err)
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(filepath.Join("/dev/fd", itoa(file.Fd())), link))
	for _, name := range []string{filepath.Join("/dev/fd", itoa(file.Fd())), link} {
		require.NoError(t, Save(t.Context(), name, text("after ")))
	}
	require.Equal(t, "before after after ", contents(t, file.Name()))
	alone(t, dir, "redirected", "link")

	stdout := os.Stdout
	os.Stdout = file
	defer func() { os.Stdout = stdout }()
	require.NoError(t, Save(t.Context(), file.Name(), text("own")))
	now, err := os.Stat(file.Name())
	require.NoError(t, err)
	held, err := file.Stat()
	require.NoError(t, err)
	require.True(t, os.SameFile(now, held), "the file that stdout writes to was not replaced")
}

func itoa(fd uintptr) string { return strconv.Itoa(int(fd)) }

func TestPlaces(t *testing.T) {
	dir := t.TempDir()
	at := func(names ...string) string { return filepath.Join(append([]string{dir}, names...)...) }
	require.NoError(t, os.WriteFile(at("file"), nil, 0o600))
	require.NoError(t, os.Mkdir(at("folder"), 0o755))
	require.NoError(t, os.Symlink("file", at("link")))
	require.NoError(t, os.Link(at("file"), at("hard")))
	require.NoError(t, os.Symlink(".", at("here")))
	t.Chdir(dir)
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"file", at("file"), true}, {"file", "folder/../file", true}, {"file", "link", true}, {"file", "hard", true}, {"file", "here/file", true},
		{"new", at("here", "new"), true}, {"new", "./new", true}, {"new", "newer", false}, {"file", "new", false}, {"new", "folder/new", false},
		{"/dev/null", "/dev/null", false}, {"none/x", "none/x", false},
	} {
		require.Equal(t, c.same, PlaceOf(c.a).Same(PlaceOf(c.b)), "%s and %s", c.a, c.b)
		require.Equal(t, c.same, PlaceOf(c.b).Same(PlaceOf(c.a)), "%s and %s", c.b, c.a)
	}
	file, err := os.Open("link")
	require.NoError(t, err)
	defer file.Close()
	require.True(t, PlaceOfOpen(file).Same(PlaceOf("hard")))
}
