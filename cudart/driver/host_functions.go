// Functions of the host in lists and graphs. The driver calls one C function for all of them, on a thread of its own; the number that comes with
// the call says which Go function is meant.

package driver

import (
	"sync"

	"github.com/dagrun/dagrun/internal/dl"
)

// hostFunctions are the Go functions that lists and graphs may run. There is one table in the process, because there is one C function.
var hostFunctions struct {
	sync.Mutex
	byNumber map[uintptr]func()
	last     uintptr
}

// hostCallback is the C function that the driver calls. It is made once, because callbacks are never freed.
var hostCallback = sync.OnceValue(func() uintptr {
	return dl.Callback(func(number uintptr) uintptr {
		hostFunctions.Lock()
		function := hostFunctions.byNumber[number]
		hostFunctions.Unlock()
		if function != nil { // else its list was closed too early
			function()
		}
		return 0
	})
})

// registerHost returns the number by which the driver asks for a function.
func registerHost(function func()) uintptr {
	hostFunctions.Lock()
	defer hostFunctions.Unlock()
	if hostFunctions.byNumber == nil {
		hostFunctions.byNumber = map[uintptr]func(){}
	}
	hostFunctions.last++
	hostFunctions.byNumber[hostFunctions.last] = function
	return hostFunctions.last
}

// forgetHosts takes out functions that no list or graph runs any longer.
func forgetHosts(numbers []uintptr) {
	hostFunctions.Lock()
	defer hostFunctions.Unlock()
	for _, number := range numbers {
		delete(hostFunctions.byNumber, number)
	}
}
