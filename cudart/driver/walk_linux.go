// The call into the assembly walkers.

//go:build linux && (amd64 || arm64)

package driver

import (
	"runtime"
	"unsafe"

	"github.com/dagrun/dagrun/internal/dl"
)

// walkAddress is the address of the routine in walk_amd64.s and walk_arm64.s.
var walkAddress uintptr

// walkTable walks a table in one call into C.
func walkTable(w *walk) {
	w.self = uintptr(unsafe.Pointer(w))
	dl.Call(walkAddress, unsafe.Slice(&w.self, 1)...)
	runtime.KeepAlive(w)
}
