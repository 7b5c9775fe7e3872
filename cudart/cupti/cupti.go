// Opening CUPTI: finds the library, checks its version, and switches recording on and off. record.go decodes the records.

// Package cupti records when kernels, copies and sets really ran on a GPU, through NVIDIA's CUPTI library (libcupti), opened at run time
// without cgo. Records are exact, while events around a node also measure the gaps, and nothing is added to the streams or graphs that are
// measured. But every launch takes half a microsecond longer, and graphs become several times slower. Use it for traces, never for timing.
//
// There is one CUPTI per process. Call [Prepare] once, before the driver is opened, because recording of kernels must be switched on before
// cuInit. It fails with [ErrUnavailable] if there is no library, or one of a version whose records are not known, and with [ErrBusy] if
// another tool (a profiler, a second tracer) already uses CUPTI.
package cupti

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"unsafe"

	"github.com/dagrun/dagrun/internal/dl"
)

var (
	// ErrUnavailable is returned by Prepare if CUPTI cannot be used on this machine.
	ErrUnavailable = errors.New("CUPTI cannot be used")
	// ErrBusy is returned by Prepare if another tool uses CUPTI in this process.
	ErrBusy = errors.New("another tool uses CUPTI in this process")
)

type function uint8

const (
	cuptiGetVersion function = iota
	cuptiGetResultString
	cuptiActivityRegisterCallbacks
	cuptiActivityEnable
	cuptiActivityDisable
	cuptiActivityFlushAll
	cuptiActivityGetNextRecord
	cuptiFinalize
	functionCount
)

// symbols have had these signatures since CUDA 6.
var symbols = [functionCount]string{
	cuptiGetVersion:                "cuptiGetVersion",
	cuptiGetResultString:           "cuptiGetResultString",
	cuptiActivityRegisterCallbacks: "cuptiActivityRegisterCallbacks",
	cuptiActivityEnable:            "cuptiActivityEnable",
	cuptiActivityDisable:           "cuptiActivityDisable",
	cuptiActivityFlushAll:          "cuptiActivityFlushAll",
	cuptiActivityGetNextRecord:     "cuptiActivityGetNextRecord",
	cuptiFinalize:                  "cuptiFinalize",
}

// The results that the code branches on (CUptiResult).
const (
	codeMaxLimitReached     = 12 // no more records in a buffer
	codeMultipleSubscribers = 39
)

// Library is an open CUPTI. Its methods may be called from any goroutine.
type Library struct {
	address [functionCount]uintptr
	name    string
	version uint32
	layout  *layout

	mu      sync.Mutex
	enabled bool
	closed  bool
	buffers *buffers
}

// prepared holds the process's library once it is open. There can be only one, because CUPTI's callbacks have no argument for an owner.
var prepared struct {
	sync.Mutex
	library *Library
}

// Prepare opens CUPTI and switches recording on. It must be called before the driver is opened. A second call returns the library
// that the first opened.
func Prepare() (*Library, error) {
	prepared.Lock()
	defer prepared.Unlock()
	if prepared.library != nil {
		return prepared.library, nil
	}
	found, err := dl.Open(candidates()...)
	if err != nil {
		return nil, fmt.Errorf("%w: libcupti was not found (%w); it comes with the CUDA toolkit, so set CUDA_HOME to the toolkit's folder", ErrUnavailable, err)
	}
	l, err := open(found.Name, found.Symbol, processBuffers())
	if err != nil {
		return nil, err
	}
	if err := l.Enable(); err != nil {
		return nil, err
	}
	prepared.library = l
	return l, nil
}

// candidates returns the names to try, those in the toolkit's folder first.
func candidates() []string {
	var names []string
	for _, variable := range []string{"CUDA_HOME", "CUDA_PATH"} {
		names = append(names, inToolkit(os.Getenv(variable))...)
	}
	names = append(names, inToolkit("/usr/local/cuda")...)
	return append(names, "libcupti.so.13", "libcupti.so.12", "libcupti.so", "libcupti.so.11.8", "libcupti.so.11.7", "libcupti.so.11.6",
		"libcupti.so.11.5", "libcupti.so.11.4")
}

func inToolkit(folder string) []string {
	if folder == "" {
		return nil
	}
	var names []string
	for _, place := range []string{"extras/CUPTI/lib64", "lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"} {
		for _, file := range []string{"libcupti.so", "libcupti.so.13", "libcupti.so.12"} {
			if path := filepath.Join(folder, place, file); exists(path) {
				names = append(names, path)
			}
		}
	}
	return names
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// open resolves a library's functions, checks its version and registers the callbacks.
func open(name string, resolve dl.Resolver, b *buffers) (*Library, error) {
	l := &Library{name: name, buffers: b}
	if missing := resolve.Fill(l.address[:], symbols[:]); missing != "" {
		return nil, fmt.Errorf("%w: %s has no %s", ErrUnavailable, name, missing)
	}
	version := new(uint32)
	if code := uint32(dl.Call(l.address[cuptiGetVersion], uintptr(unsafe.Pointer(version)))); code != 0 {
		return nil, l.failure(cuptiGetVersion, code)
	}
	l.version = *version
	if l.layout = layoutOf(l.version); l.layout == nil {
		return nil, fmt.Errorf("%w: the records of %s (interface %d) are unknown; those of CUDA 11.4 to 13.2 are known", ErrUnavailable, name, l.version)
	}
	if code := uint32(dl.Call(l.address[cuptiActivityRegisterCallbacks], b.request, b.complete)); code != 0 {
		return nil, l.failure(cuptiActivityRegisterCallbacks, code)
	}
	return l, nil
}

// failure returns the error for a result, with CUPTI's description.
func (l *Library) failure(f function, code uint32) error {
	text := new(*byte)
	name := fmt.Sprintf("CUptiResult %d", code)
	if dl.Call(l.address[cuptiGetResultString], uintptr(code), uintptr(unsafe.Pointer(text))); *text != nil {
		name = fmt.Sprintf("%s (%d)", dl.Text(*text), code)
	}
	if code == codeMultipleSubscribers {
		return fmt.Errorf("%w (a profiler, or another tracer): %s: %s", ErrBusy, symbols[f], name)
	}
	return fmt.Errorf("%w: %s: %s", ErrUnavailable, symbols[f], name)
}

// Name returns the file that was opened.
func (l *Library) Name() string { return l.name }

// Version returns CUPTI's interface version: 26 came with CUDA 12.8, 130000 with CUDA 13.0.
func (l *Library) Version() uint32 { return l.version }

// Enable starts the recording of kernels, copies and sets.
func (l *Library) Enable() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.enabled {
		return nil
	}
	if l.closed {
		return fmt.Errorf("%w: it has been closed", ErrUnavailable)
	}
	for i, kind := range recordedKinds {
		if code := uint32(dl.Call(l.address[cuptiActivityEnable], uintptr(kind))); code != 0 {
			for _, done := range recordedKinds[:i] {
				dl.Call(l.address[cuptiActivityDisable], uintptr(done))
			}
			return l.failure(cuptiActivityEnable, code)
		}
	}
	l.enabled = true
	return nil
}

// Disable stops the recording. What was recorded stays until Flush. Enable starts it again.
func (l *Library) Disable() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.enabled {
		return nil
	}
	l.enabled = false
	var first error
	for _, kind := range recordedKinds {
		if code := uint32(dl.Call(l.address[cuptiActivityDisable], uintptr(kind))); code != 0 && first == nil {
			first = l.failure(cuptiActivityDisable, code)
		}
	}
	return first
}
