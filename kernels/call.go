// What references use to read their arguments. Trusts sizes: Describe has checked them.

package kernels

import (
	"math"
	"unsafe"
)

// element is a type that references compute on directly. f16 and bf16 are widened to float32 first.
type element interface{ float32 | float64 | int32 }

// slice is an argument's memory as n elements.
func slice[T any](a Arg, n int64) []T { return unsafe.Slice((*T)(a.Memory), n) }

// scalar is an argument's value.
func scalar[T element | int64 | uint64](a Arg) T {
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

func integer(a Arg) int64 { return int64(a.Bits) }

// spansOf splits n items into parts of at most size.
func spansOf(n, size int64) int64 {
	if n <= 0 {
		return 0
	}
	return (n-1)/size + 1
}
