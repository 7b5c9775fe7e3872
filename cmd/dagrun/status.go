// Exit statuses: which kind of error gives which status. They are part of the command's interface.

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

const (
	statusOK          = 0
	statusExpectation = 1
	statusWrong       = 2
	statusDevice      = 3
	statusUnproved    = 3 // of a recording
	statusTimeout     = 4
	statusInternal    = 5
	statusInterrupted = 130
)

// statuses explains every exit status, for the help and the documentation.
var statuses = []struct {
	status int
	text   string
}{
	{statusOK, "ran and met expectations"},
	{statusExpectation, "an expectation failed, a race was found, or fmt --check found a file that would change"},
	{statusWrong, "the pipeline, the plan or the command line is wrong, or no plan fits the memory cap"},
	{statusDevice, "the device failed or is out of memory; a recording without a race is not proved"},
	{statusTimeout, "timed out"},
	{statusInternal, "a file could not be written, or an internal error"},
	{statusInterrupted, "interrupted"},
}

// statusText lists the exit statuses, one per line.
func statusText() string {
	var b strings.Builder
	for _, s := range statuses {
		fmt.Fprintf(&b, "\n  %-4d %s", s.status, s.text)
	}
	return b.String()
}

// reported is an error whose message has been printed already.
type reported struct {
	status int
	err    error // what it was, for JSON; may be nil
}

func (e *reported) Error() string {
	if e.err == nil {
		return "already reported"
	}
	return e.err.Error()
}

func (e *reported) Unwrap() error { return e.err }

// statusError gives an error an exit status that its type does not imply.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

// withStatus marks err; nil stays nil.
func withStatus(status int, err error) error {
	if err == nil {
		return nil
	}
	return &statusError{status, err}
}

// statusOf is the exit status of an error. By default an error means that the pipeline or the command line is wrong.
func statusOf(err error) int {
	var seen *reported
	var marked *statusError
	var device *cudart.Error
	var race *cudart.RaceError
	var call *runtime.CallError
	switch {
	case err == nil:
		return statusOK
	case errors.As(err, &seen):
		return seen.status
	case errors.Is(err, context.Canceled):
		return statusInterrupted
	case errors.Is(err, context.DeadlineExceeded):
		return statusTimeout
	case errors.As(err, &marked):
		return marked.status
	case errors.As(err, &race), errors.As(err, &call), errors.Is(err, planner.ErrRace):
		return statusExpectation
	case errors.Is(err, runtime.ErrNotSaved):
		return statusInternal
	case errors.As(err, &device), errors.Is(err, cudart.ErrOutOfMemory), errors.Is(err, cudart.ErrPoisoned), errors.Is(err, cudart.ErrNoDevice), errors.Is(err, cudart.ErrNoDriver):
		return statusDevice
	}
	return statusWrong
}
