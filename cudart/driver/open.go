// Opening the driver: finds libcuda and starts it. Makes no contexts.

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
	"fmt"
	"strconv"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/internal/dl"
	"github.com/dagrun/dagrun/kernels/launch"
)

// Options says how the driver is opened. The zero value suits most programs.
type Options struct {
	// Queues is how many hardware queues the streams of this process share, 1 to 32. Streams that share a queue wait for each other.
	// CUDA's own default is 8, but a plan with copies, or several replays in flight, has more streams than that. 0 means the value of
	// CUDA_DEVICE_MAX_CONNECTIONS, or 32 if that is not set. A process that has used CUDA before keeps its number of queues.
	Queues int
	// Lasting leaves CUDA_DEVICE_MAX_CONNECTIONS in C's environment as the driver was told, for programs that make contexts in the background, where
	// changing it could disturb other C code that reads the environment.
	Lasting bool
	// Choose returns which of the devices that the driver sees are used, and in which order. nil means all of them.
	Choose func(count int) ([]int, error)
	// Compilers compile CUDA C, such as &kernels.Compilers{}; nil: modules of CUDA C cannot be loaded.
	Compilers launch.Compiler
}

// Open finds the driver and its devices. Without a driver the error is cudart.ErrNoDriver, without a device cudart.ErrNoDevice.
//
// The driver reads the number of queues only from the environment. So CUDA_DEVICE_MAX_CONNECTIONS is set in C's environment while the
// driver starts and while it makes a context, and restored afterwards, unless it is to last. What os.Getenv returns and child processes get never changes.
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
	if options.Lasting {
		setVariable(queuesVariable, queues)
	}
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
	return newPlatform(lib, queues, options.Choose, options.Compilers)
}

// queues returns the value that the driver should find in queuesVariable.
func (o Options) queues() string {
	if o.Queues != 0 {
		return strconv.Itoa(o.Queues)
	}
	if value, ok := getenv(queuesVariable); ok {
		return value
	}
	return strconv.Itoa(mostQueues)
}

func checkQueues(queues int) error {
	if queues < 0 || queues > mostQueues {
		return fmt.Errorf("driver: %d queues were requested; 1 to %d are possible, and 0 leaves the choice to the environment", queues, mostQueues)
	}
	return nil
}
