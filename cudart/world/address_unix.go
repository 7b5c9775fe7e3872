//go:build unix

// The error of an address that this machine does not have, on Unix.

package world

import "syscall"

// noSuchAddress is the error of listening at an address of another machine.
const noSuchAddress = syscall.EADDRNOTAVAIL
