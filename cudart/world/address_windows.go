// The error of an address that this machine does not have, on Windows.

package world

import "golang.org/x/sys/windows"

// noSuchAddress is the error of listening at an address of another machine.
const noSuchAddress = windows.WSAEADDRNOTAVAIL
