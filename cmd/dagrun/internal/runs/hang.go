// Hangs while learning compares plans on a GPU, or CUPTI measures nodes. The device does not tell which of its nodes do not end, and what would
// tell costs time, so that nothing could be compared. So the pipeline is replayed in a new process, one node at a time, while this process waits
// for its time limit.

package runs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/session"
	"github.com/dagrun/dagrun/runtime"
	"github.com/dagrun/dagrun/runtime/learn"
)

const (
	longRound   = time.Second     // a round of learning takes some milliseconds, or one replay
	LeastSearch = 2 * time.Second // with less time left, a new process would not get far
	mostToEnd   = 3 * time.Second // how long a process takes at most to end after its time limit: a hung device is waited for, and given back slowly
)

// SearchLimit is the time limit of the new process, where this one has that much time left. Both wait for the device after their limits, and the
// new one is to have ended before this one reports.
func SearchLimit(left time.Duration) time.Duration { return left - min(mostToEnd, left/4) }

// Hang is what is known of a hang while plans are compared. Its methods may be called from any goroutine.
type Hang struct {
	Trial func() *runtime.Trial
	Found atomic.Pointer[found] // what the new process shows; nil before that
}

// WatchHang looks for the node that hangs once a round of replays takes more than a quarter of --timeout: learning could not end in time then.
// The returned function ends that; after an error nobody calls it, because the search may still end before the process does.
func (u *Runs) WatchHang(ctx context.Context, p *Prepared, own *session.RunFlags, trial func() *runtime.Trial) (stop func()) {
	h := &Hang{Trial: trial}
	u.Hung = h.Says
	end, limited := ctx.Deadline()
	self, err := u.Self()
	if err != nil || !limited || p.Platform.Name() == "cpu" || p.Name == "-" || u.Place.Ranks > 1 {
		return func() {}
	}
	ctx, stop = context.WithCancel(context.WithoutCancel(ctx)) // the search ends after the time limit, while the device is given time
	go func() {
		ticker := time.NewTicker(longRound / 10)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			t := trial()
			if t == nil || time.Since(t.Began) < max(longRound, u.Flags.Timeout/4) {
				continue
			}
			if left := time.Until(end); left >= LeastSearch {
				h.Found.Store(u.SearchHang(ctx, p, own, self, t, SearchLimit(left)))
			}
			return
		}
	}()
	return stop
}

// SearchHang replays node by node in a new process, as often as the program would have when the round had ended, and returns what that shows.
func (u *Runs) SearchHang(ctx context.Context, p *Prepared, own *session.RunFlags, self string, t *runtime.Trial, limit time.Duration) *found {
	replays := int(t.Before) + t.Count
	u.Log.Info("a round of replays does not end; replaying node by node in a new process to find what hangs", "replays", replays)
	folder, err := os.MkdirTemp("", "dagrun")
	if err != nil {
		return nil
	}
	defer os.RemoveAll(folder)
	args := u.aloneArgs(p, own, replays, limit)
	for i := range p.Graph.Buffers { // what the new process computes is of no use
		if b := &p.Graph.Buffers[i]; b.Save != "" {
			args = append(args, "--save", b.Name+"="+filepath.Join(folder, fmt.Sprint(i)+filepath.Ext(b.Save)))
		}
	}
	ended, err := runAlone(ctx, self, args)
	switch {
	case err != nil:
		u.Log.Info("the replay node by node could not be read", "because", err.Error())
	case ended.Status == cli.StatusTimeout && ended.Node != "":
		return &found{node: ended.Node}
	case ended.Status == cli.StatusOK || ended.Status == cli.StatusExpectation:
		return &found{replays: replays}
	default:
		u.Log.Info("the replay node by node did not tell what hangs", "because", ended.Message)
	}
	return nil
}

// found is what a replay node by node shows.
type found struct {
	node    string // that did not end
	replays int    // that ended, if all nodes did
}

// Says tells which way to replay was being timed when the command was stopped, and which node hangs, as far as that is known.
func (h *Hang) Says() (text, node string) {
	t := h.Trial()
	if t == nil {
		return "", ""
	}
	mode := runtime.Streams
	if t.Graph {
		mode = runtime.Captured
	}
	way := ReportWay(&learn.Way{Plan: t.Plan, Mode: mode, Threads: t.Threads, Overlap: t.Overlap})
	text = fmt.Sprintf("; replays %d to %d were being timed: %s", t.Before+1, t.Before+uint64(t.Count), way.Text())
	if t.Count == 1 {
		text = fmt.Sprintf("; replay %d was being timed: %s", t.Before+1, way.Text())
	}
	f := h.Found.Load()
	if f == nil {
		return text, ""
	}
	if text += "; in another process, where nodes ran one at a time, "; f.node == "" {
		return text + fmt.Sprintf("%s ended, so nodes hang only side by side or now and then", cli.Counted(f.replays, "replay")), ""
	}
	return text + fmt.Sprintf("node %q did not end", f.node), f.node
}
