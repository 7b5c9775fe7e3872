// Counters: figures of a program, for monitoring. Never waits.

package engine

// Counters holds figures of a program at one moment: counts, which only grow, and the size of the program.
type Counters struct {
	Replays       uint64 `json:"replays"`        // submitted since the program was made, warm-up and measuring included
	TurnsFinished uint64 `json:"turns_finished"` // of ReplayThen, failed ones included
	TurnsFailed   uint64 `json:"turns_failed"`
	Inflight      int    `json:"inflight"`     // replays that may overlap
	Nodes         int    `json:"nodes"`        // of one replay
	Streams       int    `json:"streams"`      // of one replay
	Waits         int    `json:"waits"`        // of one replay, fork and join included
	DeviceBytes   int64  `json:"device_bytes"` // allocated on devices
	HostBytes     int64  `json:"host_bytes"`   // allocated on the host, without the caller's own memory
}

// Counters returns the program's figures.
func (p *Program) Counters() Counters {
	if p == nil || p.plan == nil {
		return Counters{}
	}
	return Counters{
		Replays: p.replays.Load(), TurnsFinished: p.turns.finished.Load(), TurnsFailed: p.turns.failed.Load(),
		Inflight: len(p.instances), Nodes: p.graph.Len(), Streams: len(p.plan.Streams), Waits: p.waits,
		DeviceBytes: p.deviceBytes, HostBytes: p.hostBytes,
	}
}
