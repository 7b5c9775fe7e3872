// Tests of what devices are known by.

package learn

import (
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host"
)

// The CPU device is known by the name of the processor, not by one of its numbers, and by how many of its cores are used.
func TestTheCPUDeviceIsKnownByItsProcessor(t *testing.T) {
	require.True(t, strings.ContainsFunc(processor(), unicode.IsLetter), "%q", processor())
	keys := map[string]bool{}
	for _, workers := range []int{1, 2} {
		cpu, err := host.Open(host.Options{Workers: workers})
		require.NoError(t, err)
		defer cpu.Close()
		require.Contains(t, DeviceKey(cpu), ", "+processor()+", ")
		require.Equal(t, DeviceKey(cpu), DeviceKey(cpu))
		keys[DeviceKey(cpu)] = true
	}
	require.Len(t, keys, 2)
	require.Empty(t, DeviceKey(nil))
}
