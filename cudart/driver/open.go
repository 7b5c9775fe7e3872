// Opening the driver: finds libcuda, resolves the table, and refuses drivers that are too old. Makes no contexts.

// Package driver runs programs on NVIDIA GPUs through the driver library (libcuda.so.1), opened at run time without cgo or a
// CUDA toolkit. [Open] returns a [cudart.Platform]; if there is no driver, it fails with cudart.ErrNoDriver.
//
// No method needs a locked thread: each one makes the device's primary context current and restores the thread's own context, inside one
// call into C. The primary context is shared with everything else in the process that uses it, and is never reset.
//
// This works on linux/amd64 and linux/arm64 with glibc. Systems with musl, such as Alpine, are not supported: NVIDIA's libraries need
// glibc, and so does a program that opens them.
package driver

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/internal/dl"
)

// library is the resolved table.
type library struct {
	address [functionCount]uintptr // 0: an optional function that this driver lacks
	version int                    // 13000 is CUDA 13.0
	yield   uintptr                // sched_yield, or 0
}

// Options says how the driver is opened. The zero value suits most programs.
type Options struct {
	// Queues is how many hardware queues the streams of this process share, 1 to 32. Streams that share a queue wait for each other.
	// CUDA's own default is 8, but a plan with copies, or several replays in flight, has more streams than that. 0 means the value of
	// CUDA_DEVICE_MAX_CONNECTIONS, or 32 if that is not set. A process that has used CUDA before keeps its number of queues.
	Queues int
}

// Open finds the driver and its devices. Without a driver the error is cudart.ErrNoDriver, without a device cudart.ErrNoDevice.
//
// The driver reads the number of queues only from the environment. So CUDA_DEVICE_MAX_CONNECTIONS is set in C's environment while the
// driver starts and while it makes a context, and restored afterwards. What os.Getenv returns and child processes get never changes.
func Open(options Options) (*Platform, error) {
	if err := checkQueues(options.Queues); err != nil {
		return nil, err
	}
	lib, err := dl.Open("libcuda.so.1", "libcuda.so")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", cudart.ErrNoDriver, err)
	}
	return open(lib.Symbol, options)
}

func open(resolve dl.Resolver, options Options) (*Platform, error) {
	lib, err := resolveTable(resolve)
	if err != nil {
		return nil, err
	}
	queues := options.queues()
	var code uintptr
	withVariable(queuesVariable, queues, func() { code = dl.Call(lib.address[cuInit], 0) })
	if uint32(code) != 0 {
		failure := lib.failure(cuInit, uint64(uint32(code)))
		switch failure.Code {
		case codeNoDevice:
			failure.Err = cudart.ErrNoDevice
		case codeStubLibrary:
			failure.Err = cudart.ErrNoDriver
			failure.Detail = "the libcuda that was found is the CUDA toolkit's stub for linking; put the driver's libcuda.so.1 before it in the loader's path"
		case codeSystemDriverMissing:
			failure.Err = cudart.ErrNoDriver
			failure.Detail = "libcuda and the kernel driver have different versions; after a driver update, reboot or reload the nvidia modules"
		}
		return nil, failure
	}
	return newPlatform(lib, queues)
}

// resolveTable fills the table. It asks for the driver's version first, to explain missing functions.
func resolveTable(resolve dl.Resolver) (*library, error) {
	lib := &library{yield: schedYield()}
	address, err := resolve(table[cuDriverGetVersion].symbol)
	if err != nil || address == 0 {
		return nil, fmt.Errorf("%w: the library has no %s", cudart.ErrNoDriver, table[cuDriverGetVersion].symbol)
	}
	version := new(int32)
	if code := dl.Call(address, uintptr(unsafe.Pointer(version))); uint32(code) != 0 {
		return nil, fmt.Errorf("%w: cuDriverGetVersion failed with %d", cudart.ErrNoDriver, uint32(code))
	}
	lib.version = int(*version)
	if lib.version < minimumDriver {
		return nil, fmt.Errorf("%w: the driver supports CUDA %s, but CUDA %s or newer is needed (driver 470 or newer)",
			cudart.ErrNoDriver, versionText(lib.version), versionText(minimumDriver))
	}
	for f := range functionCount {
		address, err := resolve(table[f].symbol)
		if (err != nil || address == 0) && !table[f].optional {
			return nil, fmt.Errorf("%w: the driver (CUDA %s) has no function %s, which every driver since CUDA %s has",
				cudart.ErrNoDriver, versionText(lib.version), table[f].symbol, versionText(table[f].abi))
		}
		if err == nil {
			lib.address[f] = address
		}
	}
	return lib, nil
}

// need returns an error if the driver lacks an optional function.
func (l *library) need(f function) error {
	if l.address[f] != 0 {
		return nil
	}
	return fmt.Errorf("%w: the driver (CUDA %s) has no %s, which came with CUDA %s",
		cudart.ErrUnsupported, versionText(l.version), table[f].symbol, versionText(table[f].abi))
}

func versionText(v int) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }

// failure returns the error for a result, with the driver's description.
func (l *library) failure(f function, code uint64) *cudart.Error {
	e := &cudart.Error{Call: f.name(), Name: fmt.Sprintf("CUresult %d", code), Code: int(code), Device: -1, Node: -1, Index: -1}
	if name := l.text(cuGetErrorName, code); name != "" {
		e.Name = name
	}
	e.Text = l.text(cuGetErrorString, code)
	switch {
	case code == codeOutOfMemory:
		e.Err = cudart.ErrOutOfMemory
	case code == codeNotSupported:
		e.Err = cudart.ErrUnsupported
	case sticky(code):
		e.Err = cudart.ErrPoisoned
	}
	return e
}

func (l *library) text(f function, code uint64) string {
	if l.address[f] == 0 {
		return ""
	}
	text := new(*byte)
	if dl.Call(l.address[f], uintptr(code), uintptr(unsafe.Pointer(text))); *text == nil {
		return ""
	}
	return dl.Text(*text)
}

// isCode reports whether an error is this result of the driver.
func isCode(err error, code int) bool {
	var e *cudart.Error
	return errors.As(err, &e) && e.Code == code
}
