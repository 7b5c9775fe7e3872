// Recording for a short while: CUPTI is in the process only meanwhile.

package cupti

import (
	"errors"
	"sync"

	"github.com/dagrun/dagrun/cudart"
)

// Late records like a Library, but opens CUPTI when recording is switched on, and closes it when recording is switched off. So a process that records
// for a short while is as fast as others before and after. On an H200 with driver 580, the records are the same although the driver was
// opened before, and opening and closing takes 25 ms. With drivers that make no such records, Flush returns none. The zero value is ready.
type Late struct {
	mu      sync.Mutex
	library *Library
}

// Enable opens CUPTI and starts the recording.
func (r *Late) Enable() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	library, err := Prepare()
	if err != nil {
		return err
	}
	r.library = library
	return library.Enable()
}

// Disable stops the recording and closes CUPTI. The devices must be idle.
func (r *Late) Disable() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	library := r.library
	if library == nil {
		return nil
	}
	r.library = nil
	return library.Close()
}

// Flush returns what has been recorded, as Library.Flush does.
func (r *Late) Flush(want int) ([]cudart.Activity, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.library == nil {
		return nil, errors.New("nothing is recorded: recording is off")
	}
	return r.library.Flush(want)
}
