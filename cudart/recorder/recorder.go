// Package recorder records what programs that exist do on NVIDIA's GPUs, without changing them: it starts a program with a small C library that the driver
// loads (library/), and packs what the library wrote into one recording. It needs no GPU itself.
package recorder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dagrun/dagrun/internal/files"
	"github.com/dagrun/dagrun/internal/recording"
)

// Options say what to record.
type Options struct {
	// Calls records calls alone. Without it, the accesses of kernels are measured too, which slows them down and needs NVIDIA's Sanitizer API.
	Calls bool
	// Contents keeps the memory that each graph reaches before its first launch, which waits for that.
	Contents bool
	// HostAccesses notes what the host touches of pinned and managed memory.
	HostAccesses bool
	// CUPTI and Sanitizer are paths of libcupti.so and libsanitizer-public.so; "" looks for them.
	CUPTI, Sanitizer string
	// Limit is how many bytes a process may write; 0 is 64 GiB.
	Limit int64
	// Force replaces a recording that was not finished.
	Force bool
	// Started is told of the program's process, and Ended that the program has ended and its recording is packed now; nil: nobody.
	Started func(*os.Process)
	Ended   func()
	// Start is how a command is started, with the environment that it needs; nil: in the foreground, with this process's input and output.
	Start func(ctx context.Context, command []string, environment []string) (status int, err error)
}

// Run runs a command and writes the recording to a file, in place of what is there: that is put aside when the command starts, so that nobody
// takes it for this recording if
// this process is killed, and comes back if nothing is recorded. Run returns the command's exit status, which is that of the program without a
// recorder. If the command could be
// started, there is a recording even if the error is not nil, unless that is said.
func Run(ctx context.Context, file string, command []string, o Options) (status int, err error) {
	parts := recording.PartsFolder(file)
	if err := fresh(file, parts, o.Force); err != nil {
		return 0, err
	}
	environment, err := environment(command, parts, o)
	if err != nil {
		return 0, errors.Join(err, os.Remove(parts))
	}
	began := time.Now()
	back, err := putAside(file, parts)
	if err != nil {
		return 0, errors.Join(err, os.Remove(parts))
	}
	start := o.Start
	if start == nil {
		start = o.inForeground
	}
	status, err = start(ctx, command, environment)
	if err != nil {
		return 0, errors.Join(err, back(), os.RemoveAll(parts))
	}
	if o.Ended != nil {
		o.Ended()
	}
	written, err := filepath.Glob(filepath.Join(parts, "*.part"))
	if err != nil {
		return status, err
	}
	slices.Sort(written)
	if len(written) == 0 {
		return status, errors.Join(&nothingRecorded{Command: command}, back(), os.RemoveAll(parts))
	}
	meta := recording.Meta{Command: command, Started: began.UnixNano(), Status: status}
	if err := recording.Pack(ctx, file, written, meta); err != nil {
		return status, fmt.Errorf("%w; what was recorded is still in %s, which dagrun reads as it is", err, parts)
	}
	return status, os.RemoveAll(parts)
}

// fresh makes an empty folder for the parts. One that an earlier run left behind is kept unless force is set, because it may be all that there is of that run.
func fresh(file, parts string, force bool) error {
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		return fmt.Errorf("cannot write %s: it is a folder", file)
	}
	err := os.Mkdir(parts, 0o700)
	if errors.Is(err, os.ErrExist) && force {
		if err = discard(parts); err == nil {
			err = os.Mkdir(parts, 0o700)
		}
	}
	switch {
	case errors.Is(err, os.ErrExist):
		return fmt.Errorf("%s is there already: a recording that was not finished, which dagrun check %s reads as it is; replace it with --force, or write to another file", parts, file)
	case err != nil:
		return fmt.Errorf("cannot write %s: %w", file, files.Reason(err))
	}
	return nil
}

// aside is the name in the folder of the parts of what was there before.
const aside = "before.rec"

// discard removes a folder of parts, if it holds nothing else.
func discard(parts string) error {
	mine, err := filepath.Glob(filepath.Join(parts, "*.part"))
	if err != nil {
		return err
	}
	for _, name := range append(mine, filepath.Join(parts, aside)) {
		if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return os.Remove(parts)
}

// putAside moves what is to be replaced to the folder of the parts, and returns how to bring it back. Devices and the like stay.
func putAside(file, parts string) (back func() error, err error) {
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() && info.Mode()&os.ModeSymlink == 0 {
		return func() error { return nil }, nil
	}
	if err := os.Rename(file, filepath.Join(parts, aside)); err != nil {
		return nil, fmt.Errorf("cannot replace %s: %w", file, files.Reason(err))
	}
	return func() error { return os.Rename(filepath.Join(parts, aside), file) }, nil
}

// nothingRecorded is the error if a program never used the driver.
type nothingRecorded struct{ Command []string }

func (e *nothingRecorded) Error() string {
	return fmt.Sprintf("nothing was recorded: %s did not start NVIDIA's driver (no call of cuInit), or it changed its environment before (CUDA_INJECTION64_PATH)",
		filepath.Base(e.Command[0]))
}

// environment is what the command is started with.
func environment(command []string, parts string, o Options) ([]string, error) {
	folder, err := unpack()
	if err != nil {
		return nil, err
	}
	absolute, err := filepath.Abs(parts)
	if err != nil {
		return nil, err
	}
	environment := slices.DeleteFunc(os.Environ(), func(line string) bool {
		return strings.HasPrefix(line, "DAGRUN_RECORD") || strings.HasPrefix(line, "CUDA_INJECTION64_PATH=")
	})
	environment = append(environment, "DAGRUN_RECORD="+absolute, "CUDA_INJECTION64_PATH="+filepath.Join(folder, "recorder.so"))
	if o.Limit > 0 {
		environment = append(environment, fmt.Sprintf("DAGRUN_RECORD_LIMIT=%d", o.Limit))
	}
	if o.Contents {
		environment = append(environment, "DAGRUN_RECORD_CONTENTS=1")
	}
	if o.HostAccesses {
		environment = append(environment, "DAGRUN_RECORD_HOST=1")
	}
	if before := os.Getenv("CUDA_INJECTION64_PATH"); before != "" {
		return nil, fmt.Errorf("CUDA_INJECTION64_PATH is %s: the driver loads one tool at a time; unset it to record", before)
	}
	python := filepath.Join(folder, "python")
	if before := os.Getenv("PYTHONPATH"); before != "" {
		python += string(os.PathListSeparator) + before
	}
	environment = append(environment, "PYTHONPATH="+python)
	if o.Calls {
		path, err := findCUPTI(command, o.CUPTI)
		if err != nil {
			return nil, err
		}
		return append(environment, "DAGRUN_RECORD_CUPTI="+path), nil
	}
	path, err := findSanitizer(o.Sanitizer)
	if err != nil {
		return nil, err
	}
	return append(environment, "DAGRUN_RECORD_SANITIZER="+path, "DAGRUN_RECORD_PATCHES="+filepath.Join(folder, "patch.fatbin")), nil
}

// inForeground runs a command in the foreground, with this process's standard input and output. Signals reach it by the terminal, or by who
// is told that it started; if the
// context ends, it is interrupted.
func (o *Options) inForeground(ctx context.Context, command []string, environment []string) (int, error) {
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Env, c.Stdin, c.Stdout, c.Stderr = environment, os.Stdin, os.Stdout, os.Stderr
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 10 * time.Second
	err := c.Start()
	if err == nil {
		if o.Started != nil {
			o.Started(c.Process)
		}
		err = c.Wait()
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return statusOf(exit), nil
	}
	return 0, err
}

// statusOf is the exit status as a shell has it.
func statusOf(exit *exec.ExitError) int {
	if code := exit.ExitCode(); code >= 0 {
		return code
	}
	return 128 + signalOf(exit)
}
