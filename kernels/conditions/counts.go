// What the kernels of a loop or branch count and stamp, and where.

package conditions

// The counts of a loop or branch: words of eight bytes in device memory, which its kernels keep.
const (
	CountPass   = iota // passes of the current run
	CountRuns          // how often it was reached
	CountPasses        // passes of all runs that have ended
	CountMissed        // runs that took the most passes although the condition asked for more
	CountHeld          // of a branch: runs in which the condition held
	CountStamps        // stamps since the outermost of a nest was reached, those for which there was no room included
	CountWords  = 8
)

// Stamping asks the kernels of a loop or branch for stamps; the zero value asks for none. A stamp has StampWords words of eight bytes: the
// time by the device's clock, in nanoseconds, and the number of the pass that ended, or one of the constants if it is the stamp of Begin.
type Stamping struct {
	Room int64 // stamps that there is memory for; later ones are counted, and not written
	Each int64 // of each run of a loop, the first so many passes are stamped, and the last
}

// What Begin stamps. A branch whose condition did not hold is StampOtherwise, also if it has no other body.
const (
	StampBegun     = 0
	StampHeld      = -1
	StampOtherwise = -2
)

// StampWords is the number of words of a stamp.
const StampWords = 2
