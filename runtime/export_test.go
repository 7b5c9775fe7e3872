// Exports what tests outside the package need to replay what learning found.

package runtime

import "context"

// Adopt makes a program replay a way that learning timed.
func Adopt(ctx context.Context, p *Program, w LearnedWay) error {
	return p.engine.Adopt(ctx, w.way())
}
