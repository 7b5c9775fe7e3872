// Converts memory of kernel arguments to Go values, for Go versions of users' kernels.

package tests

import (
	"unsafe"

	"github.com/dagrun/dagrun/kernels/launch"
)

func floats(a launch.Arg, n int64) []float32 { return unsafe.Slice((*float32)(a.Memory), n) }
