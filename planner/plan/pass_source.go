// How many passes the planner took a loop to make, and where that number comes from.

package plan

import "github.com/dagrun/dagrun/internal/words"

// PassSource says where the passes of a loop come from that the planner counted with.
type PassSource uint8

const (
	NoPasses      PassSource = iota // not a loop with a condition, or its time was measured or declared as a whole
	MostPasses                      // as many as it may make
	LearnedPasses                   // as many as it made in an earlier run
)

var passSources = []string{"", "most", "learned"}

func (s PassSource) String() string { return words.Name(s, "PassSource", passSources) }

// Passes is how many passes the planner took a loop to make.
type Passes struct {
	Count  int64
	Source PassSource
}

// Text is "learned 37 passes", "at most 500 passes", or "".
func (p Passes) Text() string {
	switch p.Source {
	case MostPasses:
		return "at most " + words.Count(p.Count, "pass", "passes")
	case LearnedPasses:
		return "learned " + words.Count(p.Count, "pass", "passes")
	}
	return ""
}
