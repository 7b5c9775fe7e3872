// A runnable example: how large the machine code of a kernel is.

package cubin_test

import (
	"fmt"

	"github.com/dagrun/dagrun/kernels/library/cubin"
	"github.com/dagrun/dagrun/kernels/library/ptx"
)

func ExampleFor() {
	h200 := cubin.For([2]int{9, 0})
	code, waits, err := h200.Kernel("dagrun_noop", ptx.Entries("dagrun_noop"), false)
	fmt.Printf("%s %q %t %v\n", h200.Architecture, code[1:4], waits, err)
	// Output: sm_90 "ELF" false <nil>
}
