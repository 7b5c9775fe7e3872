// Programs are recorded on Unix only.

//go:build !unix

package running

import "os"

func fromTerminal(os.Signal) bool { return false }
