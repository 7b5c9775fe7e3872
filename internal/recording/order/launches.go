// Launches: what lay at the addresses that a kernel was given, for lists of kernels.

package order

import "github.com/dagrun/dagrun/internal/recording"

// Launches calls visit for each kernel that was launched on a stream, in order; pointed says which tensor or allocation lies at an
// address then. Kernels of graphs are
// not among them.
func Launches(p *recording.Process, visit func(c *recording.Call, pointed func(address uint64) (Memory, bool))) error {
	x, err := newIndex(p)
	if err != nil {
		return err
	}
	m := newMachine(p, x, Options{}, pass{assume: true, programmatic: true})
	pointed := func(address uint64) (Memory, bool) {
		if is := m.pointedAt(address); is != nil {
			return is.Memory, true
		}
		return Memory{}, false
	}
	m.visit = func(c *recording.Call) { visit(c, pointed) }
	m.run()
	return nil
}

// PlaceText names the user's line of a place, as reports do.
func PlaceText(p *recording.Process, place uint64) string { return placeText(p, place) }
