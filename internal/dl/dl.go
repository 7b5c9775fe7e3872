// Opening shared libraries at run time and calling their functions.

// Package dl opens shared libraries at run time, without cgo. On unsupported platforms every Open fails with
// [ErrUnavailable].
package dl

import "errors"

// ErrUnavailable is what Open returns on platforms where libraries cannot be opened at run time.
var ErrUnavailable = errors.New("shared libraries cannot be opened at run time on this platform")

// A Library is an open shared library. Libraries are never closed: drivers keep threads and thread-local state of their own
// that do not survive it.
type Library struct {
	Name   string // the name under which it was found
	handle uintptr
}
