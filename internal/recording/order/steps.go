// Steps: which call did something on which stream, and what it waited for, for pictures.

package order

import "github.com/dagrun/dagrun/internal/recording"

// Step is a call that submitted something to a stream, or for which the host waited.
type Step struct {
	Call   int32   // index of Process.Calls
	Stream string  // its name, as in reports; "the host"
	For    []int32 // of a wait: the calls that recorded the event
}

// Steps lists the steps of a process in the order of its calls.
func Steps(p *recording.Process) ([]Step, error) {
	m := newMachine(p, newIndex(p), Options{}, pass{assume: true, programmatic: true})
	m.steps = make([]Step, 0, len(p.Calls))
	if err := m.run(); err != nil {
		return nil, err
	}
	return m.steps, nil
}

// note adds a step; the same call on the same stream is one step.
func (m *machine) note(at moment, stream string) {
	if m.steps == nil || at.index < 0 {
		return
	}
	if n := len(m.steps); n > 0 && m.steps[n-1].Call == at.index && m.steps[n-1].Stream == stream {
		return
	}
	m.steps = append(m.steps, Step{Call: at.index, Stream: stream})
}
