// Runnable examples of a platform, here the CPU device; driver.Open opens GPUs instead.

package cudart_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
)

// Commands are encoded once and submitted as often as needed, either to their streams or as one graph.
func Example() {
	if err := setAndCopy(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// [7 7 7 7]
	// [7 7 7 7]
}

func setAndCopy(ctx context.Context) (err error) {
	platform, err := host.Open(host.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, platform.Close()) }()
	const bytes = 4
	onDevice, err := platform.Alloc(0, bytes)
	if err != nil {
		return err
	}
	defer platform.Free(onDevice)
	onHost, err := platform.AllocHost(bytes, false)
	if err != nil {
		return err
	}
	defer platform.Free(onHost)
	stream, err := platform.NewStream(0, dag.Normal)
	if err != nil {
		return err
	}
	defer stream.Close()

	list, err := platform.Encode([]cudart.Command{
		{Kind: cudart.SetMemory, Label: "set", Stream: stream, Dst: onDevice, Bytes: bytes, Width: 1, Pattern: 7},
		{Kind: cudart.CopyMemory, Label: "down", Stream: stream, Dst: onHost, DstDevice: -1, Src: onDevice, Bytes: bytes},
	}, cudart.ListOptions{Origin: stream})
	if err != nil {
		return err
	}
	defer list.Close()
	graph, err := list.Capture(cudart.GraphOptions{})
	if err != nil {
		return err
	}
	defer graph.Close()
	for _, submit := range []func() error{list.Submit, func() error { return graph.Launch(stream) }} {
		clear(platform.HostBytes(onHost, bytes))
		if err := submit(); err != nil {
			return err
		}
		if err := stream.Synchronize(ctx); err != nil {
			return err
		}
		fmt.Println(platform.HostBytes(onHost, bytes))
	}
	return nil
}

// An error says which call failed and matches a sentinel.
func ExampleError() {
	platform, err := host.Open(host.Options{Memory: 1024})
	if err != nil {
		log.Fatal(err)
	}
	defer platform.Close()
	_, err = platform.Alloc(0, 4096)
	fmt.Println(err)
	fmt.Println(errors.Is(err, cudart.ErrOutOfMemory))
	var failed *cudart.Error
	fmt.Println(errors.As(err, &failed) && failed.Call == "cuMemAlloc")
	// Output:
	// cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory: 4096 bytes were requested; 1024 of 1024 are free
	// true
	// true
}
