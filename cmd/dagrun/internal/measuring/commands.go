// Package measuring has the commands that measure a pipeline: bench, tune and trace.
package measuring

import (
	"github.com/dagrun/dagrun/cmd/dagrun/internal/pictures"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/recordings"
)

// Commands are bench, tune and trace.
type Commands struct {
	*pictures.Pictures
	Recordings *recordings.Recordings
}
