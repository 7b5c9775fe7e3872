// Tests of what devices are known by.

package learn

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
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

// Copies of as many bytes take as long between the same kinds of memory, whichever buffers they are of.
func TestCopiesAreKnownByTheKindsOfMemory(t *testing.T) {
	b := dag.New("kinds")
	for _, of := range []string{"a", "b"} {
		own, too, other := b.Device("own "+of, dag.U8, 64), b.Device("too "+of, dag.U8, 64), b.Device("other "+of, dag.U8, 64)
		b.OnDevice(other, 1)
		host, more, pageable := b.Host("host "+of, dag.U8, 64), b.Host("more "+of, dag.U8, 64), b.Host("pageable "+of, dag.U8, 64)
		b.Pageable(pageable)
		for k, c := range [][2]dag.BufferID{{own, host}, {own, pageable}, {own, too}, {own, other}, {host, own}, {pageable, own}, {host, more}, {host, pageable}} {
			b.Copy(fmt.Sprint(of, k), b.Whole(c[0]), b.Whole(c[1]))
		}
	}
	g, err := b.Graph()
	require.NoError(t, err)
	prints := Fingerprints(g)
	half := g.Len() / 2
	seen := map[string]bool{}
	for k, print := range prints[:half] {
		require.False(t, seen[print], "copy %d is like another one", k)
		seen[print] = true
		require.Equal(t, print, prints[half+k], "copy %d", k)
	}
}
