// Package pictures draws plans for the commands that show them: as a picture, a chart in text, or a page, also beside another plan.
package pictures

import (
	"github.com/dagrun/dagrun/cmd/dagrun/internal/runs"
)

// Pictures is a command that draws a plan.
type Pictures struct {
	*runs.Runs
}
