//go:build !linux

// Other systems set no limits of memory and processor time.

package child

import "os"

func limit(int) {}

func usedUp(*os.ProcessState) bool { return false }
