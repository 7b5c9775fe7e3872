// Package runtime makes a plan happen: it takes memory for a graph's buffers, encodes the plan for a platform, and replays it.
//
// A [Program] is made from a graph, a plan and a platform. It is verified before it first runs. [Program.Run] is what the
// command does: warm up, restore, replay, check. [Program.Replay] is what a service calls in its loop.
package runtime
