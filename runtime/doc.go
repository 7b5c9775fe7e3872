// Package documentation: what the package is for and how to use it.

// Package runtime runs plans: it allocates memory for a graph's buffers, encodes the plan for a platform, and replays it.
//
// [New] makes a [Program] from a graph, a plan and a platform: it verifies the plan, loads the kernels, and allocates and fills the memory.
// Then
//
//   - [Program.Replay] submits it once and returns; replays are ordered on the device. [Program.Run] submits several and waits.
//   - [Program.ReplayThen] is for services: it writes input before a replay and reads the result after it, with several replays in flight.
//   - [Program.OnDone] calls a function when all replays so far have finished.
//   - [Program.Host] returns the memory of a host buffer, [Program.Read] reads any buffer's contents after the last replay.
//   - [Program.Measure] times replays; [Program.Trace] shows when each node ran. Both restore the buffers that replays change.
//   - [Program.SetScalar] and [Program.SetStorage] change single nodes between replays without planning again.
//   - [Program.Finish] handles the results as the pipeline declares: files, expectations, checksums.
//   - [Program.RunAlone] finds the node that causes a fault.
//
// The caller's memory can be used without a copy (Options.Bind), and replays can be submitted to the caller's stream (Options.Origin):
// they run after the work already on the stream and before what follows.
//
// # Errors
//
// A device reports the fault of a kernel late, to whatever call comes next, and its context stays unusable: errors then match
// cudart.ErrPoisoned, Close still works, and a new process must be started. There, [Program.RunAlone] finds the faulty node and returns
// a [NodeError]. A plan that does not fit its graph is refused with a planner.Violation, too little memory with an [OutOfMemoryError],
// replays in flight that would depend on each other with a [CarriedError]. A program that is closed returns [ErrClosed].
//
// # Priorities
//
// Work without a priority runs at the device's lowest priority, like the streams of other libraries in the process. Only a program with
// nodes of low priority raises its normal nodes above that level.
//
// # Concurrency
//
// A program's methods may be called by one goroutine at a time, [Program.Counters] by any. Every method that can wait takes a context
// and returns when it ends, except Close. Programs are independent: several may be created, replayed and closed at the same time on one
// device. The goroutines of a program end with Close.
package runtime
