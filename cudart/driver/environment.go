// What the C library of this process gives beside the driver: its environment, of which Go has a copy, and a call that yields.

package driver

import (
	"strconv"
	"sync"

	"github.com/dagrun/dagrun/internal/dl"
)

const (
	queuesVariable = "CUDA_DEVICE_MAX_CONNECTIONS"
	mostQueues     = 32
)

// queues is the value that the driver is to find in queuesVariable.
func (o Options) queues() string {
	if o.Queues != 0 {
		return strconv.Itoa(o.Queues)
	}
	if value, ok := getenv(queuesVariable); ok {
		return value
	}
	return strconv.Itoa(mostQueues)
}

// environmentChanges guards the time in which C's environment differs from what the caller left there.
var environmentChanges sync.Mutex

// withVariable calls do while C's environment has a variable, and puts back what was there.
func withVariable(name, value string, do func()) {
	set, unset := libc("setenv"), libc("unsetenv")
	if set == 0 || unset == 0 {
		do()
		return
	}
	environmentChanges.Lock()
	defer environmentChanges.Unlock()
	before, was := getenv(name)
	if was && before == value {
		do()
		return
	}
	setenv := func(value string) {
		const overwrite = 1
		dl.CallWith(set, dl.Pointer(cText(name)), dl.Pointer(cText(value)), dl.Number(overwrite))
	}
	defer func() {
		if was {
			setenv(before)
			return
		}
		dl.CallWith(unset, dl.Pointer(cText(name)))
	}()
	setenv(value)
	do()
}

// getenv reads C's environment.
func getenv(name string) (value string, ok bool) {
	get := libc("getenv")
	if get == 0 {
		return "", false
	}
	text := dl.CallAddress(get, dl.Pointer(cText(name)))
	if text == 0 {
		return "", false
	}
	return dl.TextAt(text), true
}

// cText is a string as C wants it.
func cText(s string) *byte { return &append([]byte(s), 0)[0] }

// schedYield is the C library's function that gives the processor to another thread.
func schedYield() uintptr { return libc("sched_yield") }

// libc is a function of the C library, 0 where there is none.
func libc(name string) uintptr {
	c, err := dl.Open("libc.so.6")
	if err != nil {
		return 0
	}
	address, err := c.Symbol(name)
	if err != nil {
		return 0
	}
	return address
}
