// Tests of dagrun record with a driver of our own (cudart/recorder/library/stand-in): signals, what is said where tools are missing, and what becomes of a recording that
// was there before.

package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/recording"
)

// recordFolder is a folder with the driver and a program that uses it.
func recordFolder(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"libcuda.so.1", "program"} {
		packed, err := os.Open(filepath.Join("../../cudart/recorder/library/stand-in/amd64", name+".gz"))
		require.NoError(t, err)
		defer packed.Close()
		unpacked, err := gzip.NewReader(packed)
		require.NoError(t, err)
		contents, err := io.ReadAll(unpacked)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), contents, 0o755))
	}
	t.Setenv("LD_LIBRARY_PATH", folder)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(folder, "cache"))
	t.Setenv("CUDA_HOME", "")
	t.Setenv("CUDA_PATH", "")
	return folder
}

// recording is the command that records the program in a folder.
func recordingCommand(t *testing.T, folder string, arguments ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	c := exec.Command(selfAsCommand(t), append([]string{"record", "--accesses=arguments", "--cupti", filepath.Join(folder, "libcuda.so.1")}, arguments...)...)
	var stderr bytes.Buffer
	c.Dir, c.Stderr, c.Env = folder, &stderr, append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // without a terminal
	return c, &stderr
}

// recordedSome waits until the program has written something, and returns its number.
func recordedSome(t *testing.T, file string) int {
	t.Helper()
	for {
		parts, err := filepath.Glob(filepath.Join(recording.PartsFolder(file), "*.part"))
		require.NoError(t, err)
		if len(parts) > 0 {
			if p, err := recording.ReadPart(parts[0]); err == nil {
				enough := len(p.Calls) > 1000
				require.NoError(t, p.Close())
				if enough {
					number, _, _ := strings.Cut(filepath.Base(parts[0]), ".")
					process, err := strconv.Atoi(number)
					require.NoError(t, err)
					return process
				}
			}
		}
		time.Sleep(time.Millisecond)
	}
}

// A signal is the program's: what it did until it ended is packed.
func TestSignalsArePassedToTheRecordedProgram(t *testing.T) {
	folder := recordFolder(t)
	for signal, status := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		file := filepath.Join(folder, signal.String()+".rec")
		c, stderr := recordingCommand(t, folder, "-o", file, "--", "./program", "forever")
		require.NoError(t, c.Start())
		recordedSome(t, file)
		require.NoError(t, c.Process.Signal(signal))
		require.Error(t, c.Wait())
		require.Equal(t, status, c.ProcessState.ExitCode(), stderr.String())
		require.Contains(t, stderr.String(), "dagrun: recorded in "+file)
		require.NoDirExists(t, recording.PartsFolder(file))
		r, err := recording.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, status, r.Status)
		require.True(t, r.Processes[0].Cut)
		require.NoError(t, r.Close())
	}
}

// A recorder that was killed leaves its parts, and not what was there before.
func TestKilledRecorderLeavesNoOldRecording(t *testing.T) {
	folder := recordFolder(t)
	file := filepath.Join(folder, "a.rec")
	c, stderr := recordingCommand(t, folder, "-o", file, "--", "./program", "two")
	require.Error(t, c.Run())
	require.Equal(t, 7, c.ProcessState.ExitCode(), stderr.String())
	c, _ = recordingCommand(t, folder, "-o", file, "--", "./program", "forever")
	require.NoError(t, c.Start())
	program := recordedSome(t, file)
	require.NoError(t, c.Process.Kill())
	require.NoError(t, syscall.Kill(program, syscall.SIGKILL)) // it goes on without its recorder
	require.Error(t, c.Wait())
	require.NoFileExists(t, file)
	info, err := os.Stat(recording.PartsFolder(file))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm(), "only its user reads a folder of parts")
	r, err := recording.ReadFile(file)
	require.NoError(t, err)
	require.True(t, r.Cut)
	require.Greater(t, len(r.Processes[0].Calls), 1000)
	require.NoError(t, r.Close())

	c, stderr = recordingCommand(t, folder, "-o", "a.rec", "--", "./program", "two")
	require.Error(t, c.Run())
	require.Equal(t, 2, c.ProcessState.ExitCode())
	require.Equal(t, "dagrun: a.rec.parts is there already: a recording that was not finished, which dagrun check a.rec reads as it is; replace it with --force, or write to another file\n", stderr.String())
	c, _ = recordingCommand(t, folder, "-o", "a.rec", "--force", "--", "./program", "two")
	require.Error(t, c.Run())
	require.Equal(t, 7, c.ProcessState.ExitCode())
	require.FileExists(t, file)
	require.NoDirExists(t, recording.PartsFolder(file))
}

// What was there is kept where nothing new comes in its place.
func TestRecordKeepsWhatItDoesNotReplace(t *testing.T) {
	folder := recordFolder(t)
	file := filepath.Join(folder, "a.rec")
	require.NoError(t, os.WriteFile(file, []byte("mine"), 0o644))
	is := func(want string) {
		t.Helper()
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, want, string(text))
		require.NoDirExists(t, recording.PartsFolder(file))
	}
	said := func(status int, arguments ...string) string {
		t.Helper()
		c, stderr := recordingCommand(t, folder, arguments...)
		_ = c.Run()
		require.Equal(t, status, c.ProcessState.ExitCode(), stderr.String())
		return stderr.String()
	}
	require.Equal(t, "dagrun: a.rec is there already: name another file with -o, or replace it with --force\n", said(2, "-o", "a.rec", "--", "./program", "two"))
	is("mine")
	require.Equal(t, "dagrun: --cupti ./none: no such file or directory\n", said(2, "-o", "a.rec", "--force", "--cupti", "./none", "--", "./program", "two"))
	is("mine")
	require.Equal(t, "dagrun: nothing was recorded: true did not start NVIDIA's driver (no call of cuInit), or it changed its environment before (CUDA_INJECTION64_PATH)\n",
		said(2, "-o", "a.rec", "--force", "--", "true"))
	is("mine")
	require.Contains(t, said(1, "-o", "a.rec", "--force", "--", "false"), "nothing was recorded: false did not start NVIDIA's driver")
	is("mine")
	require.NoError(t, os.Mkdir(filepath.Join(folder, "folder"), 0o755))
	require.Equal(t, "dagrun: cannot write folder: it is a folder\n", said(2, "-o", "folder", "--force", "--", "./program", "two"))
	require.Equal(t, "dagrun: cannot write none/a.rec: no such file or directory\n", said(2, "-o", "none/a.rec", "--", "./program", "two"))
	require.Contains(t, said(7, "-o", "a.rec", "--force", "--", "./program", "two"), "dagrun: recorded in a.rec (")
	require.True(t, recording.Recognize(file))
	require.Contains(t, said(7, "-o", "a.rec", "--", "./program", "two"), "dagrun: recorded in a.rec (") // a recording that is named may be replaced
}

// Without NVIDIA's libraries, a sentence says what to install and what works without.
func TestMissingToolsOfRecord(t *testing.T) {
	folder := recordFolder(t)
	t.Setenv("PATH", folder)
	for want, accesses := range map[string]string{
		"dagrun: NVIDIA's Sanitizer API (libsanitizer-public.so), which measures what kernels access, was not found: it is in the CUDA toolkit's package cuda-sanitizer (NVIDIA's apt: cuda-sanitizer-13-0, conda: cuda-sanitizer-api); " +
			"--sanitizer PATH names it, and CUDA_HOME the toolkit. dagrun record --accesses=arguments records without it, and check then assumes that a kernel may touch all that its arguments point into\n": "measured",
		"dagrun: CUPTI (libcupti.so) was not found: it comes with the CUDA toolkit and with PyTorch (pip install nvidia-cuda-cupti); --cupti PATH names it, and CUDA_HOME the toolkit\n": "arguments",
	} {
		if found, _ := filepath.Glob("/usr/local/cuda*"); len(found) > 0 {
			t.Skip("NOT TESTED: there is a CUDA toolkit")
		}
		c := exec.Command(selfAsCommand(t), "record", "--accesses", accesses, "--", "program", "two")
		c.Dir = folder
		text, err := c.CombinedOutput()
		require.Error(t, err)
		require.Equal(t, want, string(text))
		require.NoFileExists(t, filepath.Join(folder, "program.rec"))
		require.NoDirExists(t, filepath.Join(folder, "program.rec.parts"))
	}
}
