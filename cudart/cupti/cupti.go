// Opening CUPTI: finding the library, checking its version, switching records on and off. Decodes nothing; record.go does.

// Package cupti records when kernels, copies and sets really ran on a GPU, through NVIDIA's CUPTI library (libcupti), opened at run
// time without cgo. The records are exact where events around a node also measure the gaps, and nothing is added to the streams or
// graphs that are measured; but every launch costs half a microsecond more, and graphs become several times slower. It is for
// traces, never for timing.
//
// CUPTI is one per process: [Prepare] is called once, before the driver is opened, since kernels' records must be asked for before
// cuInit. Where there is no library, or one of a version whose records are not known, it fails with [ErrUnavailable]; where
// another tool (a profiler, a second tracer) holds CUPTI already, with [ErrBusy].
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
	// ErrUnavailable is what Prepare returns where CUPTI cannot be used on this machine.
	ErrUnavailable = errors.New("CUPTI cannot be used")
	// ErrBusy is what Prepare returns where another tool of the process has CUPTI.
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
}

// Results that mean something here (CUptiResult).
const (
	codeMaxLimitReached     = 12 // no more records in a buffer
	codeMultipleSubscribers = 39
)

// Library is CUPTI, switched on. Its methods may be called from any goroutine.
type Library struct {
	address [functionCount]uintptr
	name    string
	version uint32
	layout  *layout

	mu      sync.Mutex
	enabled bool
	buffers *buffers
}

// prepared holds the process's library once it is open: CUPTI's callbacks carry no argument that could name an owner.
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
		return nil, fmt.Errorf("%w: libcupti was not found (%w); it comes with the CUDA toolkit, and CUDA_HOME names the toolkit's folder", ErrUnavailable, err)
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

// candidates are the names to try: the toolkit's own first, since its driver and it were installed together.
func candidates() []string {
	var names []string
	for _, variable := range []string{"CUDA_HOME", "CUDA_PATH"} {
		names = append(names, inToolkit(os.Getenv(variable))...)
	}
	names = append(names, inToolkit("/usr/local/cuda")...)
	return append(names, "libcupti.so.13", "libcupti.so.12", "libcupti.so", "libcupti.so.11.8", "libcupti.so.11.7", "libcupti.so.11.6", "libcupti.so.11.5", "libcupti.so.11.4")
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

// open resolves a library's functions, checks its version and hands it the callbacks.
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
		return nil, fmt.Errorf("%w: the records of %s (interface %d) are not known; those of CUDA 11.4 to 13.2 are", ErrUnavailable, name, l.version)
	}
	if code := uint32(dl.Call(l.address[cuptiActivityRegisterCallbacks], b.request, b.complete)); code != 0 {
		return nil, l.failure(cuptiActivityRegisterCallbacks, code)
	}
	return l, nil
}

// failure is a result in CUPTI's words.
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

// Name is the file that was opened, Version its interface: 26 came with CUDA 12.8, 130000 with CUDA 13.0.
func (l *Library) Name() string { return l.name }

// Version is CUPTI's interface version.
func (l *Library) Version() uint32 { return l.version }

// Enable has kernels, copies and sets recorded from now on.
func (l *Library) Enable() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.enabled {
		return nil
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

// Disable ends recording; what was recorded stays until Flush. Enable begins it again.
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
