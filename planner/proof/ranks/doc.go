// Package ranks proves that the ranks of one file communicate without deadlock and without races, before anything runs. From the graphs of
// all ranks alone it shows that
//
//   - each collective has the same kind, bytes, type, operation and root on all ranks that take part, which all do,
//   - each send meets a receive of the same size,
//   - no ranks wait for each other in a circle, however they are scheduled, and
//   - nothing touches memory while it is sent or received.
//
// A send does not end before its receive has begun. NCCL may buffer small messages; a proof must not rely on it.
package ranks
