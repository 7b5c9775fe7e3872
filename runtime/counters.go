// Counters: a program's figures as plain numbers, for monitoring. Measures nothing and never waits.

package runtime

// Counters are figures of a program at one moment. Those that count only grow; the rest are the program's size.
type Counters struct {
	Replays       uint64 `json:"replays"`        // submitted since the program was made, warm-up and measuring included
	TurnsFinished uint64 `json:"turns_finished"` // of ReplayThen, failed ones included
	TurnsFailed   uint64 `json:"turns_failed"`
	Inflight      int    `json:"inflight"`     // replays that may overlap
	Nodes         int    `json:"nodes"`        // of one replay
	Streams       int    `json:"streams"`      // of one replay
	Waits         int    `json:"waits"`        // of one replay, fork and join included
	DeviceBytes   int64  `json:"device_bytes"` // taken on devices
	HostBytes     int64  `json:"host_bytes"`   // taken on the host; the caller's own are not counted
}

// Counters returns the program's figures. It may be called at any time from any goroutine.
func (p *Program) Counters() Counters {
	return Counters{
		Replays: p.replays.Load(), TurnsFinished: p.finished.Load(), TurnsFailed: p.failed.Load(),
		Inflight: len(p.instances), Nodes: p.graph.Len(), Streams: len(p.plan.Streams), Waits: p.waits,
		DeviceBytes: p.deviceBytes, HostBytes: p.hostBytes,
	}
}

// size sets what Counters tells of the program's size, once it is made.
func (p *Program) size() {
	for _, in := range p.instances {
		p.deviceBytes += in.memory.device
		p.hostBytes += in.memory.host
	}
	p.waits = p.plan.Stats.Waits + len(p.plan.Fork()) + len(p.plan.Join())
}
