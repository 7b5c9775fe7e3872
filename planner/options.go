// Options: how to plan.

package planner

// Options says how to plan. The zero value is what `dagrun plan` uses.
type Options struct {
	Strategy        string   // "auto" (also ""), "list", "cover", "roundrobin", "serial"
	Streams         int      // compute streams per device; 0: 8
	Machine         *Machine // nil: H200
	Profile         *Profile // measured durations; nil: none
	MemoryCap       int64    // bytes per device; 0: no cap
	KeepAll         bool     // no two buffers share bytes (--verify, --memory separate)
	Keep            []int32  // buffers that must keep their bytes for the whole program (bound by an embedder)
	SingleUseEvents bool     // one event per record, for programs submitted by several threads
}
