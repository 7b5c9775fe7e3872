// Platforms that purego or NVIDIA do not support: every Open fails.

//go:build !(linux && (amd64 || arm64))

package dl

// Available reports whether libraries can be opened on this platform.
const Available = false

// Open fails with ErrUnavailable.
func Open(names ...string) (*Library, error) { return nil, ErrUnavailable }

// Symbol fails with ErrUnavailable; there is no Library to ask.
func (l *Library) Symbol(name string) (uintptr, error) { return 0, ErrUnavailable }

// Call panics: no library was opened, so no function address exists.
func Call(fn uintptr, args ...uintptr) uintptr { panic("dl: call without a library") }

// Callback panics: no library was opened that could call back.
func Callback(fn any) uintptr { panic("dl: callback without a library") }
