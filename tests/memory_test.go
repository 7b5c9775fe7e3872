// Converts memory of kernel arguments to Go values, for Go versions of users' kernels.

package tests

import (
	"unsafe"

	"github.com/dagrun/dagrun/kernels"
)

func floats(a kernels.Arg, n int64) []float32 { return unsafe.Slice((*float32)(a.Memory), n) }
