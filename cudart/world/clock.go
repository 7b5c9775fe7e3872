// The clocks of the ranks: how far this process's is from that of rank 0.

package world

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// clockQuestions is how often the clock of rank 0 is asked for. The answer that came back fastest counts.
const clockQuestions = 32

// Clock returns what must be added to this process's clock to get that of rank 0, and by how much this may be wrong. For rank 0 both are 0.
func (w *World) Clock(ctx context.Context) (offset, within time.Duration, err error) {
	if w == nil || w.place.Rank == 0 {
		return 0, 0, nil
	}
	if ctx == nil || w.store == nil {
		return 0, 0, errNoWorld
	}
	for k := range clockQuestions {
		asked := time.Now()
		if err := w.store.send(frame{Kind: "clock?"}); err != nil {
			w.hear()
			w.Fail(w.blames(0, "%s", lostText(err)))
			return 0, 0, w.Cause()
		}
		f, err := w.await(ctx, "clock", 0)
		if err != nil {
			return 0, 0, err
		}
		took := time.Since(asked)
		there, err := strconv.ParseInt(f.Text, 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("rank 0 answered %q for the time", f.Text)
		}
		if k == 0 || took/2 < within {
			offset, within = time.Unix(0, there).Sub(asked.Add(took/2)), took/2
		}
	}
	return offset, within, nil
}
