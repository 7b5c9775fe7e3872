// Tests of how much memory the buffers of a program need, and of what is said when there is not enough.

package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// In an arena, a device needs what its last buffer ends at; on its own, each buffer is rounded up to 256 bytes.
func TestBytesOfDevices(t *testing.T) {
	g := &dag.Graph{Pipeline: &dag.Pipeline{Buffers: []dag.Buffer{{Name: "a", Place: dag.Device, Bytes: 256}, {Name: "b", Place: dag.Device, Bytes: 257, Device: 2}, {Name: "c", Place: dag.Device, Bytes: 1, Device: 2}, {Name: "h", Place: dag.Host, Bytes: 1000}}}}
	p := &plan.Plan{Memory: []plan.Placement{{Buffer: 1, Device: 2, Offset: 256, Bytes: 257}, {Buffer: 2, Device: 2, Offset: 0, Bytes: 1}, {Buffer: 0, Device: 0, Offset: 0, Bytes: 256}}}
	require.Equal(t, []int64{256, 0, 513}, DeviceBytes(g, p, Arena))
	require.Equal(t, []int64{256, 0, 512 + 256}, DeviceBytes(g, p, Separate))
	require.Empty(t, DeviceBytes(&dag.Graph{Pipeline: &dag.Pipeline{}}, &plan.Plan{}, Arena))
}

// The largest five are named, the first declared first where several have as many bytes.
func TestTheLargestBuffersAreNamed(t *testing.T) {
	g := &dag.Graph{Pipeline: &dag.Pipeline{}}
	for k, bytes := range []int64{5, 9, 7, 9, 1, 7, 2} {
		g.Buffers = append(g.Buffers, dag.Buffer{Name: string(rune('a' + k)), Place: dag.Device, Bytes: bytes, Device: int32(k / 6)})
	}
	require.Equal(t, []BufferSize{{"b", 9}, {"d", 9}, {"c", 7}, {"f", 7}, {"a", 5}}, largest(g, 0))
	require.Equal(t, []BufferSize{{"g", 2}}, largest(g, 1))
	e := &OutOfMemoryError{Device: 1, Needed: 2048, Largest: largest(g, 1), Err: cudart.ErrOutOfMemory}
	require.EqualError(t, e, "device 1 is out of memory: the program needs 2 KiB, 0 bytes are free; largest buffers: g 2 bytes")
	e.Free = -1
	require.EqualError(t, e, "device 1 is out of memory: the program needs 2 KiB; largest buffers: g 2 bytes")
	e.Device, e.Largest = -1, nil
	require.EqualError(t, e, "the host is out of memory: the run needs, with its results, 2 KiB")
	e.Device = 0
	require.EqualError(t, e, "device 0 is out of memory: the program needs 2 KiB")
	require.ErrorIs(t, e, cudart.ErrOutOfMemory)
}

// full is a platform without free memory.
type full struct {
	cudart.Platform
	free    int64
	unknown error
}

func (f full) Alloc(int32, int64) (cudart.Ptr, error) { return 0, cudart.ErrOutOfMemory }
func (f full) MemoryInfo(int32) (free, total int64, err error) {
	return f.free, 0, f.unknown
}

// What is free is told where the device tells it.
func TestWhatIsFreeIsTold(t *testing.T) {
	g := &dag.Graph{Pipeline: &dag.Pipeline{Buffers: []dag.Buffer{{Name: "a", Place: dag.Device, Bytes: 2048}}}}
	p := &plan.Plan{Memory: []plan.Placement{{Bytes: 2048}}}
	for _, mode := range []MemoryMode{Arena, Separate} {
		for _, c := range []struct {
			platform full
			want     string
		}{
			{full{free: 1024}, "device 0 is out of memory: the program needs 2 KiB, 1 KiB are free; largest buffers: a 2 KiB"},
			{full{free: 1024, unknown: cudart.ErrPoisoned}, "device 0 is out of memory: the program needs 2 KiB; largest buffers: a 2 KiB"},
		} {
			s := &storage{platform: c.platform, address: make([]cudart.Ptr, 1)}
			require.EqualError(t, s.takeDevice(g, p, mode), c.want)
		}
	}
}
