// Tests of launches in clusters, on a fake driver.

//go:build linux && (amd64 || arm64)

package driver

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
)

func TestLaunchesInClusters(t *testing.T) {
	d := newFakeDriver(t)
	p, w := earlyWorld(t, d)
	launch := func(cluster uint32, change func(*cudart.Command)) cudart.Command {
		c := w.launch(w.origin, "k")
		c.Cluster = [3]uint32{cluster, 1, 1}
		change(&c)
		return c
	}
	commands := []cudart.Command{
		launch(2, func(c *cudart.Command) {}),
		launch(4, func(c *cudart.Command) { c.Early = true }),
		launch(1, func(c *cudart.Command) { c.Cooperative = true }),
		w.launch(w.origin, "plain"),
	}
	l, err := p.Encode(commands, cudart.ListOptions{Origin: w.origin})
	require.NoError(t, err)
	size := func(n uint32) launchAttribute {
		return launchAttribute{id: attributeCluster, value: [16]uint32{n, 1, 1}}
	}
	early, together := launchAttribute{id: attributeEarly, value: [16]uint32{1}}, launchAttribute{id: attributeCooperative, value: [16]uint32{1}}
	submit := func() [][]launchAttribute {
		from := d.mark()
		require.NoError(t, l.Submit())
		return d.attributes(from)
	}
	require.Equal(t, [][]launchAttribute{{size(2)}, {size(4), early}, {size(1), together}, nil}, submit())
	args := commands[0].Args
	require.NoError(t, l.SetArgs(0, [3]uint32{0, 1, 1}, args))
	require.Equal(t, [][]launchAttribute{{size(4)}, {size(1), together}, nil}, submit(), "nothing to begin before")
	require.NoError(t, l.SetArgs(0, [3]uint32{6, 1, 1}, args))
	require.Equal(t, [][]launchAttribute{{size(2)}, {size(4), early}, {size(1), together}, nil}, submit())
	require.EqualError(t, l.SetArgs(0, [3]uint32{5, 1, 1}, args), `node "k": kernel scale: grid.x is 5, which is not a multiple of cluster.x, 2`)
	require.NoError(t, l.Close())

	from := d.mark()
	commands[0].Grid[0] = 0
	g, err := p.BuildGraph(commands[:1], [][]int32{nil}, cudart.GraphOptions{})
	require.NoError(t, err)
	var attributes []uint64
	for _, c := range d.log[from:] {
		if c.f == cuGraphKernelNodeSetAttribute {
			attributes = append(attributes, uint64(c.args[1]))
		}
	}
	require.Equal(t, []uint64{attributeCluster}, attributes)
	require.NoError(t, g.Close())

	for cluster, problem := range map[[3]uint32]string{
		{3, 1, 1}: `grid.x is 4, which is not a multiple of cluster.x, 3`,
		{2, 0, 1}: `cluster.y is 0`,
		{4, 4, 1}: `a cluster of [4, 4] blocks; at most 8 are possible`,
	} {
		c := w.launch(w.origin, "k")
		c.Cluster = cluster
		_, err := p.Encode([]cudart.Command{c}, cudart.ListOptions{Origin: w.origin})
		require.EqualError(t, err, `node "k": kernel scale: `+problem)
	}
	old := p.devices[0].info.Capability
	p.devices[0].info.Capability = [2]int{8, 6}
	_, err = p.Encode(commands[2:3], cudart.ListOptions{Origin: w.origin})
	require.EqualError(t, err, `not supported: node "k": kernel scale: devices of compute capability 9.0 and newer have clusters, and device 0 has 8.6`)
	require.ErrorIs(t, err, cudart.ErrUnsupported)
	p.devices[0].info.Capability = old
	require.NoError(t, w.close())
	d.clean(t)
}
