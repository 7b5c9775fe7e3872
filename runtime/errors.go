// The errors that callers branch on.

package runtime

import "github.com/dagrun/dagrun/runtime/internal/engine"

// ErrClosed is the error of using a program after Close.
var ErrClosed = engine.ErrClosed

// ErrNotSaved marks a result that could not be written to its file.
var ErrNotSaved = engine.ErrNotSaved

// ErrUpdate marks an update that the plan's proof does not cover, or that is not possible for the node.
var ErrUpdate = engine.ErrUpdate

// CallError is returned by Finish, Trace, Measure and CheckCalls if a library call of the last replay could not compute its result, such as the
// factor of a matrix that is not positive definite. Nothing is saved then.
type CallError = engine.CallError

// CarriedError is returned if several replays in flight are requested for a pipeline whose replays depend on each other.
type CarriedError = engine.CarriedError

// NodeError is a failure that one node has certainly caused: nothing else was running.
type NodeError = engine.NodeError

// OutOfMemoryError tells how much memory a program needed and how much was free. It matches cudart.ErrOutOfMemory.
type OutOfMemoryError = engine.OutOfMemoryError

// BufferSize is a buffer and its bytes, for messages.
type BufferSize = engine.BufferSize

// UnknownFunctionError is returned by New if a node runs a host function that Options.Functions does not have.
type UnknownFunctionError = engine.UnknownFunctionError
