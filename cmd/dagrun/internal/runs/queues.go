// Hardware queues: how many the driver is asked for, before there is a device to plan for. Each makes the start and the end of a process slower.
// Graphs are fastest with one: what a kernel waits for is in the same queue. Streams that share a queue wait for each other, but where each is submitted
// when its turn comes, they seldom wait for long.

package runs

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/session"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
	"github.com/dagrun/dagrun/runtime/cache"
)

const (
	fewQueues   = 1
	usualQueues = 8 // what CUDA makes without being asked
	MostQueues  = 32

	usualTakes  = 150 * time.Millisecond // how much longer a process with the usual queues takes than one with few
	worthTrying = 20 * usualTakes        // of replays: whether more queues are faster is found out
	notNoise    = 0.98                   // times as long as with few queues
)

// queuesFor returns how many hardware queues to ask for. 0 leaves it to the environment.
func (u *Runs) queuesFor(p *Prepared, own *session.RunFlags) int {
	if os.Getenv(session.QueuesVariable) != "" {
		return 0
	}
	key := u.queuesKey(p.Graph, own)
	if u.fewSuffice(p.Graph) {
		return u.tried(key).best(u.Flags.Iterations)
	}
	return u.queuesForStreams(p, key)
}

// fewSuffice reports whether replays are so few at a time, and on one device, that one queue is enough for them, whether they turn out to be graphs
// or streams. Where streams are asked for, they are submitted as fast as possible, and several threads need several queues for that. Ranks
// wait for each other in kernels, which should keep no other stream from running.
func (u *Runs) fewSuffice(g *dag.Graph) bool {
	f := u.Flags
	return (u.asGraph() || f.Replay != flags.GraphOff && f.Threads <= 1) && f.Inflight <= 1 && g.Ranks <= 1 && g.Devices == 0 && g.UsedDevices() <= 1
}

// queuesForStreams returns the usual number of queues, or more if the replays will use more streams than that. If there is no plan yet, an earlier run of
// the pipeline may have noted that.
func (u *Runs) queuesForStreams(p *Prepared, key string) int {
	more := u.expectsQueues(p.Graph)
	switch {
	case p.Plan != nil:
		more = !u.asGraph() && u.needsQueues(p.Plan)
	case key != "":
		more = more != (len(u.queueNote(key)) > 0)
	}
	if more {
		return MostQueues
	}
	return usualQueues
}

// queueNote returns what an earlier run noted; nil if nothing.
func (u *Runs) queueNote(key string) []byte {
	note, err := u.OpenCache().Note(key)
	if err != nil {
		u.Warn("%v", err)
	}
	return note
}

// queuesTried is what a replay took with few queues and with the usual ones, in microseconds; 0 if that was not tried.
type queuesTried struct {
	Few   float64 `json:"few_us"`
	Usual float64 `json:"usual_us"`
}

// tried returns what earlier runs noted. A note that is none of them says nothing.
func (u *Runs) tried(key string) (t queuesTried) {
	if key == "" {
		return t
	}
	valid := func(us float64) bool { return us >= 0 && !math.IsInf(us, 1) }
	if note := u.queueNote(key); json.Unmarshal(note, &t) != nil || !valid(t.Few) || !valid(t.Usual) {
		return queuesTried{}
	}
	return t
}

// best returns with how many queues so many replays take the least time, that of starting included. The usual ones are tried where that costs little
// against the replays.
func (t queuesTried) best(replays int) int {
	few, usual := lasting(t.Few, replays), lasting(t.Usual, replays)
	switch {
	case t.Few == 0 || t.Usual == 0 && few < worthTrying:
		return fewQueues
	case t.Usual == 0 || t.Usual < notNoise*t.Few && usual+usualTakes < few:
		return usualQueues
	}
	return fewQueues
}

// lasting is how long so many replays of so many microseconds take.
func lasting(us float64, replays int) time.Duration {
	return time.Duration(min(us*float64(replays)*1e3, math.MaxInt64/4))
}

// add notes what a replay took, and reports whether that is worth keeping for later runs. Runs differ a little, so the mean with what is known counts.
func (t *queuesTried) add(queues int, us float64, replays int) (keep bool) {
	known := &t.Few
	if queues != fewQueues {
		known = &t.Usual
	}
	if *known > 0 {
		us = (us + *known) / 2
	}
	keep = *t != queuesTried{} || lasting(us, replays) >= worthTrying
	*known = us
	return keep
}

// BenchQueues returns how many hardware queues to ask for where plans are measured: as many as they will run with.
func (u *Runs) BenchQueues(g *dag.Graph) int {
	if u.fewSuffice(g) {
		return fewQueues
	}
	if u.asGraph() {
		return usualQueues
	}
	return MostQueues
}

// asGraph reports whether the flags ask for replays as a graph, which is launched into one stream.
func (u *Runs) asGraph() bool {
	f := u.Flags
	return f.Replay == flags.GraphOn || f.Replay == flags.GraphCaptured || f.Replay == flags.GraphBuilt
}

// needsQueues reports whether replays of a plan as streams use more of them than there usually are queues.
func (u *Runs) needsQueues(plan *planner.Plan) bool {
	return len(plan.Streams)*u.Flags.Inflight > usualQueues
}

// expectsQueues reports whether the flags or the streams of a pipeline ask for more streams than there usually are queues, before there is a
// plan.
func (u *Runs) expectsQueues(g *dag.Graph) bool {
	f := u.Flags
	if u.asGraph() {
		return false
	}
	var bound []int32
	for i := range g.Nodes {
		if stream := g.Nodes[i].Stream.Number(); stream >= 0 && !slices.Contains(bound, stream) {
			bound = append(bound, stream)
		}
	}
	streams := max(1, len(bound))
	if f.Limited {
		streams = max(streams, f.Streams)
	}
	return f.Strategy == "cover" || streams*f.Inflight > usualQueues
}

// NoteQueues notes for later runs what a replay took with so many queues, where few suffice, or else whether what is expected of this pipeline was
// wrong.
func (u *Runs) NoteQueues(ctx context.Context, p *Prepared, own *session.RunFlags, program *runtime.Program, replays int, took time.Duration) {
	key := u.queuesKey(p.Graph, own)
	if key == "" || p.Platform.Name() == "cpu" || os.Getenv(session.QueuesVariable) != "" {
		return
	}
	var note []byte
	if u.fewSuffice(p.Graph) {
		const enough = 20
		asked, ok := p.Platform.Platform.(interface{ Queues() int })
		if t := u.tried(key); replays < enough || !ok || !t.add(asked.Queues(), float64(took.Nanoseconds())/1e3/float64(replays), replays) {
			return
		} else if text, err := json.Marshal(t); err == nil {
			note = text
		}
	} else if needs := program.Mode() == runtime.Streams && u.needsQueues(program.Plan()); needs != u.expectsQueues(p.Graph) {
		note = []byte("otherwise")
	}
	if err := u.OpenCache().KeepNote(ctx, key, note); err != nil && ctx.Err() == nil {
		u.Warn("what is known of hardware queues is not kept: %v", err)
	}
}

// queuesKey is the key of the note about a pipeline under these flags; "" if nothing may be noted or used.
func (u *Runs) queuesKey(g *dag.Graph, own *session.RunFlags) string {
	f := u.Flags
	if own == nil || f.Learn == flags.LearnOff || f.Plan != "" || own.Alone || own.Follow {
		return ""
	}
	streams := 0
	if f.Limited {
		streams = f.Streams
	}
	asked := fmt.Sprintf("%s %d %s %q %q %q %s %d %s %d %s %s %s", f.Strategy, streams, f.Effort, f.Machine, f.Profile, f.MemoryCap, f.Memory, f.Inflight,
		f.Replay, f.Threads, f.Devices, f.Spread, f.Spill)
	return cache.Key("queues 2", g.Hash(), g.WorkHash(), asked)
}
