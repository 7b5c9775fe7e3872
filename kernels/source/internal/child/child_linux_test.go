// Tests of compilers' processes on Linux. This test's own program stands for the compiler: what it finds possible, it says.

package child

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/dagrun/dagrun/internal/words"
)

// roles are what this program does when it runs as a compiler, with the arguments of the command.
var roles = map[string]func(args []string){
	"try": func(args []string) {
		inside, outside, temporary, address := args[0], args[1], args[2], args[3]
		report := func(what string, err error) {
			said := "yes"
			if err != nil {
				said = "no"
			}
			fmt.Println(what, said)
		}
		_, err := os.ReadFile(filepath.Join(inside, "own"))
		report("read inside", err)
		report("write inside", os.WriteFile(filepath.Join(inside, "new"), nil, 0o600))
		_, err = os.ReadFile(filepath.Join(outside, "secret"))
		report("read outside", err)
		_, err = os.ReadFile(filepath.Join(inside, "link"))
		report("read by a link", err)
		_, err = os.ReadDir(outside)
		report("list outside", err)
		report("write outside", os.WriteFile(filepath.Join(outside, "new"), nil, 0o600))
		report("truncate outside", os.Truncate(filepath.Join(outside, "secret"), 0))
		report("write temporary", os.WriteFile(filepath.Join(temporary, "new"), nil, 0o600))
		_, err = os.ReadFile("/proc/self/environ")
		report("read /proc", err)
		_, err = os.ReadFile("/etc/passwd")
		report("read /etc", err)
		_, err = net.Dial("tcp", address)
		report("connect", err)
		_, err = net.Dial("udp", address)
		report("send", err)
		_, err = net.Listen("tcp", "127.0.0.1:0")
		report("listen", err)
		report("variable", map[bool]error{false: errors.New("it is not set")}[os.Getenv("HUNTER2") != ""])
	},
	"spin":  func([]string) { spin() },
	"sleep": func([]string) { time.Sleep(time.Hour) },
	"parent": func(args []string) { // starts a process that outlives it, and writes its number
		c := exec.Command("/bin/sleep", "100000")
		must(c.Start())
		must(os.WriteFile(args[0], []byte(strconv.Itoa(c.Process.Pid)), 0o600))
		if len(args) > 1 {
			return
		}
		must(c.Wait())
	},
	"note": func(args []string) {
		must(os.WriteFile(args[0], []byte(strconv.Itoa(os.Getpid())), 0o600))
		time.Sleep(time.Hour)
	},
	"hold": func(args []string) {
		folder, _, err := NewFolder()
		must(err)
		must(os.WriteFile(args[0], []byte(folder), 0o600))
		time.Sleep(time.Hour)
	},
	"run": func(args []string) { // runs a compiler as dagrun does
		_, _ = (&Command{Path: os.Args[0], Env: []string{role + "=" + args[0]}, Args: args[1:], Parent: args[0] == "parent"}).Run(context.Background())
	},
}

const role = "DAGRUN_TEST_ROLE"

func TestMain(m *testing.M) {
	if do := roles[os.Getenv(role)]; do != nil {
		do(os.Args[1:])
		return
	}
	os.Exit(m.Run())
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func spin() {
	for k := 0; ; k++ {
		_ = k
	}
}

// asCompiler is a command that runs this program in a role.
func asCompiler(what string, args ...string) *Command {
	return &Command{Path: os.Args[0], Args: args, Env: []string{role + "=" + what, "HUNTER2=secret", "PATH=/usr/bin:/bin"}}
}

func TestConfined(t *testing.T) {
	dir := t.TempDir()
	inside, outside := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	for _, folder := range []string{inside, outside} {
		require.NoError(t, os.Mkdir(folder, 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(inside, "own"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("hunter2"), 0o600))
	require.NoError(t, os.Symlink(filepath.Join(outside, "secret"), filepath.Join(inside, "link")))
	temporary, remove, err := NewFolder()
	require.NoError(t, err)
	defer remove()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()

	free := asCompiler("try", inside, outside, temporary, listener.Addr().String())
	free.Folder = temporary
	said, err := free.Run(t.Context())
	require.NoError(t, err)
	require.NotContains(t, string(said.Out), "no", "without limits all of this is possible")

	require.NoError(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("hunter2"), 0o600))
	inherited = append(inherited, role)
	defer func() { inherited = inherited[:len(inherited)-1] }()
	confined := *free
	confined.Confined = []string{inside}
	said, err = confined.Run(t.Context())
	if version, _, problem := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION); problem != 0 || version < 3 {
		require.ErrorIs(t, err, errCannotConfine)
		return
	}
	require.NoError(t, err)
	require.Equal(t, `read inside yes
write inside no
read outside no
read by a link no
list outside no
write outside no
truncate outside no
write temporary yes
read /proc no
read /etc no
connect no
send no
listen no
variable no
`, string(said.Out))
	require.Equal(t, "hunter2", text(t, filepath.Join(outside, "secret")))
	require.NoError(t, os.WriteFile(filepath.Join(inside, "mine"), nil, 0o600), "this process itself is not confined")
}

func text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

func TestLimits(t *testing.T) {
	limit, memory := mostTime, mostMemory
	defer func() { mostTime, mostMemory = limit, memory }()
	mostMemory = 256 << 20
	// It looks for the end of a line without end. A test binary with the race detector could not even start under this limit.
	_, err := (&Command{Path: "/usr/bin/tail", Args: []string{"/dev/zero"}}).Run(t.Context())
	require.EqualError(t, err, "it needs more than 256 MiB, the limit of a compiler; compile the source to PTX beforehand")
	mostTime, mostMemory = time.Second, memory
	for _, what := range []string{"spin", "sleep"} {
		_, err = asCompiler(what).Run(t.Context())
		require.EqualError(t, err, "it was ended after 1s, the limit of a compiler; compile the source to PTX beforehand", what)
	}
}

// A source may speak of memory itself, where compilers quote it.
func TestQuotedSourceIsNoLimit(t *testing.T) {
	for _, wrong := range []string{"a b.cu:1:6: error: expected expression", "a.cu(7): error: expected an expression", "a.cu:1:6: fatal error: no such file"} {
		said, err := (&Command{Path: "/bin/sh", Args: []string{"-c", `printf '%s\n    die("Cannot allocate memory");\n' "$0" >&2; exit 1`, wrong}}).Run(t.Context())
		require.EqualError(t, err, "exit status 1")
		require.Contains(t, string(said.Log), wrong)
	}
}

// What a compiler has started ends with it.
func TestNothingIsLeftBehind(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	c := asCompiler("parent", file, "leaves")
	c.Parent = true
	_, err := c.Run(t.Context())
	require.NoError(t, err)
	ended(t, file)

	ctx, cancel := context.WithCancel(t.Context())
	c = asCompiler("parent", file+"2")
	c.Parent = true
	done := make(chan error)
	go func() {
		_, err := c.Run(ctx)
		done <- err
	}()
	written(t, file+"2")
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	ended(t, file+"2")
}

// kill -9 cannot be caught, and still ends the compiler, and what that has started.
func TestCompilersDieWithTheirProcess(t *testing.T) {
	for _, what := range []string{"parent", "note"} {
		file := filepath.Join(t.TempDir(), "pid")
		runner := exec.Command(os.Args[0], what, file)
		runner.Env = []string{role + "=run"}
		require.NoError(t, runner.Start())
		written(t, file)
		require.NoError(t, runner.Process.Kill())
		_ = runner.Wait()
		ended(t, file)
	}
}

// The folder of a process that was killed is removed by the next one that needs a folder, and that of a running one is not.
func TestFoldersOfKilledProcessesAreRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	file := filepath.Join(t.TempDir(), "folder")
	holder := exec.Command(os.Args[0], file)
	holder.Env = []string{role + "=hold", "TMPDIR=" + os.TempDir()}
	require.NoError(t, holder.Start())
	folder := written(t, file)
	pattern := filepath.Join(os.TempDir(), folderPrefix+"*")
	sweep(pattern)
	require.DirExists(t, folder)
	require.NoError(t, holder.Process.Kill())
	_ = holder.Wait()
	require.DirExists(t, folder)
	own, remove, err := NewFolder()
	require.NoError(t, err)
	sweep(pattern)
	require.NoDirExists(t, folder)
	require.DirExists(t, own)
	remove()
	require.NoDirExists(t, own)
}

// written waits for a file to have a text.
func written(t *testing.T, path string) string {
	t.Helper()
	for {
		if b, err := os.ReadFile(path); err == nil && len(b) > 0 {
			return string(b)
		}
		require.NoError(t, t.Context().Err())
		time.Sleep(time.Millisecond)
	}
}

// ended waits for the process whose number is in a file to end.
func ended(t *testing.T, path string) {
	t.Helper()
	pid, err := strconv.Atoi(written(t, path))
	require.NoError(t, err)
	for {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// docs/security.md tells the limits.
func TestThePageTellsTheLimits(t *testing.T) {
	require.Contains(t, text(t, "../../../../docs/security.md"), fmt.Sprintf("may use %s and %.0f minutes of processor time on Linux, and %.0f minutes by the clock", words.Bytes(mostMemory), mostTime.Minutes(), mostTime.Minutes()))
}
