//go:build !unix

// Where there are no signals.

package recorder

import "os/exec"

func signalOf(*exec.ExitError) int { return 0 }
