// A runnable example of compiling a source for a device.

package nvrtc_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/dagrun/dagrun/kernels/source/nvrtc"
)

// What it prints depends on the machine, so it has no output to compare; running it must be possible everywhere.
func TestTheExampleRuns(*testing.T) { Example() }

func Example() {
	compiler, err := nvrtc.Open(nvrtc.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := compiler.Compile(context.Background(), nvrtc.Source{
		Path:       "blur.cu",
		Code:       []byte(`extern "C" __global__ void blur(float *x) { x[threadIdx.x] *= 0.5f; }`),
		Capability: [2]int{9, 0},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Architecture, len(result.Code))
}
