// Tests of where nodes may run, and of graphs that can be neither spread nor spilled.

package placement

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
)

// fixedBuffer declares a buffer that has to be on a device.
func fixedBuffer(b *dag.Builder, name string, device int32) dag.BufferID {
	return b.Buffer(dag.Buffer{Name: name, Place: dag.Device, DType: dag.U8, Shape: []int64{64}, Device: device, Fixed: true})
}

// onStream declares a node on a stream.
func onStream(b *dag.Builder, name string, stream int32, accesses ...dag.Access) {
	b.Stream(b.Task(name, accesses...), stream)
}

func TestWhereNodesHaveToRun(t *testing.T) {
	for _, c := range []struct {
		name    string
		declare func(b *dag.Builder, h, x, fixed dag.BufferID) // fixed is on device 1
		want    []int32
	}{
		{"anywhere", func(b *dag.Builder, h, x, _ dag.BufferID) {
			b.Task("task", b.InOut(x))
			b.Copy("up", b.Whole(x), b.Whole(h))
		}, []int32{Free, Free}},
		{"where they say, or where what they use is", func(b *dag.Builder, h, x, fixed dag.BufferID) {
			fixedTask(b, "fixed", 2, b.In(x))
			b.Task("uses", b.In(x), b.InOut(fixed))
			b.Copy("copies", b.Whole(x), b.Whole(fixed))
			b.Copy("up", b.Whole(fixed), b.Whole(h))
			b.Copy("within the host", b.Whole(b.Host("i", dag.U8, 64)), b.Whole(h))
			b.HostFunction("host", "f", b.Whole(h).In())
		}, []int32{2, 1, Free, 1, 0, 0}},
		{"with other devices' buffers", func(b *dag.Builder, _, x, fixed dag.BufferID) {
			b.Node(dag.Node{Name: "peer", Kind: dag.Task, Device: 2, Peer: true}, b.InOut(x), b.In(fixed))
			b.Task("with it", b.In(x))
		}, []int32{2, 0}},
		{"on a stream, with the one that is fixed", func(b *dag.Builder, _, x, fixed dag.BufferID) {
			onStream(b, "before", 3, b.InOut(x))
			onStream(b, "other", 4, b.InOut(x))
			onStream(b, "fixed", 3, b.InOut(fixed))
			onStream(b, "after", 3)
			onStream(b, "another", 4, b.InOut(x))
			b.Task("free")
		}, []int32{1, 0, 1, 1, 0, Free}},
		{"where a condition is tested", func(b *dag.Builder, _, x, fixed dag.BufferID) {
			b.If("fixed", "fixed(0..1) < 3", func() { b.Task("a", b.InOut(x)) }, nil)
			b.If("free", "x(0..1) < 3", func() { b.Task("b", b.InOut(fixed)) }, nil)
		}, []int32{1, Free, Free, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := dag.New("fixed")
			c.declare(b, b.Host("h", dag.U8, 64), b.Device("x", dag.U8, 64), fixedBuffer(b, "fixed", 1))
			g, err := b.Graph()
			require.NoError(t, err)
			p, err := NewProblem(g, 3, nil)
			require.NoError(t, err)
			require.Equal(t, c.want, p.Fixed)
		})
	}
}

func TestGraphsThatCannotBeSpreadAreRefused(t *testing.T) {
	for _, c := range []struct {
		devices int
		declare func(b *dag.Builder)
		want    string
	}{
		{0, func(*dag.Builder) {}, "there can be 1 to 64 devices, not 0"},
		{65, func(*dag.Builder) {}, "there can be 1 to 64 devices, not 65"},
		{2, func(b *dag.Builder) { b.Sync(dag.SyncExplicit) }, "with sync: explicit its order is its own, on the devices that it names"},
		{2, func(b *dag.Builder) { b.Ranks(0, 2) }, "each of its ranks has one device"},
		{2, func(b *dag.Builder) { b.Task("a", b.In(fixedBuffer(b, "x", 2))) }, `buffer "x" is on device 2, and there are 2 devices`},
		{2, func(b *dag.Builder) { fixedTask(b, "a", 2) }, `node "a" is on device 2, and there are 2 devices`},
		{2, func(b *dag.Builder) { fixedTask(b, "a", 1, b.In(fixedBuffer(b, "x", 0))) }, `node "a" is on device 1, but uses "x", which is on device 0`},
		{2, func(b *dag.Builder) { b.Task("a", b.In(fixedBuffer(b, "x", 0)), b.In(fixedBuffer(b, "y", 1))) },
			`node "a" is on device 0, but uses "y", which is on device 1`},
		{2, func(b *dag.Builder) {
			onStream(b, "free", 3)
			onStream(b, "a", 3, b.In(fixedBuffer(b, "v", 1)))
			onStream(b, "b", 3, b.In(fixedBuffer(b, "w", 0)))
		}, `stream 3 has "a" on device 1 and "b" on device 0`},
	} {
		b := dag.New("refused")
		c.declare(b)
		g, err := b.Graph()
		require.NoError(t, err)
		_, err = NewProblem(g, c.devices, nil)
		require.EqualError(t, err, "the pipeline cannot be spread over devices: "+c.want)
		require.ErrorIs(t, err, ErrCannot)
	}
}

func TestPlacementsThatAreNoneAreRefused(t *testing.T) {
	b := dag.New("placed")
	b.Task("a")
	b.Repeat("loop", dag.Loop{Times: 2}, func() { fixedTask(b, "in it", 1) })
	g, err := b.Graph()
	require.NoError(t, err)
	p, err := NewProblem(g, 2, nil)
	require.NoError(t, err)
	for _, c := range []struct {
		at   []int32
		want string
	}{
		{[]int32{0, 1, 1}, ""},
		{[]int32{0, 1}, "2 devices for 3 nodes"},
		{[]int32{0, 1, 1, 1}, "4 devices for 3 nodes"},
		{[]int32{2, 1, 1}, `node "a" is placed on device 2 of 2`},
		{[]int32{0, -1, 1}, `node "loop" is placed on device -1 of 2`},
		{[]int32{0, 0, 0}, `node "in it" is placed on device 0, but belongs on device 1`},
	} {
		_, err := Transform(p, c.at)
		if c.want == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, "the pipeline cannot be spread over devices: "+c.want)
	}
}

func TestGraphsThatCannotBeSpilledAreRefused(t *testing.T) {
	for want, declare := range map[string]func(b *dag.Builder){
		"with sync: explicit its order is its own": func(b *dag.Builder) { b.Sync(dag.SyncExplicit) },
		"it is one of several ranks":               func(b *dag.Builder) { b.Ranks(0, 2) },
	} {
		b := dag.New("refused")
		declare(b)
		g, err := b.Graph()
		require.NoError(t, err)
		_, err = NewSpillProblem(g, 1<<20, nil, nil)
		require.EqualError(t, err, "the pipeline cannot be spilled to host memory: "+want)
		require.ErrorIs(t, err, ErrCannotSpill)
	}
}
