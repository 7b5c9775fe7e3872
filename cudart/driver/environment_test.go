// Tests that the driver finds the number of queues in the environment, and that the environment is restored afterwards.

//go:build linux && (amd64 || arm64)

package driver

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/dl"
)

// setC changes C's environment, as a program that embeds this one may; absent removes the variable.
func setC(value string) {
	if value == absent {
		dl.CallWith(libc("unsetenv"), dl.Pointer(cText(queuesVariable)))
		return
	}
	dl.CallWith(libc("setenv"), dl.Pointer(cText(queuesVariable)), dl.Pointer(cText(value)), dl.Number(1))
}

const absent = "absent"

// inC returns the variable in C's environment.
func inC() string {
	if value, ok := getenv(queuesVariable); ok {
		return value
	}
	return absent
}

func TestTheDriverFindsItsQueuesAndTheEnvironmentIsRestored(t *testing.T) {
	before := inC()
	defer setC(before)
	for _, c := range []struct {
		name    string
		c, goes string // the variable in C's environment and in Go's
		options Options
		found   string
	}{
		{"nobody says", absent, absent, Options{}, "32"},
		{"the environment says", "4", "4", Options{}, "4"},
		{"the environment says nothing", "", "", Options{}, ""},
		{"set in C, which Go does not see", "16", absent, Options{}, "16"},
		{"the program says", absent, absent, Options{Queues: 2}, "2"},
		{"the program and the environment say", "4", "4", Options{Queues: 2}, "2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(queuesVariable, c.goes) // C's environment follows; afterwards both are put back
			if c.goes == absent {
				require.NoError(t, os.Unsetenv(queuesVariable))
			}
			require.Equal(t, c.goes, inC())
			setC(c.c)
			environ := os.Environ()
			d := newFakeDriver(t)
			p, err := open(d.resolve, c.options)
			require.NoError(t, err)
			require.Equal(t, c.c, inC(), "after Open")
			for device := range int32(2) {
				s, err := p.NewStream(device, dag.Normal)
				require.NoError(t, err)
				require.NoError(t, s.Close())
				require.Equal(t, c.c, inC(), "after a context was made")
			}
			require.Equal(t, []string{c.found, c.found, c.found}, d.queues, "cuInit and two contexts")
			require.Equal(t, environ, os.Environ())
			shown, err := exec.Command("env").Output()
			require.NoError(t, err)
			require.Equal(t, c.goes != absent, strings.Contains(string(shown), queuesVariable+"="+c.goes+"\n"), "in a child process")
			require.Equal(t, c.goes != absent, strings.Contains(string(shown), queuesVariable))
			require.NoError(t, p.Close())
			d.clean(t)
			lasting := c.options
			lasting.Lasting = true
			p, err = open(newFakeDriver(t).resolve, lasting)
			require.NoError(t, err)
			require.Equal(t, c.found, inC(), "what is to last")
			require.Equal(t, environ, os.Environ())
			require.NoError(t, p.Close())
		})
	}
}

func TestTheUsualNumberOfQueuesLeavesTheEnvironmentAlone(t *testing.T) {
	before := inC()
	defer setC(before)
	setC(absent)
	d := newFakeDriver(t)
	p, err := open(d.resolve, Options{Queues: 8})
	require.NoError(t, err)
	require.Equal(t, 8, p.Queues())
	require.NoError(t, p.Prepare(1))
	require.NoError(t, p.Prepare(1), "again")
	require.Equal(t, []string{"", ""}, d.queues, "cuInit and a context")
	require.ErrorContains(t, p.Prepare(2), "no device 2")
	require.NoError(t, p.Close())
	require.ErrorIs(t, p.Prepare(0), errClosed)
	d.clean(t)
}

func TestNoContextIsMadeAfterClose(t *testing.T) {
	for range 20 {
		d := newFakeDriver(t)
		p := d.open(t)
		done := make(chan error)
		go func() { done <- p.Prepare(0) }()
		require.NoError(t, p.Close())
		<-done
		d.clean(t)
	}
}

func TestTheEnvironmentIsPutBackWhenTheDriverFails(t *testing.T) {
	before := inC()
	defer setC(before)
	setC(absent)
	d := newFakeDriver(t)
	d.failOn[cuInit] = 999
	_, err := open(d.resolve, Options{})
	require.EqualError(t, err, "cuInit: CUDA_ERROR_FAKE (999): CUDA_ERROR_FAKE")
	require.Equal(t, absent, inC())
	d = newFakeDriver(t)
	d.failOn[cuDevicePrimaryCtxRetain] = 2
	p := d.open(t)
	_, err = p.NewStream(0, dag.Normal)
	require.ErrorContains(t, err, "cuDevicePrimaryCtxRetain")
	require.Equal(t, absent, inC())
	require.NoError(t, p.Close())
}

func TestOpenRefusesNumbersOfQueues(t *testing.T) {
	for queues, text := range map[int]string{-1: "-1", 33: "33"} {
		_, err := Open(Options{Queues: queues})
		require.EqualError(t, err, "driver: "+text+" queues were requested; 1 to 32 are possible, and 0 leaves the choice to the environment")
	}
}
