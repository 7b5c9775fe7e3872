// A replay: the ops of a plan with fork and join, so that it can be captured, put into a stream of the caller, and submitted again
// and again.

package plan

import "github.com/dagrun/dagrun/planner/internal/planted"

// Replay is what a program submits for each run of a plan. Its events are the plan's, then one for the fork, then one for each joined stream.
type Replay struct {
	Instances int        // replays that may be in flight at a time, each with streams, events and memory of its own
	Events    int32      // event objects of one instance
	Ops       []ReplayOp // in submission order
}

// ReplayOp is an op and its stream. The ops of fork and join have Node -1.
type ReplayOp struct {
	Op
	Stream int32
}

// Replay returns one replay of the plan: the origin, stream 0, is recorded and the streams in [Plan.Fork] wait for that; at the end
// the streams in [Plan.Join] are recorded and the origin waits for them. If the plan is not a valid schedule, entries of
// the order without an op are skipped.
func (p *Plan) Replay(instances int) *Replay {
	if p == nil {
		return &Replay{Instances: instances}
	}
	fork, join := p.Fork(), p.Join()
	if planted.Is(planted.Fork) && len(fork) > 0 {
		fork = fork[1:]
	}
	if planted.Is(planted.Join) && len(join) > 0 {
		join = join[1:]
	}
	r := &Replay{Instances: instances, Events: p.Events + 1 + int32(len(join)), Ops: make([]ReplayOp, 0, len(p.Order)+1+len(fork)+2*len(join))}
	add := func(kind OpKind, stream, event int32) {
		r.Ops = append(r.Ops, ReplayOp{Op{Kind: kind, Node: -1, Event: event}, stream})
	}
	if len(fork) > 0 {
		add(Record, 0, p.Events)
		for _, s := range fork {
			add(Wait, s, p.Events)
		}
	}
	next := make([]int32, len(p.Streams))
	for _, s := range p.Order {
		if s < 0 || int(s) >= len(p.Streams) || int(next[s]) >= len(p.Streams[s].Ops) {
			continue
		}
		r.Ops = append(r.Ops, ReplayOp{p.Streams[s].Ops[next[s]], s})
		next[s]++
	}
	for k, s := range join {
		add(Record, s, p.Events+1+int32(k))
	}
	for k := range join {
		add(Wait, 0, p.Events+1+int32(k))
	}
	return r
}
