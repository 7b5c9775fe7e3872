// Tests of copies and sets of tiles: memory of several rows with bytes between them, which must stay as they are.

package conformance

import (
	"context"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
)

// A tile is rows of memory: its first byte's offset, and the bytes from one row to the next.
type tile struct{ at, pitch int64 }

// copyTile copies rows of a width between two tiles.
func (r *rig) copyTile(s int, to cudart.Ptr, toDevice int32, target tile, from cudart.Ptr, fromDevice int32, source tile, rows, width int64) cudart.Command {
	return cudart.Command{Kind: cudart.CopyMemory, Label: "tile", Node: -1, Stream: r.s[s], Dst: to + cudart.Ptr(target.at), DstDevice: toDevice,
		Src: from + cudart.Ptr(source.at), SrcDevice: fromDevice, Bytes: rows * width, Rows: rows, DstPitch: target.pitch, SrcPitch: source.pitch}
}

// want copies rows in Go.
func want(to []byte, target tile, from []byte, source tile, rows, width int64) {
	for i := range rows {
		copy(to[target.at+i*target.pitch:][:width], from[source.at+i*source.pitch:][:width])
	}
}

// thrice runs commands that follow each other as a list, as a captured graph and as a graph built node by node; check is called after each.
func (r *rig) thrice(commands []cudart.Command, before, check func()) {
	deps := make([][]int32, len(commands))
	for i := range deps[1:] {
		deps[i+1] = []int32{int32(i)}
	}
	l := r.list(r.s[0], commands...)
	captured := r.graph(l.Capture(cudart.GraphOptions{}))
	built := r.graph(r.p.BuildGraph(commands, deps, cudart.GraphOptions{Origin: r.s[0]}))
	require.Equal(r, len(commands), captured.Nodes())
	require.Equal(r, len(commands), built.Nodes())
	for _, run := range []func() error{l.Submit, func() error { return captured.Launch(r.s[0]) }, func() error { return built.Launch(r.s[0]) }} {
		before()
		require.NoError(r, run())
		require.NoError(r, r.s[0].Synchronize(context.Background()))
		check()
	}
}

func tileCopies(r *rig) {
	for i := range r.host {
		r.host[i] = uint32(i) * 2654435761
	}
	h, g := r.p.HostBytes(r.h, bytes), r.p.HostBytes(r.g, bytes)
	d, e := make([]byte, bytes), make([]byte, bytes) // what the device buffers must hold
	for _, c := range []struct {
		rows, width   int64
		a, b, c, down tile
	}{
		{16, 64, tile{0, 256}, tile{128, 192}, tile{64, 64}, tile{0, 128}},         // c has no gaps
		{16, 64, tile{64, 64}, tile{0, 64}, tile{256, 64}, tile{0, 64}},            // nothing has
		{7, 13, tile{3, 101}, tile{11, 257}, tile{1, 14}, tile{5, 77}},             // odd everywhere
		{2, 1, tile{0, 4095}, tile{1, 2}, tile{7, 1000}, tile{4, 3}},               // two bytes
		{255, 8, tile{0, 16}, tile{8, 16}, tile{0, 16}, tile{8, 16}},               // columns of a matrix
		{3, 1000, tile{512, 1024}, tile{100, 1450}, tile{0, 1001}, tile{17, 1100}}, // wide rows
	} {
		commands := []cudart.Command{
			r.set(0, r.d, 1), r.set(0, r.e, 1),
			r.copyTile(0, r.d, 0, c.b, r.h, -1, c.a, c.rows, c.width),
			r.copyTile(0, r.e, 0, c.c, r.d, 0, c.b, c.rows, c.width),
			r.copyTile(0, r.g, -1, c.down, r.e, 0, c.c, c.rows, c.width),
		}
		r.thrice(commands, func() { clear(g) }, func() {
			clear(d)
			clear(e)
			back := make([]byte, bytes)
			want(d, c.b, h, c.a, c.rows, c.width)
			want(e, c.c, d, c.b, c.rows, c.width)
			want(back, c.down, e, c.c, c.rows, c.width)
			require.Equal(r, back, g, "%+v", c)
			for memory, bytesOf := range map[cudart.Ptr][]byte{r.d: d, r.e: e} {
				r.submit(r.down(0, r.g, memory))
				r.sync()
				require.Equal(r, bytesOf, g, "%+v: bytes between the rows", c)
			}
		})
		r.thrice([]cudart.Command{r.copyTile(0, r.g, -1, c.b, r.h, -1, c.a, c.rows, c.width)}, func() { clear(g) }, func() {
			back := make([]byte, bytes)
			want(back, c.b, h, c.a, c.rows, c.width)
			require.Equal(r, back, g, "%+v: from host to host", c)
		})
	}
	// Pageable memory, whose copies end before the submission does.
	p, err := r.p.AllocHost(bytes, true)
	require.NoError(r, err)
	r.Cleanup(func() { require.NoError(r, r.p.Free(p)) })
	pageable := r.p.HostBytes(p, bytes)
	copy(pageable, h)
	up := r.copyTile(0, r.d, 0, tile{0, 32}, p, -1, tile{8, 64}, 32, 16)
	down := r.copyTile(0, p, -1, tile{0, 16}, r.d, 0, tile{0, 32}, 32, 16)
	up.SrcPageable, down.DstPageable = true, true
	r.submit(up, down)
	back := make([]byte, bytes)
	copy(back, h)
	want(back, tile{0, 16}, h, tile{8, 64}, 32, 16)
	require.Equal(r, back, pageable)
}

func tileSets(r *rig) {
	g := r.p.HostBytes(r.g, bytes)
	for _, c := range []struct {
		width       uint8
		rows, bytes int64
		tile        tile
	}{
		{1, 5, 13, tile{3, 17}}, {1, 64, 1, tile{0, 2}}, {2, 9, 30, tile{2, 34}}, {4, 16, 64, tile{64, 256}}, {4, 3, 4, tile{0, 4}}, {4, 2, 1000, tile{8, 2000}},
	} {
		pattern := uint32(0x12345678)
		all := cudart.Command{Kind: cudart.SetMemory, Label: "tile", Node: -1, Stream: r.s[0], Dst: r.d + cudart.Ptr(c.tile.at),
			Bytes: c.rows * c.bytes, Rows: c.rows, DstPitch: c.tile.pitch, Pattern: pattern & (1<<(8*c.width) - 1), Width: c.width}
		r.thrice([]cudart.Command{r.set(0, r.d, 1), all, r.down(0, r.g, r.d)}, func() { clear(g) }, func() {
			b := make([]byte, bytes)
			for row := range c.rows {
				for i := range c.bytes {
					b[c.tile.at+row*c.tile.pitch+i] = byte(pattern >> (8 * (i % int64(c.width))))
				}
			}
			require.Equal(r, b, g, "%+v", c)
		})
	}
}

func tilePeers(r *rig) {
	far := r.far("copies of tiles between devices")
	if far == 0 {
		return
	}
	for i := range r.host {
		r.host[i] = uint32(i) * 3
	}
	h, g := r.p.HostBytes(r.h, bytes), r.p.HostBytes(r.g, bytes)
	a, b := tile{96, 100}, tile{5, 200}
	r.thrice([]cudart.Command{
		r.up(0, r.d, r.h), r.set(0, r.e, 1),
		r.copyTile(0, far, 1, b, r.d, 0, a, 20, 33),
		r.copyTile(0, r.e, 0, a, far, 1, b, 20, 33),
		r.down(0, r.g, r.e),
	}, func() { clear(g) }, func() {
		back := make([]byte, bytes)
		want(back, a, h, a, 20, 33)
		require.Equal(r, back, g)
	})
}

func tileChanges(r *rig) {
	for i := range r.host {
		r.host[i] = uint32(i) + 1
	}
	h, g := r.p.HostBytes(r.h, bytes), r.p.HostBytes(r.g, bytes)
	a, b := tile{0, 256}, tile{64, 128}
	commands := []cudart.Command{
		r.up(0, r.d, r.h),
		r.mix(0, r.d, r.d, 0),
		r.copyTile(0, r.g, -1, b, r.d, 0, a, 8, 64),
		{Kind: cudart.SetMemory, Label: "tile", Node: -1, Stream: r.s[0], Dst: r.d, Bytes: 32, Rows: 8, DstPitch: 256, Pattern: 9, Width: 4},
		r.copyTile(0, r.g+2048, -1, tile{0, 4}, r.d, 0, a, 8, 4),
	}
	check := func(to, from int64, seed uint32) {
		mixedAll := make([]byte, bytes)
		for i, x := range r.host {
			wordsOf(mixedAll)[i] = mixed(x, x, seed)
		}
		back := make([]byte, bytes)
		want(back, tile{b.at + to, b.pitch}, mixedAll, tile{a.at + from, a.pitch}, 8, 64)
		for i := range int64(8) {
			wordsOf(back)[512+i] = 9
		}
		require.Equal(r, back, g)
		require.Equal(r, uint32(1), wordsOf(h)[0])
	}
	deps := [][]int32{nil, {0}, {1}, {2}, {3}}
	l := r.list(r.s[0], commands...)
	captured := r.graph(l.Capture(cudart.GraphOptions{}))
	built := r.graph(r.p.BuildGraph(commands, deps, cudart.GraphOptions{Origin: r.s[0]}))
	runs := []func() error{l.Submit, func() error { return captured.Launch(r.s[0]) }, func() error { return built.Launch(r.s[0]) }}
	for _, run := range runs {
		clear(g)
		require.NoError(r, run())
		r.sync()
		check(0, 0, 0)
	}
	// The copy takes other columns and writes them elsewhere; what a launch was given before stays.
	next := r.mix(0, r.d, r.d, 5)
	for _, in := range []interface {
		SetArgs(index int, grid [3]uint32, args []cudart.Value) error
		SetCopy(index int, dst, src cudart.Ptr) error
	}{l, built} {
		require.NoError(r, in.SetArgs(1, next.Grid, next.Args))
		require.NoError(r, in.SetCopy(2, r.g+cudart.Ptr(b.at)-16, r.d+32))
		require.NoError(r, in.SetCopy(3, r.d, 0))
	}
	require.NoError(r, captured.Update(l))
	for _, run := range runs {
		clear(g)
		require.NoError(r, run())
		r.sync()
		check(-16, 32, 5)
	}
	// The set moves too. Its rows are then where the last copy does not look.
	for _, in := range []interface {
		SetCopy(index int, dst, src cudart.Ptr) error
	}{l, built} {
		require.NoError(r, in.SetCopy(3, r.e, 0))
	}
	require.NoError(r, captured.Update(l))
	for _, run := range runs {
		clear(g)
		require.NoError(r, run())
		r.sync()
		require.Equal(r, mixed(1, 1, 5), r.back[512])
		r.submit(r.down(0, r.g, r.e))
		r.sync()
		require.Equal(r, uint32(9), r.back[7*64])
		r.submit(r.set(0, r.e, 4))
		r.sync()
	}
}

func misusedTiles(r *rig) {
	good := r.copyTile(0, r.d, 0, tile{0, 64}, r.h, -1, tile{0, 64}, 4, 32)
	require.NoError(r, r.try(good))
	for _, change := range []func(*cudart.Command){
		func(c *cudart.Command) { c.Bytes++ },
		func(c *cudart.Command) { c.DstPitch = 31 },
		func(c *cudart.Command) { c.SrcPitch = 0 },
		func(c *cudart.Command) { c.SrcPitch = cudart.MaxPitch + 1 },
		func(c *cudart.Command) { c.Kind, c.Width, c.DstPitch = cudart.SetMemory, 4, 62 },
	} {
		bad := good
		change(&bad)
		require.Error(r, r.try(bad))
	}
	r.sync()
}
