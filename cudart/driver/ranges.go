// Ranges for profilers.

package driver

// ranges are the functions of a profiler that was injected into the process; zero where there is none.
type ranges struct{ push, pop uintptr }

func newRanges() ranges { return ranges{} }
