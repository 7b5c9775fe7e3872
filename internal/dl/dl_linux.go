// The only place that imports purego: dlopen, dlsym and calls through it. Never used with cgo.

//go:build linux && (amd64 || arm64)

package dl

import (
	"runtime"

	"github.com/ebitengine/purego"
)

// Available reports whether libraries can be opened on this platform.
const Available = true

// Open returns the first of the named libraries that the dynamic loader finds.
func Open(names ...string) (*Library, error) {
	// The loader keeps error messages per thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var first error
	for _, name := range names {
		handle, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
		if err == nil {
			return &Library{Name: name, handle: handle}, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// Symbol returns the address of a function.
func (l *Library) Symbol(name string) (uintptr, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return purego.Dlsym(l.handle, name)
}

// Call calls a C function with at most 32 integer or pointer arguments. It locks the goroutine to its thread only during the call.
//
//go:uintptrescapes
func Call(fn uintptr, args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(fn, args...)
	return r
}

// Callback makes a C function from a Go function that takes and returns uintptr. There can be few, and they are never freed: make one
// per purpose, not per object.
func Callback(fn any) uintptr { return purego.NewCallback(fn) }
