// Package ranks proves that the ranks of one file communicate without deadlock and without races, before anything runs. From the graphs of
// all ranks alone it shows that
//
//   - each collective has the same kind, bytes, type, operation and root on all ranks that take part, which all do,
//   - each send meets a receive of the same size,
//   - no ranks wait for each other in a circle, however they are scheduled,
//   - a loop or branch that communicates is one on all ranks, with as many passes or the same condition, and
//   - nothing touches memory while it is sent or received.
//
// A loop or branch that communicates is proved like a collective of all ranks around it, and one pass of each of its bodies like ranks of their
// own: what is sent in a pass is received in that pass. Ranks that go on from pass to pass without waiting for all others wait for less than that.
//
// A send does not end before its receive has begun. NCCL may buffer small messages; a proof must not rely on it.
package ranks
