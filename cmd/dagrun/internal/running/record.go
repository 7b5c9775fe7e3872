// dagrun record: runs a program that exists and records what it does on its GPUs.

package running

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cudart/recorder"
	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/internal/words"
)

// recordFlags are the flags that only record has.
type recordFlags struct {
	file, accesses, cupti, sanitizer string
	limit                            int64 // megabytes
	force, contents, hostAccesses    bool
}

func (u *Commands) RecordCommand() *cobra.Command {
	var own recordFlags
	c := &cobra.Command{
		Use:   "record [-o FILE] -- COMMAND [ARGUMENT]...",
		Short: "Record what a program does on its GPUs",
		Long: `Run a CUDA program as it is, Python with PyTorch or machine code, and write down its calls of
the driver and where in the program they come from. dagrun check FILE then proves that
conflicting accesses are ordered, or names those that nothing orders.

The bytes that each kernel touches are measured, with NVIDIA's Sanitizer API from the CUDA toolkit.
With --accesses=arguments a kernel is assumed to touch all that its arguments point into instead;
launches then take about a microsecond longer.

With --contents, the recording also holds the memory that each CUDA graph reaches, as it was
before its first launch, which waits until its stream is done (at most 10 seconds) and the memory is
copied.

With --host-accesses, the program's own reads and writes of pinned and managed memory are noted:
on x86 the first 64 of each allocation after work was given to the GPU, and the first read and
write of each page (4 KB; of memory above 2 MB, of each 512th part). Each costs some 10 us, and
system calls that touch such a page fail with EFAULT. Not noted: the first and last page of
registered memory, unless it fills them, and what host functions touch. Managed memory needs
driver 550 or later.

The program's output and exit status are its own, and signals are passed on to it. Its processes
write into the folder FILE.parts, which dagrun check FILE reads if the recording was not finished.`,
		Example: `  dagrun record -- python train.py                  writes python.rec
  dagrun record -o infer.rec -- python infer.py
  dagrun record -o two.rec -- torchrun --nproc-per-node 2 train.py  all processes in one file
  dagrun record --accesses=arguments -- ./solver
  dagrun check infer.rec`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("no command given; usage: %s", c.UseLine())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := u.CheckFlags(c); err != nil {
				return err
			}
			return u.record(c, args, &own)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault // a command of the user's
		},
	}
	f := c.Flags()
	f.SetInterspersed(false)
	f.StringVarP(&own.file, "save", "o", "", "write the recording to this `file` (default: the command's name and .rec)")
	f.StringVar(&own.accesses, "accesses", "measured", "how to know what kernels touch: measured or arguments")
	f.StringVar(&own.cupti, "cupti", "", "`path` of libcupti.so, if it is not found")
	f.StringVar(&own.sanitizer, "sanitizer", "", "`path` of libsanitizer-public.so, if it is not found")
	f.BoolVar(&own.contents, "contents", false, "keep the memory that CUDA graphs reach, as it was before their first launch")
	f.BoolVar(&own.hostAccesses, "host-accesses", false, "note what the program itself touches of pinned and managed memory")
	f.Int64Var(&own.limit, "limit", 65536, "a process may write this many `megabytes`")
	f.BoolVarP(&own.force, "force", "f", false, "replace what is there: a file, or a recording that was not finished")
	u.OutputFlags(c)
	return c
}

func (u *Commands) record(c *cobra.Command, command []string, own *recordFlags) error {
	if own.accesses != "measured" && own.accesses != "arguments" {
		return fmt.Errorf("--accesses %s: want measured or arguments", own.accesses)
	}
	if own.limit < 32 {
		return fmt.Errorf("--limit %d: want at least 32 megabytes", own.limit)
	}
	if recording.Recognize(command[0]) {
		return fmt.Errorf("%s is a recording already; dagrun check %s checks it", command[0], command[0])
	}
	if _, err := exec.LookPath(command[0]); err != nil {
		return fmt.Errorf("%s: %w", command[0], errors.Unwrap(err))
	}
	file := own.file
	if file == "" {
		file = filepath.Base(command[0]) + ".rec"
	}
	if _, err := os.Stat(file); err == nil && !own.force {
		if own.file == "" || !recording.Recognize(file) {
			return fmt.Errorf("%s is there already: name another file with -o, or replace it with --force", file)
		}
	}
	status, err := recorder.Run(c.Context(), file, command, recorder.Options{
		Calls: own.accesses == "arguments", CUPTI: own.cupti, Sanitizer: own.sanitizer, Limit: own.limit << 20, Force: own.force,
		Contents: own.contents, HostAccesses: own.hostAccesses,
		Started: func(program *os.Process) {
			pass := func(s os.Signal) {
				if !fromTerminal(s) {
					_ = program.Signal(s) // it may have ended
				}
			}
			u.Signals.Store(&pass)
		},
		Ended: func() {
			u.Signals.Store(nil)
			u.Progress.Begin()
			u.Progress.Report("pack the recording", 0, 0)
		},
	})
	u.Progress.End()
	switch {
	case err != nil && status != 0: // the program's own status says more
		u.PrintError(err)
		return &cli.Reported{Status: status}
	case err != nil:
		return err
	}
	if !u.Flags.Quiet {
		u.sayRecorded(file)
	}
	if status != 0 {
		return &cli.Reported{Status: status}
	}
	return nil
}

// sayRecorded tells on stderr, where it does not mix with the program's output, what was recorded and what to do next.
func (u *Commands) sayRecorded(file string) {
	size := ""
	if info, err := os.Stat(file); err == nil {
		size = " (" + words.Bytes(info.Size()) + ")"
	}
	fmt.Fprintf(u.Stderr, "dagrun: recorded in %s%s; next: dagrun check %s\n", cli.ShownName(file), size, cli.ShownName(file))
}
