// Package file reads, writes and formats pipeline files.
//
// [Parse] walks the YAML, evaluates expressions, expands foreach and uses, and declares what it finds as a [dag.Draft]; package dag checks each declaration
// as it does those of Go calls, and derives the graph. What is wrong is collected with its place: a [ParseError] has all mistakes of a file. [ParseFamily]
// reads a file for all ranks that run it together. [Write] makes a file of any pipeline, and [Format] gives a file its canonical form.
//
// A reader starts with parse.go. Each part of a file has a parse_ file of its own, and parser.go is what they share.
package file
