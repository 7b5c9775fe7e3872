// The library's CUDA C files, embedded.

// Package cuda holds the CUDA C of the library's kernels, and the mathematical functions that users' kernels get where no toolkit
// brings any.
package cuda

import "embed"

// Files are all of them.
//
//go:embed *.cu *.cuh
var Files embed.FS
