// Tests of the command on a terminal: colours, the progress line and Ctrl-C, and their absence without a terminal. The tests use a
// pseudo-terminal and check what a person would see on it.

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
)

// console is a pseudo-terminal and what has been written to it.
type console struct {
	keyboard *os.File // the master: written to, it is typed
	device   *os.File
	mu       sync.Mutex
	written  bytes.Buffer
	ended    chan struct{}
	typing   func(seen []byte) string // returns what to type, given all output so far; may be nil
}

func newConsole(t *testing.T, columns uint16) *console {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetUint32(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}))
	device, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { device.Close() })
	return &console{keyboard: master, device: device, ended: make(chan struct{})}
}

// watch reads until the last process has closed the terminal.
func (c *console) watch() {
	defer close(c.ended)
	chunk := make([]byte, 4096)
	for {
		n, err := c.keyboard.Read(chunk)
		c.mu.Lock()
		c.written.Write(chunk[:n])
		if c.typing != nil {
			if keys := c.typing(c.written.Bytes()); keys != "" {
				io.WriteString(c.keyboard, keys)
				c.typing = nil
			}
		}
		c.mu.Unlock()
		if err != nil { // EIO once no process has it open
			return
		}
	}
}

// run runs dagrun with its input and stderr on the terminal, and stdout where it is nil, and returns its exit status.
func (c *console) run(t *testing.T, stdout io.Writer, environment []string, args ...string) int {
	t.Helper()
	command := exec.Command(selfAsCommand(t), args...)
	command.Env = append(terminalEnvironment(), environment...)
	command.Stdout = stdout
	c.begin(t, command)
	_ = command.Wait() // only its exit status matters
	<-c.ended
	return command.ProcessState.ExitCode()
}

// terminalEnvironment is this process's environment without the variables that affect colours.
func terminalEnvironment() []string {
	var kept []string
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); name != "NO_COLOR" && name != "TERM" {
			kept = append(kept, variable)
		}
	}
	return append(kept, "TERM=xterm", "GORACE=atexit_sleep_ms=0")
}

// screen returns what a terminal shows in the end, without colours, and the lines that were cleared before.
func screen(t *testing.T, written string) (shown, erased []string) {
	t.Helper()
	var line []rune
	column := 0
	text := []rune(colour.ReplaceAllString(written, ""))
	for i := 0; i < len(text); i++ {
		switch r := text[i]; {
		case r == '\r':
			column = 0
		case r == '\n':
			shown = append(shown, string(line))
			line, column = nil, 0
		case r == '\x1b':
			require.Equal(t, "\x1b[K", string(text[i:min(i+3, len(text))]), "an unknown sequence in %q", written)
			if column < len(line) {
				erased = append(erased, string(line))
				line = line[:column]
			}
			i += 2
		default:
			line = append(line[:column], r)
			column++
		}
	}
	if len(line) > 0 {
		shown = append(shown, string(line))
	}
	return shown, erased
}

var colour = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// The progress line shows replays, and on a slow machine also the stages before or after them.
var (
	progressLine = regexp.MustCompile(`^replay [0-9]+/80, [0-9.]+/s, [0-9]+s left$`)
	otherStage   = regexp.MustCompile(`^[a-z][^,]*, [0-9]+s$`)
)

var spunLine = regexp.MustCompile(`^spin: \S+ ms per replay \(([0-9]+) in [0-9.]+ s(?:; ([0-9]+) before them for learning)?\) on the CPU device`)

// requireSpun checks the line of a run of 80 replays, of which those used to learn are counted apart.
func requireSpun(t *testing.T, line string) {
	t.Helper()
	counts := spunLine.FindStringSubmatch(line)
	require.NotNil(t, counts, "%q", line)
	replays, err := strconv.Atoi(counts[1])
	require.NoError(t, err)
	if counts[2] != "" {
		learned, err := strconv.Atoi(counts[2])
		require.NoError(t, err)
		replays += learned
	}
	require.Equal(t, 80, replays, "%q", line)
}

func TestProgressShowsAndGoes(t *testing.T) {
	t.Parallel()
	c := newConsole(t, 80)
	require.Zero(t, c.run(t, nil, nil, "run", spinning(t), "--backend", "cpu", "--iterations", "80", "--learn", "off"))
	shown, erased := screen(t, c.written.String())
	replays := slices.DeleteFunc(slices.Clone(erased), otherStage.MatchString)
	require.NotEmpty(t, replays, "of %q", erased)
	for _, line := range replays {
		require.Regexp(t, progressLine, line)
	}
	require.Len(t, shown, 2, "progress has gone from %q", shown)
	requireSpun(t, shown[0])
	require.Contains(t, c.written.String(), "\x1b[1m", "the time is bold")
}

// A plan that takes long to begin, here because its file comes slowly, shows what it waits for. The line is gone before the output.
func TestProgressOfPlanning(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"plan", "check", "dot"} {
		fifo := filepath.Join(t.TempDir(), "slow.yaml")
		require.NoError(t, unix.Mkfifo(fifo, 0o600))
		source, err := os.ReadFile(filepath.Join("..", "..", "pipelines", "saxpy.yaml"))
		require.NoError(t, err)
		c := newConsole(t, 200)
		begun := false
		c.typing = func(seen []byte) string {
			if bytes.Contains(seen, []byte("read ")) && !begun {
				begun = true
				go func() { _ = os.WriteFile(fifo, source, 0o600) }()
			}
			return ""
		}
		require.Zero(t, c.run(t, nil, nil, command, fifo))
		shown, erased := screen(t, c.written.String())
		require.NotEmpty(t, erased, command)
		require.Regexp(t, "^read .*slow.yaml, [0-9]+s$", erased[0], command)
		for _, line := range shown {
			require.NotContains(t, line, "slow.yaml", command)
		}
		require.Contains(t, strings.Join(shown, " "), "saxpy", command)
	}
}

// Results that go to a file or another program are plain text, and progress still shows on the terminal.
func TestProgressShowsWhereResultsArePiped(t *testing.T) {
	t.Parallel()
	c := newConsole(t, 80)
	var results bytes.Buffer
	require.Zero(t, c.run(t, &results, nil, "run", spinning(t), "--backend", "cpu", "--iterations", "80"))
	shown, erased := screen(t, c.written.String())
	require.NotEmpty(t, erased)
	require.Empty(t, shown)
	require.NotContains(t, results.String(), "\x1b")
	requireSpun(t, results.String())
}

func TestNothingIsPaintedWithoutATerminal(t *testing.T) {
	t.Parallel()
	var results, rest bytes.Buffer
	command := exec.Command(selfAsCommand(t), "run", spinning(t), "--backend", "cpu", "--iterations", "80")
	command.Env, command.Stdout, command.Stderr = terminalEnvironment(), &results, &rest
	require.NoError(t, command.Run())
	requireSpun(t, results.String())
	require.NotContains(t, results.String(), "\x1b")
	require.Empty(t, rest.String())
}

// Ctrl-C typed while the progress line shows ends a run that would take hours, and clears the line. The line is cut to the terminal's
// width, because a wrapped line could not be cleared.
func TestCtrlCEndsALongRun(t *testing.T) {
	t.Parallel()
	const columns = 16
	c := newConsole(t, columns)
	c.typing = func(seen []byte) string {
		if bytes.Contains(seen, []byte("replay ")) {
			return "\x03"
		}
		return ""
	}
	require.Equal(t, cli.StatusInterrupted, c.run(t, nil, nil, "run", spinning(t), "--backend", "cpu", "--iterations", "1000000"))
	shown, erased := screen(t, c.written.String())
	require.NotEmpty(t, erased)
	for _, line := range erased {
		require.Less(t, len(strings.ReplaceAll(line, "^C", "")), columns) // the terminal shows what was typed
	}
	require.Len(t, shown, 1, "%q", c.written.String())
	require.Regexp(t, `dagrun: interrupted`, shown[0])
}

func TestColours(t *testing.T) {
	saxpy := filepath.Join("..", "..", "pipelines", "saxpy.yaml")
	for name, c := range map[string]struct {
		environment []string
		args        []string
		status      int
		want        string // a colour, or none
	}{
		"a terminal":   {nil, []string{"run", saxpy, "--backend", "cpu", "-p", "n=1000"}, cli.StatusOK, "\x1b[32mok\x1b[0m"},
		"a mistake":    {nil, []string{"run", "missing.yaml"}, cli.StatusWrong, "\x1b[31mdagrun:\x1b[0m"},
		"NO_COLOR":     {[]string{"NO_COLOR=1"}, []string{"run", saxpy, "--backend", "cpu", "-p", "n=1000"}, cli.StatusOK, ""},
		"NO_COLOR=":    {[]string{"NO_COLOR="}, []string{"run", saxpy, "--backend", "cpu", "-p", "n=1000"}, cli.StatusOK, "\x1b[32mok\x1b[0m"},
		"a dumb one":   {[]string{"TERM=dumb"}, []string{"run", saxpy, "--backend", "cpu", "-p", "n=1000"}, cli.StatusOK, ""},
		"mpirun":       {[]string{"OMPI_COMM_WORLD_SIZE=1"}, []string{"run", saxpy, "--backend", "cpu", "-p", "n=1000"}, cli.StatusOK, ""},
		"--color":      {nil, []string{"run", saxpy, "--backend", "cpu", "-p", "n=1000", "--color", "never"}, cli.StatusOK, ""},
		"both, always": {[]string{"NO_COLOR=1"}, []string{"run", saxpy, "--backend", "cpu", "-p", "n=1000", "--color", "always"}, cli.StatusOK, "\x1b[32mok\x1b[0m"},
	} {
		t.Run(name, func(t *testing.T) {
			console := newConsole(t, 200)
			require.Equal(t, c.status, console.run(t, nil, c.environment, c.args...))
			shown, _ := screen(t, console.written.String()) // on a slow machine progress was shown and cleared
			require.NotEmpty(t, shown)
			if c.want == "" {
				require.NotRegexp(t, colour, console.written.String())
			} else {
				require.Contains(t, console.written.String(), c.want)
			}
			if slices.Contains(c.environment, "TERM=dumb") {
				require.NotContains(t, console.written.String(), "\x1b")
			}
		})
	}
}
