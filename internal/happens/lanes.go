// Lanes and clocks: what each lane comes after, as a position on every other lane.

package happens

// Lane is a row of steps that come one after the other.
type Lane int32

// Clock is a set of steps that includes, with each step, all that the step comes after. It does not change.
type Clock struct {
	knows    []uint32 // by lane: what happened up to this position
	lane     Lane     // a lane and one, whose position is not in knows; 0 is none
	position uint32
	either   *[2]Clock // of what two clocks have in common
}

// lane is what is known of a lane. The position grows with every step and whenever the lane learns something, so whoever knows a position of
// a lane knows all that the lane knew there.
type lane struct {
	position uint32
	knows    []uint32
	shared   bool // knows is used by a clock or by another lane, and is copied before it is changed
	reasons  []reason
}

// reason is why a lane knows something: what it knew from then on, and the clock that it was joined with.
type reason struct {
	knows []uint32
	clock Clock
	tag   int32
}

func (l *lane) known(of Lane) uint32 {
	if int(of) < len(l.knows) {
		return l.knows[of]
	}
	return 0
}

func (l *lane) includes(self Lane, clock Clock) bool {
	if clock.lane > 0 {
		of := clock.lane - 1
		return of == self || l.known(of) >= clock.position
	}
	for of, position := range clock.knows {
		if Lane(of) != self && l.known(Lane(of)) < position {
			return false
		}
	}
	return true
}

func (l *lane) join(self Lane, clock Clock) bool {
	if l.includes(self, clock) {
		return false
	}
	length := max(len(l.knows), len(clock.knows), int(clock.lane))
	if l.shared || length > len(l.knows) {
		knows := make([]uint32, length)
		copy(knows, l.knows)
		l.knows, l.shared = knows, false
	}
	for of, position := range clock.knows {
		l.knows[of] = max(l.knows[of], position)
	}
	if clock.lane > 0 {
		l.knows[clock.lane-1] = max(l.knows[clock.lane-1], clock.position)
	}
	l.position++
	return true
}

// Includes says whether a clock holds all that another holds.
func (c Clock) Includes(other Clock) bool {
	if other.lane > 0 {
		return c.reaches(other.lane-1) >= other.position
	}
	for of, position := range other.knows {
		if c.reaches(Lane(of)) < position {
			return false
		}
	}
	return true
}

// reaches returns how far a clock reaches into a lane.
func (c Clock) reaches(of Lane) uint32 {
	if c.lane == of+1 {
		return c.position
	}
	if int(of) < len(c.knows) {
		return c.knows[of]
	}
	return 0
}

// Common returns what two clocks both hold: what comes after one of them, it is not known which, comes after this.
func Common(a, b Clock) Clock {
	knows := make([]uint32, max(len(a.knows), len(b.knows), int(a.lane), int(b.lane)))
	for of := range knows {
		knows[of] = min(a.reaches(Lane(of)), b.reaches(Lane(of)))
	}
	return Clock{knows: knows, either: &[2]Clock{a, b}}
}
