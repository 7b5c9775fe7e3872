// Hardware queues: how many the driver is asked for. Streams that share a queue wait for each other, but asking for more than usual makes
// the start half a second slower.

package main

import (
	"os"

	"github.com/dagrun/dagrun/runtime"
)

const (
	queuesVariable = "CUDA_DEVICE_MAX_CONNECTIONS"
	usualQueues    = 8 // what CUDA makes without being asked
	mostQueues     = 32
)

// askForQueues asks for more hardware queues if the plan submits more streams than there usually are. A graph is launched into one
// stream. It must be called before anything is made on the device.
func (a *app) askForQueues(p *prepared) error {
	gpu, ok := p.platform.Platform.(interface{ SetQueues(int) error })
	if !ok || os.Getenv(queuesVariable) != "" || !a.needsQueues(p) {
		return nil
	}
	a.log.Info("asking for more hardware queues", "streams", len(p.plan.Streams)*a.flags.inflight, "queues", mostQueues)
	return gpu.SetQueues(mostQueues)
}

// needsQueues reports whether the replays of a plan use more streams than there usually are queues. Replays that are compared while
// learning may be graphs, and streams beyond the queues are tried only where no graph is allowed.
func (a *app) needsQueues(p *prepared) bool {
	if len(p.plan.Streams)*a.flags.inflight <= usualQueues {
		return false
	}
	l, options := p.learning, a.programOptions(p.learning)
	compares := l != nil && l.way == nil && max(a.flags.warmup, a.flags.iterations) > runtime.FewestToCompare && len(l.options.Modes) > 1
	return options.Mode == runtime.Streams && !compares
}
