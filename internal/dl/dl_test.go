// Tests of opening libraries, on the C library, which is always there.

//go:build linux && (amd64 || arm64)

package dl

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOpen(t *testing.T) {
	_, err := Open("libdoesnotexist.so.1", "libdoesnotexist.so")
	require.ErrorContains(t, err, "libdoesnotexist.so.1", "the first name's error")
	c, err := Open("libdoesnotexist.so.1", "libc.so.6")
	require.NoError(t, err)
	require.Equal(t, "libc.so.6", c.Name)
	_, err = c.Symbol("no_such_function")
	require.ErrorContains(t, err, "no_such_function")
	abs, err := c.Symbol("abs")
	require.NoError(t, err)
	minus := -5
	require.EqualValues(t, 5, uint32(Call(abs, uintptr(minus))))
}

func TestCallback(t *testing.T) {
	double := Callback(func(n uintptr) uintptr { return 2 * n })
	require.EqualValues(t, 42, Call(double, 21))
}
