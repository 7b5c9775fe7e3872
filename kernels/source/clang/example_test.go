// A runnable example of compiling a source without the CUDA toolkit.

package clang_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/dagrun/dagrun/kernels/source/clang"
)

// What it prints depends on the machine, so it has no output to compare; running it must be possible everywhere.
func TestTheExampleRuns(*testing.T) { Example() }

func Example() {
	compiler, err := clang.Open(clang.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := compiler.Compile(context.Background(), clang.Source{
		Path: "blur.cu",
		Code: []byte(`extern "C" __global__ void blur(float *x) { x[threadIdx.x] *= 0.5f; }`),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Architecture, len(result.PTX))
}
