// Tests of calls with arguments, on the C library, which is always there.

//go:build linux && (amd64 || arm64)

package dl

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCallWithPassesNumbersAndMemory(t *testing.T) {
	c, err := Open("libc.so.6")
	require.NoError(t, err)
	memset, err := c.Symbol("memset")
	require.NoError(t, err)
	text := []byte("hello\x00")
	CallWith(memset, Pointer(&text[0]), Number(int('j')), Number(1))
	require.Equal(t, "jello", Text(&text[0]))
	strerror, err := c.Symbol("strerror")
	require.NoError(t, err)
	require.Equal(t, "Success", TextAt(Call(strerror, 0)))
}

func TestFillNamesTheFirstThatIsMissing(t *testing.T) {
	known := map[string]uintptr{"a": 1, "b": 2, "nothing": 0}
	resolve := Resolver(func(symbol string) (uintptr, error) {
		if address, ok := known[symbol]; ok {
			return address, nil
		}
		return 0, errors.New("no such symbol")
	})
	addresses := make([]uintptr, 2)
	require.Empty(t, resolve.Fill(addresses, []string{"a", "b"}))
	require.Equal(t, []uintptr{1, 2}, addresses)
	require.Equal(t, "c", resolve.Fill(addresses, []string{"b", "c"}))
	require.Equal(t, "nothing", resolve.Fill(addresses, []string{"nothing", "c"}))
}
