// The module's own package: what it is, and the schema of its files. Runs nothing.

// Package dagrun declares GPU work in a YAML file, plans it on CUDA streams and runs it.
//
// People declare copies and kernels and the buffers they touch. dagrun decides on which CUDA stream each node runs and where
// streams must wait for each other, inserts the fewest waits, proves the result, and replays it as plain streams or as one CUDA
// graph. It is a command (cmd/dagrun) and a set of packages, each of which imports only those above it:
//
//   - [github.com/dagrun/dagrun/dag]: what was declared, and the dependencies that follow; its package file reads pipeline files
//   - [github.com/dagrun/dagrun/planner]: streams, waits, memory and the proof; pure
//   - [github.com/dagrun/dagrun/kernels]: what can be launched
//   - [github.com/dagrun/dagrun/cudart]: what it runs on, the NVIDIA driver without cgo or the CPU
//   - [github.com/dagrun/dagrun/runtime]: making it happen
//
// This package holds the JSON schema of pipeline files, for editors and for `dagrun schema`.
package dagrun

import _ "embed"

//go:embed dagrun.schema.json
var schema string

// Schema returns the JSON schema (draft-07) of pipeline files, version 1.
func Schema() string { return schema }
