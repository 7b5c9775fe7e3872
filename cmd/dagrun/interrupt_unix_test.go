// Tests of pressing Ctrl-C twice while a file is being saved: the process ends at once and leaves no temporary file. Signals and process
// are real.

//go:build unix

package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// interruptedTwice runs a command, waits for a condition, and sends SIGINT twice, or more often where one is lost. It returns what the command printed to stderr and its
// exit status, which is 0 if the command ended before the signals.
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
				return stderr.String(), statusOK
			}
			t.Fatalf("the command failed before it was interrupted: %s", stderr.String())
		case <-time.After(100 * time.Microsecond):
		}
	}
	// The kernel merges two pending signals into one, so the second is sent after a while, and again in case it came too early all the same.
	pause, last := 200*time.Microsecond, time.After(grace+time.Minute)
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
func saving(t *testing.T, folder, save, mebibytes string) string {
	t.Helper()
	file := filepath.Join(folder, "save.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`version: 1
name: save
buffers:
  x: {place: host, dtype: u8, shape: [1024*1024*`+mebibytes+`], init: 7, save: `+save+`}
nodes:
  - {name: short, kernel: spin, args: [1]}
`), 0o644))
	return file
}

// stoppedSaving matches the command's message, which depends on whether the second signal arrives before or while the command ends.
const stoppedSaving = `^(dagrun: interrupted, at check and save results\n)?(dagrun: interrupted twice\n)?$`

// temporary returns the temporary files in a folder.
func temporary(t *testing.T, folder string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, ".dagrun-*"))
	require.NoError(t, err)
	return found
}

// The temporary file exists when the first signal arrives. The file saved earlier is kept.
func TestTwoSignalsDuringASaveLeaveNoTemporaryFile(t *testing.T) {
	const earlier = "from an earlier run"
	folder := t.TempDir()
	file, saved := saving(t, folder, "x.npy", "64"), filepath.Join(folder, "x.npy")
	require.NoError(t, os.WriteFile(saved, []byte(earlier), 0o644))
	const rounds = 4 // a fast machine may have removed the file when the second signal comes
	for interrupted, tries := 0, 0; interrupted < rounds; tries++ {
		require.Less(t, tries, 100, "the command is always faster than its signals")
		said, status := interruptedTwice(t, func() bool { return len(temporary(t, folder)) > 0 }, "run", file, "--backend", "cpu", "--quiet")
		require.Empty(t, temporary(t, folder))
		if status == statusOK { // on a busy machine the file was complete before the first signal came
			require.NoError(t, os.WriteFile(saved, []byte(earlier), 0o644))
			continue
		}
		interrupted++
		require.Equal(t, statusInterrupted, status, said)
		require.Regexp(t, stoppedSaving, said)
		left, err := os.ReadFile(saved)
		require.NoError(t, err)
		require.Equal(t, earlier, string(left[:min(len(left), 100)]))
	}
}

// A file with hard links is overwritten in place, once the temporary file is complete. Copying continues after the first signal, because
// otherwise neither the old nor the new contents would be left.
func TestTwoSignalsWhileAFileIsWrittenOverLeaveNoTemporaryFile(t *testing.T) {
	const earlier = "from an earlier run"
	folder := t.TempDir()
	file, saved := saving(t, folder, "x.npy", "256"), filepath.Join(folder, "x.npy")
	require.NoError(t, os.WriteFile(saved, []byte(earlier), 0o644))
	require.NoError(t, os.Link(saved, filepath.Join(folder, "other name")))
	for tries := 0; ; tries++ {
		require.Less(t, tries, 100, "the command is always faster than its signals")
		said, status := interruptedTwice(t, func() bool {
			info, err := os.Stat(saved)
			return err == nil && info.Size() != int64(len(earlier))
		}, "run", file, "--backend", "cpu", "--quiet")
		require.Empty(t, temporary(t, folder))
		if status == statusOK { // on a busy machine the file was complete before the first signal came
			require.NoError(t, os.WriteFile(saved, []byte(earlier), 0o644))
			continue
		}
		require.Equal(t, statusInterrupted, status, said)
		require.Regexp(t, stoppedSaving, said)
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
	}, "run", saving(t, folder, "fifo.bin", "1"), "--backend", "cpu", "--quiet")
	require.Equal(t, statusInterrupted, status, said)
	require.Regexp(t, stoppedSaving, said)
	require.Empty(t, temporary(t, folder))
	info, err := os.Lstat(fifo)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeNamedPipe)
}
