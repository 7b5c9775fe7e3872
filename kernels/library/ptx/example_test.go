// A runnable example: a module of one kernel, as a driver gets it.

package ptx_test

import (
	"fmt"
	"strings"

	"github.com/dagrun/dagrun/kernels/library/ptx"
)

func ExampleEntries() {
	code := string(ptx.Entries("dagrun_noop"))
	for line := range strings.Lines(code) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			fmt.Println(line)
		}
	}
	// Output:
	// .version 6.0
	// .target sm_52
	// .address_size 64
	// .visible .entry dagrun_noop()
	// {
	// ret;
	// }
}
