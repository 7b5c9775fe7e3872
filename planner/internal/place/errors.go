// Errors of planning that callers branch on.

package place

import (
	"errors"
)

var (
	// ErrUnknownStrategy is returned for a strategy that Options does not name.
	ErrUnknownStrategy = errors.New("unknown strategy")
	// ErrTooManyStreams is returned where a strategy needs more compute streams than Options.Streams allows.
	ErrTooManyStreams = errors.New("not enough streams")
	// ErrGraphTooLarge is returned where a strategy does not take a graph of this size.
	ErrGraphTooLarge = errors.New("graph too large for the strategy")
	// ErrStreamConflict is returned where nodes bound to one stream cannot share it.
	ErrStreamConflict = errors.New("conflicting stream bindings")
	// ErrBadOption is returned for an option that no plan can follow.
	ErrBadOption = errors.New("bad option")
)
