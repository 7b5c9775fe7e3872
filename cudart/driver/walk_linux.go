// The assembly walkers' entry. Never used where there is no driver to call.

//go:build linux && (amd64 || arm64)

package driver

import (
	"runtime"
	"unsafe"

	"github.com/dagrun/dagrun/internal/dl"
)

// walkAddress is the address of the routine in walk_amd64.s and walk_arm64.s.
var walkAddress uintptr

// cross walks a table in one crossing.
func cross(w *walk) {
	w.self = uintptr(unsafe.Pointer(w))
	dl.Call(walkAddress, unsafe.Slice(&w.self, 1)...)
	runtime.KeepAlive(w)
}
