// Exit statuses: which kind of error gives which status. They are part of the command's interface.

package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/planner/proof"
	"github.com/dagrun/dagrun/runtime"
)

const (
	StatusOK          = 0
	StatusExpectation = 1
	StatusWrong       = 2
	StatusDevice      = 3
	StatusUnproved    = 3 // of a recording
	StatusTimeout     = 4
	StatusInternal    = 5
	StatusInterrupted = 130
)

// Statuses explains every exit status, for the help and the documentation.
var Statuses = []struct {
	Status int
	Text   string
}{
	{StatusOK, "ran and met expectations"},
	{StatusExpectation, "an expectation failed, a race was found, or fmt --check found a file that would change"},
	{StatusWrong, "the pipeline, the plan or the command line is wrong, or no plan fits the memory cap"},
	{StatusDevice, "the device failed or is out of memory; a recording without a race is not proved"},
	{StatusTimeout, "timed out"},
	{StatusInternal, "a file could not be written, or an internal error"},
	{StatusInterrupted, "interrupted"},
}

// StatusText lists the exit statuses, one per line.
func StatusText() string {
	var b strings.Builder
	for _, s := range Statuses {
		fmt.Fprintf(&b, "\n  %-4d %s", s.Status, s.Text)
	}
	return b.String()
}

// Reported is an error whose message has been printed already.
type Reported struct {
	Status int
	Err    error // what it was, for JSON; may be nil
}

func (e *Reported) Error() string {
	if e.Err == nil {
		return "already reported"
	}
	return e.Err.Error()
}

func (e *Reported) Unwrap() error { return e.Err }

// statusError gives an error an exit status that its type does not imply.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

// WithStatus marks err; nil stays nil.
func WithStatus(status int, err error) error {
	if err == nil {
		return nil
	}
	return &statusError{status, err}
}

// StatusOf is the exit status of an error. By default an error means that the pipeline or the command line is wrong.
func StatusOf(err error) int {
	var seen *Reported
	var marked *statusError
	var device *cudart.Error
	var race *cudart.RaceError
	var call *runtime.CallError
	switch {
	case err == nil:
		return StatusOK
	case errors.As(err, &seen):
		return seen.Status
	case errors.Is(err, context.Canceled):
		return StatusInterrupted
	case errors.Is(err, context.DeadlineExceeded):
		return StatusTimeout
	case errors.As(err, &marked):
		return marked.status
	case errors.As(err, &race), errors.As(err, &call), errors.Is(err, proof.ErrRace):
		return StatusExpectation
	case errors.Is(err, runtime.ErrNotSaved):
		return StatusInternal
	case errors.As(err, &device), errors.Is(err, cudart.ErrOutOfMemory), errors.Is(err, cudart.ErrPoisoned), errors.Is(err, cudart.ErrNoDevice),
		errors.Is(err, cudart.ErrNoDriver):
		return StatusDevice
	}
	return StatusWrong
}
