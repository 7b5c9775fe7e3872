// Table rows of the kernels that touch no memory.

package library

import (
	"time"

	"github.com/dagrun/dagrun/kernels/internal/describe"
	"github.com/dagrun/dagrun/kernels/internal/reference"
	"github.com/dagrun/dagrun/kernels/launch"
)

func waitRows() []row {
	return []row{
		{name: "noop", doc: "does nothing", steps: fixed(0), launch: once, versions: []version{{run: func(*libraryKernel) launch.Reference {
			return launch.Reference{Spans: reference.OneSpan, Run: func(*launch.Call, int64, int64) {}}
		}}}},
		{name: "spin", doc: "keeps one thread busy for us microseconds", signature: "us f64", steps: fixed(0), launch: once, check: spinTime,
			us: func(v scalars) float64 { return v.float("us") }, versions: []version{{run: func(*libraryKernel) launch.Reference {
				return launch.Reference{Spans: reference.OneSpan, Run: spin}
			}}}},
	}
}

// longestSpin is about 30 years, which fits every clock.
const longestSpin = 1e15

func spinTime(v scalars) error {
	if us := v.float("us"); !(us >= 0 && us <= longestSpin) {
		return describe.Wrong("us", "is %g; it must be from 0 to %g", us, longestSpin)
	}
	return nil
}

// spin sleeps instead of computing: on a GPU many spins run at once, and the CPU device should behave the same on few cores.
func spin(c *launch.Call, _, _ int64) {
	end := time.Now().Add(time.Duration(reference.Scalar[float64](c.Args[0]) * float64(time.Microsecond)))
	// Sleeping is not precise, so the last 200 us are polled.
	if rest := time.Until(end) - 200*time.Microsecond; rest > 0 {
		time.Sleep(rest)
	}
	for time.Now().Before(end) {
	}
}
