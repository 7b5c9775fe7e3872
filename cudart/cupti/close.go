// Taking CUPTI out of a process again.

package cupti

import (
	"errors"

	"github.com/dagrun/dagrun/internal/dl"
)

// Close stops the recording and takes CUPTI out of the process, so that graphs and launches are as fast as before: Disable alone leaves graphs
// a third slower. The devices must be idle, and nothing may use the driver meanwhile. Records that were not taken are lost. Prepare
// opens CUPTI again.
func (l *Library) Close() error {
	prepared.Lock()
	defer prepared.Unlock()
	err := l.Disable()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return err
	}
	l.closed = true
	if prepared.library == l {
		prepared.library = nil
	}
	_, readErr := l.read()
	if code := uint32(dl.Call(l.address[cuptiFinalize])); code != 0 {
		return errors.Join(err, readErr, l.failure(cuptiFinalize, code))
	}
	return errors.Join(err, readErr)
}
