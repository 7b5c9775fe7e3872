// The C library of this process: its environment, of which Go has only a copy, and a function that yields the processor.

package driver

import (
	"sync"

	"github.com/dagrun/dagrun/internal/dl"
)

const (
	queuesVariable = "CUDA_DEVICE_MAX_CONNECTIONS"
	mostQueues     = 32
	usualQueues    = "8" // what CUDA makes if the variable is not set
)

// environmentChanges is held while C's environment differs from the caller's.
var environmentChanges sync.Mutex

// withVariable calls do while a variable is set in C's environment, and restores its value afterwards.
func withVariable(name, value string, do func()) {
	set, unset := libc("setenv"), libc("unsetenv")
	if set == 0 || unset == 0 {
		do()
		return
	}
	environmentChanges.Lock()
	defer environmentChanges.Unlock()
	before, was := getenv(name)
	if has(name, value) {
		do()
		return
	}
	defer func() {
		if was {
			setenv(set, name, before)
			return
		}
		dl.CallWith(unset, dl.Pointer(cText(name)))
	}()
	setenv(set, name, value)
	do()
}

// setVariable sets a variable in C's environment for good.
func setVariable(name, value string) {
	environmentChanges.Lock()
	defer environmentChanges.Unlock()
	if set := libc("setenv"); set != 0 && !has(name, value) {
		setenv(set, name, value)
	}
}

// has reports whether C's environment says what a variable of this value says.
func has(name, value string) bool {
	is, set := getenv(name)
	return set && is == value || !set && name == queuesVariable && value == usualQueues
}

func setenv(set uintptr, name, value string) {
	const overwrite = 1
	dl.CallWith(set, dl.Pointer(cText(name)), dl.Pointer(cText(value)), dl.Number(overwrite))
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

// cText returns a string with the zero byte that C needs.
func cText(s string) *byte { return &append([]byte(s), 0)[0] }

// schedYield returns the C library's function that yields the processor to another thread.
func schedYield() uintptr { return libc("sched_yield") }

// libc returns a function of the C library, 0 if there is none.
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
