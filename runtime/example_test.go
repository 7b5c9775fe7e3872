// Runnable examples of embedding dagrun, here on the CPU device; for a GPU use driver.Open in place of host.Open.

package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"unsafe"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

// axpy declares y = a*x + y over n floats with one upload of each and a download of y.
func axpy(n int64, a float64) (g *dag.Graph, x, y, result dag.BufferID, err error) {
	b := dag.New("axpy")
	b.Use(kernels.Library())
	x, y, result = b.Host("x", dag.F32, n), b.Host("y", dag.F32, n), b.Host("result", dag.F32, n)
	dx, dy := b.Device("d_x", dag.F32, n), b.Device("d_y", dag.F32, n)
	b.Copy("up_x", b.Whole(dx), b.Whole(x))
	b.Copy("up_y", b.Whole(dy), b.Whole(y))
	b.Kernel("axpy", "axpy", dag.Args{n, a, b.Whole(dx), b.Whole(dy)})
	b.Copy("down", b.Whole(result), b.Whole(dy))
	g, err = b.Graph()
	return g, x, y, result, err
}

// floats returns memory as float32 values, without a copy.
func floats(memory []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(memory))), len(memory)/4)
}

// bytesOf returns a slice's memory, without a copy.
func bytesOf(values []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), 4*len(values))
}

// A graph is planned once, made into a program once, and replayed as often as needed.
func Example() {
	ctx := context.Background()
	g, x, y, result, err := axpy(4, 2)
	if err != nil {
		log.Fatal(err)
	}
	plan, err := planner.New(ctx, g, planner.Options{Streams: 2})
	if err != nil {
		log.Fatal(err)
	}
	platform, err := host.Open(host.Options{})
	if err != nil {
		log.Fatal(err)
	}
	program, err := runtime.New(ctx, g, plan, platform, runtime.Options{Mode: runtime.Captured})
	if err != nil {
		log.Fatal(err)
	}
	copy(floats(program.Host(x)), []float32{1, 2, 3, 4})
	copy(floats(program.Host(y)), []float32{10, 10, 10, 10})
	if err := program.Run(ctx, 1); err != nil {
		log.Fatal(err)
	}
	fmt.Println(floats(program.Host(result)))
	fmt.Println(errors.Join(program.Close(), platform.Close()))
	// Output:
	// [12 14 16 18]
	// <nil>
}

// programOf plans a graph and makes its program on the CPU device, as Example does step by step.
func programOf(g *dag.Graph, options runtime.Options) (*runtime.Program, *host.Platform) {
	platform, err := host.Open(host.Options{})
	if err != nil {
		log.Fatal(err)
	}
	plan, err := planner.New(context.Background(), g, planner.Options{})
	if err != nil {
		log.Fatal(err)
	}
	program, err := runtime.New(context.Background(), g, plan, platform, options)
	if err != nil {
		log.Fatal(err)
	}
	return program, platform
}

// The caller's own slices are pinned and used directly: nothing is copied on the host.
func ExampleOptions_bind() {
	ctx := context.Background()
	g, _, _, _, err := axpy(4, 3)
	if err != nil {
		log.Fatal(err)
	}
	x, y, result := []float32{1, 2, 3, 4}, []float32{0, 0, 0, 1}, make([]float32, 4)
	program, platform := programOf(g, runtime.Options{Bind: map[string][]byte{"x": bytesOf(x), "y": bytesOf(y), "result": bytesOf(result)}})
	for range 2 {
		if err := errors.Join(program.Replay(ctx), program.Synchronize(ctx)); err != nil {
			log.Fatal(err)
		}
		fmt.Println(result)
		x[0] *= 10
	}
	fmt.Println(errors.Join(program.Close(), platform.Close()))
	// Output:
	// [3 6 9 13]
	// [30 6 9 13]
	// <nil>
}

// A service keeps several replays in flight. Each has its own input and result, and results arrive in order.
func ExampleProgram_ReplayThen() {
	ctx := context.Background()
	g, x, _, result, err := axpy(2, 10)
	if err != nil {
		log.Fatal(err)
	}
	program, platform := programOf(g, runtime.Options{Inflight: 3})
	for request := range 5 {
		input := func(t *runtime.Turn) { floats(t.Host(x))[0] = float32(request) }
		answer := func(t *runtime.Turn, err error) { fmt.Println(t.Number, floats(t.Host(result)), err) }
		if err := program.ReplayThen(ctx, input, answer); err != nil {
			log.Fatal(err)
		}
	}
	if err := program.Synchronize(ctx); err != nil { // all callbacks have run
		log.Fatal(err)
	}
	fmt.Println(program.Counters().TurnsFinished, errors.Join(program.Close(), platform.Close()))
	// Output:
	// 0 [0 0] <nil>
	// 1 [10 0] <nil>
	// 2 [20 0] <nil>
	// 3 [30 0] <nil>
	// 4 [40 0] <nil>
	// 5 <nil>
}

// A function is called when all replays so far have finished.
func ExampleProgram_OnDone() {
	g, x, _, result, err := axpy(2, 2)
	if err != nil {
		log.Fatal(err)
	}
	program, platform := programOf(g, runtime.Options{})
	copy(floats(program.Host(x)), []float32{20, 21})
	done := make(chan error)
	if err := errors.Join(program.Replay(context.Background()), program.OnDone(func(err error) { done <- err })); err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-done, floats(program.Host(result)))
	fmt.Println(errors.Join(program.Close(), platform.Close()))
	// Output:
	// <nil> [40 42]
	// <nil>
}

// A replay in a stream of the caller: it runs after the work that is already on the stream, and before later work. On a GPU the
// handle is a CUstream, which may belong to another library.
func ExampleOptions_origin() {
	ctx := context.Background()
	platform, err := host.Open(host.Options{})
	if err != nil {
		log.Fatal(err)
	}
	theirs, err := platform.NewStream(0, dag.Normal)
	if err != nil {
		log.Fatal(err)
	}
	origin, err := platform.AdoptStream(theirs.Handle())
	if err != nil {
		log.Fatal(err)
	}
	g, x, y, result, err := axpy(2, 2)
	if err != nil {
		log.Fatal(err)
	}
	plan, err := planner.New(ctx, g, planner.Options{})
	if err != nil {
		log.Fatal(err)
	}
	program, err := runtime.New(ctx, g, plan, platform, runtime.Options{Origin: origin})
	if err != nil {
		log.Fatal(err)
	}
	copy(floats(program.Host(x)), []float32{5, 6})
	// Their work: the last result is the next y.
	again, err := platform.Encode([]cudart.Command{{Kind: cudart.CopyMemory, Stream: theirs, Label: "again", Node: -1,
		Dst: program.Address(y), DstDevice: -1, Src: program.Address(result), SrcDevice: -1, Bytes: 8}}, cudart.ListOptions{Origin: theirs})
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		if err := errors.Join(again.Submit(), program.Replay(ctx)); err != nil {
			log.Fatal(err)
		}
	}
	if err := theirs.Synchronize(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(floats(program.Host(result)))
	fmt.Println(errors.Join(program.Close(), again.Close(), origin.Close(), theirs.Close(), platform.Close()))
	// Output:
	// [30 36]
	// <nil>
}
