// A runnable example of a kernel: memory, a stream, a module, and a list of commands that is submitted.

package driver_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/driver"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/kernels/launch"
)

// square is CUDA C, compiled for the GPU of this machine if the toolkit's libnvrtc is installed.
const square = `extern "C" __global__ void square(float *x, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n) x[i] *= x[i];
}`

// What it prints depends on the machine, so it has no output to compare; running it must be possible everywhere.
func TestTheExampleRuns(*testing.T) { Example() }

func Example() {
	if err := run(context.Background()); err != nil {
		fmt.Println(err)
	}
}

func run(ctx context.Context) error {
	gpu, err := driver.Open(driver.Options{Compilers: &kernels.Compilers{}})
	if err != nil {
		return err
	}
	defer gpu.Close()
	stream, err := gpu.NewStream(0, dag.Normal)
	if err != nil {
		return err
	}
	defer stream.Close()
	const n = 1 << 20
	memory, err := gpu.Alloc(0, 4*n)
	if err != nil {
		return err
	}
	defer gpu.Free(memory)
	module, err := gpu.Load(ctx, 0, &launch.Module{Name: "square", Path: "square.cu", Kind: launch.Source, Code: []byte(square)})
	if err != nil {
		return err
	}
	defer module.Close()
	kernel, err := module.Kernel("square")
	if err != nil {
		return err
	}
	list, err := gpu.Encode([]cudart.Command{
		{Kind: cudart.SetMemory, Stream: stream, Dst: memory, Bytes: 4 * n, Width: 4, Pattern: 0x40000000}, // 2.0
		{Kind: cudart.LaunchKernel, Stream: stream, Label: "square", Kernel: kernel, Grid: [3]uint32{n / 256, 1, 1}, Block: [3]uint32{256, 1, 1},
			Args: []cudart.Value{{Pointer: true, Ptr: memory, Bytes: 4 * n}, {Bits: n, Size: 4}}},
	}, cudart.ListOptions{Origin: stream})
	if err != nil {
		return err
	}
	defer list.Close()
	for range 100 {
		if err := list.Submit(); err != nil {
			return err
		}
	}
	return stream.Synchronize(ctx)
}
