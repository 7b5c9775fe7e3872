// Faults: a device reports a kernel's fault late, to whatever call comes next, and the process can no longer use the device. So the
// pipeline is replayed in a new process, one node at a time, to find the node that faults. The device's memory is freed first,
// because the new process needs as much again.

package runs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/session"
	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/runtime"
)

// pinTime is how long the replay in a new process may take.
const pinTime = 2 * time.Minute

// PinFault finds the node that an asynchronous fault came from. Other errors are returned unchanged.
func (u *Runs) PinFault(ctx context.Context, p *Prepared, err error, own *session.RunFlags) error {
	var device *cudart.Error
	var already *runtime.NodeError
	told := errors.As(err, &device)
	faulted := errors.Is(err, cudart.ErrPoisoned) || told && sticky(device.Name)
	named := told && device.Label != "" && p.Platform.Name() == "cpu" // the CPU device reports the faulty node itself
	if !faulted || named || own.Alone || errors.As(err, &already) || p.Name == "-" || u.Place.Ranks > 1 || ctx.Err() != nil {
		return err
	}
	self, findErr := u.Self()
	if findErr != nil {
		return err
	}
	u.Progress.Clear()
	u.PrintError(err)
	fmt.Fprintln(u.Stderr, "  GPU faults are reported late; replaying node by node in a new process to find the faulty node")
	// The program is closed, but a faulted context frees its memory only when it is closed too. Its error is known already.
	_ = p.Platform.Close()
	ctx, cancel := context.WithTimeout(ctx, pinTime)
	defer cancel()
	ended, childErr := runAlone(ctx, self, u.aloneArgs(p, own, max(1, u.Flags.Iterations+u.Flags.Warmup), pinTime))
	switch {
	case ctx.Err() != nil:
		return cli.WithStatus(cli.StatusDevice, fmt.Errorf("the replay node by node did not end within %s; the faulty node is not known", pinTime))
	case childErr != nil:
		return cli.WithStatus(cli.StatusDevice, fmt.Errorf("the replay node by node could not be read (%v); the faulty node is not known", childErr))
	case ended.Node != "":
		return cli.WithStatus(cli.StatusDevice, errors.New(ended.Message))
	case ended.Status == cli.StatusDevice:
		return cli.WithStatus(cli.StatusDevice, fmt.Errorf("the replay node by node failed elsewhere: %s", ended.Message))
	case ended.Status != cli.StatusOK:
		return cli.WithStatus(cli.StatusDevice, fmt.Errorf("the replay node by node could not run (%s); the faulty node is not known", ended.Message))
	}
	return cli.WithStatus(cli.StatusDevice, errors.New("the fault did not happen again: every node ran alone without one. Nodes that run at the same time may access more than they declare; compute-sanitizer with --memory separate shows where"))
}

// sticky reports whether a driver error leaves the context unusable: errors of kernels that ran do, errors of rejected calls do not.
func sticky(name string) bool {
	switch name {
	case "CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_LAUNCH_FAILED", "CUDA_ERROR_LAUNCH_TIMEOUT", "CUDA_ERROR_MISALIGNED_ADDRESS",
		"CUDA_ERROR_ILLEGAL_INSTRUCTION", "CUDA_ERROR_INVALID_ADDRESS_SPACE", "CUDA_ERROR_INVALID_PC", "CUDA_ERROR_HARDWARE_STACK_ERROR",
		"CUDA_ERROR_ASSERT", "CUDA_ERROR_ECC_UNCORRECTABLE":
		return true
	}
	return false
}

// runAlone runs a new process and returns how it ended: with status 0 and no message, if every node did.
func runAlone(ctx context.Context, self string, args []string) (*cli.Failure, error) {
	child := exec.CommandContext(ctx, self, args...)
	child.WaitDelay = cli.Grace
	var answer bytes.Buffer
	child.Stdout = &answer
	err := child.Run()
	document := cli.ErrorDocument{Error: &cli.Failure{}} // a run that succeeds has none
	if jsonErr := json.Unmarshal(answer.Bytes(), &document); jsonErr != nil {
		return nil, errors.Join(err, jsonErr)
	}
	return document.Error, nil
}

// aloneArgs is the command line of the new process, which replays so often and has so much time.
func (u *Runs) aloneArgs(p *Prepared, own *session.RunFlags, replays int, limit time.Duration) []string {
	f := u.Flags
	args := []string{"run", p.Name, "--node-by-node", "--output", "json", "--quiet", "--iterations", fmt.Sprint(replays), "--timeout", limit.String()}
	if own.AllowRaces {
		args = append(args, "--allow-races")
	}
	streams := 0
	if f.Limited {
		streams = f.Streams
	}
	return append(args, f.Planned(f.Strategy, streams)...)
}
