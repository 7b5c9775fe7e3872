// Steps: which call did something on which stream, and what it waited for, for pictures.

package order

import "github.com/dagrun/dagrun/internal/recording"

// Steps lists the steps of a process in the order of its calls.
func Steps(p *recording.Process) ([]Step, error) {
	x, err := newIndex(p)
	if err != nil {
		return nil, err
	}
	m := newMachine(p, x, Options{}, pass{assume: true, programmatic: true})
	m.steps = make([]Step, 0, len(p.Calls))
	m.run()
	return m.steps, nil
}
