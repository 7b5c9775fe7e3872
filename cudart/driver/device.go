// One GPU: its context, and the fault that ends it.

package driver

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/dagrun/dagrun/cudart"
)

// device is one GPU and, once something is made on it, its primary context.
type device struct {
	number int32
	handle int32
	info   cudart.Info

	mu       sync.Mutex
	context  atomic.Uintptr
	retained bool
	least    int32 // stream priorities
	greatest int32

	fault atomic.Pointer[cudart.Error] // the first fault that made the context unusable
}

// faulted returns the error of every call after a fault.
func (d *device) faulted() error {
	if first := d.fault.Load(); first != nil {
		return fmt.Errorf("device %d: %w: %w", d.number, cudart.ErrPoisoned, first)
	}
	return nil
}

func onDevice(err error, d *device) error {
	if e, ok := err.(*cudart.Error); ok && d != nil {
		e.Device = d.number
	}
	return err
}

// fail returns the error of a failed call on a device, nil for none, and stores a fault.
func (d *device) fail(lib *library, f function, code uint64) *cudart.Error {
	e := lib.failure(f, code)
	if d != nil {
		e.Device = d.number
		if sticky(code) {
			d.fault.CompareAndSwap(nil, e)
		}
	}
	return e
}
