// Package recordings has what commands do with a recording of a program instead of a pipeline.
package recordings

import (
	"github.com/dagrun/dagrun/cmd/dagrun/internal/replan"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/session"
)

// Recordings is a command on a recording of a program.
type Recordings struct {
	*session.Session

	Earlier *replan.Kept // what a program found out about that graph; nil if nothing is known
}
