// Package documentation; the code is in one file for each kind of system.

// Package hostmem tells how much host memory a process can still allocate, so that a run that needs more is refused before it begins:
// Go cannot recover from an allocation that fails.
package hostmem
