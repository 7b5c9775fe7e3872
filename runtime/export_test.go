// Exports what tests outside the package need to replay what learning found.

package runtime

import (
	"context"

	"github.com/dagrun/dagrun/runtime/internal/engine"
	"github.com/dagrun/dagrun/runtime/learn"
)

// Adopt makes a program replay a way that learning timed.
func Adopt(ctx context.Context, p *Program, w learn.Way) error {
	return p.engine.Trials().Adopt(ctx, engine.Way{Plan: w.Plan, Mode: w.Mode, Threads: w.Threads, Overlap: w.Overlap})
}
