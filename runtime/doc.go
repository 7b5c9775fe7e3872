// What the package is for and how it is used; the code is in the other files.

// Package runtime makes a plan happen: it takes memory for a graph's buffers, encodes the plan for a platform, and replays it.
//
// A [Program] is made by [New] from a graph, a plan and a platform: verified, its kernels loaded, its memory taken and filled. Then
//
//   - [Program.Replay] submits it once and returns; replays are ordered on the device. [Program.Run] submits several and waits.
//   - [Program.ReplayThen] is for services: input written before, result read after, several replays on their way, results in order.
//   - [Program.OnDone] calls back when all that was replayed so far has finished.
//   - [Program.Host] is the memory of a host buffer, [Program.Read] any buffer's contents after the last replay.
//   - [Program.Measure] times replays; [Program.Trace] shows when each node ran. Both restore what replays have changed.
//   - [Program.SetScalar] and [Program.SetStorage] change single nodes between replays without planning again.
//   - [Program.Finish] does what the pipeline says of its results: files, expectations, checksums.
//   - [Program.RunAlone] finds the node that a fault comes from.
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
