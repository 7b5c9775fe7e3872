// Tests of copies and sets of tiles: the bytes that the driver is given for each, in streams and in graphs, and graphs whose tiles move.

//go:build linux && (amd64 || arm64)

package driver

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
)

// layoutOf builds a structure as the C compiler of a 64-bit machine lays it out: words at offsets, zeroes elsewhere.
func layoutOf(size int, words map[int]uint64, halves map[int]uint32) []byte {
	b := make([]byte, size)
	for at, v := range words {
		binary.LittleEndian.PutUint64(b[at:], v)
	}
	for at, v := range halves {
		binary.LittleEndian.PutUint32(b[at:], v)
	}
	return b
}

// tileCopies are copies of 3 rows of 40 bytes, 128 and 64 bytes apart, in every direction.
func tileCopies(w *bench, far cudart.Ptr) []cudart.Command {
	c := cudart.Command{Kind: cudart.CopyMemory, Stream: w.origin, Bytes: 120, Rows: 3, DstPitch: 128, SrcPitch: 64}
	up, down, on, across, stay := c, c, c, c, c
	up.Dst, up.Src, up.SrcDevice = w.device+8, w.host+16, -1
	down.Dst, down.DstDevice, down.Src = w.host+16, -1, w.device+8
	on.Dst, on.Src = w.device+8, w.device+512
	across.Dst, across.DstDevice, across.Src = far+24, 1, w.device
	stay.Dst, stay.DstDevice, stay.Src, stay.SrcDevice = w.host+1024, -1, w.host, -1
	return []cudart.Command{up, down, on, across, stay}
}

const (
	typeHost    = 1 // CU_MEMORYTYPE_HOST
	typeDevice  = 2
	typeUnified = 4
)

func TestRowsOfCopiesInStreams(t *testing.T) {
	d := newFakeDriver(t)
	p := d.open(t)
	w, err := newBench(p)
	require.NoError(t, err)
	far, err := p.Alloc(1, 1024)
	require.NoError(t, err)
	l, err := p.Encode(tileCopies(w, far), cudart.ListOptions{Origin: w.origin})
	require.NoError(t, err)
	from := d.mark()
	require.NoError(t, l.Submit())
	var calls []fakeCall
	for _, c := range d.log[from:] {
		if c.f == cuMemcpy2DAsync {
			calls = append(calls, c)
			require.Equal(t, w.origin.Handle(), c.args[1])
		}
	}
	// By offset: source type 16, host 24, device 32, pitch 48; destination type 72, host 80, device 88, pitch 104; width 112, height 120.
	at, hostAt, farAt := uint64(w.device), uint64(w.host), uint64(far)
	for i, want := range [][]byte{
		layoutOf(128, map[int]uint64{24: hostAt + 16, 48: 64, 88: at + 8, 104: 128, 112: 40, 120: 3}, map[int]uint32{16: typeHost, 72: typeDevice}),
		layoutOf(128, map[int]uint64{32: at + 8, 48: 64, 80: hostAt + 16, 104: 128, 112: 40, 120: 3}, map[int]uint32{16: typeDevice, 72: typeHost}),
		layoutOf(128, map[int]uint64{32: at + 512, 48: 64, 88: at + 8, 104: 128, 112: 40, 120: 3}, map[int]uint32{16: typeDevice, 72: typeDevice}),
		layoutOf(128, map[int]uint64{32: at, 48: 64, 88: farAt + 24, 104: 128, 112: 40, 120: 3}, map[int]uint32{16: typeUnified, 72: typeUnified}),
		layoutOf(128, map[int]uint64{24: hostAt, 48: 64, 80: hostAt + 1024, 104: 128, 112: 40, 120: 3}, map[int]uint32{16: typeHost, 72: typeHost}),
	} {
		require.Equal(t, want, fakeBytes(calls[i].args[0], 128), "copy %d", i)
	}
	require.NoError(t, l.SetCopy(0, w.device+256, w.host+32))
	from = d.mark()
	require.NoError(t, l.Submit())
	require.Equal(t, layoutOf(128, map[int]uint64{24: hostAt + 32, 48: 64, 88: at + 256, 104: 128, 112: 40, 120: 3}, map[int]uint32{16: typeHost, 72: typeDevice}),
		fakeBytes(d.log[from+1].args[0], 128))
	require.NoError(t, l.Close())
	require.NoError(t, p.Free(far))
	require.NoError(t, w.close())
	d.clean(t)
}

// tileSets are sets of 5 rows of 24 bytes, 64 apart, by patterns of 1, 2 and 4 bytes.
func tileSets(w *bench) []cudart.Command {
	var sets []cudart.Command
	for _, width := range []uint8{1, 2, 4} {
		sets = append(sets, cudart.Command{Kind: cudart.SetMemory, Stream: w.origin, Dst: w.device + 16, Bytes: 120, Rows: 5, DstPitch: 64, Pattern: 7, Width: width})
	}
	return sets
}

func TestRowsOfSetsInStreams(t *testing.T) {
	d := newFakeDriver(t)
	p := d.open(t)
	w, err := newBench(p)
	require.NoError(t, err)
	l, err := p.Encode(tileSets(w), cudart.ListOptions{Origin: w.origin})
	require.NoError(t, err)
	from := d.mark()
	require.NoError(t, l.Submit())
	require.Equal(t, []string{"cuCtxPushCurrent", "cuMemsetD2D8Async", "cuMemsetD2D16Async", "cuMemsetD2D32Async", "cuCtxPopCurrent"}, d.names(from))
	for i, elements := range []uintptr{24, 12, 6} {
		require.Equal(t, []uintptr{uintptr(w.device) + 16, 64, 7, elements, 5, w.origin.Handle()}, d.log[from+1+i].args[:6])
	}
	require.NoError(t, l.Close())
	require.NoError(t, w.close())
	d.clean(t)
}

func TestRowsInGraphs(t *testing.T) {
	d := newFakeDriver(t)
	p := d.open(t)
	w, err := newBench(p)
	require.NoError(t, err)
	far, err := p.Alloc(1, 1024)
	require.NoError(t, err)
	commands := append(tileCopies(w, far), tileSets(w)...)
	g, err := p.BuildGraph(commands, make([][]int32, len(commands)), cudart.GraphOptions{Origin: w.origin})
	require.NoError(t, err)
	// CUDA_MEMCPY3D by offset: source type 32, host 40, device 48, pitch 72, height 80; destination type 120, host 128, device 136, pitch
	// 160, height 168; width 176, height 184, depth 192. CUDA_MEMSET_NODE_PARAMS: address 0, pitch 8, value 16, element 20, width 24, height 32.
	at, hostAt, farAt := uint64(w.device), uint64(w.host), uint64(far)
	copyOf := func(words map[int]uint64, source, target uint32) []byte {
		for at, v := range map[int]uint64{72: 64, 80: 3, 160: 128, 168: 3, 176: 40, 184: 3, 192: 1} {
			words[at] = v
		}
		return layoutOf(200, words, map[int]uint32{32: source, 120: target})
	}
	setOf := func(element uint32) []byte {
		return layoutOf(40, map[int]uint64{0: at + 16, 8: 64, 24: 24 / uint64(element), 32: 5}, map[int]uint32{16: 7, 20: element})
	}
	want := [][]byte{
		copyOf(map[int]uint64{40: hostAt + 16, 136: at + 8}, typeHost, typeDevice),
		copyOf(map[int]uint64{48: at + 8, 128: hostAt + 16}, typeDevice, typeHost),
		copyOf(map[int]uint64{48: at + 512, 136: at + 8}, typeDevice, typeDevice),
		copyOf(map[int]uint64{48: at, 136: farAt + 24}, typeUnified, typeUnified),
		copyOf(map[int]uint64{40: hostAt, 128: hostAt + 1024}, typeHost, typeHost),
		setOf(1), setOf(2), setOf(4),
	}
	require.Equal(t, want, d.records)

	// Nodes of several rows keep their addresses in a driver's graph, so the graph is made anew, and the other nodes keep what was set.
	d.records = nil
	from := d.mark()
	require.NoError(t, g.SetCopy(2, w.device+8, w.device+256))
	names := d.names(from)
	require.NotContains(t, names, "cuGraphExecMemcpyNodeSetParams")
	require.Equal(t, 1, count(names, "cuGraphInstantiateWithFlags"))
	require.Equal(t, 1, count(names, "cuGraphExecDestroy"))
	require.Equal(t, 1, count(names, "cuGraphDestroy"))
	want[2] = copyOf(map[int]uint64{48: at + 256, 136: at + 8}, typeDevice, typeDevice)
	require.Equal(t, want, d.records)
	require.NoError(t, g.SetCopy(7, w.device+16, 0))
	require.Equal(t, cudart.Live{Memory: 3, Streams: 2, Events: 2, Modules: 1, Graphs: 1}, p.Live())
	for _, f := range []function{cuGraphCreate, cuGraphAddMemsetNode, cuGraphInstantiateWithFlags} {
		from = d.mark()
		d.failOn[f] = 999
		require.Error(t, g.SetCopy(7, w.device+16, 0))
		require.NotContains(t, d.names(from), "cuGraphExecDestroy", "the old graph stays")
		delete(d.failOn, f)
	}
	require.NoError(t, g.Launch(w.origin))
	require.NoError(t, g.Close())
	require.NoError(t, p.Free(far))
	require.NoError(t, w.close())
	d.clean(t)
}

func count(names []string, name string) int {
	n := 0
	for _, s := range names {
		if s == name {
			n++
		}
	}
	return n
}

func TestGraphsWithoutTilesAreChangedInPlace(t *testing.T) {
	d := newFakeDriver(t)
	p := d.open(t)
	w, err := newBench(p)
	require.NoError(t, err)
	up := cudart.Command{Kind: cudart.CopyMemory, Stream: w.origin, Dst: w.device, Src: w.host, SrcDevice: -1, Bytes: 1024, Rows: 1, DstPitch: 1024, SrcPitch: 1024}
	g, err := p.BuildGraph([]cudart.Command{up}, [][]int32{nil}, cudart.GraphOptions{Origin: w.origin})
	require.NoError(t, err)
	require.Equal(t, [][]byte{layoutOf(200, map[int]uint64{40: uint64(w.host), 136: uint64(w.device), 176: 1024, 184: 1, 192: 1}, map[int]uint32{32: typeHost, 120: typeDevice})}, d.records)
	from := d.mark()
	require.NoError(t, g.SetCopy(0, w.device, w.host+512))
	require.Equal(t, []string{"cuCtxPushCurrent", "cuGraphExecMemcpyNodeSetParams", "cuCtxPopCurrent"}, d.names(from))
	require.NoError(t, g.Close())
	require.NoError(t, w.close())
	d.clean(t)
}

func TestCapturedGraphsWhoseTilesMove(t *testing.T) {
	d := newFakeDriver(t)
	p := d.open(t)
	w, err := newBench(p)
	require.NoError(t, err)
	tiles, err := p.Encode(tileSets(w), cudart.ListOptions{Origin: w.origin})
	require.NoError(t, err)
	plain, err := p.Encode([]cudart.Command{w.launch(w.origin, "a")}, cudart.ListOptions{Origin: w.origin})
	require.NoError(t, err)
	for _, c := range []struct {
		list   cudart.List
		update uint32
		anew   bool
		detail string
	}{
		{tiles, 0, false, ""}, {tiles, 5, true, ""}, {tiles, 6, true, ""}, {tiles, 2, false, "the graphs differ in shape"},
		{plain, 5, false, "a node's parameters changed in a way that cannot be updated; make a new graph instead"},
	} {
		g, err := c.list.Capture(cudart.GraphOptions{Priorities: true})
		require.NoError(t, err)
		d.update = c.update
		from := d.mark()
		err = g.Update(c.list)
		if c.detail == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, c.detail)
		}
		calls := d.log[from:]
		anew := slices.IndexFunc(calls, func(c fakeCall) bool { return c.f == cuGraphInstantiateWithFlags })
		require.Equal(t, c.anew, anew >= 0)
		if anew >= 0 {
			require.EqualValues(t, instantiatePriorities, calls[anew].args[2])
		}
		require.NoError(t, g.Launch(w.origin))
		require.NoError(t, g.Close())
	}
	require.NoError(t, tiles.Close())
	require.NoError(t, plain.Close())
	require.NoError(t, w.close())
	d.clean(t)
}

func TestRowsThatCannotBe(t *testing.T) {
	d := newFakeDriver(t)
	p := d.open(t)
	w, err := newBench(p)
	require.NoError(t, err)
	good := tileCopies(w, 0)[0]
	for want, change := range map[string]func(*cudart.Command){
		"a copy of rows that do not divide its bytes": func(c *cudart.Command) { c.Bytes = 121 },
		"lie closer than they are wide":               func(c *cudart.Command) { c.SrcPitch = 39 },
		"lie more than 2147483647 bytes apart":        func(c *cudart.Command) { c.DstPitch = 1 << 31 },
		"a set of rows that are no multiples of":      func(c *cudart.Command) { c.Kind, c.Width, c.DstPitch = cudart.SetMemory, 4, 126 },
	} {
		c := good
		change(&c)
		_, err := p.Encode([]cudart.Command{c}, cudart.ListOptions{Origin: w.origin})
		require.ErrorContains(t, err, want)
		_, err = p.BuildGraph([]cudart.Command{c}, [][]int32{nil}, cudart.GraphOptions{Origin: w.origin})
		require.ErrorContains(t, err, want)
	}
	require.NoError(t, w.close())
	d.clean(t)
}
