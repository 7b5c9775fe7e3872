// Package reference reads the arguments of launches for kernels in Go, and splits their work. Sizes are not checked here, because Describe has checked them.
package reference

import (
	"math"
	"unsafe"

	"github.com/dagrun/dagrun/internal/numbers"
	"github.com/dagrun/dagrun/kernels/launch"
)

// Slice returns an argument's memory as n elements.
func Slice[T any](a launch.Arg, n int64) []T { return unsafe.Slice((*T)(a.Memory), n) }

// Scalar returns an argument's value.
func Scalar[T numbers.Element | int64 | uint64](a launch.Arg) T {
	var zero T
	switch p := any(&zero).(type) {
	case *float32:
		*p = math.Float32frombits(uint32(a.Bits))
	case *float64:
		*p = math.Float64frombits(a.Bits)
	case *int32:
		*p = int32(a.Bits)
	case *int64:
		*p = int64(a.Bits)
	case *uint64:
		*p = a.Bits
	}
	return zero
}

// Integer is the value of an i64 argument.
func Integer(a launch.Arg) int64 { return int64(a.Bits) }

// SpansOf returns how many parts of at most size items n items have.
func SpansOf(n, size int64) int64 {
	if n <= 0 {
		return 0
	}
	return (n-1)/size + 1
}

// OneSpan is the Spans function of work that cannot be split.
func OneSpan(*launch.Call) int64 { return 1 }

// ElementwiseSpan is how many elements make a span of elementwise work.
const ElementwiseSpan = 1 << 16

// ElementwiseSpans counts the spans of a kernel whose first argument is the number of elements.
func ElementwiseSpans(c *launch.Call) int64 { return SpansOf(Integer(c.Args[0]), ElementwiseSpan) }
