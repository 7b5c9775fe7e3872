// A runnable example of compiling a source without the CUDA toolkit.

package clang_test

import (
	"context"
	"fmt"

	"github.com/dagrun/dagrun/kernels/source/clang"
)

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
