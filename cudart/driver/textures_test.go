// Tests of texture objects on a fake driver.

//go:build linux && (amd64 || arm64)

package driver

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
)

// image is a texture that fits into the memory that the tests allocate, 256 rows of 4096 bytes.
func image() *cudart.Texture {
	return &cudart.Texture{Element: cudart.ElementU8, Channels: 4, Width: 1000, Height: 256, Pitch: 4096,
		Address: [3]cudart.AddressMode{cudart.Wrap, cudart.Mirror}, Linear: true, Normalized: true, Fractions: true}
}

// through is a launch whose first argument is read through a texture.
func (w *bench) through(at cudart.Ptr, t *cudart.Texture) cudart.Command {
	c := w.launch(w.origin, "fetch")
	c.Args = []cudart.Value{{Pointer: true, Ptr: at, Bytes: 1 << 20, Size: 8, Texture: t}, {Bits: 7, Size: 4}}
	return c
}

// handles are the first arguments of the launches since a place in the log.
func (d *fakeDriver) handles(from int) (list []uint64) {
	for _, c := range d.log[from:] {
		if c.f == cuLaunchKernel {
			params := *(**[2]*uint64)(unsafe.Pointer(&c.args[9]))
			list = append(list, *params[0])
		}
	}
	return list
}

func (d *fakeDriver) count(f function) (n int) {
	for _, c := range d.log {
		if c.f == f {
			n++
		}
	}
	return n
}

func TestTextureObjects(t *testing.T) {
	d := newFakeDriver(t)
	p := d.open(t)
	w, err := newBench(p)
	require.NoError(t, err)
	memory, err := p.Alloc(0, 1<<20)
	require.NoError(t, err)
	line := &cudart.Texture{Element: cudart.ElementS16, Channels: 1, Width: 300}
	l, err := p.Encode([]cudart.Command{w.through(memory, image()), w.through(memory, image()), w.through(memory+512, line)}, cudart.ListOptions{Origin: w.origin})
	require.NoError(t, err)
	require.Equal(t, 2, d.count(cuTexObjectCreate), "two launches share an object")
	require.Equal(t, [][]byte{
		layoutOf(144, map[int]uint64{8: uint64(memory), 24: 1000, 32: 256, 40: 4096}, map[int]uint32{0: 3, 16: 1, 20: 4}),
		layoutOf(104, nil, map[int]uint32{4: 2, 8: 1, 12: 1, 16: 2}),
		layoutOf(144, map[int]uint64{8: uint64(memory) + 512, 24: 600}, map[int]uint32{0: 2, 16: 9, 20: 1}),
		layoutOf(104, nil, map[int]uint32{16: 1}),
	}, d.records)
	from := d.mark()
	require.NoError(t, l.Submit())
	handles := d.handles(from)
	require.Len(t, handles, 3)
	require.Equal(t, handles[0], handles[1])
	for _, h := range handles {
		require.Equal(t, cuTexObjectCreate, d.alive[uintptr(h)])
	}

	// Another image in the place of the first, and a graph of the same launches.
	require.NoError(t, l.SetArgs(0, [3]uint32{4, 1, 1}, w.through(memory+4096, &cudart.Texture{Element: cudart.ElementF32, Channels: 1, Width: 64, Height: 1, Pitch: 256}).Args))
	from = d.mark()
	require.NoError(t, l.Submit())
	changed := d.handles(from)
	require.NotEqual(t, handles[0], changed[0])
	require.Equal(t, handles[1:], changed[1:])
	require.Equal(t, 3, d.count(cuTexObjectCreate))
	g, err := p.BuildGraph([]cudart.Command{w.through(memory, image())}, [][]int32{nil}, cudart.GraphOptions{})
	require.NoError(t, err)
	require.Equal(t, 3, d.count(cuTexObjectCreate))
	require.NoError(t, g.Close())
	require.NoError(t, l.Close())

	// Objects end with the memory that they read.
	require.NoError(t, p.Free(memory))
	require.Equal(t, 3, d.count(cuTexObjectDestroy))
	require.NoError(t, w.close())
	require.NoError(t, p.Close())
	d.clean(t)
}

// Objects over memory that the platform did not allocate end with the platform.
func TestTextureObjectsOverOtherMemory(t *testing.T) {
	d := newFakeDriver(t)
	p := d.open(t)
	w, err := newBench(p)
	require.NoError(t, err)
	l, err := p.Encode([]cudart.Command{w.through(1<<40, image())}, cudart.ListOptions{Origin: w.origin})
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.NoError(t, w.close())
	require.Zero(t, d.count(cuTexObjectDestroy))
	require.NoError(t, p.Close())
	require.Equal(t, 1, d.count(cuTexObjectDestroy))
	d.clean(t)
}

func TestTexturesThatTheDeviceRefuses(t *testing.T) {
	d := newFakeDriver(t)
	p := d.open(t)
	w, err := newBench(p)
	require.NoError(t, err)
	for _, c := range []struct {
		at     cudart.Ptr
		change func(*cudart.Texture)
		want   string
	}{
		{1<<40 + 256, func(*cudart.Texture) {}, `node "fetch": kernel scale: argument 0: a texture at address 0x10000000100; device 0 needs textures at multiples of 512 bytes`},
		{1 << 40, func(x *cudart.Texture) { x.Pitch = 4080 }, `node "fetch": kernel scale: argument 0: a texture with rows that are 4080 bytes apart; device 0 needs a multiple of 32`},
		{1 << 40, func(x *cudart.Texture) { x.Depth, x.Height = 2, 8 }, `node "fetch": kernel scale: argument 0: not supported: a texture of three dimensions needs a CUDA array`},
		{1 << 40, func(x *cudart.Texture) { x.Height = 1000 }, `node "fetch": kernel scale: argument 0: it takes 4095904 bytes, but its memory has 1048576`},
	} {
		texture := image()
		c.change(texture)
		_, err := p.Encode([]cudart.Command{w.through(c.at, texture)}, cudart.ListOptions{Origin: w.origin})
		require.EqualError(t, err, c.want)
	}
	d.failOn[cuTexObjectCreate] = codeInvalidValue
	_, err = p.Encode([]cudart.Command{w.through(1<<40, image())}, cudart.ListOptions{Origin: w.origin})
	require.ErrorContains(t, err, `node "fetch": kernel scale: argument 0: `)
	require.ErrorContains(t, err, "cuTexObjectCreate")
	delete(d.failOn, cuTexObjectCreate)
	require.NoError(t, w.close())
	require.NoError(t, p.Close())
	d.clean(t)
}
