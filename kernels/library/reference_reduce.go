// References of reductions, with the kernels' order of operations: 1,024 accumulators per tile, then a tree. Tiles run on all cores;
// which core computes which tile does not change the result.

package library

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/numbers"
	"github.com/dagrun/dagrun/kernels/internal/reference"
	"github.com/dagrun/dagrun/kernels/launch"
)

const (
	reduceLanes = 256
	reduceQuad  = 4
	reduceStep  = reduceLanes * reduceQuad
	mostTiles   = 1056
)

func tileSize(n int64) int64 {
	return max((n+mostTiles*reduceStep-1)/(mostTiles*reduceStep), 4) * reduceStep
}

func tileCount(n int64) int64 {
	if n <= 0 {
		return 1
	}
	return (n + tileSize(n) - 1) / tileSize(n)
}

// parallel runs f for 0 to n-1 on all cores. If f panics, so does parallel: a panic on another goroutine would end the process.
func parallel(n int64, f func(i int64)) {
	workers := min(int64(runtime.GOMAXPROCS(0)), n)
	if workers <= 1 {
		for i := range n {
			f(i)
		}
		return
	}
	var next atomic.Int64
	var wait sync.WaitGroup
	var crash atomic.Pointer[any]
	for range workers {
		wait.Go(func() {
			defer func() {
				if v := recover(); v != nil {
					crash.CompareAndSwap(nil, &v)
					next.Store(n)
				}
			}()
			for i := next.Add(1) - 1; i < n; i = next.Add(1) - 1 {
				f(i)
			}
		})
	}
	wait.Wait()
	if v := crash.Load(); v != nil {
		panic(*v)
	}
}

// reduction is an operation: its initial state, how to join two states, and how to add the elements x and y at index i to a state.
type reduction[T, S any] struct {
	start S
	join  func(a, b S) S
	take  func(a S, x, y T, i int64) S
}

func (r *reduction[T, S]) tree(lane []S) S {
	for half := len(lane) / 2; half > 0; half /= 2 {
		for t := range half {
			lane[t] = r.join(lane[t], lane[t+half])
		}
	}
	return lane[0]
}

func (r *reduction[T, S]) tile(x, y []T, from int64) S {
	var a [reduceStep]S
	for i := range a {
		a[i] = r.start
	}
	for i := range x {
		k := i % reduceStep
		a[k] = r.take(a[k], x[i], y[i], from+int64(i))
	}
	var lane [reduceLanes]S
	for t := range lane {
		q := a[t*reduceQuad:]
		lane[t] = r.join(r.join(q[0], q[1]), r.join(q[2], q[3]))
	}
	return r.tree(lane[:])
}

func (r *reduction[T, S]) all(x, y []T) S {
	n := int64(len(x))
	tiles, size := tileCount(n), tileSize(n)
	partial := make([]S, tiles)
	parallel(tiles, func(t int64) {
		lo, hi := t*size, min((t+1)*size, n)
		partial[t] = r.tile(x[lo:hi], y[lo:hi], lo)
	})
	if tiles == 1 {
		return partial[0]
	}
	var lane [reduceLanes]S
	for t := range lane {
		lane[t] = r.start
	}
	for k, p := range partial {
		lane[k%reduceLanes] = r.join(lane[k%reduceLanes], p)
	}
	return r.tree(lane[:])
}

// reference makes the reference of a kernel that takes n, one or two input buffers, and out.
func (r reduction[T, S]) reference(inputs int, finish func(S) S) func(*libraryKernel) launch.Reference {
	return func(*libraryKernel) launch.Reference {
		return launch.Reference{Spans: reference.OneSpan, ReadsAll: true, Run: func(c *launch.Call, _, _ int64) {
			n := reference.Integer(c.Args[0])
			x := reference.Slice[T](c.Args[1], n)
			y := reference.Slice[T](c.Args[inputs], n)
			result := r.all(x, y)
			if finish != nil {
				result = finish(result)
			}
			reference.Slice[S](c.Args[1+inputs], 1)[0] = result
		}}
	}
}

// sums returns the reduction that adds up term(x, y).
func sums[T any, S numbers.Element | int64](term func(x, y T) S) reduction[T, S] {
	return reduction[T, S]{
		join: func(a, b S) S { return a + b },
		take: func(a S, x, y T, _ int64) S { return a + term(x, y) },
	}
}

// summing lists the versions of a sum for f16, bf16, f32, f64 and i32, given the terms for each type that is computed in.
func summing(inputs int, f func(x, y float32) float32, d func(x, y float64) float64, i func(x, y int64) int64, f32 func(float32) float32,
	f64 func(float64) float64) []version {
	half := func(widen func(uint16) float32) reduction[uint16, float32] {
		return sums(func(x, y uint16) float32 { return f(widen(x), widen(y)) })
	}
	versions := []version{
		{bind{T: dag.F16}, half(dag.HalfToFloat32).reference(inputs, f32)},
		{bind{T: dag.BF16}, half(dag.BFloatToFloat32).reference(inputs, f32)},
		{bind{T: dag.F32}, sums(f).reference(inputs, f32)},
		{bind{T: dag.F64}, sums(d).reference(inputs, f64)},
	}
	if i != nil {
		exact := sums(func(x, y int32) int64 { return i(int64(x), int64(y)) })
		versions = append(versions, version{bind{T: dag.I32}, exact.reference(inputs, nil)})
	}
	return versions
}

func firstOf[C any](x, _ C) C                        { return x }
func times[C numbers.Element | int64](x, y C) C      { return C(x * y) }
func difference[C numbers.Element | int64](x, y C) C { return x - y }
func less[C numbers.Element](a, b C) bool            { return a < b }
func greater[C numbers.Element](a, b C) bool         { return b < a }
func identity[C any](x C) C                          { return x }
func squareRoot32(x float32) float32                 { return numbers.Sqrt32(x) }
func squareRoot64(x float64) float64                 { return math.Sqrt(x) }

// choosing returns the reduction that keeps the element that comes before all others, ignoring NaNs.
func choosing[T any, C numbers.Element](start C, before func(a, b C) bool, widen func(T) C) reduction[T, C] {
	join := func(a, b C) C {
		if before(b, a) {
			return b
		}
		return a
	}
	return reduction[T, C]{start: start, join: join, take: func(a C, x, _ T, _ int64) C { return join(a, widen(x)) }}
}

func extremes(before32 func(a, b float32) bool, before64 func(a, b float64) bool, beforeInt func(a, b int32) bool, worst float64, worstInt int32) []version {
	return []version{
		{bind{T: dag.F16}, choosing(float32(worst), before32, dag.HalfToFloat32).reference(1, nil)},
		{bind{T: dag.BF16}, choosing(float32(worst), before32, dag.BFloatToFloat32).reference(1, nil)},
		{bind{T: dag.F32}, choosing(float32(worst), before32, identity[float32]).reference(1, nil)},
		{bind{T: dag.F64}, choosing(worst, before64, identity[float64]).reference(1, nil)},
		{bind{T: dag.I32}, choosing(worstInt, beforeInt, identity[int32]).reference(1, nil)},
	}
}

// place is an element and its index, which is -1 if there is none yet.
type place[C numbers.Element] struct {
	value C
	index int64
}

func argmax[C numbers.Element](*libraryKernel) launch.Reference {
	join := func(a, b place[C]) place[C] {
		if b.index >= 0 && (a.index < 0 || a.value < b.value || a.value == b.value && b.index < a.index) {
			return b
		}
		return a
	}
	r := reduction[C, place[C]]{start: place[C]{index: -1}, join: join, take: func(a place[C], x, _ C, i int64) place[C] {
		if x != x {
			return a
		}
		return join(a, place[C]{x, i})
	}}
	return launch.Reference{Spans: reference.OneSpan, ReadsAll: true, Run: func(c *launch.Call, _, _ int64) {
		x := reference.Slice[C](c.Args[1], reference.Integer(c.Args[0]))
		reference.Slice[int64](c.Args[2], 1)[0] = r.all(x, x).index
	}}
}
