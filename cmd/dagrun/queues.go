// Hardware queues: how many the driver is asked for. Streams that share a queue wait for each other, but asking for more than usual makes
// the start and the end of a process 0.3 s slower each. The driver wants to know before there is a device to plan for.

package main

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
	"github.com/dagrun/dagrun/runtime/cache"
)

const (
	queuesVariable = "CUDA_DEVICE_MAX_CONNECTIONS"
	usualQueues    = 8 // what CUDA makes without being asked
	mostQueues     = 32
)

// queuesFor returns how many hardware queues to ask for: more than usual if the replays will use more streams than that. If there is no plan
// yet, an earlier run of the pipeline may have noted that. 0 leaves it to the environment.
func (a *app) queuesFor(p *prepared, own *runFlags) int {
	if os.Getenv(queuesVariable) != "" {
		return 0
	}
	more := a.expectsQueues(p.graph)
	if p.plan != nil {
		more = !a.asGraph() && a.needsQueues(p.plan)
	}
	if key := a.queuesKey(p, own); key != "" && p.plan == nil {
		noted, err := a.openCache().Note(key)
		if err != nil {
			a.warn("%v", err)
		}
		more = more != (len(noted) > 0)
	}
	if more {
		a.log.Info("asking for more hardware queues", "queues", mostQueues)
		return mostQueues
	}
	return usualQueues
}

// benchQueues returns how many hardware queues to ask for where plans are measured: graphs alone are measured with as many as they run with.
func (a *app) benchQueues() int {
	if a.asGraph() {
		return usualQueues
	}
	return mostQueues
}

// asGraph reports whether the flags ask for replays as a graph, which is launched into one stream.
func (a *app) asGraph() bool {
	f := a.flags
	return f.replay == graphOn || f.replay == graphCaptured || f.replay == graphBuilt
}

// needsQueues reports whether replays of a plan as streams use more of them than there usually are queues.
func (a *app) needsQueues(plan *planner.Plan) bool {
	return len(plan.Streams)*a.flags.inflight > usualQueues
}

// expectsQueues reports whether the flags or the streams of a pipeline ask for more streams than there usually are queues, before there is a
// plan.
func (a *app) expectsQueues(g *dag.Graph) bool {
	f := a.flags
	if a.asGraph() {
		return false
	}
	var bound []int32
	for i := range g.Nodes {
		if stream := g.Nodes[i].Stream.Number(); stream >= 0 && !slices.Contains(bound, stream) {
			bound = append(bound, stream)
		}
	}
	streams := max(1, len(bound))
	if f.limited {
		streams = max(streams, f.streams)
	}
	return f.strategy == "cover" || streams*f.inflight > usualQueues
}

// noteQueues notes for later runs whether what is expected of this pipeline was wrong.
func (a *app) noteQueues(ctx context.Context, p *prepared, own *runFlags, program *runtime.Program) {
	key := a.queuesKey(p, own)
	if key == "" || p.platform.Name() == "cpu" || os.Getenv(queuesVariable) != "" {
		return
	}
	var note []byte
	if needs := program.Mode() == runtime.Streams && a.needsQueues(program.Plan()); needs != a.expectsQueues(p.graph) {
		note = []byte("otherwise")
	}
	if err := a.openCache().KeepNote(ctx, key, note); err != nil && ctx.Err() == nil {
		a.warn("the number of streams is not kept: %v", err)
	}
}

// queuesKey is the key of the note about a pipeline under these flags; "" if nothing may be noted or used.
func (a *app) queuesKey(p *prepared, own *runFlags) string {
	f := a.flags
	if own == nil || f.learn == learnOff || f.plan != "" || own.alone || own.follow {
		return ""
	}
	streams := 0
	if f.limited {
		streams = f.streams
	}
	asked := fmt.Sprintf("%s %d %s %q %q %q %s %d %s %d %s %s %s", f.strategy, streams, f.effort, f.machine, f.profile, f.memoryCap, f.memory, f.inflight, f.replay, f.threads, f.devices, f.spread, f.spill)
	return cache.Key("queues 1", p.graph.Hash(), p.graph.WorkHash(), asked)
}
