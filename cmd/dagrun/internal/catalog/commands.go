// Package catalog has the commands that show what there is: kernels, functions of vendors' libraries, devices, and what is kept of runs.
package catalog

import (
	"github.com/dagrun/dagrun/cmd/dagrun/internal/recordings"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/runs"
)

// Commands are kernels, devices and cache.
type Commands struct {
	*runs.Runs
	Recordings *recordings.Recordings
}
