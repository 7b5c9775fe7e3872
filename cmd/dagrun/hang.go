// Hangs while learning compares plans on a GPU, or CUPTI measures nodes. The device does not tell which of its nodes do not end, and what would
// tell costs time, so that nothing could be compared. So the pipeline is replayed in a new process, one node at a time, while this process waits
// for its time limit.

package main

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
)

const (
	longRound   = time.Second     // a round of learning takes some milliseconds, or one replay
	leastSearch = 2 * time.Second // with less time left, a new process would not get far
	mostToEnd   = 3 * time.Second // how long a process takes at most to end after its time limit: a hung device is waited for, and given back slowly
)

// searchLimit is the time limit of the new process, where this one has that much time left. Both wait for the device after their limits, and the
// new one is to have ended before this one reports.
func searchLimit(left time.Duration) time.Duration { return left - min(mostToEnd, left/4) }

// hang is what is known of a hang while plans are compared. Its methods may be called from any goroutine.
type hang struct {
	trial func() *runtime.Trial
	found atomic.Pointer[found] // what the new process shows; nil before that
}

// watchHang looks for the node that hangs once a round of replays takes more than a quarter of --timeout: learning could not end in time then.
// The returned function ends that; after an error nobody calls it, because the search may still end before the process does.
func (a *app) watchHang(ctx context.Context, p *prepared, own *session.RunFlags, trial func() *runtime.Trial) (stop func()) {
	h := &hang{trial: trial}
	a.Hung = h.says
	end, limited := ctx.Deadline()
	self, err := a.Self()
	if err != nil || !limited || p.platform.Name() == "cpu" || p.name == "-" || a.Place.Ranks > 1 {
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
			if t == nil || time.Since(t.Began) < max(longRound, a.Flags.Timeout/4) {
				continue
			}
			if left := time.Until(end); left >= leastSearch {
				h.found.Store(a.searchHang(ctx, p, own, self, t, searchLimit(left)))
			}
			return
		}
	}()
	return stop
}

// searchHang replays node by node in a new process, as often as the program would have when the round had ended, and returns what that shows.
func (a *app) searchHang(ctx context.Context, p *prepared, own *session.RunFlags, self string, t *runtime.Trial, limit time.Duration) *found {
	replays := int(t.Before) + t.Count
	a.Log.Info("a round of replays does not end; replaying node by node in a new process to find what hangs", "replays", replays)
	folder, err := os.MkdirTemp("", "dagrun")
	if err != nil {
		return nil
	}
	defer os.RemoveAll(folder)
	args := a.aloneArgs(p, own, replays, limit)
	for i := range p.graph.Buffers { // what the new process computes is of no use
		if b := &p.graph.Buffers[i]; b.Save != "" {
			args = append(args, "--save", b.Name+"="+filepath.Join(folder, fmt.Sprint(i)+filepath.Ext(b.Save)))
		}
	}
	ended, err := runAlone(ctx, self, args)
	switch {
	case err != nil:
		a.Log.Info("the replay node by node could not be read", "because", err.Error())
	case ended.Status == cli.StatusTimeout && ended.Node != "":
		return &found{node: ended.Node}
	case ended.Status == cli.StatusOK || ended.Status == cli.StatusExpectation:
		return &found{replays: replays}
	default:
		a.Log.Info("the replay node by node did not tell what hangs", "because", ended.Message)
	}
	return nil
}

// found is what a replay node by node shows.
type found struct {
	node    string // that did not end
	replays int    // that ended, if all nodes did
}

// says tells which way to replay was being timed when the command was stopped, and which node hangs, as far as that is known.
func (h *hang) says() (text, node string) {
	t := h.trial()
	if t == nil {
		return "", ""
	}
	mode := runtime.Streams
	if t.Graph {
		mode = runtime.Captured
	}
	way := reportWay(&runtime.LearnedWay{Plan: t.Plan, Mode: mode, Threads: t.Threads, Overlap: t.Overlap})
	text = fmt.Sprintf("; replays %d to %d were being timed: %s", t.Before+1, t.Before+uint64(t.Count), way.text())
	if t.Count == 1 {
		text = fmt.Sprintf("; replay %d was being timed: %s", t.Before+1, way.text())
	}
	f := h.found.Load()
	if f == nil {
		return text, ""
	}
	if text += "; in another process, where nodes ran one at a time, "; f.node == "" {
		return text + fmt.Sprintf("%s ended, so nodes hang only side by side or now and then", cli.Counted(f.replays, "replay")), ""
	}
	return text + fmt.Sprintf("node %q did not end", f.node), f.node
}
