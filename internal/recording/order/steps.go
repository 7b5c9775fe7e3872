// Steps: which call did something on which stream, and what it waited for, for pictures.

package order

import "github.com/dagrun/dagrun/internal/recording"

// Steps lists the steps of a process in the order of its calls.
func Steps(p *recording.Process) ([]Step, error) {
	m := newMachine(p, newIndex(p), Options{}, pass{assume: true, programmatic: true})
	m.steps = make([]Step, 0, len(p.Calls))
	if err := m.run(); err != nil {
		return nil, err
	}
	return m.steps, nil
}
