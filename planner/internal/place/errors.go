// Errors of planning that callers branch on.

package place

import (
	"errors"
)

var (
	// ErrUnknownStrategy is returned for a strategy that Options does not name.
	ErrUnknownStrategy = errors.New("unknown strategy")
	// ErrTooManyStreams is returned if a strategy needs more compute streams than Options.Streams allows.
	ErrTooManyStreams = errors.New("not enough streams")
	// ErrGraphTooLarge is returned if a strategy does not accept a graph of this size.
	ErrGraphTooLarge = errors.New("graph too large for the strategy")
	// ErrStreamConflict is returned if nodes bound to one stream cannot share it.
	ErrStreamConflict = errors.New("conflicting stream bindings")
	// ErrBadOption is returned for an option that no plan can follow.
	ErrBadOption = errors.New("bad option")
)
