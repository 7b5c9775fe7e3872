// Package dag turns a declaration of GPU work into a dependency graph.
//
// A [Pipeline] is what was declared, by a YAML file (see [Parse]) or by Go calls (see [New]): buffers, and nodes that copy,
// set or compute on byte ranges of them. A [Graph] adds what follows from it: every node's accesses and one edge for each
// pair of nodes that must not be reordered, each with the reason why it is there.
//
// Nodes and buffers are dense int32 ids in declaration order. The package does no I/O of its own, knows no device, and
// imports nothing else of dagrun: what it must know of a kernel comes through [Library].
package dag
