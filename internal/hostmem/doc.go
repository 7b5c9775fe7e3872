// What the package is for; the code is in a file for each kind of system.

// Package hostmem says how much memory of the host a process can still take, so that a run that needs more is refused before it
// begins: Go cannot recover from an allocation that fails.
package hostmem
