// A test of which devices are given access to each other's memory.

package engine

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
)

// peering is a platform that notes which device may reach which other one.
type peering struct {
	cudart.Platform
	enabled []string
}

func (p *peering) EnablePeer(device, peer int32) error {
	if text := fmt.Sprint(device, " reaches ", peer); !slices.Contains(p.enabled, text) {
		p.enabled = append(p.enabled, text)
	}
	return p.Platform.EnablePeer(device, peer)
}

// Devices that copy to each other reach each other, and the device of a kernel reaches those of its buffers.
func TestDevicesReachWhatTheyUse(t *testing.T) {
	b := dag.New("peers")
	b.Use(kernels.Library())
	var x []dag.BufferID
	for device := range int32(4) {
		x = append(x, b.Device(fmt.Sprint("x", device), dag.F32, 4))
		b.OnDevice(x[device], device)
	}
	b.Memset("start", b.Whole(x[0]), 1)
	b.Copy("copy", b.Whole(x[1]), b.Whole(x[0]))
	b.Kernel("reach", "add", dag.Args{4, b.Whole(x[1]), b.Whole(x[2]), b.Whole(x[2])}, dag.RunOn(2), dag.WithPeers())
	b.Kernel("own", "square", dag.Args{4, b.Whole(x[3]), b.Whole(x[3])})
	g, err := b.Graph()
	require.NoError(t, err)
	plan, err := planner.New(t.Context(), g, planner.Options{})
	require.NoError(t, err)
	cpu, err := host.Open(host.Options{Devices: 4})
	require.NoError(t, err)
	defer cpu.Close()
	platform := &peering{Platform: cpu}
	p, err := New(t.Context(), g, plan, platform, planner.GraphEdges, Options{})
	require.NoError(t, err)
	defer p.Close()
	slices.Sort(platform.enabled)
	require.Equal(t, []string{"0 reaches 1", "1 reaches 0", "2 reaches 1"}, platform.enabled)
}
