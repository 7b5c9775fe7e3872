// Runnable examples of the CPU device, which is used through the interface like any platform.

package host_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"unsafe"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/launch"
)

// A kernel on one stream waits for a copy on another stream and reads its result. Without the wait, CheckOrder reports it as missing.
func Example() {
	p, err := host.Open(host.Options{CheckOrder: true})
	if err != nil {
		log.Fatal(err)
	}
	const bytes = 4 * 8
	d, _ := p.Alloc(0, bytes)
	h, _ := p.AllocHost(bytes, false)
	upload, _ := p.NewStream(0, dag.Normal)
	compute, _ := p.NewStream(0, dag.Normal)
	uploaded, _ := p.NewEvent(0, false)
	module, _ := p.Load(context.Background(), 0, &launch.Module{Name: "mine", References: map[string]launch.Reference{
		"double": {
			Spans: func(c *launch.Call) int64 { return c.Args[0].Bytes / 4 },
			Run: func(c *launch.Call, lo, hi int64) {
				x := unsafe.Slice((*float32)(c.Args[0].Memory), c.Args[0].Bytes/4)
				for i := lo; i < hi; i++ {
					x[i] *= 2
				}
			},
		},
	}})
	double, _ := module.Kernel("double")
	commands := []cudart.Command{
		{Kind: cudart.CopyMemory, Label: "upload", Stream: upload, Dst: d, Src: h, SrcDevice: -1, Bytes: bytes},
		{Kind: cudart.RecordEvent, Stream: upload, Event: uploaded},
		{Kind: cudart.WaitEvent, Stream: compute, Event: uploaded},
		{
			Kind: cudart.LaunchKernel, Label: "double", Stream: compute, Kernel: double, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{8, 1, 1},
			Args:     []cudart.Value{{Pointer: true, Ptr: d, Bytes: bytes}},
			Accesses: []cudart.Access{{Ptr: d, Bytes: bytes, Write: true, Name: "x"}},
		},
		{Kind: cudart.CopyMemory, Label: "download", Stream: compute, Dst: h, DstDevice: -1, Src: d, Bytes: bytes},
	}
	x := unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(p.HostBytes(h, bytes)))), 8)
	for i := range x {
		x[i] = float32(i)
	}
	list, _ := p.Encode(commands, cudart.ListOptions{})
	if err := errors.Join(list.Submit(), compute.Synchronize(context.Background())); err != nil {
		log.Fatal(err)
	}
	fmt.Println(x)

	hasty, _ := p.Encode([]cudart.Command{commands[0], commands[3]}, cudart.ListOptions{})
	fmt.Println(hasty.Submit())
	_ = upload.Synchronize(context.Background()) // the copy before it was submitted

	fmt.Println(errors.Join(list.Close(), hasty.Close(), module.Close(), uploaded.Close(), upload.Close(), compute.Close(), p.Free(d), p.Free(h), p.Close()))
	// Output:
	// [0 2 4 6 8 10 12 14]
	// node "double" (stream 1) writes x[0:32], which node "upload" (stream 0) writes, and nothing orders the two: a wait is missing
	// <nil>
}
