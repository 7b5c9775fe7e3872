// What to break and when, and the count of calls so far. Wraps nothing.

// Package fault breaks a device on purpose: it wraps a [cudart.Platform] so that one call fails, the k-th of all or the k-th of a
// name. A test runs a program once to count its calls, and then once for every k.
package fault

import (
	"fmt"
	"sync"

	"github.com/dagrun/dagrun/cudart"
)

// Plan says which call fails.
type Plan struct {
	// Call is the number of the call that fails, the first being 1; with 0 none does.
	Call int
	// Only, where not "", counts the calls of that name alone: "cuMemAlloc".
	Only string
	// Sticky makes all later calls fail too, as a context does after a fault.
	Sticky bool
	// Error is what the call returns, with Call, and the command's Label, Node and Index, filled in; nil: an unknown error (999).
	Error *cudart.Error
}

// script counts calls and decides which fails.
type script struct {
	plan Plan

	mu     sync.Mutex
	calls  []string // all so far
	count  int      // those that the plan counts
	broken *cudart.Error
}

// at notes a call and returns the error it must fail with, if any. c is the command that is submitted, nil where there is none.
func (s *script) at(call string, c *cudart.Command, index int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call)
	if s.broken != nil && s.plan.Sticky {
		e := s.error(call, c, index)
		e.Text, e.Detail, e.Err = cudart.ErrPoisoned.Error(), "the fault was: "+s.broken.Error(), cudart.ErrPoisoned
		return e
	}
	if s.plan.Only != "" && s.plan.Only != call {
		return nil
	}
	if s.count++; s.count != s.plan.Call {
		return nil
	}
	s.broken = s.error(call, c, index)
	return s.broken
}

func (s *script) error(call string, c *cudart.Command, index int) *cudart.Error {
	e := cudart.Error{Name: "CUDA_ERROR_UNKNOWN", Code: 999, Text: fmt.Sprintf("call %d fails on purpose", len(s.calls))}
	if s.plan.Error != nil {
		e = *s.plan.Error
	}
	e.Call, e.Node, e.Index = call, -1, -1
	if c != nil {
		e.Label, e.Node, e.Index = c.Label, c.Node, index
	}
	return &e
}

// then returns the injected error, if there is one, of a call that was made nevertheless, and else what the call returned. Calls that
// end something or wait for something are made even if they fail, so that what is left over afterwards is the caller's leak.
func then(injected, err error) error {
	if injected != nil {
		return injected
	}
	return err
}
