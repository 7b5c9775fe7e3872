// Which call fails, and the count of calls so far.

// Package fault makes a device fail on purpose: it wraps a [cudart.Platform] so that one call fails, the k-th of all calls or the k-th of
// those with one name. A test runs a program once to count its calls, and then once for every k.
package fault

import (
	"fmt"
	"sync"

	"github.com/dagrun/dagrun/cudart"
)

// Plan says which call fails.
type Plan struct {
	// Call is the number of the call that fails, counted from 1; with 0, none fails.
	Call int
	// Only is the name of the calls that are counted, such as "cuMemAlloc"; with "", all are.
	Only string
	// Sticky makes all later calls fail too, as in a context after a fault.
	Sticky bool
	// Error is the error of the call, in which Call and the command's Label, Node and Index are filled in; nil: an unknown error (999).
	Error *cudart.Error
}

// script counts calls and decides which one fails.
type script struct {
	plan Plan

	mu     sync.Mutex
	calls  []string // all calls so far
	count  int      // how many of them the plan counts
	broken *cudart.Error
}

// at counts a call and returns the error that it must fail with, if any. c is the submitted command, nil if there is none.
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

// then returns the injected error, if there is one, or else the error of the call. Calls that close something or wait for something are made
// even if they must fail, so that anything left over afterwards is a leak of the caller.
func then(injected, err error) error {
	if injected != nil {
		return injected
	}
	return err
}
