// The driver's library: finds the functions of the table, and describes their errors.

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
