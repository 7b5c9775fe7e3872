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
	// Start is how a command is started, with the environment that it needs; nil: in the foreground, with this process's input and output.
	Start func(ctx context.Context, command []string, environment []string) (status int, err error)
}

// Run runs a command and writes the recording to a file. It returns the command's exit status, which is that of the program without a recorder. If the command could be
// started, there is a recording even if the error is not nil, unless that is said.
func Run(ctx context.Context, file string, command []string, o Options) (status int, err error) {
	parts := file + ".parts"
	if err := fresh(parts); err != nil {
		return 0, err
	}
	environment, err := environment(command, parts, o)
	if err != nil {
		return 0, errors.Join(err, os.Remove(parts))
	}
	began := time.Now()
	start := o.Start
	if start == nil {
		start = inForeground
	}
	status, err = start(ctx, command, environment)
	if err != nil {
		return 0, errors.Join(err, os.RemoveAll(parts))
	}
	written, err := filepath.Glob(filepath.Join(parts, "*.part"))
	if err != nil {
		return status, err
	}
	slices.Sort(written)
	if len(written) == 0 {
		return status, errors.Join(&nothingRecorded{Command: command}, os.RemoveAll(parts))
	}
	meta := recording.Meta{Command: command, Started: began.UnixNano(), Status: status}
	if err := recording.Pack(ctx, file, written, meta); err != nil {
		return status, fmt.Errorf("%w; what was recorded is still in %s, which dagrun reads as it is", err, parts)
	}
	return status, os.RemoveAll(parts)
}

// fresh makes an empty folder for the parts. One that an earlier run left behind is kept, because it may be all that there is of that run.
func fresh(parts string) error {
	err := os.Mkdir(parts, 0o700)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s is there already: a recording that was not finished, which dagrun check reads as it is; remove it, or write to another file", parts)
	}
	return err
}

// nothingRecorded is the error if a program never used the driver.
type nothingRecorded struct{ Command []string }

func (e *nothingRecorded) Error() string {
	return fmt.Sprintf("nothing was recorded: %s did not start NVIDIA's driver (no call of cuInit), or it changed its environment before (CUDA_INJECTION64_PATH)", filepath.Base(e.Command[0]))
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

// inForeground runs a command in the foreground, with this process's standard input and output. Signals reach it by the terminal; if the context ends, it is interrupted.
func inForeground(ctx context.Context, command []string, environment []string) (int, error) {
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Env, c.Stdin, c.Stdout, c.Stderr = environment, os.Stdin, os.Stdout, os.Stderr
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 10 * time.Second
	err := c.Run()
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
