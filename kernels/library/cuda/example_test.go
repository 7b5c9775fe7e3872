// A runnable example: the library's CUDA C as files.

package cuda_test

import (
	"fmt"
	"io/fs"

	"github.com/dagrun/dagrun/kernels/library/cuda"
)

func Example() {
	headers, err := fs.Glob(cuda.Files, "*.cuh")
	fmt.Println(headers, err)
	// Output: [chain.cuh common.cuh math.cuh matrix.cuh product.cuh reduce.cuh warp.cuh] <nil>
}
