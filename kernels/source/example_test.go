// A runnable example: a user's file of CUDA C, read without compiling it.

package source_test

import (
	"fmt"

	"github.com/dagrun/dagrun/kernels/source"
)

func ExampleOpen() {
	code := `
__device__ unsigned calls;
extern "C" __global__ void blur(int n, const float *__restrict__ from, float *to) { atomicAdd(&calls, 1); }
__global__ void internal(int n) { }`
	m, err := source.Open("mine", "blur.cu", []byte(code), source.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Names(), m.WritableGlobals())
	k, err := m.Kernel("blur", nil)
	for _, p := range k.Params() {
		fmt.Println(p.Name, p.DType, p.Buffer, p.Mode)
	}
	fmt.Println(err)
	// Output:
	// [blur internal] [calls]
	// n i32 false none
	// from f32 true in
	// to f32 true inout
	// <nil>
}
