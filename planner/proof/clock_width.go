// The width of clocks: one entry for each stream and device, and how they are raised.

package proof

// clockEntries limits the clocks that a walk keeps to 64 MiB.
const clockEntries = 1 << 24

// clockWidth is how many source streams one walk follows. Clocks of all streams for all streams would take gigabytes for thousands of
// streams. A walk for each block of streams takes time only for blocks that are asked about.
const clockWidth = 64

// raise adds to a clock what another clock knows.
func raise(clock, other []int32) {
	clock = clock[:len(other)]
	for i, done := range other {
		clock[i] = max(clock[i], done)
	}
}

// walkWidth returns how many source streams a walk follows if it keeps this many clocks.
func walkWidth(streams, clocks int) int {
	width := min(streams, clockWidth)
	if clocks*width > clockEntries {
		width = min(width, max(8, clockEntries/clocks))
	}
	return width
}
