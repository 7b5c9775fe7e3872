// Package planning has the commands that tell how a pipeline would run: plan, dot and check.
package planning

import (
	"github.com/dagrun/dagrun/cmd/dagrun/internal/exported"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/pictures"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/recordings"
)

// Commands are plan, dot and check.
type Commands struct {
	*pictures.Pictures
	Exported   *exported.Exported
	Recordings *recordings.Recordings
}
