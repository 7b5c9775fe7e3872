// Package running has the commands that run something: a pipeline, also by several ranks, or a program that is recorded.
package running

import (
	"github.com/dagrun/dagrun/cmd/dagrun/internal/exported"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/runs"
)

// Commands are run, launch and record.
type Commands struct {
	*runs.Runs
	Exported *exported.Exported
}
