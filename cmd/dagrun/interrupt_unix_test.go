// Tests of signals: pressing Ctrl-C twice while a file is being saved ends the process at once and leaves no temporary file, and a command ends
// with its terminal unless it was started to outlive it. Signals and process are real.

//go:build unix

package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
)

// interruptedTwice runs a command, waits for a condition, and sends SIGINT twice, or more often where one is lost. It returns what the command
// printed to stderr and its exit status, which is 0 if the command ended before the signals.
func interruptedTwice(t *testing.T, due func() bool, args ...string) (said string, status int) {
	t.Helper()
	var stderr bytes.Buffer
	command := exec.Command(selfAsCommand(t), args...)
	command.Env, command.Stderr = append(os.Environ(), "GORACE=atexit_sleep_ms=0"), &stderr
	require.NoError(t, command.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = command.Wait() // its exit status is what is asked for
	}()
	for !due() {
		select {
		case <-ended:
			if command.ProcessState.Success() {
				return stderr.String(), cli.StatusOK
			}
			t.Fatalf("the command failed before it was interrupted: %s", stderr.String())
		case <-time.After(100 * time.Microsecond):
		}
	}
	// The kernel merges two pending signals into one, so the second is sent after a while, and again in case it came too early all the same.
	pause, last := 200*time.Microsecond, time.After(cli.Grace+5*time.Minute)
	for {
		_ = command.Process.Signal(syscall.SIGINT) // the command may have ended
		select {
		case <-ended:
			return stderr.String(), command.ProcessState.ExitCode()
		case <-last:
			require.NoError(t, command.Process.Kill())
			<-ended
			t.Fatalf("two signals did not end the command: %s", stderr.String())
		case <-time.After(pause):
			pause = min(2*pause, 100*time.Millisecond)
		}
	}
}

// saving is a pipeline whose result is so large that writing it takes some time.
func saving(t *testing.T, folder, save string, mebibytes int) string {
	t.Helper()
	file := filepath.Join(folder, "save.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`version: 1
name: save
buffers:
  x: {place: host, dtype: u8, shape: [1024*1024*`+strconv.Itoa(mebibytes)+`], init: 7, save: `+save+`}
nodes:
  - {name: short, kernel: spin, args: [1]}
`), 0o644))
	return file
}

// stoppedSaving matches the command's message, which depends on whether the second signal arrives before or while the command ends.
const stoppedSaving = `^(dagrun: interrupted, at check and save results\n)?(dagrun: interrupted twice\n)?$`

// leftIncomplete matches the message of a command whose disk was too slow to complete the file that it wrote over.
var leftIncomplete = regexp.MustCompile(`^(?:dagrun: interrupted, at check and save results\n)?dagrun: interrupted[^\n]*; \S*x\.npy is incomplete; its complete contents are in (\S+)\n$`)

// temporary returns the temporary files in a folder.
func temporary(t *testing.T, folder string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, ".dagrun-*"))
	require.NoError(t, err)
	return found
}

// requireComplete checks that a file holds all that saving wrote.
func requireComplete(t *testing.T, file string, mebibytes int) {
	t.Helper()
	contents, err := os.ReadFile(file)
	require.NoError(t, err)
	values := mebibytes << 20
	require.Greater(t, len(contents), values)
	require.True(t, bytes.Equal(bytes.Repeat([]byte{7}, values), contents[len(contents)-values:]), "the values of %s", file)
}

// The temporary file exists when the first signal is sent. The file saved earlier is kept, unless the new one was complete when the signal
// arrived.
func TestTwoSignalsDuringASaveLeaveNoTemporaryFile(t *testing.T) {
	const earlier, size = "from an earlier run", 64
	folder := t.TempDir()
	file, saved := saving(t, folder, "x.npy", size), filepath.Join(folder, "x.npy")
	const rounds = 4 // a fast machine may have removed the file when the second signal comes
	for kept, tries := 0, 0; kept < rounds; tries++ {
		require.Less(t, tries, 100, "the command is always faster than its signals")
		require.NoError(t, os.WriteFile(saved, []byte(earlier), 0o644))
		said, status := interruptedTwice(t, func() bool { return len(temporary(t, folder)) > 0 }, "run", file, "--backend", "cpu", "--quiet")
		require.Empty(t, temporary(t, folder))
		if status != cli.StatusOK {
			require.Equal(t, cli.StatusInterrupted, status, said)
			require.Regexp(t, stoppedSaving, said)
		}
		info, err := os.Stat(saved)
		require.NoError(t, err)
		if status == cli.StatusOK || info.Size() != int64(len(earlier)) { // a busy machine sent the signals late
			requireComplete(t, saved, size)
			continue
		}
		left, err := os.ReadFile(saved)
		require.NoError(t, err)
		require.Equal(t, earlier, string(left))
		kept++
	}
}

// A file with hard links is overwritten in place, once the temporary file is complete. Copying continues after the first signal, because
// otherwise neither the old nor the new contents would be left. Where it takes longer than the grace, the temporary file stays and is named.
func TestTwoSignalsWhileAFileIsWrittenOverLoseNothing(t *testing.T) {
	const earlier, size = "from an earlier run", 256
	folder := t.TempDir()
	file, saved := saving(t, folder, "x.npy", size), filepath.Join(folder, "x.npy")
	require.NoError(t, os.WriteFile(saved, []byte(earlier), 0o644))
	require.NoError(t, os.Link(saved, filepath.Join(folder, "other name")))
	for tries := 0; ; tries++ {
		require.Less(t, tries, 100, "the command is always faster than its signals")
		require.NoError(t, os.WriteFile(saved, []byte(earlier), 0o644))
		said, status := interruptedTwice(t, func() bool {
			info, err := os.Stat(saved)
			return err == nil && info.Size() != int64(len(earlier))
		}, "run", file, "--backend", "cpu", "--quiet")
		if status == cli.StatusOK { // a busy machine sent the signals late
			require.Empty(t, temporary(t, folder))
			continue
		}
		require.Equal(t, cli.StatusInterrupted, status, said)
		if incomplete := leftIncomplete.FindStringSubmatch(said); incomplete != nil {
			requireComplete(t, filepath.Join(folder, filepath.Base(incomplete[1])), size)
			return
		}
		require.Regexp(t, stoppedSaving, said)
		require.Empty(t, temporary(t, folder))
		requireComplete(t, saved, size)
		return
	}
}

// A FIFO whose reader pauses blocks the writer for any length of time.
func TestTwoSignalsDuringASaveIntoAFIFOEndTheCommand(t *testing.T) {
	folder := t.TempDir()
	fifo := filepath.Join(folder, "fifo.bin")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	reader, err := os.OpenFile(fifo, os.O_RDWR, 0) // opening it for reading only would wait for the command
	require.NoError(t, err)
	defer reader.Close()
	read := make(chan error, 1)
	go func() {
		_, err := io.ReadFull(reader, make([]byte, 1<<16))
		read <- err
	}()
	said, status := interruptedTwice(t, func() bool {
		select {
		case err := <-read:
			require.NoError(t, err)
			return true
		default:
			return false
		}
	}, "run", saving(t, folder, "fifo.bin", 1), "--backend", "cpu", "--quiet")
	require.Equal(t, cli.StatusInterrupted, status, said)
	require.Regexp(t, stoppedSaving, said)
	require.Empty(t, temporary(t, folder))
	info, err := os.Lstat(fifo)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeNamedPipe)
}

// The end of the terminal interrupts a command, but not one that was started with nohup.
func TestTheEndOfTheTerminal(t *testing.T) {
	// What ignores the signal passes that on to what it starts, unless it catches the signal itself: these tests may run under nohup.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP)
	defer signal.Stop(caught)
	file := spinning(t)
	run := func(before, iterations string) (said string, status int) {
		var stderr bytes.Buffer
		cache := filepath.Join(t.TempDir(), "cache")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		command := exec.CommandContext(ctx, "sh", "-c", before+`exec "$0" "$@"`, selfAsCommand(t), "run", file, "--backend", "cpu", "--iterations", iterations, "--cache-dir", cache, "--quiet")
		command.Env, command.Stderr = append(os.Environ(), "GORACE=atexit_sleep_ms=0"), &stderr
		require.NoError(t, command.Start())
		ended := make(chan error, 1)
		go func() { ended <- command.Wait() }()
		for {
			select {
			case <-ended:
				return stderr.String(), command.ProcessState.ExitCode()
			case <-time.After(20 * time.Millisecond):
				if _, err := os.Stat(cache); err == nil { // it has opened its cache, so it handles signals
					_ = command.Process.Signal(syscall.SIGHUP) // the command may have ended
				}
			}
		}
	}
	said, status := run("trap '' HUP; ", "5")
	require.Zero(t, status, said)
	said, status = run("", "1000000")
	require.Equal(t, cli.StatusInterrupted, status, said)
	require.Contains(t, said, "interrupted")
}
