// Helps with calls into a library: pinned arguments, C strings, tables of addresses.

package dl

import (
	"runtime"
	"unsafe"
)

// An Argument is a number, or memory that is kept alive and pinned during the call.
type Argument struct {
	number uintptr
	memory unsafe.Pointer
}

// Number is an argument passed by value.
func Number[T ~int | ~uintptr](n T) Argument { return Argument{number: uintptr(n)} }

// Pointer is the address of Go memory.
func Pointer[T any](p *T) Argument { return Argument{memory: unsafe.Pointer(p)} }

// CallWith calls a C function that returns a status, and pins what the arguments point to during the call.
func CallWith(fn uintptr, args ...Argument) uint32 { return uint32(CallAddress(fn, args...)) }

// CallAddress is CallWith for a C function that returns an address.
func CallAddress(fn uintptr, args ...Argument) uintptr {
	var pinner runtime.Pinner
	defer pinner.Unpin()
	words := make([]uintptr, len(args))
	for i, a := range args {
		words[i] = a.number
		if a.memory != nil {
			pinner.Pin(a.memory)
			words[i] = uintptr(a.memory)
		}
	}
	return Call(fn, words...)
}

// Text copies a C string.
func Text(text *byte) string {
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(text), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(text, n))
}

// TextAt copies the C string at an address that C returned.
func TextAt(address uintptr) string { return Text(*(**byte)(unsafe.Pointer(&address))) }

// A Resolver finds a function's address, as [Library.Symbol] does. Tests use others.
type Resolver func(symbol string) (uintptr, error)

// Fill resolves all of a library's symbols. It returns the first missing one, or "".
func (r Resolver) Fill(addresses []uintptr, symbols []string) (missing string) {
	for i, symbol := range symbols {
		address, err := r(symbol)
		if err != nil || address == 0 {
			return symbol
		}
		addresses[i] = address
	}
	return ""
}
