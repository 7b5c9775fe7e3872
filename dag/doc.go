// Package dag turns a declaration of GPU work into a dependency graph.
//
// A [Pipeline] is what was declared, by a pipeline file (see package file) or by Go calls (see [New]): buffers, and nodes that copy,
// set or compute on byte ranges of them. A [Graph] adds what follows from it: every node's accesses and one edge for each
// pair of nodes that must not be reordered, each with the reason why it is there.
//
// Declaration order is program order: for every byte, a node that reads it comes after the node that last wrote it
// (RAW), and a node that writes it after all that read it since (WAR) or, where none did, after the one that last wrote it
// (WAW). Reads never order reads. After adds dependencies on top. All other pairs that conflict are ordered through these.
//
// Where many nodes and many others would all depend on each other, as thousands of writers of slices and thousands of readers of the whole
// do, edges lead to and from a [Join]: an id from [Graph.Len] on that stands between them. [Graph.IsJoin] tells which ends of edges are.
//
// The files refer to each other in one direction. A reader starts with builder.go, the Go calls. It leads to assemble.go, which makes the graph, from
// there to hazards.go, which finds the edges, and down to pipeline.go, the data. Package file declares pipelines by a [Draft], as Builder does.
//
// Nodes and buffers have dense ids in declaration order, each of a type of its own: [NodeID] and [BufferID]. The package does no
// I/O of its own, knows no device, and imports nothing else of dagrun: what it must know of a kernel comes through [Library].
package dag
