// What traces and runs tell of replays: when nodes ran, and what loops and branches did.

package runtime

import "github.com/dagrun/dagrun/runtime/internal/spans"

// TracedReplay is one replay of a trace.
type TracedReplay = spans.TracedReplay

// Span is one node's time on its device.
type Span = spans.Span

// Loop is what a loop or branch did in the last replay.
type Loop = spans.Loop

// TracedLoop is what a loop or branch did in one traced replay.
type TracedLoop = spans.TracedLoop

// TracedPass is one pass of a loop, or one run of a branch.
type TracedPass = spans.TracedPass

// BodySpan is the time of one node of a body in one pass.
type BodySpan = spans.BodySpan
